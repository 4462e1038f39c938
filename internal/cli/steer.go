package cli

import (
	"context"
	"strings"

	"github.com/duemq/duemq/internal/httpapi/client"
)

// A step does one thing to the message that a reference names and gives the
// result as JSON and as a line.
type step func(ctx context.Context, c *client.Client, ref string) (value any, line string, err error)

// each does a step to every message that was named, and goes on after a refusal.
// What was done is on standard output, what was not on standard error; the exit
// code is the refusals' own if nothing was done.
func (a *app) each(ctx context.Context, r *remote, refs []string, undone string, do step) error {
	c, err := r.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	out := list{a: a}
	var last *failure
	for _, ref := range refs {
		value, line, err := do(ctx, c, ref)
		if err == nil {
			if err := out.add(value, line); err != nil {
				return err
			}
			continue
		}
		if last != nil {
			a.tell(last)
		}
		last = a.answered(ctx, shorten(ref)+" was not "+undone, err)
		last.next = strings.Replace(last.next, "ID", ref, 1)
		if last.code == exitInterrupted || last.code == exitUnavailable {
			break // the others will fare no better
		}
	}
	if err := out.end(); err != nil {
		return err
	}
	if last == nil {
		return nil
	}
	if out.n > 0 && last.code != exitInterrupted {
		last.code = exitPartial
	}
	return last
}

// shorten keeps a handle from filling the line.
func shorten(ref string) string {
	if len(ref) <= 16 {
		return ref
	}
	return ref[:13] + "..."
}
