package duemq_test

import (
	"errors"
	"testing"
	"time"

	"github.com/duemq/duemq"
)

func TestTopics(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		made, err := q.CreateTopic(ctx, "push", duemq.Queues(3), duemq.MaxRate(100), duemq.Attribute("owner", "crm"), duemq.Attribute("none", ""))
		if err != nil || made.Queues != 3 || made.MaxRate != 100 || made.Attributes["owner"] != "crm" || len(made.Attributes) != 2 {
			t.Errorf("CreateTopic: %+v, %v", made, err)
		}
		if _, err := q.CreateTopic(ctx, "push", duemq.Queues(3), duemq.MaxRate(100), duemq.Attribute("owner", "crm")); err != nil {
			t.Errorf("CreateTopic of the same: %v", err)
		}
		if _, err := q.CreateTopic(ctx, "push", duemq.Queues(4)); !errors.Is(err, duemq.ErrExists) {
			t.Errorf("CreateTopic of another: %v, want %v", err, duemq.ErrExists)
		}
		changed, err := q.UpdateTopic(ctx, "push", duemq.MaxRate(0), duemq.Attribute("note", "x"))
		if err != nil || changed.MaxRate != 0 || changed.Attributes["owner"] != "crm" || changed.Attributes["note"] != "x" || len(changed.Attributes) != 2 {
			t.Errorf("UpdateTopic: %+v, %v", changed, err)
		}
		send(t, q.Queue, "x", duemq.InQueue(2))
		send(t, q.Queue, "y", duemq.After(time.Hour))
		q.Restart()
		all, err := q.Topics(ctx)
		if err != nil || len(all) != 2 || all[0].Name != topic || all[1].Name != "push" || all[1].Offsets != nil {
			t.Errorf("Topics: %+v, %v", all, err)
		}
		info, err := q.TopicInfo(ctx, topic)
		if err != nil || info.Waiting != 1 || info.Visible != 1 || info.Queues != 8 || len(info.Offsets) != 8 || info.Offsets[2] != (duemq.QueueOffsets{Low: 0, Next: 1}) {
			t.Errorf("TopicInfo: %+v, %v", info, err)
		}
		if same, err := q.UpdateTopic(ctx, "push"); err != nil || same.Queues != 3 {
			t.Errorf("UpdateTopic of nothing: %+v, %v", same, err)
		}
		for what, c := range map[string]struct{ err, want error }{
			"TopicInfo": {second(q.TopicInfo(ctx, "none")), duemq.ErrUnknownTopic},
			"update":    {second(q.UpdateTopic(ctx, "none", duemq.MaxRate(1))), duemq.ErrUnknownTopic},
			"pause":     {q.Pause(ctx, "none"), duemq.ErrUnknownTopic},
			"resume":    {q.Resume(ctx, "none"), duemq.ErrUnknownTopic},
			"purge":     {second(q.Purge(ctx, "none")), duemq.ErrUnknownTopic},
			"delete":    {second(q.DeleteTopic(ctx, "none")), duemq.ErrUnknownTopic},
			"queues":    {second(q.CreateTopic(ctx, "many", duemq.Queues(1025))), duemq.ErrInvalid},
			"no queues": {second(q.CreateTopic(ctx, "many", duemq.Queues(0))), duemq.ErrInvalid},
			"rate":      {second(q.CreateTopic(ctx, "many", duemq.MaxRate(-1))), duemq.ErrInvalid},
			"name":      {second(q.CreateTopic(ctx, "a b")), duemq.ErrInvalid},
			"internal":  {second(q.CreateTopic(ctx, "%DLQ%g")), duemq.ErrForbidden},
			"resize":    {second(q.UpdateTopic(ctx, "push", duemq.Queues(4))), duemq.ErrInvalid},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", what, c.err, c.want)
			}
		}
	})
}

// second is the error of a call that gives something too.
func second[T any](_ T, err error) error { return err }

// TestPause: what falls due meanwhile is held back, is seen as such, and comes
// in its order.
func TestPause(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithQueues(1))
		ctx := t.Context()
		send(t, q.Queue, "there")
		if err := q.Pause(ctx, topic); err != nil {
			t.Fatalf("Pause: %v", err)
		}
		batch(t, q.Queue, numbered(5, func(i int, m *duemq.Message) { m.After = time.Duration(5-i) * time.Minute }))
		send(t, q.Queue, "later", duemq.After(time.Hour))
		q.Advance(10 * time.Minute)
		q.Restart()
		if got := take(t, q.Queue); bodies(got) != "there" {
			t.Errorf("while paused: %q, want what was there", bodies(got))
		}
		info, err := q.TopicInfo(ctx, topic)
		if err != nil || !info.Paused || info.Waiting != 6 || info.Held != 5 {
			t.Errorf("TopicInfo: %+v, %v", info, err)
		}
		held := pending(t, q.Queue, duemq.Paused())
		if bodiesOf(t, q.Queue, held) != "4 3 2 1 0" || held[0].State != duemq.StatePaused {
			t.Errorf("held back: %q", bodiesOf(t, q.Queue, held))
		}
		if n, err := q.Count(ctx, duemq.Paused(), duemq.Topic(topic)); n != 5 || err != nil {
			t.Errorf("Count: %d, %v; want 5", n, err)
		}
		if err := q.Resume(ctx, topic); err != nil {
			t.Fatalf("Resume: %v", err)
		}
		q.Advance(time.Millisecond)
		if got := inOrder(take(t, q.Queue, duemq.Max(1))); got != "4 3 2 1 0" {
			t.Errorf("after Resume: %q, want 4 3 2 1 0", got)
		}
	})
}

// bodiesOf looks at messages that were listed without bodies.
func bodiesOf(t *testing.T, q *duemq.Queue, msgs []*duemq.Message) string {
	t.Helper()
	whole := make([]*duemq.Message, len(msgs))
	for i, m := range msgs {
		var err error
		if whole[i], err = q.Get(t.Context(), m.ID); err != nil {
			t.Fatalf("Get: %v", err)
		}
	}
	return inOrder(whole)
}

// TestMaxRate: a herd comes at the rate of its topic, in its order.
func TestMaxRate(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithQueues(1))
		if _, err := q.CreateTopic(t.Context(), topic, duemq.MaxRate(10)); err != nil {
			t.Fatalf("CreateTopic: %v", err)
		}
		batch(t, q.Queue, numbered(100, func(_ int, m *duemq.Message) { m.After = time.Minute }))
		q.Advance(time.Minute)
		came := len(take(t, q.Queue))
		if came > 20 {
			t.Errorf("%d at once, with 10 a second", came)
		}
		for range 5 {
			q.Advance(time.Second)
			n := len(take(t, q.Queue))
			if n < 9 || n > 11 {
				t.Errorf("%d in a second, want 10", n)
			}
			came += n
		}
		q.Advance(10 * time.Second)
		if came += len(take(t, q.Queue)); came != 100 {
			t.Errorf("%d in all, want 100", came)
		}
	})
}

// TestPurgeAndDelete: what waited and was there is gone, also for a topic of the
// name that is made afterwards.
func TestPurgeAndDelete(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		for name, remove := range map[string]func() (duemq.Purged, error){
			"purge":  func() (duemq.Purged, error) { return q.Purge(ctx, topic) },
			"delete": func() (duemq.Purged, error) { return q.DeleteTopic(ctx, topic) },
		} {
			batch(t, q.Queue, numbered(3, func(int, *duemq.Message) {}))
			waits := send(t, q.Queue, "waits", duemq.After(time.Minute), duemq.Name("n"), duemq.IdempotencyKey(name))
			gone, err := remove()
			if err != nil || gone != (duemq.Purged{Waiting: 1, Visible: 3}) {
				t.Errorf("%s: %+v, %v", name, gone, err)
			}
			q.Crash()
			fresh := send(t, q.Queue, "fresh", duemq.After(time.Minute), duemq.Name("n"), duemq.IdempotencyKey(name))
			if fresh.Repeat || fresh.Replaced != "" || fresh.ID == waits.ID {
				t.Errorf("%s: %+v, want nothing of what went", name, fresh)
			}
			q.Advance(time.Hour)
			if got := take(t, q.Queue); bodies(got) != "fresh" {
				t.Errorf("%s: received %q afterwards", name, bodies(got))
			}
			if _, err := q.Get(ctx, waits.ID); !errors.Is(err, duemq.ErrUnknownMessage) && name == "delete" {
				t.Errorf("%s: Get: %v, want %v", name, err, duemq.ErrUnknownMessage)
			}
			if err := q.Cancel(ctx, waits.ID); err == nil {
				t.Errorf("%s: what went was cancelled", name)
			}
			if _, err := q.Purge(ctx, topic); err != nil {
				t.Errorf("Purge: %v", err)
			}
		}
	})
}
