package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

func (a *app) groupCommand() *cobra.Command {
	return a.group("group", "Groups of receivers: settings, lag, positions", a.groupListCommand(), a.groupGetCommand(), a.groupLagCommand(),
		a.groupCreateCommand(), a.groupUpdateCommand(), a.groupResetCommand(), a.groupEndCommand())
}

func (a *app) groupListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List groups by name", Args: a.args(0, 0), Example: a.example("group ls", ""),
	}
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		var groups []wire.Group
		for cursor := ""; ; {
			w, err := c.Groups(cmd.Context(), listing, cursor)
			if err != nil {
				return a.answered(cmd.Context(), "cannot list groups", err)
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
			fmt.Fprintf(a.Stderr, "no groups; the first receive makes one: %s recv TOPIC --group GROUP\n", a.self)
			return nil
		}
		t := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "GROUP\tSTART\tATTEMPTS\tBACKOFF\tDEAD")
		for i := range groups {
			g := &groups[i]
			fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", g.Name, a.startText(g.Start), g.MaxAttempts, backoffText(g.Backoff, 3), count(g.Dead))
		}
		return t.Flush()
	}
	return cmd
}

// startText tells where a group begins.
func (a *app) startText(start string) string {
	if t, err := wire.ParseInstant(start, nil); err == nil {
		return a.instant(wire.TimeOf(t))
	}
	return start
}

// backoffText writes a back-off as it is typed, as far as it is shown.
func backoffText(backoff []wire.Duration, show int) string {
	words := make([]string, 0, len(backoff))
	for i, d := range backoff {
		if show > 0 && i == show && len(backoff) > show+1 {
			words = append(words, "…", wire.Short(time.Duration(backoff[len(backoff)-1])))
			break
		}
		words = append(words, wire.Short(time.Duration(d)))
	}
	return dash(strings.Join(words, " "))
}

// oneGroup shows a group.
func (a *app) oneGroup(r *remote, cmd *cobra.Command, name string, show func(*wire.Group) error) error {
	c, err := r.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	g, err := c.Group(cmd.Context(), name)
	if err != nil {
		return a.answered(cmd.Context(), "cannot look at group "+name, err)
	}
	return show(&g)
}

func (a *app) groupGetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get GROUP", Short: "Show a group", Args: a.args(1, 1), Example: a.example("group get billing", "")}
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.oneGroup(r, cmd, args[0], func(g *wire.Group) error { return a.one(g, a.groupDetails(g)) })
	}
	return cmd
}

func (a *app) groupDetails(g *wire.Group) string {
	var b strings.Builder
	line := func(name, value string) { fmt.Fprintf(&b, "%-10s %s\n", name, value) }
	line("group", g.Name)
	line("start", a.startText(g.Start))
	line("attempts", fmt.Sprintf("%d, then a message is a dead letter", g.MaxAttempts))
	line("backoff", backoffText(g.Backoff, 0))
	line("inflight", fmt.Sprintf("at most %s of a queue", count(g.InflightMax)))
	line("invisible", span(time.Duration(g.Invisible)))
	line("dead", count(g.Dead))
	for i := range g.Topics {
		t := &g.Topics[i]
		line("topic", fmt.Sprintf("%s: lag %s, %s in flight, %s retrying, %s skipped", t.Topic, count(t.Lag), count(t.Inflight), count(t.Retrying), count(t.Skipped)))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (a *app) groupLagCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "lag GROUP [TOPIC]", Short: "See how far a group is behind, queue by queue", Args: a.args(1, 2),
		Long: `See how far a group is behind, queue by queue. LAG is what is delivered and not finished; of that,
INFLIGHT is leased and RETRYING waits for its back-off. SKIPPED is what retention took before the
group was finished with it.`,
		Example: a.example("group lag billing", "", "group lag billing orders -o json", ""),
	}
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.oneGroup(r, cmd, args[0], func(g *wire.Group) error {
			topics := g.Topics
			if len(args) > 1 {
				topics = nil
				for i := range g.Topics {
					if g.Topics[i].Topic == args[1] {
						topics = g.Topics[i : i+1]
					}
				}
			}
			return a.lag(g, topics)
		})
	}
	return cmd
}

func (a *app) lag(g *wire.Group, topics []wire.GroupTopic) error {
	if !a.forPeople() {
		return all(a, topics)
	}
	if len(topics) == 0 {
		fmt.Fprintf(a.Stderr, "group %s has not begun there\n", g.Name)
		return nil
	}
	t := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TOPIC\tQUEUE\tLOW\tBASE\tNEXT\tLAG\tINFLIGHT\tRETRYING\tSKIPPED")
	for i := range topics {
		p := &topics[i]
		for j := range p.Queues {
			q := &p.Queues[j]
			fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", p.Topic, q.Queue, q.Low, q.Base, q.Next, q.Lag, q.Inflight, q.Retrying, q.Skipped)
		}
		fmt.Fprintf(t, "%s\tall\t\t\t\t%d\t%d\t%d\t%d\n", p.Topic, p.Lag, p.Inflight, p.Retrying, p.Skipped)
	}
	return t.Flush()
}

// groupSettings are the settings of a group, as flags.
type groupSettings struct {
	a       *app
	start   string
	zone    string
	backoff string
	hidden  string

	flags       *pflag.FlagSet
	maxAttempts int
	inflightMax int
}

func (s *groupSettings) register(f *pflag.FlagSet) {
	s.flags = f
	f.StringVar(&s.start, "start", "", "`WHERE` it begins in a queue: earliest (default), latest, or an instant")
	f.StringVar(&s.zone, "tz", "", "time `ZONE` of an instant that names none; default this machine's")
	f.IntVar(&s.maxAttempts, "max-attempts", 0, "after so `MANY` a message is a dead letter; default 17")
	f.StringVar(&s.backoff, "backoff", "", "`DELAYS` before each retry, the last one repeats: 1s,5s,30s; default the levels from 10s on")
	f.IntVar(&s.inflightMax, "inflight-max", 0, "lease so `MANY` of a queue at once; default 10000")
	f.StringVar(&s.hidden, "invisible", "", "lease for so `LONG`, unless a receive says it; default 30s")
}

// read gives what was typed; some says that something was.
func (s *groupSettings) read() (w wire.GroupSettings, some bool, err error) {
	if s.flags.Changed("max-attempts") {
		w.MaxAttempts = &s.maxAttempts
	}
	if s.flags.Changed("inflight-max") {
		w.InflightMax = &s.inflightMax
	}
	if w.Start, err = s.a.position("start", s.start, s.zone); err != nil {
		return w, false, err
	}
	for i, text := range strings.FieldsFunc(s.backoff, func(r rune) bool { return r == ' ' || r == ',' }) {
		d, err := wire.ParseDuration(text)
		if err != nil {
			return w, false, usage("--backoff "+quote(s.backoff), "delay %d: %w", i+1, err)
		}
		w.Backoff = append(w.Backoff, wire.Duration(d))
	}
	if s.hidden != "" {
		d, err := wire.ParseDuration(s.hidden)
		if err != nil {
			return w, false, usage("--invisible "+quote(s.hidden), "%w", err)
		}
		w.Invisible = new(wire.Duration(d))
	}
	return w, s.start != "" || w.MaxAttempts != nil || w.Backoff != nil || w.InflightMax != nil || w.Invisible != nil, nil
}

// position reads earliest, latest or an instant.
func (a *app) position(flag, text, zone string) (string, error) {
	if text == "" || text == "earliest" || text == "latest" {
		return text, nil
	}
	w := when{atName: flag, atText: text, zone: zone}
	at, err := w.at(a.Zone)
	if err != nil {
		return "", usage("--"+flag+" "+quote(text), "want earliest, latest, or an instant such as 2026-12-01T09:00+08:00")
	}
	return at, nil
}

func (a *app) groupCreateCommand() *cobra.Command {
	s := groupSettings{a: a}
	cmd := &cobra.Command{
		Use: "create GROUP", Short: "Make a group", Args: a.args(1, 1),
		Long: `Make a group. The first receive makes one as well, which begins with the earliest message; this is
for one with other settings. A group that is there and is the same is no error.`,
		Example: a.example(
			"group create billing --start latest", "",
			"group create mail --max-attempts 5 --backoff 1s,5s,30s", "",
		),
	}
	s.register(cmd.Flags())
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		w, _, err := s.read()
		if err != nil {
			return err
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		g, err := c.CreateGroup(cmd.Context(), wire.NewGroup{Name: args[0], GroupSettings: w})
		if err != nil {
			f := a.answered(cmd.Context(), "group "+args[0]+" was not made", err)
			if f.code == exitConflict {
				f.next = fmt.Sprintf("change it: %s group update %s%s (and the same flags)", a.self, args[0], r.argument())
			}
			return f
		}
		return a.one(g, a.groupDetails(&g))
	}
	return cmd
}

func (a *app) groupUpdateCommand() *cobra.Command {
	s := groupSettings{a: a}
	cmd := &cobra.Command{
		Use: "update GROUP", Short: "Change settings of a group", Args: a.args(1, 1),
		Long:    `Change settings of a group; those that are not named stay. Where it starts counts in queues in which it has not begun.`,
		Example: a.example("group update mail --max-attempts 5", ""),
	}
	s.register(cmd.Flags())
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		w, some, err := s.read()
		if err != nil {
			return err
		}
		if !some {
			f := usage("nothing to change", "give a setting")
			f.next = a.help(cmd)
			return f
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		g, err := c.UpdateGroup(cmd.Context(), args[0], w)
		if err != nil {
			return a.answered(cmd.Context(), "group "+args[0]+" was not changed", err)
		}
		return a.one(g, a.groupDetails(&g))
	}
	return cmd
}

func (a *app) groupEndCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rm GROUP", Short: "Delete a group with its positions and its dead letters", Args: a.args(1, 1),
		Long: `Delete a group with its positions and its dead letters. It wants the group's name typed, unless --yes
is given; it cannot be undone. A receive under that name makes a new group, which begins anew.`,
		Example: a.example("group rm billing", ""),
	}
	consent := a.consentFlags(cmd)
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return a.oneGroup(r, cmd, args[0], func(g *wire.Group) error {
			what := fmt.Sprintf("delete group %s, its positions in %s and %s", g.Name, several(len(g.Topics), "topic"), several(g.Dead, "dead letter"))
			if consent.dryRun {
				return a.one(g, "would "+what)
			}
			if err := consent.ask(ctx, what, g.Name); err != nil {
				return err
			}
			c, err := r.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.DeleteGroup(ctx, g.Name); err != nil {
				return a.answered(ctx, "group "+g.Name+" was not deleted", err)
			}
			return a.one(g, g.Name+"  deleted")
		})
	}
	return cmd
}
