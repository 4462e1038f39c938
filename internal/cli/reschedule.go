package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

func (a *app) rescheduleCommand() *cobra.Command {
	var w when
	var ask wire.Reschedule
	cmd := &cobra.Command{
		Use:   "reschedule ID|HANDLE...",
		Short: "Give waiting messages another moment",
		Long: `Give waiting messages another moment: an instant (--to), a time from now (--after), or a shift
from when they are due (--by), which may be negative. What is past is
delivered at once. They keep their ids, and old handles work.`,
		Example: a.example(
			"reschedule 0000000000000080 --by 1h", "an hour later",
			"reschedule 0000000000000080 --by=-10m", "ten minutes earlier",
			"reschedule 0000000000000080 --to '2026-12-01 09:00'", "",
			"reschedule 0000000000000080 --after 30m", "from now",
		),
		Args: a.args(1, -1),
	}
	w.flags(cmd.Flags(), "after", "to")
	cmd.Flags().StringVar(&ask.By, "by", "", "shift the due by so `LONG`: 1h, -10m")
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.exclusive(cmd, "to", "after", "by"); err != nil {
			return err
		}
		if w.afterText == "" && w.atText == "" && ask.By == "" {
			f := usage("no moment", "give --to, --after or --by")
			f.next = a.help(cmd)
			return f
		}
		var err error
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
		return a.each(cmd.Context(), r, args, "moved", func(ctx context.Context, c *client.Client, ref string) (any, string, error) {
			answer, err := c.Reschedule(ctx, ref, ask)
			line := a.moved(&answer)
			return answer, line, err
		})
	}
	return cmd
}

func (a *app) moved(w *wire.Answer) string {
	if w.DeliverAt <= wire.TimeOf(a.now()) {
		return fmt.Sprintf("%s  %s  delivered now", w.ID, w.Topic)
	}
	return fmt.Sprintf("%s  %s  due %s (%s)", w.ID, w.Topic, a.instant(w.DeliverAt), a.until(w.DeliverAt))
}
