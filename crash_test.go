package duemq_test

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duemq/duemq"
	"github.com/duemq/duemq/duemqtest"
)

// TestCrashWithPending is case G11 in one process: 2,000 timers and 2,000 level
// messages due 20 to 60 s ahead, all acknowledged, power cut at +10 s. 4,000
// distinct receipts, each at its due, none twice.
func TestCrashWithPending(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithLevels(20*time.Second, 30*time.Second, 40*time.Second, 60*time.Second))
		rng := rand.New(rand.NewPCG(11, 0))
		var sent []duemq.Receipt
		for range 40 {
			sent = append(sent, batch(t, q.Queue, numbered(100, func(i int, m *duemq.Message) {
				if i%2 == 0 {
					m.Level = 1 + rng.IntN(4)
				} else {
					m.After = 20*time.Second + time.Duration(rng.Int64N(int64(40*time.Second)))
				}
			}))...)
			q.Advance(time.Duration(rng.IntN(100)) * time.Millisecond)
		}
		q.Advance(10 * time.Second)
		q.Crash()
		if r := q.Recovered(); r.Waiting != int64(len(sent)) || r.New {
			t.Errorf("recovered %+v, want %d waiting", r, len(sent))
		}
		q.Advance(time.Minute)
		punctual(t, q, sent, time.Time{})
	})
}

// TestAcknowledgedIsOnDisk: the power is cut right after each answer.
func TestAcknowledgedIsOnDisk(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		one := send(t, q.Queue, "one", duemq.After(time.Hour))
		q.Crash()
		two := batch(t, q.Queue, numbered(3, func(_ int, m *duemq.Message) { m.Level = 3 }))
		q.Crash()
		if err := q.Cancel(ctx, one.ID); err != nil {
			t.Errorf("Cancel: %v", err)
		}
		q.Crash()
		if err := q.Cancel(ctx, one.ID); !errors.Is(err, duemq.ErrAlreadyCancelled) {
			t.Errorf("Cancel after a crash: %v, want %v", err, duemq.ErrAlreadyCancelled)
		}
		if err := q.Reschedule(ctx, two[0].ID, duemq.After(time.Minute)); err != nil {
			t.Errorf("Reschedule: %v", err)
		}
		q.Crash()
		send(t, q.Queue, "at once")
		q.Crash()
		if got := take(t, q.Queue); bodies(got) != "at once" {
			t.Errorf("received %q", bodies(got))
		}
		q.Advance(10 * time.Second)
		if got := take(t, q.Queue); bodies(got) != "1 2" {
			t.Errorf("after 10 s: %q, want 1 2", bodies(got))
		}
		q.Advance(time.Hour)
		if got := take(t, q.Queue); bodies(got) != "0" {
			t.Errorf("after an hour: %q, want 0", bodies(got))
		}
	})
}

// TestDueWhileDown is case G12: 500 due while nobody was there are all visible
// when the queue is up, each once; a later one still on time.
func TestDueWhileDown(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		for name, down := range map[string]func(*bench){
			"stopped": (*bench).Stop, "power cut": (*bench).PowerCut,
		} {
			t.Run(name, func(t *testing.T) {
				q := open(t)
				sent := batch(t, q.Queue, numbered(500, func(i int, m *duemq.Message) {
					m.After = 5*time.Second + time.Duration(i*7919%500)*20*time.Millisecond
				}))
				sent = append(sent, send(t, q.Queue, "later", duemq.After(40*time.Second)))
				q.Advance(3 * time.Second)
				down(q)
				if _, err := q.Send(t.Context(), topic, nil); !errors.Is(err, q.away) {
					t.Errorf("Send while down: %v, want %v", err, q.away)
				}
				q.Advance(27 * time.Second)
				q.Start()
				up := q.Now()
				if r := q.Recovered(); !r.Overdue || r.Waiting != 501 {
					t.Errorf("recovered %+v, want 501 waiting and some overdue", r)
				}
				punctual(t, q, sent[:500], up)
				q.Advance(10*time.Second - time.Millisecond)
				if got := take(t, q.Queue); len(got) != 0 {
					t.Errorf("%q received before it is due", bodies(got))
				}
				q.Advance(time.Millisecond)
				punctual(t, q, sent[500:], time.Time{})
			})
		}
	})
}

// TestAnswersHoldAfterCrash: what cancel, reschedule and deliver-now have
// answered is so after a power cut, and they say so.
func TestAnswersHoldAfterCrash(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		rng := rand.New(rand.NewPCG(3, 0))
		const n = 600
		sent := batch(t, q.Queue, numbered(n, func(i int, m *duemq.Message) {
			m.After = time.Duration(1+rng.IntN(60)) * time.Second
		}))
		start := q.Now()
		q.Advance(30 * time.Second)
		want := make(map[string]time.Time) // when each is to be visible; cancelled ones are not
		for i, r := range sent {
			id := r.ID
			var err, answer error
			switch i % 4 {
			case 0:
				err = q.Cancel(ctx, id)
			case 1:
				err = q.Reschedule(ctx, id, duemq.At(start.Add(2*time.Minute+time.Duration(i)*time.Millisecond)))
			case 2:
				err = q.DeliverNow(ctx, id)
			case 3:
				want[id] = r.DueAt
				continue
			}
			if !r.DueAt.After(q.Now()) {
				answer = duemq.ErrAlreadyDelivered
			}
			if !errors.Is(err, answer) {
				t.Fatalf("message %d, due %v after the start, at 30s: %v, want %v", i, r.DueAt.Sub(start), err, answer)
			}
			switch {
			case answer != nil:
				want[id] = r.DueAt
			case i%4 == 1:
				want[id] = start.Add(2*time.Minute + time.Duration(i)*time.Millisecond)
			case i%4 == 2:
				m, err := q.Get(ctx, id)
				if err != nil || m.DueAt.Sub(q.Now()) > time.Millisecond {
					t.Fatalf("message %d is to be delivered now, %v: due %+v, %v", i, q.Now(), m, err)
				}
				want[id] = m.DueAt
			}
		}
		q.Crash()
		for i, r := range sent {
			if i%4 == 0 {
				_, delivered := want[r.ID]
				answer := duemq.ErrAlreadyCancelled
				if delivered {
					answer = duemq.ErrAlreadyDelivered
				}
				if err := q.Cancel(ctx, r.ID); !errors.Is(err, answer) {
					t.Errorf("Cancel of message %d after the crash: %v, want %v", i, err, answer)
				}
			}
		}
		q.Advance(10 * time.Minute)
		for _, m := range take(t, q.Queue) {
			at, ok := want[m.ID]
			if !ok {
				t.Errorf("message %s: cancelled, or received twice", m.Body)
			} else if !m.VisibleAt.Equal(at) {
				t.Errorf("message %s: visible %v after the start, want %v", m.Body, m.VisibleAt.Sub(start), at.Sub(start))
			}
			delete(want, m.ID)
		}
		if len(want) != 0 {
			t.Errorf("%d messages were not received", len(want))
		}
	})
}

// TestAckedStaysAcked: after a restart nothing comes twice; what was leased and
// not acknowledged comes again.
func TestAckedStaysAcked(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithQueues(1))
		ctx := t.Context()
		batch(t, q.Queue, numbered(10, func(int, *duemq.Message) {}))
		got, err := q.ReceiveBatch(ctx, topic)
		if err != nil {
			t.Fatalf("ReceiveBatch: %v", err)
		}
		for i, m := range got {
			if i%3 == 0 {
				if err := m.Ack(ctx); err != nil {
					t.Fatalf("Ack: %v", err)
				}
			}
		}
		q.Restart()
		if again := take(t, q.Queue); bodies(again) != "1 2 4 5 7 8" {
			t.Errorf("after a restart: %q, want those that were not acknowledged", bodies(again))
		}
	})
}

// TestWhatIntervalMayLose: under Interval a power cut takes back what was not
// synced, and no more than the interval.
func TestWhatIntervalMayLose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := duemqtest.New(t, duemq.WithSync(duemq.Interval(time.Second)))
		send(t, q.Queue, "old", duemq.After(time.Hour))
		q.Advance(time.Second)
		synctest.Wait()
		send(t, q.Queue, "young", duemq.After(time.Hour))
		q.Crash()
		q.Advance(2 * time.Hour)
		if got := take(t, q.Queue); bodies(got) != "old" {
			t.Errorf("after a power cut: %q, want old", bodies(got))
		}
		send(t, q.Queue, "kept", duemq.After(time.Hour))
		q.Restart() // closing syncs
		q.Advance(time.Hour)
		if got := take(t, q.Queue); bodies(got) != "kept" {
			t.Errorf("after a restart: %q, want kept", bodies(got))
		}
	})
}

// TestManyCrashes: the power is cut again and again while messages come and go.
func TestManyCrashes(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		rng := rand.New(rand.NewPCG(7, 7))
		due := make(map[string]time.Time)
		for round := range 30 {
			for _, r := range batch(t, q.Queue, numbered(20, func(_ int, m *duemq.Message) {
				m.After = 1 + time.Duration(rng.Int64N(int64(time.Minute)))
				m.Key = strconv.Itoa(round)
			})) {
				due[r.ID] = r.DueAt
			}
			q.Advance(time.Duration(rng.Int64N(int64(20 * time.Second))))
			if round%3 == 2 {
				q.Crash()
			}
			// What was visible and not acknowledged at a crash is there again.
			for _, m := range take(t, q.Queue) {
				if at, ok := due[m.ID]; !ok || !m.VisibleAt.Equal(at) {
					t.Fatalf("round %d: message %s of round %s, due %v: visible %v; or received twice", round, m.ID, m.Key, at, m.VisibleAt)
				}
				delete(due, m.ID)
			}
			q.Advance(10 * time.Millisecond) // acknowledgements are on disk
		}
		q.Advance(time.Minute)
		for _, m := range take(t, q.Queue) {
			delete(due, m.ID)
		}
		if len(due) != 0 {
			t.Errorf("%d messages were not received", len(due))
		}
	})
}
