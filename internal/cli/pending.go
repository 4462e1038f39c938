package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

func (a *app) pendingCommand() *cobra.Command {
	return a.group("pending", "Look at the future, and change it: what waits",
		a.pendingListCommand(), a.pendingGetCommand(), a.pendingCountCommand(), a.pendingTimelineCommand(),
		a.bulkCancelCommand(), a.bulkRescheduleCommand(), a.bulkSpreadCommand(), a.bulkDeliverCommand())
}

func (a *app) pendingListCommand() *cobra.Command {
	var s selection
	limit := 0
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List what waits, in the order of falling due",
		Long: "List what waits, in the order of falling due.\n\n" + whereLong,
		Example: a.example(
			"pending ls", "",
			"pending ls --topic orders --within 1h", "what falls due in the next hour",
			"pending ls --limit 0 -o jsonl", "everything, for a program",
		),
		Args: a.args(0, 0),
	}
	s.flags(cmd)
	cmd.Flags().IntVar(&limit, "limit", 50, "list so `MANY`; 0 is all")
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if limit < 0 {
			return usage(fmt.Sprintf("--limit %d", limit), "want at least 0")
		}
		if err := s.read(a, cmd); err != nil {
			return err
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		return a.listPending(cmd.Context(), c, s.query, limit)
	}
	return cmd
}

// maxPage is how many messages one request may list.
const maxPage = 1000

func (a *app) listPending(ctx context.Context, c *client.Client, q wire.PendingQuery, limit int) error {
	out := list{a: a}
	for limit == 0 || out.n < limit {
		q.Limit = maxPage
		if limit > 0 {
			q.Limit = min(maxPage, limit-out.n)
		}
		page, err := c.Pending(ctx, q)
		if err != nil {
			return a.answered(ctx, "cannot list what waits", err)
		}
		if err := a.messagePage(&out, page.Messages, pendingHead, a.pendingRow); err != nil {
			return err
		}
		if q.Cursor = page.Cursor; q.Cursor == "" {
			break
		}
	}
	if err := out.end(); err != nil || !a.forPeople() {
		return err
	}
	if out.n == 0 {
		fmt.Fprintln(a.Stderr, "nothing waits")
	} else if q.Cursor != "" {
		fmt.Fprintf(a.Stderr, "there are more: --limit %d, or 0 for all\n", 10*limit)
	}
	return nil
}

// messagePage adds a page of messages, as a table or as JSON.
func (a *app) messagePage(out *list, msgs []wire.Message, head string, row func(*wire.Message) string) error {
	if !a.forPeople() {
		for i := range msgs {
			if err := out.add(&msgs[i], ""); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	if out.n == 0 && len(msgs) > 0 {
		fmt.Fprintln(t, head)
	}
	for i := range msgs {
		fmt.Fprintln(t, row(&msgs[i]))
		out.n++
	}
	return t.Flush()
}

// pendingHead is the head of a table of messages that wait.
const pendingHead = "DUE\tIN\tTOPIC\tKEY\tTAG\tID"

func (a *app) pendingRow(m *wire.Message) string {
	in := strings.TrimPrefix(a.until(m.DeliverAt), "in ")
	if m.State == wire.StatePaused {
		in = "held back"
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", a.instant(m.DeliverAt), in, m.Topic, dash(quoted(m.Key)), dash(quoted(m.Tag)), m.ID)
}

// quoted is quote for what may be missing.
func quoted(s string) string {
	if s == "" {
		return ""
	}
	return quote(s)
}

func (a *app) pendingGetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "get ID|HANDLE", Short: "Look at one message, wherever it is", Args: a.args(1, 1),
		Example: a.example("pending get 0000000000000080", ""),
	}
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.showMessage(cmd.Context(), r, args[0]) }
	return cmd
}

// showMessage shows a message by id or handle.
func (a *app) showMessage(ctx context.Context, r *remote, ref string) error {
	c, err := r.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	m, err := c.Message(ctx, ref)
	if err != nil {
		return a.answered(ctx, "cannot look at "+shorten(ref), err)
	}
	return a.one(m, strings.TrimSuffix(a.details(&m), "\n"))
}

// details shows all of a message that there is.
func (a *app) details(m *wire.Message) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, value)
		}
	}
	at := func(name string, t wire.Time) {
		if t != 0 {
			line(name, fmt.Sprintf("%s (%s)", t.Time().In(a.Zone).Format("2006-01-02 15:04:05.000 -07:00"), a.until(t)))
		}
	}
	line("id", m.ID)
	line("state", string(m.State))
	place := fmt.Sprintf("%s, queue %d", m.Topic, m.Queue)
	if m.Offset != nil {
		place += fmt.Sprintf(", offset %d", *m.Offset)
	}
	line("topic", place)
	at("born", m.BornAt)
	at("due", m.DeliverAt)
	at("visible", m.VisibleAt)
	at("next try", m.NextAttemptAt)
	if m.LatenessMs != nil {
		line("lateness", lateness(*m.LatenessMs))
	}
	line("key", m.Key)
	line("tag", m.Tag)
	names := make([]string, 0, len(m.Headers))
	for name := range m.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		line("header", quote(name+"="+m.Headers[name]))
	}
	if m.Attempt > 0 {
		line("attempt", count(m.Attempt))
	}
	line("group", m.Group)
	line("origin", strings.TrimSpace(m.Origin+"  "+m.OriginTopic))
	line("reason", m.Reason)
	if m.Checks > 0 {
		line("checks", count(m.Checks))
	}
	line("body", body(m.Body))
	line("handle", m.Handle)
	return b.String()
}

func (a *app) pendingCountCommand() *cobra.Command {
	var s selection
	cmd := &cobra.Command{
		Use: "count", Short: "Count what waits", Args: a.args(0, 0),
		Long:    "Count what waits.\n\n" + whereLong,
		Example: a.example("pending count --topic orders", "", "pending count --within 1h", ""),
	}
	s.flags(cmd)
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := s.read(a, cmd); err != nil {
			return err
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		n, err := c.Count(cmd.Context(), s.query)
		if err != nil {
			return a.answered(cmd.Context(), "cannot count what waits", err)
		}
		return a.one(wire.Count{Count: n}, strconv.FormatInt(n, 10))
	}
	return cmd
}
