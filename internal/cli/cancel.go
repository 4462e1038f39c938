package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

func (a *app) cancelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel ID|HANDLE...",
		Short: "Take waiting messages back",
		Long: `Take waiting messages back. What is cancelled will never be delivered; that holds after a crash.
A message that was delivered already is refused, with when that was, and the exit code is 4.`,
		Example: a.example("cancel 0000000000000080", ""),
		Args:    a.args(1, -1),
	}
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.each(cmd.Context(), r, args, "cancelled", func(ctx context.Context, c *client.Client, ref string) (any, string, error) {
			answer, err := c.Cancel(ctx, ref)
			line := a.cancelled(&answer)
			return answer, line, err
		})
	}
	return cmd
}

func (a *app) cancelled(w *wire.Answer) string {
	line := fmt.Sprintf("%s  %s  cancelled", w.ID, w.Topic)
	if w.DeliverAt != 0 {
		line += fmt.Sprintf(" (was due %s, %s)", a.instant(w.DeliverAt), a.until(w.DeliverAt))
	}
	return line
}
