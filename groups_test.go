package duemq_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/duemq/duemq"
)

func TestGroups(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		opts := []duemq.GroupOption{
			duemq.MaxAttempts(3), duemq.Backoff(time.Second, 5*time.Second), duemq.InflightMax(7), duemq.Invisible(time.Minute), duemq.StartLatest(),
		}
		made, err := q.CreateGroup(ctx, "billing", opts...)
		want := duemq.GroupInfo{
			Name: "billing", Start: duemq.StartLatest(), MaxAttempts: 3, Backoff: []time.Duration{time.Second, 5 * time.Second},
			InflightMax: 7, Invisible: time.Minute,
		}
		if err != nil || fmt.Sprint(made) != fmt.Sprint(want) {
			t.Errorf("CreateGroup: %+v, %v; want %+v", made, err, want)
		}
		if _, err := q.CreateGroup(ctx, "billing", opts...); err != nil {
			t.Errorf("CreateGroup of the same: %v", err)
		}
		if _, err := q.CreateGroup(ctx, "billing"); !errors.Is(err, duemq.ErrExists) {
			t.Errorf("CreateGroup of another: %v, want %v", err, duemq.ErrExists)
		}
		plain, err := q.CreateGroup(ctx, "audit")
		if err != nil || plain.MaxAttempts != duemq.DefaultMaxAttempts || plain.Invisible != duemq.DefaultInvisible ||
			plain.InflightMax != duemq.MaxInflight || plain.Start != duemq.StartEarliest() || len(plain.Backoff) == 0 || plain.Backoff[0] != 10*time.Second {
			t.Errorf("CreateGroup without options: %+v, %v", plain, err)
		}
		at := q.Now().Add(time.Hour)
		changed, err := q.UpdateGroup(ctx, "billing", duemq.MaxAttempts(5), duemq.StartAt(at))
		if err != nil || changed.MaxAttempts != 5 || changed.InflightMax != 7 || len(changed.Backoff) != 2 || changed.Start != duemq.StartAt(at) {
			t.Errorf("UpdateGroup: %+v, %v", changed, err)
		}
		if same, err := q.UpdateGroup(ctx, "billing", duemq.Backoff()); err != nil || fmt.Sprint(same.Backoff) != fmt.Sprint(plain.Backoff) {
			t.Errorf("UpdateGroup to the default back-off: %+v, %v", same, err)
		}
		q.Restart()
		all, err := q.Groups(ctx)
		if err != nil || len(all) != 2 || all[0].Name != "audit" || all[1].Name != "billing" || all[1].MaxAttempts != 5 {
			t.Errorf("Groups: %+v, %v", all, err)
		}
		if err := q.DeleteGroup(ctx, "billing"); err != nil {
			t.Errorf("DeleteGroup: %v", err)
		}
		for what, c := range map[string]struct{ err, want error }{
			"info":          {second(q.GroupInfo(ctx, "billing")), duemq.ErrUnknownGroup},
			"update":        {second(q.UpdateGroup(ctx, "billing", duemq.MaxAttempts(1))), duemq.ErrUnknownGroup},
			"delete":        {q.DeleteGroup(ctx, "billing"), duemq.ErrUnknownGroup},
			"reset":         {second(q.ResetGroup(ctx, "billing", topic, duemq.StartLatest())), duemq.ErrUnknownGroup},
			"attempts":      {second(q.CreateGroup(ctx, "g", duemq.MaxAttempts(-1))), duemq.ErrInvalid},
			"back-off":      {second(q.CreateGroup(ctx, "g", duemq.Backoff(-time.Second))), duemq.ErrInvalid},
			"inflight":      {second(q.CreateGroup(ctx, "g", duemq.InflightMax(duemq.MaxInflight+1))), duemq.ErrInvalid},
			"start":         {second(q.CreateGroup(ctx, "g", duemq.StartOffset(3))), duemq.ErrInvalid},
			"zero time":     {second(q.CreateGroup(ctx, "g", duemq.StartAt(time.Time{}))), duemq.ErrInvalid},
			"name":          {second(q.CreateGroup(ctx, "a b")), duemq.ErrInvalid},
			"reset to zero": {second(q.ResetGroup(ctx, "audit", topic, duemq.StartOffset(-1))), duemq.ErrInvalid},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", what, c.err, c.want)
			}
		}
	})
}

// TestGroupStarts: at the earliest, at the latest, at an instant.
func TestGroupStarts(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		send(t, q.Queue, "old")
		q.Advance(time.Minute)
		for name, start := range map[string]duemq.Position{
			"all": duemq.StartEarliest(), "new": duemq.StartLatest(), "recent": duemq.StartAt(q.Now()),
		} {
			if _, err := q.CreateGroup(ctx, name, start); err != nil {
				t.Fatalf("CreateGroup: %v", err)
			}
		}
		send(t, q.Queue, "middle")
		for _, c := range []struct{ group, first, then string }{
			{"all", "middle old", "new"}, {"new", "", "new"}, {"recent", "middle", "new"},
		} {
			if got := take(t, q.Queue, duemq.Group(c.group)); bodies(got) != c.first {
				t.Errorf("group %s: %q, want %q", c.group, bodies(got), c.first)
			}
		}
		send(t, q.Queue, "new")
		for _, group := range []string{"all", "new", "recent"} {
			if got := take(t, q.Queue, duemq.Group(group)); bodies(got) != "new" {
				t.Errorf("group %s afterwards: %q, want new", group, bodies(got))
			}
		}
	})
}

// TestGroupInfoAndReset: lag, what is in flight and waits for a retry; back to
// the beginning and forward to the end.
func TestGroupInfoAndReset(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithQueues(1))
		ctx := t.Context()
		batch(t, q.Queue, numbered(10, func(int, *duemq.Message) {}))
		got, err := q.ReceiveBatch(ctx, topic, duemq.Group("g"), duemq.Max(5))
		if err != nil {
			t.Fatalf("ReceiveBatch: %v", err)
		}
		if err := errors.Join(q.AckAll(ctx, got[:3]), got[3].Retry(ctx)); err != nil {
			t.Fatalf("Ack and Retry: %v", err)
		}
		info, err := q.GroupInfo(ctx, "g")
		if err != nil || len(info.Topics) != 1 || len(info.Topics[0].Queues) != 1 {
			t.Fatalf("GroupInfo: %+v, %v", info, err)
		}
		if x := info.Topics[0]; x.Topic != topic || x.Lag != 7 || x.Inflight != 1 || x.Retrying != 1 || x.Queues[0].Base != 3 || x.Queues[0].Next != 10 {
			t.Errorf("GroupInfo: %+v", x)
		}
		dry, err := q.ResetGroup(ctx, "g", topic, duemq.StartEarliest(), duemq.DryRun())
		if err != nil || len(dry) != 1 || dry[0] != (duemq.QueueReset{Queue: 0, From: 3, To: 0}) {
			t.Errorf("ResetGroup, tried: %+v, %v", dry, err)
		}
		if rest := take(t, q.Queue, duemq.Group("g")); bodies(rest) != "5 6 7 8 9" {
			t.Errorf("after a dry run: %q", bodies(rest))
		}
		if _, err := q.ResetGroup(ctx, "g", topic, duemq.StartOffset(2)); err != nil {
			t.Errorf("ResetGroup: %v", err)
		}
		if again := take(t, q.Queue, duemq.Group("g")); bodies(again) != "2 3 4 5 6 7 8 9" {
			t.Errorf("from offset 2: %q", bodies(again))
		}
		send(t, q.Queue, "skipped")
		if _, err := q.ResetGroup(ctx, "g", topic, duemq.StartLatest()); err != nil {
			t.Errorf("ResetGroup: %v", err)
		}
		q.Restart()
		send(t, q.Queue, "new")
		if last := take(t, q.Queue, duemq.Group("g")); bodies(last) != "new" {
			t.Errorf("from the end: %q", bodies(last))
		}
	})
}

// TestTags: what does not match is finished for the group.
func TestTags(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		for _, tag := range []string{"paid", "refunded", "sent", ""} {
			send(t, q.Queue, "is "+tag, duemq.Tag(tag))
		}
		if got := take(t, q.Queue, duemq.Tags("paid || refunded")); bodies(got) != "is paid is refunded" {
			t.Errorf("received %q", bodies(got))
		}
		if got := take(t, q.Queue); len(got) != 0 {
			t.Errorf("afterwards, without tags: %q", bodies(got))
		}
		if got := take(t, q.Queue, duemq.Group("all"), duemq.Tags("*")); len(got) != 4 {
			t.Errorf("of all tags: %q", bodies(got))
		}
	})
}

// TestOrdered: nothing of a queue while something of it is not finished.
func TestOrdered(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithQueues(2))
		ctx := t.Context()
		batch(t, q.Queue, numbered(6, func(i int, m *duemq.Message) { m.Queue, m.InQueue = i%2, true }))
		one := func() *duemq.Message {
			t.Helper()
			got, err := q.ReceiveBatch(ctx, topic, duemq.Ordered(), duemq.Max(1), duemq.Wait(0))
			if err != nil {
				t.Fatalf("ReceiveBatch: %v", err)
			}
			if len(got) == 0 {
				return nil
			}
			return got[0]
		}
		a, b := one(), one()
		if a == nil || b == nil || a.Queue == b.Queue || one() != nil {
			t.Fatalf("received %v and %v, want the first of each queue and no more", a, b)
		}
		if err := a.Retry(ctx, duemq.After(time.Minute)); err != nil {
			t.Errorf("Retry: %v", err)
		}
		if m := one(); m != nil {
			t.Errorf("received %s of queue %d, before its retry", m.Body, m.Queue)
		}
		if err := b.Ack(ctx); err != nil {
			t.Errorf("Ack: %v", err)
		}
		m := one()
		if m == nil || m.Queue != b.Queue || m.Offset != 1 {
			t.Fatalf("received %+v, want the second of queue %d", m, b.Queue)
		}
		if err := m.Extend(ctx, time.Hour); err != nil {
			t.Errorf("Extend: %v", err)
		}
		q.Advance(time.Minute)
		if m := one(); m == nil || m.ID != a.ID || m.Attempt != 2 {
			t.Errorf("received %+v, want %s again", m, a.ID)
		}
	})
}

// TestMaxBytes: one message fits whatever its size.
func TestMaxBytes(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithQueues(1))
		batch(t, q.Queue, numbered(4, func(_ int, m *duemq.Message) { m.Body = make([]byte, 1000) }))
		for _, c := range []struct{ bytes, want int }{{1, 1}, {2500, 2}, {0, 1}} {
			got, err := q.ReceiveBatch(t.Context(), topic, duemq.MaxBytes(c.bytes), duemq.Wait(0))
			if err != nil || len(got) != c.want {
				t.Errorf("%d bytes: %d messages, %v; want %d", c.bytes, len(got), err, c.want)
			}
		}
		if _, err := q.ReceiveBatch(t.Context(), topic, duemq.MaxBytes(-1)); !errors.Is(err, duemq.ErrInvalid) {
			t.Errorf("fewer than none: %v, want %v", err, duemq.ErrInvalid)
		}
	})
}
