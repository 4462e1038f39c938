package duemq_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq"
)

// TestIdempotencyKey: a repeat adds nothing and is answered with the first
// receipt, also over a crash; another message under the key is refused; when the
// window has passed, the key is free.
func TestIdempotencyKey(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithIdempotencyWindow(time.Hour))
		ctx := t.Context()
		key := duemq.IdempotencyKey("order 1981/close \"now\"")
		first := send(t, q.Queue, "close", key, duemq.After(time.Minute))
		q.Crash()
		again := send(t, q.Queue, "close", key, duemq.After(time.Minute))
		if first.Repeat || !again.Repeat || again.ID != first.ID || !again.DueAt.Equal(first.DueAt) {
			t.Errorf("first %+v, again %+v", first, again)
		}
		if _, err := q.Send(ctx, topic, []byte("other"), key, duemq.After(time.Minute)); !errors.Is(err, duemq.ErrMismatch) {
			t.Errorf("Send of another message: %v, want %v", err, duemq.ErrMismatch)
		}
		rs, err := q.SendBatch(ctx, []duemq.Message{
			{Topic: topic, Body: []byte("close"), After: time.Minute, IdempotencyKey: "order 1981/close \"now\""},
			{Topic: topic, Body: []byte("b"), IdempotencyKey: "line\nbreak"},
			{Topic: topic, Body: []byte("b"), IdempotencyKey: "line\nbreak"},
		})
		if err != nil || !rs[0].Repeat || rs[0].ID != first.ID || rs[1].Repeat || !rs[2].Repeat || rs[1].ID != rs[2].ID {
			t.Errorf("SendBatch: %+v, %v", rs, err)
		}
		if r := send(t, q.Queue, "b", duemq.IdempotencyKey("line\nbreak")); !r.Repeat || r.ID != rs[1].ID {
			t.Errorf("Send under a key with a line break: %+v", r)
		}
		q.Advance(time.Minute)
		if got := take(t, q.Queue); bodies(got) != "b close" {
			t.Errorf("received %q, want b close", bodies(got))
		}
		q.Advance(2 * time.Hour)
		if r := send(t, q.Queue, "other", key); r.Repeat || r.ID == first.ID {
			t.Errorf("after the window: %+v", r)
		}
		for _, bad := range []duemq.SendOption{
			duemq.IdempotencyKey(""), duemq.IdempotencyKey(strings.Repeat("x", 257)), duemq.Name(""), duemq.Name(strings.Repeat("x", 257)),
		} {
			if _, err := q.Send(ctx, topic, nil, bad); !errors.Is(err, duemq.ErrInvalid) {
				t.Errorf("Send under no key, or too long a one: %v, want %v", err, duemq.ErrInvalid)
			}
		}
	})
}

// TestName: a name is taken over while its message waits, and found again.
func TestName(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		for _, name := range []string{"u42/2026-12-01", "..", "a b?c=d&e%2F#", "语文课"} {
			start := q.Now()
			old := send(t, q.Queue, "at ten", duemq.Name(name), duemq.After(time.Hour))
			moved := send(t, q.Queue, "at eleven", duemq.Name(name), duemq.After(2*time.Hour))
			if old.Replaced != "" || moved.Replaced != old.ID {
				t.Errorf("%q: replaced %q and %q, want %q", name, old.Replaced, moved.Replaced, old.ID)
			}
			if err := q.Cancel(ctx, old.ID); !errors.Is(err, duemq.ErrAlreadyCancelled) {
				t.Errorf("%q: Cancel of the replaced one: %v", name, err)
			}
			m, err := q.GetNamed(ctx, topic, name)
			if err != nil || m.ID != moved.ID || string(m.Body) != "at eleven" || m.State != duemq.StateWaiting {
				t.Errorf("%q: GetNamed: %+v, %v", name, m, err)
			}
			q.Advance(2 * time.Hour)
			if got := take(t, q.Queue); bodies(got) != "at eleven" || got[0].VisibleAt.Sub(start) != 2*time.Hour {
				t.Errorf("%q: received %q", name, bodies(got))
			}
			if r := send(t, q.Queue, "next week", duemq.Name(name), duemq.After(time.Hour)); r.Replaced != "" {
				t.Errorf("%q: replaced %q, which was delivered", name, r.Replaced)
			}
			if err := q.CancelNamed(ctx, topic, name); err != nil {
				t.Errorf("%q: CancelNamed: %v", name, err)
			}
			if err := q.CancelNamed(ctx, topic, name); !errors.Is(err, duemq.ErrAlreadyCancelled) && !errors.Is(err, duemq.ErrUnknownMessage) {
				t.Errorf("%q: CancelNamed again: %v", name, err)
			}
		}
		if _, err := q.GetNamed(ctx, topic, "nobody"); !errors.Is(err, duemq.ErrUnknownMessage) {
			t.Errorf("GetNamed of nobody: %v, want %v", err, duemq.ErrUnknownMessage)
		}
		if _, err := q.GetNamed(ctx, "nowhere", "nobody"); !errors.Is(err, duemq.ErrUnknownTopic) {
			t.Errorf("GetNamed in no topic: %v, want %v", err, duemq.ErrUnknownTopic)
		}
	})
}
