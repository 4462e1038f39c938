package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

func (a *app) deadCommand() *cobra.Command {
	cmd := a.group("dlq", "Dead letters: messages that groups have given up on", a.deadListCommand(), a.deadShowCommand(),
		a.deadRedriveCommand(), a.deadExportCommand(), a.deadPurgeCommand())
	cmd.Aliases = []string{"dead"}
	return cmd
}

func (a *app) deadListCommand() *cobra.Command {
	limit := 0
	cmd := &cobra.Command{
		Use: "ls [GROUP]", Aliases: []string{"list"}, Short: "List the dead letters of a group, or the groups that have some", Args: a.args(0, 1),
		Example: a.example("dlq ls", "which groups", "dlq ls billing", "oldest first"),
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "list so `MANY` dead letters; 0 is all")
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if limit < 0 {
			return usage(fmt.Sprintf("--limit %d", limit), "want at least 0")
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		if len(args) == 0 {
			return a.deadGroups(cmd.Context(), c)
		}
		return a.deadLetters(cmd.Context(), c, args[0], limit)
	}
	return cmd
}

func (a *app) deadGroups(ctx context.Context, c *client.Client) error {
	var groups []wire.DeadGroup
	for cursor := ""; ; {
		w, err := c.DeadGroups(ctx, listing, cursor)
		if err != nil {
			return a.answered(ctx, "cannot list groups with dead letters", err)
		}
		groups = append(groups, w.Groups...)
		if cursor = w.Cursor; cursor == "" {
			break
		}
	}
	if !a.forPeople() {
		return all(a, groups)
	}
	if len(groups) == 0 {
		fmt.Fprintln(a.Stderr, "no dead letters")
		return nil
	}
	t := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "GROUP\tDEAD")
	for _, g := range groups {
		fmt.Fprintf(t, "%s\t%s\n", g.Group, count(g.Dead))
	}
	return t.Flush()
}

func (a *app) deadLetters(ctx context.Context, c *client.Client, group string, limit int) error {
	out, cursor := list{a: a}, ""
	for {
		most := maxPage
		if limit > 0 {
			most = min(most, limit-out.n)
		}
		p, err := c.DeadLetters(ctx, group, false, most, cursor)
		if err != nil {
			return a.answered(ctx, "cannot list the dead letters of "+group, err)
		}
		if err := a.messagePage(&out, p.Messages, deadHead, a.deadRow); err != nil {
			return err
		}
		if cursor = p.Cursor; cursor == "" || limit > 0 && out.n >= limit {
			break
		}
	}
	if err := out.end(); err != nil || !a.forPeople() {
		return err
	}
	if out.n == 0 {
		fmt.Fprintf(a.Stderr, "group %s has no dead letters\n", group)
	} else if cursor != "" {
		fmt.Fprintf(a.Stderr, "there are more: --limit %d, or 0 for all\n", 10*limit)
	}
	return nil
}

// deadHead is the head of a table of dead letters.
const deadHead = "DEAD SINCE\tTOPIC\tKEY\tATTEMPTS\tREASON\tORIGIN\tID"

func (a *app) deadRow(m *wire.Message) string {
	return fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s\t%s", a.instant(m.VisibleAt), m.OriginTopic, dash(quoted(m.Key)), m.Attempt, dash(quoted(m.Reason)), m.Origin, m.ID)
}

func (a *app) deadShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a dead letter with its body", Args: a.args(1, 1), Example: a.example("dlq show 0000000000000080", ""),
	}
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.showMessage(cmd.Context(), r, args[0]) }
	return cmd
}

func (a *app) deadRedriveCommand() *cobra.Command {
	ask := wire.Redrive{}
	delay, detach := "", false
	cmd := &cobra.Command{
		Use: "redrive GROUP [ID...]", Short: "Deliver dead letters to their group again", Args: a.args(1, -1),
		Long: `Deliver dead letters to their group again: those that are named, or all that there are now. Only
that group gets them, and their attempts count anew. It says how many, then asks, unless --yes is
given; the server does it in the background (see ` + "`op`" + `).`,
		Example: a.example(
			"dlq redrive billing", "",
			"dlq redrive billing --after 10m --rate 50", "in ten minutes, 50 a second",
			"dlq redrive billing 0000000000000080 --yes", "",
		),
	}
	f := cmd.Flags()
	f.StringVar(&delay, "after", "", "due so `LONG` from when each is redriven: 10m")
	f.IntVar(&ask.Rate, "rate", 0, "so `MANY` a second at most; 0 is any number")
	f.BoolVar(&detach, "detach", false, "do not wait for the end")
	consent := a.consentFlags(cmd)
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if ask.Rate < 0 {
			return usage(fmt.Sprintf("--rate %d", ask.Rate), "want at least 0")
		}
		if delay != "" {
			d, err := wire.ParseDelay(delay)
			if err != nil {
				return usage("--after "+quote(delay), "%w", err)
			}
			ask.Delay = wire.Duration(d)
		}
		ask.IDs = args[1:]
		b := &bulk{a: a, consent: consent, remote: r, detach: detach, verb: "redrive", done: "redriven", none: "no dead letters to redrive"}
		b.start = func(ctx context.Context, c *client.Client, _ wire.Filter, dry bool) (wire.Operation, error) {
			ask.DryRun = dry
			return c.Redrive(ctx, args[0], ask)
		}
		return b.run(cmd.Context(), wire.Filter{})
	}
	return cmd
}

func (a *app) deadExportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "export GROUP [FILE|-]", Short: "Write the dead letters of a group with their bodies, one in JSON a line", Args: a.args(1, 2),
		Long: `Write the dead letters of a group with their bodies, oldest first, one in JSON a line: to standard
output, or to a file, which must not be there yet. They stay dead letters.`,
		Example: a.example("dlq export billing dead.jsonl", "", "dlq export billing | jq -r .text", ""),
	}
	r := a.serverFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		if len(args) < 2 || args[1] == streamArgument {
			_, err := a.exportDead(cmd.Context(), c, args[0], a.Stdout)
			return err
		}
		f, err := os.OpenFile(args[1], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			fail := &failure{code: exitFailure, what: "cannot write " + args[1], why: err}
			if errors.Is(err, os.ErrExist) {
				fail.code, fail.why, fail.next = exitConflict, errors.New("it is there already"), "take another name"
			}
			return fail
		}
		n, err := a.exportDead(cmd.Context(), c, args[0], f)
		if cerr := f.Close(); err == nil && cerr != nil {
			err = &failure{code: exitFailure, what: "cannot write " + args[1], why: cerr}
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(a.Stdout, "%s in %s\n", several(n, "dead letter"), args[1])
		return nil
	}
	return cmd
}

// exportPage is how many dead letters one request asks for with their bodies.
const exportPage = 50

func (a *app) exportDead(ctx context.Context, c *client.Client, group string, w io.Writer) (int64, error) {
	undone := "not all dead letters of " + group + " were written"
	bar := a.progress("exporting", count[int64])
	defer bar.end()
	g, err := c.Group(ctx, group)
	if err != nil {
		return 0, a.answered(ctx, "cannot export the dead letters of "+group, err)
	}
	out := bufio.NewWriter(w)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	n := int64(0)
	for cursor := ""; ; {
		p, err := c.DeadLetters(ctx, group, true, exportPage, cursor)
		if err != nil {
			return n, errors.Join(a.answered(ctx, undone, err), out.Flush())
		}
		for i := range p.Messages {
			if err := e.Encode(&p.Messages[i]); err != nil {
				return n, &failure{code: exitFailure, what: undone, why: err}
			}
			n++
		}
		bar.set(n, g.Dead)
		if cursor = p.Cursor; cursor == "" {
			break
		}
	}
	if err := out.Flush(); err != nil {
		return n, &failure{code: exitFailure, what: undone, why: err}
	}
	return n, nil
}

func (a *app) deadPurgeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "purge GROUP [ID...]", Short: "Drop dead letters of a group", Args: a.args(1, -1),
		Long: `Drop dead letters of a group: those that are named, or all. It says how many, then asks, unless --yes
is given; it cannot be undone.`,
		Example: a.example("dlq purge billing 0000000000000080", "", "dlq purge billing --yes", "all of them"),
	}
	consent := a.consentFlags(cmd)
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, group, ids := cmd.Context(), args[0], args[1:]
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		undone := "no dead letter of " + group + " was dropped"
		g, err := c.Group(ctx, group)
		if err != nil {
			return a.answered(ctx, undone, err)
		}
		what, word := fmt.Sprintf("drop all %s of %s", several(g.Dead, "dead letter"), group), group
		if len(ids) > 0 {
			what, word = fmt.Sprintf("drop %s of %s", several(len(ids), "dead letter"), group), ""
		}
		if consent.dryRun {
			return a.one(wire.DeadGroup{Group: group, Dead: g.Dead}, "would "+what)
		}
		if err := consent.ask(ctx, what, word); err != nil {
			return err
		}
		p, err := c.PurgeDead(ctx, group, ids)
		if err != nil {
			f := a.answered(ctx, undone, err)
			if f.code == exitNotFound {
				f.next = fmt.Sprintf("%s dlq ls %s%s", a.self, group, r.argument())
			}
			return f
		}
		return a.one(p, fmt.Sprintf("%s  %s dropped", group, several(p.Purged, "dead letter")))
	}
	return cmd
}
