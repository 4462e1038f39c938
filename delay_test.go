package duemq_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/duemq/duemq"
)

// TestVisibleExactlyWhenDue: 1,000 random dues, level and any time, relative and
// absolute, in one day: each visible at its own millisecond.
func TestVisibleExactlyWhenDue(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		rng := rand.New(rand.NewPCG(1, 2))
		start := q.Now()
		var sent []duemq.Receipt
		for range 10 {
			sent = append(sent, batch(t, q.Queue, numbered(100, func(i int, m *duemq.Message) {
				d := time.Duration(rng.Int64N(int64(12 * time.Hour)))
				switch i % 3 {
				case 0:
					m.After = d + 1
				case 1:
					m.At = q.Now().Add(d + 1)
				default:
					m.Level = 1 + rng.IntN(18)
				}
			}))...)
			q.Advance(time.Duration(rng.Int64N(int64(time.Hour))))
		}
		q.Advance(24*time.Hour - q.Now().Sub(start))
		punctual(t, q, sent, time.Time{})
		if n, err := q.Count(t.Context()); n != 0 || err != nil {
			t.Errorf("Count: %d, %v; want nothing left", n, err)
		}
	})
}

// TestLevels is case G1: all 18 levels of RocketMQ's table, sent in one burst.
func TestLevels(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		const s, m, h = time.Second, time.Minute, time.Hour
		table := []time.Duration{1 * s, 5 * s, 10 * s, 30 * s, 1 * m, 2 * m, 3 * m, 4 * m, 5 * m, 6 * m, 7 * m, 8 * m, 9 * m, 10 * m, 20 * m, 30 * m, 1 * h, 2 * h}
		q := open(t)
		for i := range table {
			send(t, q.Queue, strconv.Itoa(i+1), duemq.Level(i+1))
		}
		var passed time.Duration
		for i, d := range table {
			q.Advance(d - passed - time.Millisecond)
			if got := take(t, q.Queue); len(got) != 0 {
				t.Fatalf("level %d: %q received 1 ms before %v", i+1, bodies(got), d)
			}
			q.Advance(time.Millisecond)
			passed = d
			got := take(t, q.Queue)
			if bodies(got) != strconv.Itoa(i+1) || got[0].DueLevel != i+1 || got[0].Lateness() != 0 {
				t.Fatalf("level %d after %v: received %q", i+1, d, bodies(got))
			}
		}
	})
}

// TestLevelsOfOnesOwn is case G2: a level above the table is its last one.
func TestLevelsOfOnesOwn(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithLevels(time.Second, 2*time.Second, 3*time.Second))
		for _, level := range []int{3, 4, 18, 1<<31 - 1} { // above the table is its last
			if r := send(t, q.Queue, "x", duemq.Level(level)); r.DueAt.Sub(q.Now()) != 3*time.Second {
				t.Errorf("level %d: due %v after it was sent, want 3s", level, r.DueAt.Sub(q.Now()))
			}
		}
		q.Advance(3 * time.Second)
		if got := take(t, q.Queue); len(got) != 4 {
			t.Errorf("received %d messages, want 4", len(got))
		}
	})
}

// TestAtOnce is case G3: zero, negative and past are at once, and give no
// handle.
func TestAtOnce(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		for _, d := range []duemq.Delay{
			{},
			duemq.Level(0), duemq.Level(-1), duemq.After(0), duemq.After(-5 * time.Second),
			duemq.At(q.Now().Add(-time.Second)), duemq.At(time.UnixMilli(1)), duemq.At(q.Now()),
		} {
			r := send(t, q.Queue, d.String(), d)
			if !r.Ready || r.Handle != "" {
				t.Errorf("%v: ready %v, handle %q; want it ready and without a handle", d, r.Ready, r.Handle)
			}
			if got := take(t, q.Queue); bodies(got) != d.String() || got[0].Lateness() != 0 {
				t.Errorf("%v: received %q", d, bodies(got))
			}
		}
		for _, m := range []duemq.Message{{After: -time.Second}, {Level: -1}, {At: time.UnixMilli(1)}, {}} {
			m.Topic = topic
			if r := batch(t, q.Queue, []duemq.Message{m}); !r[0].Ready {
				t.Errorf("batch with After %v, Level %d, At %v: not ready", m.After, m.Level, m.At)
			}
		}
	})
}

// TestPrecision is case G4: 400 absolute dues 1 to 20 s ahead, 100 of them on an
// exact second. Each is there at its own millisecond, and nothing 1 ms before.
func TestPrecision(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		q.Advance(321 * time.Millisecond) // so that the sender does not stand on a second
		rng := rand.New(rand.NewPCG(4, 0))
		sent := batch(t, q.Queue, numbered(400, func(i int, m *duemq.Message) {
			m.At = q.Now().Add(time.Second + time.Duration(rng.IntN(19_000))*time.Millisecond)
			if i%4 == 0 {
				m.At = m.At.Truncate(time.Second).Add(time.Second)
			}
		}))
		at := make(map[time.Time][]duemq.Receipt)
		seconds := 0
		for _, r := range sent {
			at[r.DueAt] = append(at[r.DueAt], r)
			if r.DueAt.Equal(r.DueAt.Truncate(time.Second)) {
				seconds++
			}
		}
		if seconds < 100 {
			t.Errorf("%d dues on an exact second, want 100 or more", seconds)
		}
		for _, due := range slices.SortedFunc(maps.Keys(at), time.Time.Compare) {
			q.Advance(due.Sub(q.Now()) - time.Millisecond)
			if got := take(t, q.Queue); len(got) != 0 {
				t.Fatalf("%q received 1 ms before %v", bodies(got), due)
			}
			q.Advance(time.Millisecond)
			punctual(t, q, at[due], time.Time{})
		}
		if n, err := q.Count(t.Context()); n != 0 || err != nil {
			t.Errorf("Count: %d, %v; want nothing left", n, err)
		}
	})
}

// TestMoreThanOneDelay is case G5 as the library has it: refused, where the
// RocketMQ protocols have a precedence.
func TestMoreThanOneDelay(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		at := q.Now().Add(time.Minute)
		for _, opts := range [][]duemq.SendOption{
			{duemq.Level(1), duemq.At(at)},
			{duemq.After(3 * time.Second), duemq.After(9 * time.Second)},
			{duemq.After(4 * time.Second), duemq.At(at)},
			{duemq.After(0), duemq.Level(0)},
			{duemq.Level(1), duemq.After(time.Second), duemq.At(at)},
			{duemq.At(time.Time{})},
		} {
			if _, err := q.Send(t.Context(), topic, nil, opts...); !errors.Is(err, duemq.ErrInvalid) {
				t.Errorf("Send with %v: %v, want %v", opts, err, duemq.ErrInvalid)
			}
		}
		for _, m := range []duemq.Message{
			{Level: 1, At: at},
			{After: time.Second, At: at},
			{After: time.Second, Level: 1},
		} {
			m.Topic = topic
			rs, err := q.SendBatch(t.Context(), []duemq.Message{m, {Topic: topic, Body: []byte("good"), Level: 1}})
			if !errors.Is(err, duemq.ErrInvalid) || !errors.Is(rs[0].Err, duemq.ErrInvalid) || rs[1].Err != nil {
				t.Errorf("SendBatch with %+v: %v, %v", m, rs, err)
			}
		}
		q.Advance(time.Hour)
		if got := take(t, q.Queue); bodies(got) != "good good good" {
			t.Errorf("received %q, want only what was not refused", bodies(got))
		}
	})
}

// TestFinerThanMilliseconds: the queue counts milliseconds and rounds up, also
// when its own clock stands between two.
func TestFinerThanMilliseconds(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		start := q.Now()
		q.Advance(400 * time.Microsecond)
		for _, c := range []struct {
			d    duemq.Delay
			want time.Duration // from start
		}{
			{duemq.After(1), 2 * time.Millisecond}, // 1 ms from 0.4 ms on, rounded up
			{duemq.After(time.Millisecond), 2 * time.Millisecond},
			{duemq.After(1100 * time.Microsecond), 3 * time.Millisecond},
			{duemq.At(start.Add(1500 * time.Microsecond)), 2 * time.Millisecond},
			{duemq.At(start.Add(1500*time.Microsecond + 1)), 2 * time.Millisecond},
			{duemq.At(start.Add(2 * time.Millisecond)), 2 * time.Millisecond},
		} {
			if r := send(t, q.Queue, "x", c.d); r.DueAt.Sub(start) != c.want {
				t.Errorf("%v: due %v after the start, want %v", c.d, r.DueAt.Sub(start), c.want)
			}
		}
		q.Advance(1599 * time.Microsecond) // to 1.999 ms
		if got := take(t, q.Queue); len(got) != 0 {
			t.Errorf("received %d messages before their due", len(got))
		}
		q.Advance(time.Microsecond)
		if got := take(t, q.Queue); len(got) != 5 {
			t.Errorf("received %d messages at 2 ms, want 5", len(got))
		}
	})
}

func TestDelayTooLong(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		const year = 365 * 24 * time.Hour
		for _, d := range []duemq.Delay{duemq.After(year), duemq.At(q.Now().Add(year))} {
			send(t, q.Queue, "x", d)
		}
		farthest := time.Unix(1<<55, 0)
		for _, d := range []duemq.Delay{
			duemq.After(year + 1), duemq.At(q.Now().Add(year + 1)), duemq.After(1<<63 - 1), duemq.At(farthest),
		} {
			if r, err := q.Send(t.Context(), topic, nil, d); !errors.Is(err, duemq.ErrDelayTooLong) {
				t.Errorf("%v: %+v, %v; want %v", d, r, err, duemq.ErrDelayTooLong)
			}
		}
		r := send(t, q.Queue, "x", duemq.After(time.Second))
		if err := q.Reschedule(t.Context(), r.ID, duemq.After(year+1)); !errors.Is(err, duemq.ErrDelayTooLong) {
			t.Errorf("Reschedule: %v, want %v", err, duemq.ErrDelayTooLong)
		}
	})
}
