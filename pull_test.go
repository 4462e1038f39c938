package duemq_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/duemq/duemq"
)

// TestPull: two consumers see everything, each from its own place.
func TestPull(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithQueues(1))
		ctx := t.Context()
		start := q.Now()
		batch(t, q.Queue, numbered(10, func(i int, m *duemq.Message) {
			m.After = time.Duration(i) * time.Minute
			m.Tag = []string{"even", "odd"}[i%2]
		}))
		q.Advance(9 * time.Minute)
		for range 2 {
			var seen []*duemq.Message
			for offset := int64(0); ; {
				got, err := q.Pull(ctx, topic, 0, offset, duemq.Max(3), duemq.Wait(0))
				if err != nil {
					t.Fatalf("Pull: %v", err)
				}
				if len(got.Messages) == 0 {
					if got.Next != 10 || got.Low != 0 || got.High != 10 || got.Moved {
						t.Errorf("at the end: %+v", got)
					}
					break
				}
				seen = append(seen, got.Messages...)
				for _, m := range got.Messages {
					if err := m.Ack(ctx); !errors.Is(err, duemq.ErrInvalid) {
						t.Errorf("Ack of a pulled one: %v", err)
					}
				}
				offset = got.Next
			}
			if inOrder(seen) != "0 1 2 3 4 5 6 7 8 9" {
				t.Errorf("pulled %s", inOrder(seen))
			}
		}
		odd, err := q.Pull(ctx, topic, 0, 0, duemq.Tags("odd"), duemq.Wait(0))
		if err != nil || bodies(odd.Messages) != "1 3 5 7 9" || odd.Next != 10 {
			t.Errorf("Pull by tag: %q, %+v, %v", bodies(odd.Messages), odd, err)
		}
		beyond, err := q.Pull(ctx, topic, 0, 1000, duemq.Wait(0))
		if err != nil || !beyond.Moved || beyond.Next != 10 {
			t.Errorf("Pull beyond the end: %+v, %v", beyond, err)
		}
		if o, err := q.OffsetAt(ctx, topic, 0, start.Add(4*time.Minute)); o != 4 || err != nil {
			t.Errorf("OffsetAt: %d, %v; want 4", o, err)
		}
		if o, err := q.OffsetAt(ctx, topic, 0, start.Add(time.Hour)); o != 10 || err != nil {
			t.Errorf("OffsetAt of the future: %d, %v; want 10", o, err)
		}
	})
}

// TestPullWaits: for the first message, for the time it was given, for its
// context, and for a Close.
func TestPullWaits(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithQueues(1))
		ctx, cancel := context.WithCancel(t.Context())
		send(t, q.Queue, "x", duemq.After(time.Minute))
		got := make(chan error)
		pull := func() {
			p, err := q.Pull(ctx, topic, 0, 0)
			if err == nil && bodies(p.Messages) != "x" {
				err = fmt.Errorf("pulled %+v", p)
			}
			got <- err
		}
		go pull()
		q.Advance(time.Minute)
		if err := <-got; err != nil {
			t.Errorf("Pull: %v", err)
		}
		next := func() {
			_, err := q.Pull(ctx, topic, 0, 1)
			got <- err
		}
		go next()
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("Pull: %v, want %v", err, context.Canceled)
		}
		ctx = t.Context()
		go next()
		if err := q.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-got; !errors.Is(err, duemq.ErrClosed) {
			t.Errorf("Pull: %v, want %v", err, duemq.ErrClosed)
		}
	})
}

func TestCommit(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithQueues(2))
		ctx := t.Context()
		batch(t, q.Queue, numbered(10, func(i int, m *duemq.Message) { m.Queue, m.InQueue = i%2, true }))
		if err := q.Commit(ctx, "g", topic, map[int]int64{0: 3, 1: 5}); err != nil {
			t.Fatalf("Commit: %v", err)
		}
		q.Restart()
		next, err := q.Position(ctx, "g", topic)
		if err != nil || fmt.Sprint(next) != "map[0:3 1:5]" {
			t.Errorf("Position: %v, %v", next, err)
		}
		info, err := q.GroupInfo(ctx, "g")
		if err != nil || len(info.Topics) != 1 || info.Topics[0].Lag != 2 {
			t.Errorf("GroupInfo: %+v, %v; want a lag of 2", info, err)
		}
		for what, c := range map[string]struct{ err, want error }{
			"commit below 0":   {q.Commit(ctx, "g", topic, map[int]int64{0: -1}), duemq.ErrInvalid},
			"commit elsewhere": {q.Commit(ctx, "g", topic, map[int]int64{7: 1}), duemq.ErrInvalid},
			"pull below 0":     {second(q.Pull(ctx, topic, 0, -1)), duemq.ErrInvalid},
			"pull elsewhere":   {second(q.Pull(ctx, topic, 7, 0)), duemq.ErrInvalid},
			"pull of nothing":  {second(q.Pull(ctx, "none", 0, 0)), duemq.ErrUnknownTopic},
			"no group":         {second(q.Position(ctx, "none", topic)), duemq.ErrUnknownGroup},
			"no topic":         {second(q.OffsetAt(ctx, "none", 0, q.Now())), duemq.ErrUnknownTopic},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", what, c.err, c.want)
			}
		}
	})
}
