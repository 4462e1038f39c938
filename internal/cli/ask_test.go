package cli

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
)

func contextWithStop(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	return ctx, stop
}

// awaitTimer waits until something waits for a clock.
func awaitTimer(t *testing.T, c *clock.Fake) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); c.Timers() == 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("nothing waits for the clock")
		}
	}
}

// TestAsk asks on a terminal, and takes only the word that it asked for.
func TestAsk(t *testing.T) {
	for _, tt := range []struct {
		word, typed string
		want        bool
	}{
		{"", "y\n", true},
		{"", "YES\n", true},
		{"", "\n", false},
		{"", "n\n", false},
		{"", "", false},
		{"orders", "orders\n", true},
		{"orders", "  orders \n", true},
		{"orders", "y\n", false},
		{"orders", "order\n", false},
	} {
		a, out := onTerminal(clock.NewFake(testStart))
		a.Stdin, a.inTerminal = strings.NewReader(tt.typed), true
		err := (&consent{a: a}).ask(t.Context(), "delete topic orders", tt.word)
		if (err == nil) != tt.want {
			t.Errorf("%q typed for %q: %v, want agreed %v", tt.typed, tt.word, err, tt.want)
		}
		if prompt := out.String(); !strings.Contains(prompt, "Delete topic orders? ") || tt.word != "" && !strings.Contains(prompt, "type orders") {
			t.Errorf("asked %q", prompt)
		}
	}
}

// TestAskNobody asks nobody where nobody sits, and not after --yes.
func TestAskNobody(t *testing.T) {
	a, out := onTerminal(clock.NewFake(testStart))
	a.Stdin = strings.NewReader("y\n")
	if err := (&consent{a: a}).ask(t.Context(), "cancel all", ""); err == nil {
		t.Error("agreed by a pipe")
	}
	a.inTerminal, a.format = true, formatJSON
	if err := (&consent{a: a}).ask(t.Context(), "cancel all", ""); err == nil {
		t.Error("agreed before a program")
	}
	if err := (&consent{a: a, yes: true}).ask(t.Context(), "cancel all", ""); err != nil {
		t.Errorf("with --yes: %v", err)
	}
	if out.String() != "" {
		t.Errorf("asked %q", out)
	}
}

// TestAskInterrupted gives up on a question that nobody answers.
func TestAskInterrupted(t *testing.T) {
	a, out := onTerminal(clock.NewFake(testStart))
	silent := make(chan struct{})
	t.Cleanup(func() { close(silent) })
	a.Stdin, a.inTerminal = reader(func([]byte) (int, error) { <-silent; return 0, context.Canceled }), true
	ctx, stop := contextWithStop(t)
	ended := make(chan error, 1)
	go func() { ended <- (&consent{a: a}).ask(ctx, "cancel all", "") }()
	out.await(t, `\[y/N\]`)
	stop()
	if code := a.report(<-ended); code != exitInterrupted {
		t.Errorf("exit %d, want %d", code, exitInterrupted)
	}
}

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }
