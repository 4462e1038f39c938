package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/httpapi/client"
)

func (a *app) deliverNowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "deliver-now ID|HANDLE...",
		Short:   "Deliver waiting messages at once",
		Example: a.example("deliver-now 0000000000000080", ""),
		Args:    a.args(1, -1),
	}
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.each(cmd.Context(), r, args, "delivered", func(ctx context.Context, c *client.Client, ref string) (any, string, error) {
			answer, err := c.DeliverNow(ctx, ref)
			return answer, fmt.Sprintf("%s  %s  delivered", answer.ID, answer.Topic), err
		})
	}
	return cmd
}
