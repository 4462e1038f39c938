package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) clockCommand() *cobra.Command {
	accept := &cobra.Command{
		Use: "accept", Short: "Have the server believe its machine's clock", Args: a.args(0, 0),
		Long: `Have the server believe its machine's clock as it is now. A server that starts with a clock that
cannot be right (behind what its log says, before 2020, or more than max-delay ahead), or whose
clock jumps, waits whether that holds. If you know that the clock is right, say so with this.

What is due by the accepted clock is delivered, and that cannot be undone.`,
	}
	r := a.serverFlag(accept)
	a.outputFlag(accept)
	accept.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		w, err := c.AcceptClock(cmd.Context())
		if err != nil {
			return a.answered(cmd.Context(), "the clock was not accepted", err)
		}
		line := "accepted: it is " + w.Now.Time().In(a.Zone).Format("2006-01-02 15:04:05.000 -07:00")
		if w.Suspect {
			f := &failure{code: exitConflict, what: "the clock is still suspect", next: "set the machine's clock"}
			f.why = fmt.Errorf("it shows %s, and nothing before 2020 is believed", a.now().Format("2006-01-02 15:04"))
			return f
		}
		return a.one(w, line)
	}
	return a.group("clock", "What the server takes for the time", accept)
}
