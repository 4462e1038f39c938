package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// Leases while a command runs.
const (
	execLease  = 30 * time.Second
	execExtend = 10 * time.Second // is how often the lease is made to run on
)

// handle has a command take a message, and acknowledges it or gives it back as
// the command ends.
func (r *receiver) handle(ctx context.Context, c *client.Client, m *wire.Message) error {
	cause := r.execute(ctx, c, m)
	if ctx.Err() != nil {
		cause = ctx.Err()
		ctx = context.WithoutCancel(ctx) // what was begun is given back
	}
	if cause == nil {
		reply, err := c.AckAll(ctx, []string{m.Lease})
		if err != nil {
			return r.a.answered(ctx, m.ID+" was handled and not acknowledged, and may come again", err)
		}
		if p := reply.Results[0].Problem; p != nil {
			r.a.tell(r.a.answered(ctx, m.ID+" was handled and not acknowledged; it may come again", &client.Error{Problem: *p}))
		}
		return nil
	}
	reply, err := c.Reject(ctx, m.Lease, nil)
	if err != nil {
		return r.a.answered(ctx, m.ID+" could not be given back; it comes again when its lease ends", err)
	}
	what := "comes again " + r.a.instant(reply.Due)
	if reply.Dead {
		what = fmt.Sprintf("was the last attempt; a dead letter now: %s dlq ls %s%s", r.a.self, r.group, r.remote.argument())
	}
	fmt.Fprintf(r.a.Stderr, "%s  %v, attempt %d: %s\n", m.ID, cause, m.Attempt, what)
	return nil
}

// execute runs the command with the body on its standard input. The lease runs
// on as long as it does.
func (r *receiver) execute(ctx context.Context, c *client.Client, m *wire.Message) error {
	name, flag := "sh", "-c"
	if runtime.GOOS == "windows" {
		name, flag = "cmd", "/C"
	}
	cmd := exec.CommandContext(ctx, name, flag, r.exec) //nolint:gosec // it is the command that the user typed
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(m.Body), r.execOutput(), r.a.Stderr
	cmd.Env = append(os.Environ(), "DUEMQ_ID="+m.ID, "DUEMQ_TOPIC="+m.Topic, "DUEMQ_KEY="+m.Key, "DUEMQ_TAG="+m.Tag,
		"DUEMQ_ATTEMPT="+strconv.Itoa(m.Attempt))
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("--exec: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	timer := r.a.Clock.NewTimer(execExtend)
	defer timer.Stop()
	for {
		select {
		case err := <-ended:
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				return fmt.Errorf("--exec ended with %w", exit)
			}
			return err
		case <-timer.C():
			if err := c.Extend(ctx, m.Lease, execLease); err != nil {
				r.a.tell(r.a.answered(ctx, m.ID+" is still being handled and may come again", err))
			}
			timer.Reset(execExtend)
		}
	}
}

// execOutput is where the command writes: not between results that a program
// reads.
func (r *receiver) execOutput() io.Writer {
	if r.a.forPeople() {
		return r.a.Stdout
	}
	return r.a.Stderr
}
