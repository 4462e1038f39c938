package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/duemq/duemq/internal/cli/machine"
	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// Leases while a command runs.
const (
	execLease  = 30 * time.Second
	execExtend = 10 * time.Second // is how often the lease is made to run on
)

// handle has a command take a message, and acknowledges it or gives it back as
// the command ends. An interrupt does not end the command: what it does would
// be half done. hard ends at a second one, which kills it.
func (r *receiver) handle(ctx, hard context.Context, c *client.Client, m *wire.Message) error {
	if ctx.Err() != nil {
		return r.unseen(hard, c, m, "not handled")
	}
	cause := r.execute(ctx, hard, c, m)
	switch {
	case cause != nil && hard.Err() != nil:
		return r.unseen(hard, c, m, "the command was killed")
	case cause != nil:
		return r.giveBack(hard, c, m, cause)
	}
	hard = context.WithoutCancel(hard) // it is done, and soon said
	reply, err := c.AckAll(hard, []string{m.Lease})
	if err != nil {
		return r.a.answered(hard, m.ID+" was handled and not acknowledged, and may come again", err)
	}
	if p := reply.Results[0].Problem; p != nil {
		r.a.tell(r.a.answered(hard, m.ID+" was handled and not acknowledged; it may come again", &client.Error{Problem: *p}))
	}
	return nil
}

// giveBack gives back a message whose command failed.
func (r *receiver) giveBack(hard context.Context, c *client.Client, m *wire.Message, cause error) error {
	reply, err := c.Reject(hard, m.Lease, nil)
	if err != nil {
		return r.a.answered(hard, m.ID+" could not be given back; it comes again when its lease ends", err)
	}
	what := "comes again " + r.a.instant(reply.Due)
	if reply.Dead {
		what = fmt.Sprintf("was the last attempt; a dead letter now: %s dlq ls %s%s", r.a.self, r.group, r.remote.argument())
	}
	fmt.Fprintf(r.a.Stderr, "%s  %v, attempt %d: %s\n", m.ID, cause, m.Attempt, what)
	return nil
}

// unseen gives back a message of which the attempt is not to count, because the
// user broke it off.
func (r *receiver) unseen(hard context.Context, c *client.Client, m *wire.Message, why string) error {
	ctx := context.WithoutCancel(hard)
	if err := c.Return(ctx, []string{m.Lease}); err != nil {
		return r.a.answered(ctx, m.ID+" could not be given back; it comes again when its lease ends", err)
	}
	fmt.Fprintf(r.a.Stderr, "%s  %s; it may be received again at once, and the attempt does not count\n", m.ID, why)
	return interrupted()
}

// execute runs the command with the body on its standard input. The lease runs
// on as long as it does.
func (r *receiver) execute(ctx, hard context.Context, c *client.Client, m *wire.Message) error {
	cmd := r.command(hard, m)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("--exec: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	timer := r.a.Clock.NewTimer(execExtend)
	defer timer.Stop()
	asked := ctx.Done()
	for {
		select {
		case err := <-ended:
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				return fmt.Errorf("--exec ended with %w", exit)
			}
			return err
		case <-asked:
			asked = nil // said once
			fmt.Fprintf(r.a.Stderr, "%s  the command may finish; interrupt again to kill it\n", m.ID)
		case <-timer.C():
			if err := c.Extend(hard, m.Lease, execLease); err != nil && hard.Err() == nil {
				r.a.tell(r.a.answered(hard, m.ID+" is still being handled and may come again", err))
			}
			timer.Reset(execExtend)
		}
	}
}

// command is what takes a message; it is killed when hard ends.
func (r *receiver) command(hard context.Context, m *wire.Message) *exec.Cmd {
	name, flag := "sh", "-c"
	if runtime.GOOS == "windows" {
		name, flag = "cmd", "/C"
	}
	cmd := exec.CommandContext(hard, name, flag, r.exec) //nolint:gosec // it is the command that the user typed
	machine.Apart(cmd)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(m.Body), r.execOutput(), r.a.Stderr
	cmd.Env = append(os.Environ(), "DUEMQ_ID="+m.ID, "DUEMQ_TOPIC="+m.Topic, "DUEMQ_KEY="+m.Key, "DUEMQ_TAG="+m.Tag,
		"DUEMQ_ATTEMPT="+strconv.Itoa(m.Attempt))
	return cmd
}

// untilTwice gives a context that ends at the second interrupt: the first one
// ends ctx, which this one outlives.
func (a *app) untilTwice(ctx context.Context) (hard context.Context, stop context.CancelFunc) {
	hard, stop = context.WithCancel(context.WithoutCancel(ctx))
	signals := make(chan os.Signal, 2)
	deaf := a.listen(signals)
	go func() {
		defer deaf() // from the third one on they do what they do to any process
		for range 2 {
			select {
			case <-signals:
			case <-hard.Done():
				return
			}
		}
		stop()
	}()
	return hard, stop
}

// interrupts sends what a user or a supervisor ends the program with to c, until
// stop is called.
func interrupts(c chan<- os.Signal) (stop func()) {
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	return func() { signal.Stop(c) }
}

// execOutput is where the command writes: not between results that a program
// reads.
func (r *receiver) execOutput() io.Writer {
	if r.a.forPeople() {
		return r.a.Stdout
	}
	return r.a.Stderr
}
