package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// A consent is how a command that destroys or moves a lot is allowed to.
type consent struct {
	a      *app
	yes    bool
	dryRun bool
}

// consentFlags gives a command --yes and --dry-run.
func (a *app) consentFlags(cmd *cobra.Command) *consent {
	c := &consent{a: a}
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "only say what would be done")
	return c
}

// ask asks whether to do what was said, unless --yes was given. word is what has
// to be typed for it: the name of what is destroyed, or empty for a y. A nil
// error is a yes.
func (c *consent) ask(ctx context.Context, what, word string) error {
	if c.yes {
		return nil
	}
	a := c.a
	if !a.inTerminal || a.errWidth == 0 || !a.forPeople() {
		return &failure{
			code: exitUsage, what: "nothing was done",
			why:  fmt.Errorf("to %s has to be confirmed, and nobody can be asked here", what),
			next: "the same with --yes, or with --dry-run to see what it would do",
		}
	}
	prompt := what + "? [y/N] "
	if word != "" {
		prompt = fmt.Sprintf("%s? type %s to do it: ", what, word)
	}
	fmt.Fprint(a.Stderr, a.paint(a.errWidth, bold, strings.ToUpper(prompt[:1])+prompt[1:]))
	answer := make(chan string, 1)
	go func() { // reading cannot be interrupted
		line, _ := bufio.NewReader(a.Stdin).ReadString('\n') // the end of input is no answer
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.Stderr)
		return interrupted()
	case said := <-answer:
		agreed := word != "" && said == word || word == "" && (strings.EqualFold(said, "y") || strings.EqualFold(said, "yes"))
		if !agreed {
			return &failure{code: exitFailure, what: "nothing was done"}
		}
	}
	return nil
}
