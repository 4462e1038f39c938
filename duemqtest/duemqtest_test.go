package duemqtest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duemq/duemq"
	"github.com/duemq/duemq/duemqtest"
)

const topic = "reminders"

func send(t *testing.T, q *duemq.Queue, body string, opts ...duemq.SendOption) duemq.Receipt {
	t.Helper()
	r, err := q.Send(t.Context(), topic, []byte(body), opts...)
	if err != nil {
		t.Fatalf("Send(%q): %v", body, err)
	}
	return r
}

// take receives and acknowledges what is there: body and when it was visible,
// after start.
func take(t *testing.T, q *duemq.Queue, start time.Time) string {
	t.Helper()
	var all []string
	for m, err := range q.Receive(t.Context(), topic, duemq.Wait(0)) {
		if err != nil {
			t.Fatalf("Receive: %v", err)
		}
		if err := m.Ack(t.Context()); err != nil {
			t.Fatalf("Ack: %v", err)
		}
		all = append(all, fmt.Sprintf("%s@%v", m.Body, m.VisibleAt.Sub(start)))
	}
	return strings.Join(all, " ")
}

func TestAdvanceStopsAtEachDue(t *testing.T) {
	q := duemqtest.New(t, duemq.WithQueues(1))
	start := q.Now()
	if got := start.Format(time.RFC3339); got != "2026-12-01T09:00:00Z" {
		t.Errorf("the clock begins at %s", got)
	}
	for _, d := range []time.Duration{time.Hour, time.Second, 365 * 24 * time.Hour, 30 * time.Minute, 30*time.Minute + time.Millisecond} {
		send(t, q.Queue, "x", duemq.After(d))
	}
	q.Advance(30 * time.Minute)
	if got := take(t, q.Queue, start); got != "x@1s x@30m0s" {
		t.Errorf("after 30 minutes: %s", got)
	}
	q.Advance(365 * 24 * time.Hour)
	if got := take(t, q.Queue, start); got != "x@30m0.001s x@1h0m0s x@8760h0m0s" {
		t.Errorf("after a year: %s", got)
	}
	if got := q.Now().Sub(start); got != 365*24*time.Hour+30*time.Minute {
		t.Errorf("%v have passed", got)
	}
}

// TestAdvanceByFractions: pieces of a millisecond add up.
func TestAdvanceByFractions(t *testing.T) {
	q := duemqtest.New(t)
	start := q.Now()
	send(t, q.Queue, "x", duemq.After(2*time.Millisecond))
	for range 7 {
		q.Advance(300 * time.Microsecond)
	}
	if got := take(t, q.Queue, start); got != "x@2ms" {
		t.Errorf("after 2.1 ms: %q", got)
	}
}

// TestStepForward: a wall clock that is set an hour ahead is not believed for 5
// seconds, and then what became due goes out.
func TestStepForward(t *testing.T) {
	q := duemqtest.New(t)
	start := q.Now()
	send(t, q.Queue, "x", duemq.After(time.Hour))
	q.Step(2 * time.Hour)
	q.Advance(4 * time.Second)
	if got := take(t, q.Queue, start); got != "" {
		t.Errorf("4 s after the step: %q", got)
	}
	if got := q.Now().Sub(start); got != 4*time.Second {
		t.Errorf("4 s after the step, the queue believes that %v have passed", got)
	}
	q.Advance(2 * time.Second)
	if got := take(t, q.Queue, start); !strings.HasPrefix(got, "x@2h0m") {
		t.Errorf("6 s after the step: %q, want it visible at 2h and a few seconds", got)
	}
	if s, err := q.Stats(); err != nil || s.ClockSteps != 1 {
		t.Errorf("Stats: %+v, %v; want one step followed", s, err)
	}
	q.Step(500 * time.Millisecond) // drift, followed at once
	if got := q.Now().Sub(start); got != 2*time.Hour+6500*time.Millisecond {
		t.Errorf("after a step of half a second the queue believes that %v have passed", got)
	}
}

// TestStepBack: nothing comes twice, and delays count from the new now.
func TestStepBack(t *testing.T) {
	q := duemqtest.New(t)
	start := q.Now()
	send(t, q.Queue, "first", duemq.After(time.Minute))
	q.Advance(time.Minute)
	q.Step(-time.Hour)
	q.Advance(6 * time.Second)
	now := q.Now()
	if got := now.Sub(start); got != -time.Hour+time.Minute+6*time.Second {
		t.Errorf("after a step back the queue believes that %v have passed", got)
	}
	r := send(t, q.Queue, "second", duemq.After(time.Minute))
	if r.DueAt.Sub(now) != time.Minute {
		t.Errorf("due %v after the new now, want 1m", r.DueAt.Sub(now))
	}
	q.Advance(time.Minute)
	if got := take(t, q.Queue, start); !strings.Contains(got, "first@1m0s") || !strings.Contains(got, "second@-57m54s") {
		t.Errorf("received %q, want each once", got)
	}
	q.Advance(3 * time.Hour)
	if got := take(t, q.Queue, start); got != "" {
		t.Errorf("received again: %q", got)
	}
}

// TestStepWhileDown: a clock that is behind what the queue has seen is suspect
// when it comes up, until that has held for a minute.
func TestStepWhileDown(t *testing.T) {
	q := duemqtest.New(t)
	send(t, q.Queue, "x", duemq.After(10*time.Second))
	q.Advance(time.Second)
	q.Stop()
	q.Step(-time.Hour)
	q.Start()
	if err := q.Ready(); !errors.Is(err, duemq.ErrClockSuspect) {
		t.Fatalf("Ready: %v, want %v", err, duemq.ErrClockSuspect)
	}
	if _, err := q.Send(t.Context(), topic, nil, duemq.After(time.Second)); !errors.Is(err, duemq.ErrClockSuspect) {
		t.Errorf("a delay counted from a suspect clock: %v, want %v", err, duemq.ErrClockSuspect)
	}
	q.Advance(59 * time.Second)
	if got := take(t, q.Queue, q.Now()); got != "" {
		t.Errorf("received %q while the clock was suspect", got)
	}
	q.Advance(2 * time.Second)
	if err := q.Ready(); err != nil {
		t.Errorf("Ready after a minute: %v", err)
	}
	q.Advance(time.Hour)
	if got := take(t, q.Queue, q.Now()); !strings.HasPrefix(got, "x@") {
		t.Errorf("received %q, want x when the clock has come back to its due", got)
	}
}

func TestAcceptClock(t *testing.T) {
	q := duemqtest.New(t)
	start := q.Now()
	send(t, q.Queue, "x", duemq.After(time.Hour))
	q.Step(2 * time.Hour)
	if err := q.AcceptClock(); err != nil {
		t.Fatalf("AcceptClock: %v", err)
	}
	q.Advance(0)
	if got := take(t, q.Queue, start); got != "x@2h0m0s" {
		t.Errorf("received %q, want x at once", got)
	}
}

func TestStoppedQueue(t *testing.T) {
	q := duemqtest.New(t)
	start := q.Now()
	send(t, q.Queue, "x", duemq.After(time.Minute))
	q.Stop()
	if _, err := q.Send(t.Context(), topic, nil); !errors.Is(err, duemq.ErrClosed) {
		t.Errorf("Send: %v, want %v", err, duemq.ErrClosed)
	}
	q.Advance(2 * time.Minute)
	q.Start()
	if got := take(t, q.Queue, start); got != "x@2m0s" {
		t.Errorf("received %q, want x when the queue was up", got)
	}
}

// TestSharedClock: one clock for several queues.
func TestSharedClock(t *testing.T) {
	c := duemqtest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	var queues []*duemq.Queue
	for range 3 {
		q, err := duemq.Open(t.Context(), "", duemq.WithMemory(duemq.NewMemory()), duemq.WithClock(c))
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		t.Cleanup(func() { q.Close() })
		send(t, q, "x", duemq.After(time.Hour))
		queues = append(queues, q)
	}
	start, _ := c.Now()
	c.Advance(time.Hour)
	for _, q := range queues {
		if err := q.Settle(t.Context()); err != nil {
			t.Fatalf("Settle: %v", err)
		}
		if got := take(t, q, start); got != "x@1h0m0s" {
			t.Errorf("received %q", got)
		}
	}
}

// TestBubble: the clock of a bubble, in which sleeping is what has time pass.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := duemqtest.NewInBubble(t)
		start := q.Now()
		if !start.Equal(time.Now()) {
			t.Errorf("the queue believes %v, the bubble's time is %v", start, time.Now())
		}
		send(t, q.Queue, "x", duemq.After(30*time.Minute))
		got := make(chan string, 10)
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			for m, err := range q.Receive(ctx, topic) {
				if err != nil {
					return
				}
				got <- fmt.Sprintf("%s@%v received@%v", m.Body, m.VisibleAt.Sub(start), time.Since(start))
			}
		})
		time.Sleep(30*time.Minute - time.Nanosecond)
		synctest.Wait()
		if n := len(got); n != 0 {
			t.Errorf("a nanosecond before: %d received", n)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if n := len(got); n != 1 {
			t.Errorf("after 30 minutes: %d received, want 1", n)
		} else if m := <-got; m != "x@30m0s received@30m0s" {
			t.Errorf("after 30 minutes: %s", m)
		}
		cancel()
		wg.Wait()

		send(t, q.Queue, "y", duemq.Level(3))
		q.Crash()
		q.Advance(10 * time.Second)
		if got := take(t, q.Queue, start); got != "x@30m0s y@30m10s" && got != "y@30m10s x@30m0s" {
			t.Errorf("after the crash: %q, want y and what was not acknowledged", got)
		}
		q.Stop()
		q.Advance(time.Hour)
		q.Start()
	})
}

// TestStandingClockInBubble: New and its Advance, while the bubble's own time
// stands.
func TestStandingClockInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := duemqtest.New(t)
		start := q.Now()
		send(t, q.Queue, "x", duemq.After(30*time.Minute))
		began := time.Now()
		q.Advance(30 * time.Minute)
		if got := take(t, q.Queue, start); got != "x@30m0s" {
			t.Errorf("received %q", got)
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("%v of the bubble's time have passed", d)
		}
	})
}

// recorder is a TB whose test goes on to fail.
type recorder struct {
	*testing.T

	failures []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// TestMisuseFailsTheTest instead of hanging or lying.
func TestMisuseFailsTheTest(t *testing.T) {
	for name, misuse := range map[string]func(*recorder){
		"time does not go back":      func(r *recorder) { duemqtest.New(r).Advance(-1) },
		"the queue is running":       func(r *recorder) { duemqtest.New(r).Start() },
		"open the queue: invalid":    func(r *recorder) { duemqtest.New(r, duemq.WithQueues(0)) },
		"sets the clock of a bubble": func(r *recorder) { duemqtest.NewInBubble(r).Step(time.Hour) },
	} {
		r := &recorder{T: t}
		var wg sync.WaitGroup
		wg.Go(func() { misuse(r) })
		wg.Wait()
		if len(r.failures) != 1 || !strings.Contains(r.failures[0], name) {
			t.Errorf("failures %q, want one with %q", r.failures, name)
		}
	}
}
