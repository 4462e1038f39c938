package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// A bulk is one run of a command that changes all it selects.
type bulk struct {
	a       *app
	s       selection
	consent *consent
	remote  *remote
	detach  bool
	verb    string // cancel
	done    string // cancelled
	none    string // what to say if nothing is selected
	start   func(ctx context.Context, c *client.Client, f wire.Filter, dry bool) (wire.Operation, error)
}

const bulkLong = `. It says first how many there are and shows three,
then asks, unless --yes is given. The server does it in the background, goes on after a restart, and
counts exactly; an interrupt only ends the waiting for it (see ` + "`op`" + `). What falls due meanwhile is
delivered, and counted as missed.

` + whereLong

// bulkCommand makes a command that changes all it selects. check reads the flags
// that it has of its own.
func (a *app) bulkCommand(b *bulk, use, short string, check func(*selection) error) *cobra.Command {
	b.a = a
	cmd := &cobra.Command{Use: use, Short: short, Long: short + bulkLong, Args: a.args(0, 0)}
	b.s.flags(cmd)
	b.s.bulkFlags(cmd.Flags())
	cmd.Flags().BoolVar(&b.detach, "detach", false, "do not wait for the end")
	b.consent = a.consentFlags(cmd)
	b.remote = a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := b.s.read(a, cmd); err != nil {
			return err
		}
		f, err := b.s.filter(a, cmd)
		if err != nil {
			return err
		}
		if check != nil {
			if err := check(&b.s); err != nil {
				return err
			}
		}
		return b.run(cmd.Context(), f)
	}
	return cmd
}

func (a *app) bulkCancelCommand() *cobra.Command {
	b := &bulk{verb: "cancel", done: "cancelled"}
	b.start = func(ctx context.Context, c *client.Client, f wire.Filter, dry bool) (wire.Operation, error) {
		return c.BulkCancel(ctx, wire.BulkCancel{Filter: f, DryRun: dry})
	}
	cmd := a.bulkCommand(b, "cancel", "Cancel waiting messages that are selected", nil)
	cmd.Example = a.example(
		"pending cancel --key o-1981", "",
		"pending cancel --topic push --from '2026-12-01 09:00' --to '2026-12-01 10:00'", "",
		"pending cancel --where 'topic=orders tag=unpaid within=1h' --yes", "for a script",
		"pending cancel --topic orders --dry-run", "only count",
	)
	return cmd
}

func (a *app) bulkDeliverCommand() *cobra.Command {
	b := &bulk{verb: "deliver", done: "delivered"}
	b.start = func(ctx context.Context, c *client.Client, f wire.Filter, dry bool) (wire.Operation, error) {
		return c.BulkDeliver(ctx, wire.BulkCancel{Filter: f, DryRun: dry})
	}
	cmd := a.bulkCommand(b, "deliver", "Deliver waiting messages that are selected at once", nil)
	cmd.Example = a.example("pending deliver --topic orders --within 1h", "")
	return cmd
}

func (a *app) bulkRescheduleCommand() *cobra.Command {
	b := &bulk{verb: "move", done: "moved"}
	var w when
	var ask wire.BulkReschedule
	b.start = func(ctx context.Context, c *client.Client, f wire.Filter, dry bool) (wire.Operation, error) {
		ask.Filter, ask.DryRun = f, dry
		return c.BulkReschedule(ctx, ask)
	}
	var cmd *cobra.Command
	cmd = a.bulkCommand(b, "reschedule", "Give waiting messages that are selected another moment", func(s *selection) (err error) {
		if err := a.exclusive(cmd, "at", "after", "by"); err != nil {
			return err
		}
		w.zone = s.zone
		if w.afterText == "" && w.atText == "" && ask.By == "" {
			f := usage("no moment", "give --at, --after or --by")
			f.next = a.help(cmd)
			return f
		}
		if ask.After, err = w.after(); err != nil {
			return err
		}
		if ask.At, err = w.at(a.Zone); err != nil {
			return err
		}
		if ask.By != "" {
			if _, err := wire.ParseDuration(ask.By); err != nil {
				return usage("--by "+quote(ask.By), "%w", err)
			}
		}
		return nil
	})
	w.moments(cmd.Flags(), "after", "at")
	cmd.Flags().StringVar(&ask.By, "by", "", "shift each due by so `LONG`: 1h, -10m")
	cmd.Example = a.example(
		"pending reschedule --topic push --within 1h --by 1h", "all of them an hour later",
		"pending reschedule --key u42 --at '2026-12-02 09:00'", "",
	)
	return cmd
}

func (a *app) bulkSpreadCommand() *cobra.Command {
	b := &bulk{verb: "spread", done: "spread"}
	var w when
	var ask wire.BulkSpread
	over := ""
	b.start = func(ctx context.Context, c *client.Client, f wire.Filter, dry bool) (wire.Operation, error) {
		ask.Filter, ask.DryRun = f, dry
		return c.BulkSpread(ctx, ask)
	}
	var cmd *cobra.Command
	cmd = a.bulkCommand(b, "spread", "Spread waiting messages that are selected over a stretch of time", func(s *selection) (err error) {
		w.zone = s.zone
		if ask.At, err = w.at(a.Zone); err != nil {
			return err
		}
		d, err := wire.ParseDuration(over)
		if err != nil || d <= 0 {
			f := usage("--over "+quote(over), "want the length of the stretch, such as 10m")
			f.next = a.help(cmd)
			return f
		}
		ask.Over = wire.Duration(d)
		return nil
	})
	w.atName = "at"
	cmd.Flags().StringVar(&w.atText, "at", "", "the stretch begins at that `INSTANT`; default now")
	cmd.Flags().StringVar(&over, "over", "", "so `LONG` is the stretch: 10m")
	cmd.Example = a.example("pending spread --topic push --within 1m --at '2026-12-01 09:00' --over 10m", "a push that does not come at once")
	return cmd
}

// run counts, asks, begins, and waits for the end.
func (b *bulk) run(ctx context.Context, f wire.Filter) error {
	a := b.a
	c, err := b.remote.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	dry, err := b.start(ctx, c, f, true)
	if err != nil {
		return a.answered(ctx, "nothing was "+b.done, err)
	}
	if b.consent.dryRun && !a.forPeople() {
		return a.one(dry, "")
	}
	if a.forPeople() {
		if err := b.show(&dry); err != nil {
			return err
		}
	}
	if b.consent.dryRun || dry.Matched == 0 && a.forPeople() {
		return nil
	}
	if err := b.consent.ask(ctx, b.verb+" "+several(dry.Matched, "message"), ""); err != nil {
		return err
	}
	op, err := b.start(ctx, c, f, false)
	if err != nil {
		return a.answered(ctx, "nothing was "+b.done, err)
	}
	if b.detach {
		return a.one(op, fmt.Sprintf("%s runs; wait for it: %s op wait %s%s", op.ID, a.self, op.ID, b.remote.argument()))
	}
	return a.finish(ctx, c, b.remote, &op, dry.Matched)
}

// show says what would be changed.
func (b *bulk) show(dry *wire.Operation) error {
	a := b.a
	if dry.Matched == 0 {
		_, err := fmt.Fprintln(a.Stdout, cmp.Or(b.none, "nothing waits that is selected"))
		return err
	}
	fmt.Fprintf(a.Stdout, "%s to %s", several(dry.Matched, "message"), b.verb)
	if len(dry.Samples) == 0 {
		_, err := fmt.Fprintln(a.Stdout)
		return err
	}
	if int64(len(dry.Samples)) < dry.Matched {
		fmt.Fprint(a.Stdout, ", such as")
	}
	fmt.Fprintln(a.Stdout, ":")
	t := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	head, row := pendingHead, a.pendingRow
	if dry.Samples[0].State == wire.StateDead {
		head, row = deadHead, a.deadRow
	}
	fmt.Fprintln(t, "  "+head)
	for i := range dry.Samples {
		fmt.Fprintln(t, "  "+row(&dry.Samples[i]))
	}
	return t.Flush()
}

// kinds are what operations have done, by kind.
var kinds = map[string]string{
	"cancel": "cancelled", "reschedule": "moved", "deliver": "delivered", "spread": "spread", "redrive": "redriven",
}

// finish waits for the end of an operation, of which total may be told, and says
// how it ended.
func (a *app) finish(ctx context.Context, c *client.Client, r *remote, op *wire.Operation, total int64) error {
	last, err := a.waitFor(ctx, c, op, total)
	if err != nil {
		f := a.answered(ctx, op.ID+" is no longer watched", err)
		goesOn := fmt.Sprintf("it goes on in the server: %s op wait %s%s; to end it: %s op stop %s%s", a.self, op.ID, r.argument(), a.self, op.ID, r.argument())
		if f.code == exitInterrupted {
			fmt.Fprintln(a.Stderr, goesOn)
		} else {
			f.next = goesOn
		}
		return f
	}
	if err := a.one(last, a.outcome(&last)); err != nil {
		return err
	}
	if last.State != wire.OperationStopped {
		return nil
	}
	f := &failure{code: exitPartial, what: last.ID + " was stopped before its end", next: "do the rest: the same command again"}
	if last.Error != "" {
		f.why = errors.New(last.Error)
	}
	return f
}

// outcome tells in a line how an operation stands or ended.
func (a *app) outcome(op *wire.Operation) string {
	s := fmt.Sprintf("%s %s", kinds[op.Kind], several(op.Done, "message"))
	if op.Missed > 0 {
		s += fmt.Sprintf("; %s did not wait any more", count(op.Missed))
	}
	return fmt.Sprintf("%s (%s)", s, op.ID)
}
