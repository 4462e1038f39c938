package cli

import (
	"fmt"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// A resetting is one run of group reset.
type resetting struct {
	a        *app
	group    string
	ask      wire.Reset
	to, zone string
	consent  *consent
	remote   *remote
}

func (a *app) groupResetCommand() *cobra.Command {
	g := &resetting{a: a}
	cmd := &cobra.Command{
		Use: "reset GROUP", Short: "Have a group go on elsewhere in a topic", Args: a.args(1, 1),
		Long: `Have a group go on elsewhere in all queues of a topic: with the earliest message that is kept, after
the latest, with what was delivered at an instant or later, or at an offset. What it has finished,
leased and retried there is forgotten. It shows where, then asks, unless --yes is given.`,
		Example: a.example(
			"group reset billing --topic orders --to earliest", "all of it again",
			"group reset billing --topic orders --to '2026-12-01 09:00' --dry-run", "",
			"group reset billing --topic orders --to 1000 --yes", "an offset",
		),
	}
	f := cmd.Flags()
	f.StringVar(&g.ask.Topic, "topic", "", "in that `TOPIC`")
	f.StringVar(&g.to, "to", "", "go on `WHERE`: earliest, latest, an instant, or an offset")
	f.StringVar(&g.zone, "tz", "", "time `ZONE` of an instant that names none; default this machine's")
	g.consent = a.consentFlags(cmd)
	g.remote = a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		g.group = args[0]
		if g.ask.Topic == "" || g.to == "" {
			u := usage("no --topic or no --to", "say in which topic, and where to")
			u.next = a.help(cmd)
			return u
		}
		if offset, err := strconv.ParseUint(g.to, 10, 63); err == nil && len(g.to) < 13 { // longer ones are Unix ms
			g.ask.Offset = &offset
		} else if g.ask.To, err = a.position("to", g.to, g.zone); err != nil {
			return err
		}
		return g.run(cmd)
	}
	return cmd
}

func (g *resetting) run(cmd *cobra.Command) error {
	a, ctx := g.a, cmd.Context()
	c, err := g.remote.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	undone := fmt.Sprintf("group %s was not moved in %s", g.group, g.ask.Topic)
	dry := g.ask
	dry.DryRun = true
	w, err := c.ResetGroup(ctx, g.group, dry)
	if err != nil {
		return a.answered(ctx, undone, err)
	}
	if g.consent.dryRun && !a.forPeople() {
		return a.one(w, "")
	}
	if a.forPeople() {
		t := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "QUEUE\tFINISHED BELOW\tPULLED TO\tGOES ON AT")
		for _, q := range w.Queues {
			fmt.Fprintf(t, "%d\t%d\t%d\t%d\n", q.Queue, q.Base, q.Pulled, q.To)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if g.consent.dryRun {
		return nil
	}
	if err := g.consent.ask(ctx, fmt.Sprintf("move group %s in %s", g.group, g.ask.Topic), ""); err != nil {
		return err
	}
	if w, err = c.ResetGroup(ctx, g.group, g.ask); err != nil {
		return a.answered(ctx, undone, err)
	}
	return a.one(w, fmt.Sprintf("%s  moved in %s of %s", g.group, several(len(w.Queues), "queue"), g.ask.Topic))
}
