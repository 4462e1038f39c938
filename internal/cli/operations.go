package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

func (a *app) operationCommand() *cobra.Command {
	cmd := a.group("op", "Operations that change many messages, in the background",
		a.operationListCommand(), a.operationGetCommand(), a.operationWaitCommand(), a.operationStopCommand())
	cmd.Aliases = []string{"operation"}
	return cmd
}

func (a *app) operationListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List operations, oldest first", Args: a.args(0, 0),
		Long:    `List the operations that the server remembers, oldest first: those that run, and those that ended.`,
		Example: a.example("op ls", ""),
	}
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		w, err := c.Operations(cmd.Context())
		if err != nil {
			return a.answered(cmd.Context(), "cannot list operations", err)
		}
		return a.listOperations(w.Operations)
	}
	return cmd
}

func (a *app) listOperations(ops []wire.Operation) error {
	if !a.forPeople() {
		return all(a, ops)
	}
	if len(ops) == 0 {
		fmt.Fprintln(a.Stderr, "no operations")
		return nil
	}
	t := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tKIND\tSTATE\tDONE\tMISSED\tBEGAN\tTOOK")
	for i := range ops {
		o := &ops[i]
		took := "-"
		if o.EndedAt != 0 {
			took = span(o.EndedAt.Time().Sub(o.BeganAt.Time()))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", o.ID, o.Kind, o.State, count(o.Done), count(o.Missed), a.instant(o.BeganAt), took)
	}
	return t.Flush()
}

// all writes results for a program.
func all[T any](a *app, values []T) error {
	out := list{a: a}
	for i := range values {
		if err := out.add(&values[i], ""); err != nil {
			return err
		}
	}
	return out.end()
}

func (a *app) operationGetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "get OPERATION", Short: "Show an operation", Args: a.args(1, 1), Example: a.example("op get op-12", ""),
	}
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		op, err := c.Operation(cmd.Context(), args[0], 0)
		if err != nil {
			return a.answered(cmd.Context(), "cannot look at "+args[0], err)
		}
		return a.one(op, a.operationDetails(&op))
	}
	return cmd
}

func (a *app) operationDetails(o *wire.Operation) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, value)
		}
	}
	line("id", o.ID)
	line("kind", o.Kind)
	line("state", string(o.State))
	if o.Filter != nil {
		line("selected", a.filterText(o.Filter))
	}
	if o.Matched > 0 {
		line("matched", count(o.Matched))
	}
	line("done", count(o.Done))
	line("missed", count(o.Missed))
	line("began", a.instant(o.BeganAt))
	if o.EndedAt != 0 {
		line("ended", a.instant(o.EndedAt))
	}
	line("error", o.Error)
	return strings.TrimSuffix(b.String(), "\n")
}

// filterText writes a filter as --where takes it.
func (a *app) filterText(f *wire.Filter) string {
	var terms []string
	add := func(name, value string) {
		if value != "" {
			terms = append(terms, name+value)
		}
	}
	add("topic=", f.Topic)
	add("tag=", f.Tag)
	add("key=", f.Key)
	add("id=", strings.Join(f.IDs, ","))
	add("state=", string(f.State))
	if f.From != 0 {
		add("due>=", f.From.String())
	}
	if f.To != 0 {
		add("due<", f.To.String())
	}
	if f.Overdue {
		add("overdue", " ")
	}
	if len(terms) == 0 {
		return "everything"
	}
	return strings.TrimSpace(strings.Join(terms, " "))
}

func (a *app) operationWaitCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "wait OPERATION", Short: "Wait for the end of an operation", Args: a.args(1, 1),
		Long: `Wait for the end of an operation, with a progress bar on a terminal. The exit code is 7 if it was
stopped before its end. An interrupt ends the waiting, not the operation.`,
		Example: a.example("op wait op-12", ""),
	}
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		op, err := c.Operation(cmd.Context(), args[0], 0)
		if err != nil {
			return a.answered(cmd.Context(), "cannot wait for "+args[0], err)
		}
		return a.finish(cmd.Context(), c, r, &op, op.Matched)
	}
	return cmd
}

// How long one question after a running operation waits for its end: with a bar
// to draw, and without.
const (
	watchFor = 300 * time.Millisecond
	waitFor  = 20 * time.Second
)

// waitFor waits until an operation has ended.
func (a *app) waitFor(ctx context.Context, c *client.Client, op *wire.Operation, total int64) (wire.Operation, error) {
	bar := a.progress(op.ID, count[int64])
	defer bar.end()
	wait := waitFor
	if bar.width > 0 {
		wait = watchFor
	}
	now := *op
	for now.State == wire.OperationRunning {
		bar.set(int64(now.Done+now.Missed), total)
		var err error
		if now, err = c.Operation(ctx, op.ID, wait); err != nil {
			return now, err
		}
	}
	return now, nil
}

func (a *app) operationStopCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "stop OPERATION...", Short: "End operations before their end", Args: a.args(1, -1),
		Long:    `End operations before their end. What they have done stays done.`,
		Example: a.example("op stop op-12", ""),
	}
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.each(cmd.Context(), r, args, "stopped", func(ctx context.Context, c *client.Client, id string) (any, string, error) {
			op, err := c.StopOperation(ctx, id)
			if err == nil && op.State == wire.OperationRunning {
				err = errors.New("it still runs")
			}
			line := fmt.Sprintf("%s  %s: %s", id, op.State, a.outcome(&op))
			return op, line, err
		})
	}
	return cmd
}

func (a *app) transactionCommand() *cobra.Command {
	end := func(verb, done, short string, commit bool) *cobra.Command {
		cmd := &cobra.Command{Use: verb + " ID...", Short: short, Args: a.args(1, -1), Example: a.example("tx "+verb+" 0000000000000080", "")}
		r := a.serverFlag(cmd)
		a.outputFlag(cmd)
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			return a.each(cmd.Context(), r, args, done, func(ctx context.Context, c *client.Client, id string) (any, string, error) {
				w, err := c.EndTransaction(ctx, id, commit)
				line := fmt.Sprintf("%s  %s  %s", w.ID, w.Topic, done)
				if commit && w.DeliverAt != 0 {
					line += fmt.Sprintf(", due %s (%s)", a.instant(w.DeliverAt), a.until(w.DeliverAt))
				}
				return w, line, err
			})
		}
		return cmd
	}
	cmd := a.group("tx", "Half messages, whose transactions have not ended", a.transactionListCommand(),
		end("commit", "committed", "Have half messages delivered, with their delays counted from now", true),
		end("rollback", "rolled back", "Drop half messages", false))
	cmd.Aliases = []string{"transaction"}
	return cmd
}

func (a *app) transactionListCommand() *cobra.Command {
	producer := ""
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List half messages", Args: a.args(0, 0),
		Example: a.example("tx ls --producer shop", ""),
	}
	cmd.Flags().StringVar(&producer, "producer", "", "only of that `GROUP` of producers")
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		w, err := c.Transactions(cmd.Context(), producer)
		if err != nil {
			return a.answered(cmd.Context(), "cannot list half messages", err)
		}
		if !a.forPeople() {
			return all(a, w.Messages)
		}
		if len(w.Messages) == 0 {
			fmt.Fprintln(a.Stderr, "no half messages")
			return nil
		}
		t := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "SENT\tAGO\tTOPIC\tKEY\tTAG\tCHECKS\tID")
		for i := range w.Messages {
			m := &w.Messages[i]
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", a.instant(m.BornAt), strings.TrimSuffix(a.until(m.BornAt), " ago"), m.Topic,
				dash(quoted(m.Key)), dash(quoted(m.Tag)), m.Checks, m.ID)
		}
		return t.Flush()
	}
	return cmd
}

func (a *app) limitsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "limits", Short: "Show the limits of everything", Args: a.args(0, 0), Example: a.example("limits", "")}
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		w, err := c.Limits(cmd.Context())
		if err != nil {
			return a.answered(cmd.Context(), "cannot show limits", err)
		}
		if !a.forPeople() {
			return all(a, w.Limits)
		}
		t := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "LIMIT\tVALUE\tWHAT")
		for _, l := range w.Limits {
			fmt.Fprintf(t, "%s\t%s\t%s\n", l.Name, limitText(&l), l.What)
		}
		return t.Flush()
	}
	return cmd
}

// limitText gives the value of a limit for people.
func limitText(l *wire.Limit) string {
	switch l.Unit {
	case "bytes":
		return size(l.Value)
	case "ms":
		return span(time.Duration(l.Value) * time.Millisecond)
	}
	return strings.TrimSpace(count(l.Value) + " " + l.Unit)
}
