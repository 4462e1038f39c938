package duemq_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/duemq/duemq"
)

// TestLeaveLoopEarly: what was fetched and not yielded is given back at once and
// counts as never received; what was yielded stays leased.
func TestLeaveLoopEarly(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		for name, leave := range map[string]func(){
			"break": func() {},
			"panic": func() { panic("in the loop") },
		} {
			t.Run(name, func(t *testing.T) {
				q := open(t, duemq.WithQueues(1))
				batch(t, q.Queue, numbered(10, func(int, *duemq.Message) {}))
				var kept *duemq.Message
				func() {
					defer func() { _ = recover() }()
					for m, err := range q.Receive(t.Context(), topic, duemq.Max(10)) {
						if err != nil {
							t.Errorf("Receive: %v", err)
						}
						kept = m
						leave()
						break
					}
				}()
				rest, err := q.ReceiveBatch(t.Context(), topic, duemq.Wait(0))
				if err != nil || bodies(rest) != "1 2 3 4 5 6 7 8 9" {
					t.Fatalf("after the loop: %q, %v; want the other nine", bodies(rest), err)
				}
				for _, m := range rest {
					if m.Attempt != 1 {
						t.Errorf("message %s: attempt %d, want 1: nobody has seen it before", m.Body, m.Attempt)
					}
				}
				if err := kept.Ack(t.Context()); err != nil {
					t.Errorf("Ack of the one that was yielded: %v", err)
				}
			})
		}
	})
}

// TestContextEndsReceive: the error is yielded once, what was not yielded is
// given back, what was can still be acknowledged.
func TestContextEndsReceive(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithQueues(1))
		batch(t, q.Queue, numbered(3, func(int, *duemq.Message) {}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []*duemq.Message
		var ended []error
		for m, err := range q.Receive(ctx, topic, duemq.Max(3)) {
			if err != nil {
				ended = append(ended, err)
				continue
			}
			got = append(got, m)
			cancel()
		}
		if len(got) != 1 || len(ended) != 1 || !errors.Is(ended[0], context.Canceled) {
			t.Fatalf("%d messages, errors %v; want 1 message and one %v", len(got), ended, context.Canceled)
		}
		if err := got[0].Ack(t.Context()); err != nil {
			t.Errorf("Ack: %v", err)
		}
		if rest := take(t, q.Queue); bodies(rest) != "1 2" {
			t.Errorf("the others: %q, want 1 2", bodies(rest))
		}
	})
}

// TestContextEndsWaiting: nothing is there, and the context ends meanwhile.
func TestContextEndsWaiting(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		for m, err := range q.Receive(ctx, topic) {
			if m != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("Receive: %v, %v; want %v", m, err, context.Canceled)
			}
		}
		if _, err := q.ReceiveBatch(ctx, topic); !errors.Is(err, context.Canceled) {
			t.Errorf("ReceiveBatch: %v, want %v", err, context.Canceled)
		}
		for _, err := range q.Receive(ctx, topic) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Receive with an ended context: %v, want %v", err, context.Canceled)
			}
		}
	})
}

func TestWaitEndsLoop(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		batch(t, q.Queue, numbered(3, func(int, *duemq.Message) {}))
		n := 0
		for m, err := range q.Receive(t.Context(), topic, duemq.Wait(0)) {
			if err != nil {
				t.Fatalf("Receive: %v", err)
			}
			n++
			if err := m.Ack(t.Context()); err != nil {
				t.Errorf("Ack: %v", err)
			}
		}
		if n != 3 {
			t.Errorf("%d messages, want 3", n)
		}
	})
}

// TestReceiverIsWokenWhenDue: receivers wait before there is anything.
func TestReceiverIsWokenWhenDue(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		const n = 20
		got := make(chan string, n)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for m, err := range q.Receive(ctx, topic) {
					if err != nil {
						return
					}
					if err := m.Ack(ctx); err != nil {
						t.Errorf("Ack: %v", err)
					}
					got <- string(m.Body)
				}
			})
		}
		batch(t, q.Queue, numbered(n, func(i int, m *duemq.Message) { m.After = time.Duration(i+1) * time.Minute }))
		seen := make(map[string]bool, n)
		for i := range n {
			q.Advance(time.Minute)
			body := <-got
			if body != strconv.Itoa(i) || seen[body] {
				t.Errorf("minute %d: received %q", i+1, body)
			}
			seen[body] = true
		}
		cancel()
		wg.Wait()
	})
}

func TestGroupsReceiveEachMessage(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		batch(t, q.Queue, numbered(5, func(int, *duemq.Message) {}))
		for _, g := range []string{"billing", "audit"} {
			if got := take(t, q.Queue, duemq.Group(g), duemq.Max(2)); bodies(got) != "0 1 2 3 4" {
				t.Errorf("group %s: %q", g, bodies(got))
			}
		}
	})
}

func TestLease(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		one := func(want int) *duemq.Message {
			t.Helper()
			got, err := q.ReceiveBatch(ctx, topic, duemq.Wait(0), duemq.Invisible(10*time.Second))
			if err != nil || len(got) > 1 || (len(got) == 1) != (want > 0) {
				t.Fatalf("%d messages, %v; want attempt %d", len(got), err, want)
			}
			if want == 0 {
				return nil
			}
			if got[0].Attempt != want || got[0].State != duemq.StateInflight {
				t.Fatalf("attempt %d %s, want %d", got[0].Attempt, got[0].State, want)
			}
			return got[0]
		}
		send(t, q.Queue, "x")
		first := one(1)
		q.Advance(10*time.Second - time.Millisecond)
		one(0)
		q.Advance(time.Millisecond) // the lease runs out
		second := one(2)
		if err := first.Ack(ctx); !errors.Is(err, duemq.ErrLeaseLost) {
			t.Errorf("Ack of the lost lease: %v, want %v", err, duemq.ErrLeaseLost)
		}
		if err := second.Retry(ctx, duemq.After(time.Minute)); err != nil {
			t.Errorf("Retry: %v", err)
		}
		if err := second.Extend(ctx, time.Minute); !errors.Is(err, duemq.ErrLeaseLost) {
			t.Errorf("Extend of what was given back: %v, want %v", err, duemq.ErrLeaseLost)
		}
		q.Advance(time.Minute - time.Millisecond)
		one(0)
		q.Advance(time.Millisecond)
		third := one(3)
		if err := third.Extend(ctx, 20*time.Second); err != nil {
			t.Errorf("Extend: %v", err)
		}
		q.Advance(20*time.Second - time.Millisecond)
		one(0)
		q.Advance(time.Millisecond)
		if err := third.Ack(ctx); err != nil {
			t.Errorf("Ack of a lease that ran out while nobody else came: %v", err)
		}
		q.Advance(time.Hour)
		one(0)
		if err := third.Ack(ctx); err != nil {
			t.Errorf("Ack again: %v", err)
		}
	})
}

func TestRetryAtOnce(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		send(t, q.Queue, "x")
		attempts := 0
		for m, err := range q.Receive(t.Context(), topic, duemq.Wait(0)) {
			if err != nil {
				t.Fatalf("Receive: %v", err)
			}
			if attempts++; m.Attempt != attempts {
				t.Fatalf("attempt %d, want %d", m.Attempt, attempts)
			}
			if attempts < 3 {
				err = m.Retry(t.Context(), duemq.After(0))
			} else {
				err = m.Ack(t.Context())
			}
			if err != nil {
				t.Errorf("attempt %d: %v", attempts, err)
			}
		}
		if attempts != 3 {
			t.Errorf("%d attempts, want 3", attempts)
		}
	})
}

// TestMessageWithoutLease: what was not received cannot be acknowledged, and
// says so instead of panicking.
func TestMessageWithoutLease(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q, other := open(t), open(t)
		ctx := t.Context()
		r := send(t, q.Queue, "x")
		looked, err := q.Get(ctx, r.ID)
		if err != nil {
			t.Fatalf("Get: %v", err)
		}
		for _, m := range []*duemq.Message{new(duemq.Message), looked} {
			for what, err := range map[string]error{"Ack": m.Ack(ctx), "Retry": m.Retry(ctx, duemq.After(0)), "Extend": m.Extend(ctx, time.Second)} {
				if !errors.Is(err, duemq.ErrInvalid) {
					t.Errorf("%s of message %q: %v, want %v", what, m.ID, err, duemq.ErrInvalid)
				}
			}
			if m.Lateness() != 0 {
				t.Errorf("lateness %v of message %q", m.Lateness(), m.ID)
			}
		}
		got, err := q.ReceiveBatch(ctx, topic)
		if err != nil {
			t.Fatalf("ReceiveBatch: %v", err)
		}
		if err := other.AckAll(ctx, got); !errors.Is(err, duemq.ErrInvalid) {
			t.Errorf("AckAll in another queue: %v, want %v", err, duemq.ErrInvalid)
		}
		if err := q.AckAll(ctx, got); err != nil {
			t.Errorf("AckAll: %v", err)
		}
	})
}

func TestAckAllTellsWhichWereLost(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithQueues(1))
		ctx := t.Context()
		batch(t, q.Queue, numbered(3, func(int, *duemq.Message) {}))
		first, err := q.ReceiveBatch(ctx, topic, duemq.Invisible(time.Second))
		if err != nil {
			t.Fatalf("ReceiveBatch: %v", err)
		}
		q.Advance(time.Second)
		again, err := q.ReceiveBatch(ctx, topic, duemq.Max(1))
		if err != nil {
			t.Fatalf("ReceiveBatch: %v", err)
		}
		if err := q.AckAll(ctx, first); !errors.Is(err, duemq.ErrLeaseLost) {
			t.Errorf("AckAll: %v, want %v for message %s", err, duemq.ErrLeaseLost, again[0].ID)
		}
		q.Advance(time.Hour)
		if got := take(t, q.Queue); bodies(got) != "0" {
			t.Errorf("received again: %q, want only 0, whose lease was lost", bodies(got))
		}
	})
}

func TestReceiveRefuses(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		for name, opts := range map[string][]duemq.ReceiveOption{
			"max 0":          {duemq.Max(0)},
			"max too large":  {duemq.Max(duemq.MaxReceive + 1)},
			"invisible 0":    {duemq.Invisible(0)},
			"invisible long": {duemq.Invisible(duemq.MaxInvisible + 1)},
			"wait below 0":   {duemq.Wait(-1)},
			"no group":       {duemq.Group("")},
			"bad group":      {duemq.Group("a b")},
		} {
			if _, err := q.ReceiveBatch(t.Context(), topic, opts...); !errors.Is(err, duemq.ErrInvalid) {
				t.Errorf("ReceiveBatch, %s: %v, want %v", name, err, duemq.ErrInvalid)
			}
			for _, err := range q.Receive(t.Context(), topic, opts...) {
				if !errors.Is(err, duemq.ErrInvalid) {
					t.Errorf("Receive, %s: %v, want %v", name, err, duemq.ErrInvalid)
				}
			}
		}
		if _, err := q.ReceiveBatch(t.Context(), "SCHEDULE_TOPIC_XXXX"); !errors.Is(err, duemq.ErrForbidden) {
			t.Errorf("ReceiveBatch of an internal topic: %v, want %v", err, duemq.ErrForbidden)
		}
	})
}

// TestExtendByNothing ends the lease.
func TestExtendByNothing(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		send(t, q.Queue, "x")
		got, err := q.ReceiveBatch(t.Context(), topic)
		if err != nil {
			t.Fatalf("ReceiveBatch: %v", err)
		}
		if err := got[0].Extend(t.Context(), 0); err != nil {
			t.Errorf("Extend: %v", err)
		}
		if again := take(t, q.Queue); bodies(again) != "x" || again[0].Attempt != 2 {
			t.Errorf("received %q, want x a second time", bodies(again))
		}
	})
}

// TestAckVeryMany: more than one receive gives.
func TestAckVeryMany(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		const n = duemq.MaxReceive + 904
		batch(t, q.Queue, numbered(n, func(int, *duemq.Message) {}))
		var all []*duemq.Message
		for len(all) < n {
			got, err := q.ReceiveBatch(t.Context(), topic, duemq.Max(duemq.MaxReceive), duemq.Wait(0))
			if err != nil || len(got) == 0 {
				t.Fatalf("ReceiveBatch: %d messages after %d, %v", len(got), len(all), err)
			}
			all = append(all, got...)
		}
		if err := q.AckAll(t.Context(), all); err != nil {
			t.Errorf("AckAll: %v", err)
		}
		if err := q.AckAll(t.Context(), nil); err != nil {
			t.Errorf("AckAll of none: %v", err)
		}
		q.Advance(time.Hour)
		if got := take(t, q.Queue); len(got) != 0 {
			t.Errorf("%d received again", len(got))
		}
	})
}
