//go:build unix

package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestExecInterrupted breaks a receiver off while its command runs: once, and
// the command's end counts; twice, and the attempt does not.
func TestExecInterrupted(t *testing.T) {
	for _, tt := range []struct {
		name, command string
		twice         bool
		say           string // the receiver, at its end
		again         string // what another receive gets
	}{
		{"finishes", "echo runs; read a < GO", false, "", ""},
		{"fails", "echo runs; read a < GO; exit 3", false, "exit status 3, attempt 1: comes again", ""},
		{"killed", "echo runs; sleep 1000", true, "the attempt does not count", `"attempt":1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, nil, "--data", t.TempDir())
			r.must("group", "create", "mail", "--backoff", "1h")
			r.must("topic", "create", "orders", "--queues", "1")
			r.must("send", "orders", "one")
			r.must("send", "orders", "two")
			fifo := newFIFO(t)
			p, out, errs := process("recv", "orders", "--group", "mail", "--server", r.url, "--exec", strings.ReplaceAll(tt.command, "GO", fifo))
			a := newApp(p)
			heard := make(chan chan<- os.Signal, 1)
			a.listen = func(c chan<- os.Signal) func() { heard <- c; return func() {} }
			ctx, interrupt := context.WithCancel(t.Context())
			code := make(chan int, 1)
			go func() { code <- a.report(a.run(ctx)) }()
			signals := <-heard
			out.await(t, "runs")
			signals <- os.Interrupt
			interrupt()
			errs.await(t, "the command may finish; interrupt again to kill it")
			if tt.twice {
				signals <- os.Interrupt
			} else if err := os.WriteFile(fifo, []byte("\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := <-code; got != exitInterrupted {
				t.Errorf("exit %d, want %d", got, exitInterrupted)
			}
			if !strings.Contains(errs.String(), tt.say) || strings.Contains(errs.String(), "context canceled") {
				t.Errorf("it says %q, want %q in it", errs, tt.say)
			}
			if strings.Count(out.String(), "runs") != 1 {
				t.Errorf("it went on after the interrupt:\n%s", out)
			}
			got, _, _ := r.do("recv", "orders", "--group", "mail", "--wait", "200ms", "-o", "jsonl")
			if !strings.Contains(got, `"two"`) || strings.Contains(got, `"one"`) != tt.twice || !strings.Contains(got, tt.again) || strings.Contains(got, `"attempt":2`) {
				t.Errorf("then there is:\n%s", got)
			}
		})
	}
}

// newFIFO makes a pipe with a name, for a command to wait at.
func newFIFO(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "go")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
