package duemq_test

import (
	"errors"
	"testing"
	"time"

	"github.com/duemq/duemq"
)

// dead lists a group's dead letters.
func dead(t *testing.T, q *duemq.Queue, group string) []*duemq.Message {
	t.Helper()
	var all []*duemq.Message
	for m, err := range q.DeadLetters(t.Context(), group) {
		if err != nil {
			t.Fatalf("DeadLetters: %v", err)
		}
		all = append(all, m)
	}
	return all
}

// fail receives one message for group g and gives it back.
func fail(t *testing.T, q *bench, after ...duemq.Delay) *duemq.Message {
	t.Helper()
	got, err := q.ReceiveBatch(t.Context(), topic, duemq.Group("g"), duemq.Max(1), duemq.Wait(0))
	if err != nil || len(got) != 1 {
		t.Fatalf("ReceiveBatch: %d messages, %v; want 1", len(got), err)
	}
	if err := got[0].Retry(t.Context(), after...); err != nil {
		t.Fatalf("Retry: %v", err)
	}
	return got[0]
}

// TestBackoff: attempts come after 1 s, 5 s and 30 s, and then the message is a
// dead letter of this group alone.
func TestBackoff(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		delays := []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}
		if _, err := q.CreateGroup(ctx, "g", duemq.Backoff(delays...), duemq.MaxAttempts(4)); err != nil {
			t.Fatalf("CreateGroup: %v", err)
		}
		r := send(t, q.Queue, "poison", duemq.Key("k"), duemq.Tag("t"), duemq.Header("h", "v"))
		for i, d := range delays {
			m := fail(t, q)
			if m.Attempt != i+1 || m.State != duemq.StateRetrying || !m.NextAttempt.Equal(q.Now().Add(d)) {
				t.Errorf("attempt %d: %+v, want the next one at %v", i+1, m, q.Now().Add(d))
			}
			q.Advance(d - time.Millisecond)
			if got := take(t, q.Queue, duemq.Group("g")); len(got) != 0 {
				t.Fatalf("attempt %d comes before its back-off", i+2)
			}
			q.Advance(time.Millisecond)
		}
		last := fail(t, q)
		if last.Attempt != 4 || last.State != duemq.StateDead || !last.NextAttempt.IsZero() {
			t.Errorf("last attempt: %+v", last)
		}
		q.Crash()
		letters := dead(t, q.Queue, "g")
		if len(letters) != 1 {
			t.Fatalf("%d dead letters, want 1", len(letters))
		}
		if m := letters[0]; string(m.Body) != "poison" || m.Key != "k" || m.Tag != "t" || m.Headers["h"] != "v" || m.Origin != r.ID ||
			m.OriginTopic != topic || m.Group != "g" || m.State != duemq.StateDead || m.Reason == "" {
			t.Errorf("dead letter %+v", m)
		}
		if got := take(t, q.Queue, duemq.Group("other")); bodies(got) != "poison" {
			t.Errorf("another group: %q", bodies(got))
		}
		info, err := q.GroupInfo(ctx, "g")
		if err != nil || info.Dead != 1 {
			t.Errorf("GroupInfo: %+v, %v", info, err)
		}
	})
}

// TestBackoffOutlivesRestarts: neither attempts nor back-off begin anew, and an
// attempt counts also when the receiver died with it.
func TestBackoffOutlivesRestarts(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		send(t, q.Queue, "x")
		fail(t, q, duemq.After(time.Minute))
		q.Restart()
		q.Advance(time.Minute - time.Millisecond)
		if got := take(t, q.Queue, duemq.Group("g")); len(got) != 0 {
			t.Errorf("received %q before its back-off has passed", bodies(got))
		}
		q.Advance(time.Millisecond)
		for attempt := 2; attempt <= 4; attempt++ {
			got, err := q.ReceiveBatch(t.Context(), topic, duemq.Group("g"), duemq.Wait(0))
			if err != nil || len(got) != 1 || got[0].Attempt != attempt {
				t.Fatalf("received %+v, %v; want attempt %d", got, err, attempt)
			}
			q.Restart() // and its receiver with it
		}
	})
}

// TestBuryAndRedrive: at once, by id, after a while, at a rate; purged.
func TestBuryAndRedrive(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		bury := func(n int) {
			t.Helper()
			batch(t, q.Queue, numbered(n, func(int, *duemq.Message) {}))
			got, err := q.ReceiveBatch(t.Context(), topic, duemq.Wait(0))
			if err != nil || len(got) != n {
				t.Fatalf("ReceiveBatch: %d messages, %v", len(got), err)
			}
			for _, m := range got {
				if err := m.Bury(t.Context(), "cannot be read"); err != nil || m.State != duemq.StateDead {
					t.Fatalf("Bury: %v", err)
				}
			}
			if err := got[0].Ack(t.Context()); err != nil && !errors.Is(err, duemq.ErrLeaseLost) {
				t.Errorf("Ack of a buried one: %v", err)
			}
		}
		bury(20)
		letters := dead(t, q.Queue, duemq.DefaultGroup)
		if len(letters) != 20 || letters[7].Reason != "cannot be read" {
			t.Fatalf("%d dead letters", len(letters))
		}
		dry, err := q.Redrive(ctx, duemq.DefaultGroup, duemq.DryRun())
		if err != nil || dry.Matched != 20 || dry.State != duemq.OperationDryRun {
			t.Errorf("dry run: %+v, %v", dry, err)
		}
		op, err := q.Redrive(ctx, duemq.DefaultGroup, duemq.IDs(letters[0].ID, letters[1].ID))
		if op = done(t, op, err); op.Kind != "redrive" || op.Done != 2 {
			t.Errorf("redrive by id: %+v", op)
		}
		q.Advance(time.Millisecond)
		if got := take(t, q.Queue); len(got) != 2 || got[0].Attempt != 1 || got[0].Topic != topic || got[0].Origin == "" {
			t.Errorf("received %d, first %+v", len(got), got)
		}
		op, err = q.Redrive(ctx, duemq.DefaultGroup, duemq.After(time.Minute))
		if op = done(t, op, err); op.Done != 18 {
			t.Errorf("redrive of all: %+v", op)
		}
		if got := take(t, q.Queue); len(got) != 0 {
			t.Errorf("%d received before the delay", len(got))
		}
		q.Advance(time.Minute + time.Second)
		if got := take(t, q.Queue); len(got) != 18 {
			t.Errorf("%d received, want 18", len(got))
		}
		if got := take(t, q.Queue, duemq.Group("other")); len(got) != 20 {
			t.Errorf("another group received %d, want its 20 and none again", len(got))
		}
		if left := dead(t, q.Queue, duemq.DefaultGroup); len(left) != 0 {
			t.Errorf("%d dead letters left", len(left))
		}
		bury(20)
		began := q.Now()
		op, err = q.Redrive(ctx, duemq.DefaultGroup, duemq.Rate(2))
		for err == nil && op.State == duemq.OperationRunning {
			q.Advance(100 * time.Millisecond)
			op, err = q.Operation(ctx, op.ID)
		}
		if took := q.Now().Sub(began); err != nil || op.Done != 20 || took < 9*time.Second {
			t.Errorf("redrive at a rate: %+v in %v, %v; want 20 in 9 s or more", op, took, err)
		}
		q.Advance(time.Second)
		if got := take(t, q.Queue); len(got) != 20 {
			t.Errorf("%d received, want 20", len(got))
		}
		bury(3)
		letters = dead(t, q.Queue, duemq.DefaultGroup)
		if n, err := q.PurgeDead(ctx, duemq.DefaultGroup, letters[1].ID); n != 1 || err != nil {
			t.Errorf("PurgeDead: %d, %v", n, err)
		}
		if n, err := q.PurgeAllDead(ctx, duemq.DefaultGroup); n != 2 || err != nil {
			t.Errorf("PurgeAllDead: %d, %v", n, err)
		}
		if left := dead(t, q.Queue, duemq.DefaultGroup); len(left) != 0 {
			t.Errorf("%d dead letters left", len(left))
		}
	})
}

func TestDeadLettersRefuse(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		for _, err := range q.DeadLetters(ctx, "none") {
			if !errors.Is(err, duemq.ErrUnknownGroup) {
				t.Errorf("DeadLetters of no group: %v, want %v", err, duemq.ErrUnknownGroup)
			}
		}
		send(t, q.Queue, "x")
		m := fail(t, q, duemq.After(time.Second))
		for what, c := range map[string]struct{ err, want error }{
			"purge of no ids":    {second(q.PurgeDead(ctx, "g")), duemq.ErrInvalid},
			"redrive of no ids":  {second(q.Redrive(ctx, "g", duemq.IDs())), duemq.ErrInvalid},
			"redrive at":         {second(q.Redrive(ctx, "g", duemq.At(q.Now()))), duemq.ErrInvalid},
			"redrive of nothing": {second(q.Redrive(ctx, "none")), duemq.ErrUnknownGroup},
			"bury what is back":  {m.Bury(ctx, ""), duemq.ErrLeaseLost},
			"two delays":         {m.Retry(ctx, duemq.After(1), duemq.After(2)), duemq.ErrInvalid},
			"a level":            {m.Retry(ctx, duemq.Level(1)), duemq.ErrInvalid},
			"too long":           {m.Retry(ctx, duemq.After(duemq.MaxInvisible+time.Second)), duemq.ErrInvalid},
			"looked at":          {new(duemq.Message).Bury(ctx, ""), duemq.ErrInvalid},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", what, c.err, c.want)
			}
		}
	})
}
