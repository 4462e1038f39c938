package duemq_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/duemq/duemq"
)

// TestCancelTellsTheTruth: every answer, by id and by handle.
func TestCancelTellsTheTruth(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		waits := send(t, q.Queue, "waits", duemq.After(30*time.Minute))
		byHandle := send(t, q.Queue, "by handle", duemq.Level(16))
		comes := send(t, q.Queue, "comes", duemq.After(10*time.Minute))
		once := send(t, q.Queue, "at once")
		q.Advance(20 * time.Minute)
		for _, c := range []struct {
			what string
			id   string
			want error
		}{
			{"a waiting one", waits.ID, nil},
			{"it once more", waits.ID, duemq.ErrAlreadyCancelled},
			{"it by its handle", waits.Handle, duemq.ErrAlreadyCancelled},
			{"one by its handle", byHandle.Handle, nil},
			{"a delivered one", comes.ID, duemq.ErrAlreadyDelivered},
			{"one that never waited", once.ID, duemq.ErrAlreadyDelivered},
			{"one that never was", "00000000000000ff", duemq.ErrUnknownMessage},
			{"the middle of one", fmt.Sprintf("%015x%s", 0x10, "1"), duemq.ErrUnknownMessage},
			{"no id", "abc", duemq.ErrInvalid},
			{"nothing", "", duemq.ErrInvalid},
		} {
			if err := q.Cancel(ctx, c.id); !errors.Is(err, c.want) {
				t.Errorf("Cancel of %s: %v, want %v", c.what, err, c.want)
			}
		}
		m, err := q.Get(ctx, waits.ID)
		if err != nil || m.State != duemq.StateCancelled || string(m.Body) != "waits" {
			t.Errorf("Get of the cancelled one: %+v, %v", m, err)
		}
		q.Advance(time.Hour)
		if got := take(t, q.Queue); bodies(got) != "at once comes" {
			t.Errorf("received %q", bodies(got))
		}
	})
}

func TestReschedule(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		start := q.Now()
		later := send(t, q.Queue, "later", duemq.After(time.Minute))
		sooner := send(t, q.Queue, "sooner", duemq.Level(18))
		now := send(t, q.Queue, "now", duemq.After(time.Hour))
		past := send(t, q.Queue, "past", duemq.After(time.Hour))
		for _, c := range []struct {
			id string
			d  duemq.Delay
		}{
			{later.ID, duemq.At(start.Add(2 * time.Hour))},
			{sooner.ID, duemq.After(time.Minute)},
			{past.ID, duemq.At(start.Add(-time.Hour))},
		} {
			if err := q.Reschedule(ctx, c.id, c.d); err != nil {
				t.Errorf("Reschedule of %s: %v", c.id, err)
			}
		}
		if err := q.DeliverNow(ctx, now.Handle); err != nil {
			t.Errorf("DeliverNow: %v", err)
		}
		q.Advance(time.Millisecond) // the second one at one instant may take the next millisecond
		if got := take(t, q.Queue); bodies(got) != "now past" {
			t.Errorf("at once: %q, want now and past", bodies(got))
		}
		if due, ok := q.NextDue(); !ok || due.Sub(start) != time.Minute {
			t.Errorf("next due after %v, %v; want 1m", due.Sub(start), ok)
		}
		q.Advance(time.Minute - time.Millisecond)
		if got := take(t, q.Queue); bodies(got) != "sooner" || got[0].ID != sooner.ID || got[0].VisibleAt.Sub(start) != time.Minute {
			t.Errorf("after a minute: %q", bodies(got))
		}
		q.Restart()
		q.Advance(2*time.Hour - time.Minute)
		if got := take(t, q.Queue); bodies(got) != "later" || got[0].VisibleAt.Sub(start) != 2*time.Hour {
			t.Errorf("after two hours: %q", bodies(got))
		}
		for id, want := range map[string]error{
			later.ID: duemq.ErrAlreadyDelivered, "00000000000000ff": duemq.ErrUnknownMessage, "x": duemq.ErrInvalid,
		} {
			if err := q.Reschedule(ctx, id, duemq.After(time.Minute)); !errors.Is(err, want) {
				t.Errorf("Reschedule of %s: %v, want %v", id, err, want)
			}
		}
		if err := q.Reschedule(ctx, later.ID, duemq.At(time.Time{})); !errors.Is(err, duemq.ErrInvalid) {
			t.Errorf("Reschedule to the zero time: %v, want %v", err, duemq.ErrInvalid)
		}
	})
}

// TestRescheduleToALevel: a level is one of the queue's own table, and above the
// table its last one.
func TestRescheduleToALevel(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithLevels(time.Second, time.Minute))
		for level, want := range map[int]time.Duration{1: time.Second, 2: time.Minute, 3: time.Minute, 1 << 40: time.Minute, 0: 0, -1: 0} {
			r := send(t, q.Queue, "x", duemq.After(time.Hour))
			if err := q.Reschedule(t.Context(), r.ID, duemq.Level(level)); err != nil {
				t.Errorf("Reschedule to level %d: %v", level, err)
			}
			m, err := q.Get(t.Context(), r.ID)
			if err != nil || m.DueAt.Sub(q.Now()) > want+time.Millisecond || m.DueAt.Sub(q.Now()) < want {
				t.Errorf("level %d: due at %v, %v; want %v from %v", level, m.DueAt, err, want, q.Now())
			}
			q.Advance(time.Millisecond)
		}
		r := send(t, q.Queue, "x", duemq.After(time.Hour))
		if err := q.Reschedule(t.Context(), r.ID, duemq.Delay{}); err != nil {
			t.Errorf("Reschedule to at once: %v", err)
		}
		q.Advance(time.Millisecond)
		if m, err := q.Get(t.Context(), r.ID); err != nil || m.State != duemq.StateReady {
			t.Errorf("at once: %+v, %v", m, err)
		}
	})
}

func TestShift(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		r := send(t, q.Queue, "x", duemq.After(time.Hour))
		want := r.DueAt
		for by, ms := range map[time.Duration]time.Duration{
			30 * time.Minute: 30 * time.Minute, -15 * time.Minute: -15 * time.Minute, 1500 * time.Microsecond: 2 * time.Millisecond, -1: 0,
		} {
			if err := q.Shift(ctx, r.ID, by); err != nil {
				t.Errorf("Shift by %v: %v", by, err)
			}
			want = want.Add(ms)
			if m, err := q.Get(ctx, r.ID); err != nil || !m.DueAt.Equal(want) {
				t.Errorf("Shift by %v: due at %v, %v; want %v", by, m.DueAt, err, want)
			}
		}
		for _, by := range []time.Duration{math.MaxInt64, 366 * 24 * time.Hour} {
			if err := q.Shift(ctx, r.Handle, by); !errors.Is(err, duemq.ErrDelayTooLong) {
				t.Errorf("Shift by %v: %v, want %v", by, err, duemq.ErrDelayTooLong)
			}
		}
		if err := q.Shift(ctx, r.Handle, math.MinInt64); err != nil {
			t.Errorf("Shift into the past: %v", err)
		}
		q.Advance(time.Millisecond)
		if got := take(t, q.Queue); bodies(got) != "x" {
			t.Errorf("received %q, want x at once", bodies(got))
		}
		if err := q.Shift(ctx, r.ID, time.Hour); !errors.Is(err, duemq.ErrAlreadyDelivered) {
			t.Errorf("Shift of a delivered one: %v, want %v", err, duemq.ErrAlreadyDelivered)
		}
	})
}

// TestGet follows one message through its states.
func TestGet(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithQueues(2))
		ctx := t.Context()
		start := q.Now()
		r := send(t, q.Queue, "body", duemq.Level(3), duemq.Key("k1 k2"), duemq.Tag("retail"), duemq.Header("b", "2"),
			duemq.Header("a", "0"), duemq.Header("a", "1"), duemq.InQueue(1))
		state := func(want duemq.State) *duemq.Message {
			t.Helper()
			m, err := q.Get(ctx, r.ID)
			if err != nil || m.State != want {
				t.Fatalf("Get: %+v, %v; want state %s", m, err, want)
			}
			return m
		}
		m := state(duemq.StateWaiting)
		if string(m.Body) != "body" || m.Key != "k1 k2" || m.Tag != "retail" || fmt.Sprint(m.Headers) != "map[a:1 b:2]" ||
			m.Queue != 1 || !m.DueAt.Equal(start.Add(10*time.Second)) ||
			!m.SentAt.Equal(start) || !m.VisibleAt.IsZero() || m.Offset != -1 || m.Topic != topic || m.ID != r.ID {
			t.Errorf("while it waits: %+v", m)
		}
		if m.DueLevel != 3 || !m.StoredAt.Equal(start) {
			t.Errorf("while it waits: level %d, stored at %v", m.DueLevel, m.StoredAt)
		}
		q.Advance(10 * time.Second)
		m = state(duemq.StateReady)
		if !m.VisibleAt.Equal(m.DueAt) || m.Offset != 0 || m.Attempt != 0 {
			t.Errorf("when visible: %+v", m)
		}
		got, err := q.ReceiveBatch(ctx, topic)
		if err != nil || len(got) != 1 {
			t.Fatalf("ReceiveBatch: %d messages, %v", len(got), err)
		}
		if g := got[0]; string(g.Body) != "body" || g.Key != "k1 k2" || fmt.Sprint(g.Headers) != "map[a:1 b:2]" || g.Offset != 0 ||
			g.Queue != 1 || g.Attempt != 1 ||
			g.DueLevel != 3 {
			t.Errorf("received: %+v", g)
		}
		state(duemq.StateInflight)
		if err := got[0].Ack(ctx); err != nil {
			t.Fatalf("Ack: %v", err)
		}
		state(duemq.StateAcked)
	})
}

// TestForwardedMessageDoesNotWaitAgain: what a queue sets is not sent.
func TestForwardedMessageDoesNotWaitAgain(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		send(t, q.Queue, "x", duemq.Level(3), duemq.Key("k"))
		q.Advance(10 * time.Second)
		got := take(t, q.Queue)
		forward := *got[0]
		forward.Topic = "other"
		r := batch(t, q.Queue, []duemq.Message{forward})
		if !r[0].Ready || r[0].ID == forward.ID {
			t.Errorf("receipt %+v, want a new message that is ready", r[0])
		}
		m, err := q.Get(t.Context(), r[0].ID)
		if err != nil || m.Topic != "other" || m.Key != "k" || !m.DueAt.IsZero() || m.DueLevel != 0 {
			t.Errorf("Get: %+v, %v", m, err)
		}
	})
}
