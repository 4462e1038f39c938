package duemq_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq"
)

// minutely sends n messages, one due each minute from the first on.
func minutely(t *testing.T, q *duemq.Queue, n int) []duemq.Receipt {
	t.Helper()
	return batch(t, q, numbered(n, func(i int, m *duemq.Message) {
		m.After = time.Duration(i+1) * time.Minute
		m.Tag = []string{"even", "odd"}[i%2]
		m.Key = "all k" + strconv.Itoa(i)
	}))
}

// done waits for the end of an operation.
func done(t *testing.T, op *duemq.Operation, err error) *duemq.Operation {
	t.Helper()
	if err != nil {
		t.Fatalf("begin: %v", err)
	}
	if err := op.Wait(t.Context()); err != nil {
		t.Fatalf("Wait: %v", err)
	}
	if op.State != duemq.OperationDone {
		t.Errorf("operation %s is %s", op.ID, op.State)
	}
	return op
}

// TestSelections: by key, by ids, overdue; and what does not select.
func TestSelections(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		rs := minutely(t, q.Queue, 10)
		for _, c := range []struct {
			name    string
			filters []duemq.Filter
			want    int
		}{
			{"a key of one", []duemq.Filter{duemq.Keyed("k3")}, 1},
			{"a key of all", []duemq.Filter{duemq.Keyed("all")}, 10},
			{"part of a key", []duemq.Filter{duemq.Keyed("al")}, 0},
			{"a key and a tag", []duemq.Filter{duemq.Keyed("all"), duemq.Tagged("odd")}, 5},
			{"a key and a due", []duemq.Filter{duemq.Keyed("all"), duemq.Within(3 * time.Minute)}, 2},
			{"ids", []duemq.Filter{duemq.IDs(rs[1].ID, rs[2].Handle, "00000000000000ff")}, 2},
			{"ids and a tag", []duemq.Filter{duemq.IDs(rs[1].ID, rs[2].ID), duemq.Tagged("odd")}, 1},
			{"overdue", []duemq.Filter{duemq.Overdue()}, 0},
			{"paused", []duemq.Filter{duemq.Paused()}, 0},
		} {
			if got := pending(t, q.Queue, c.filters...); len(got) != c.want {
				t.Errorf("%s: %d messages, want %d", c.name, len(got), c.want)
			}
			if n, err := q.Count(ctx, c.filters...); n != int64(c.want) || err != nil {
				t.Errorf("%s: count %d, %v; want %d", c.name, n, err, c.want)
			}
		}
		for _, err := range q.Pending(ctx, duemq.IDs()) {
			if !errors.Is(err, duemq.ErrInvalid) {
				t.Errorf("Pending of no ids: %v, want %v", err, duemq.ErrInvalid)
			}
		}
		if _, err := q.Count(ctx, duemq.IDs()); !errors.Is(err, duemq.ErrInvalid) {
			t.Errorf("Count of no ids: %v, want %v", err, duemq.ErrInvalid)
		}
		for name, opts := range map[string][]duemq.BulkOption{
			"nothing":          nil,
			"a dry run alone":  {duemq.DryRun()},
			"no ids":           {duemq.IDs()},
			"an empty topic":   {duemq.Topic("")},
			"an empty key":     {duemq.Topic(topic), duemq.Keyed("")},
			"an empty tag":     {duemq.Tagged("")},
			"all and a filter": {duemq.All(), duemq.Topic(topic)},
		} {
			if op, err := q.CancelWhere(ctx, opts...); !errors.Is(err, duemq.ErrInvalid) {
				t.Errorf("CancelWhere of %s: %+v, %v; want %v", name, op, err, duemq.ErrInvalid)
			}
		}
		if n, err := q.Count(ctx); n != 10 || err != nil {
			t.Errorf("%d wait afterwards, %v; want 10", n, err)
		}
	})
}

func TestCancelWhere(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		const n = 2000
		minutely(t, q.Queue, n)
		dry, err := q.CancelWhere(ctx, duemq.Topic(topic), duemq.Tagged("odd"), duemq.DryRun())
		if err != nil || dry.State != duemq.OperationDryRun || dry.Matched != n/2 || len(dry.Samples) != 3 || dry.ID != "" {
			t.Errorf("dry run: %+v, %v", dry, err)
		}
		if err := errors.Join(dry.Wait(ctx), dry.Stop(ctx)); err != nil {
			t.Errorf("Wait and Stop of a dry run: %v", err)
		}
		op, err := q.CancelWhere(ctx, duemq.Topic(topic), duemq.Tagged("odd"))
		op = done(t, op, err)
		if op.Kind != "cancel" || op.Done != n/2 || op.Missed != 0 || op.Began.IsZero() || op.Ended.IsZero() {
			t.Errorf("%+v", op)
		}
		q.Crash()
		if left, err := q.Count(ctx); left != n/2 || err != nil {
			t.Errorf("%d wait afterwards, %v; want %d", left, err, n/2)
		}
		again, err := q.Operation(ctx, op.ID)
		if err != nil || again.Done != op.Done || again.State != duemq.OperationDone {
			t.Errorf("Operation: %+v, %v", again, err)
		}
		if err := errors.Join(again.Wait(ctx), again.Stop(ctx)); err != nil {
			t.Errorf("Wait and Stop of one that has ended: %v", err)
		}
		all, err := q.Operations(ctx)
		if err != nil || len(all) != 1 || all[0].ID != op.ID {
			t.Errorf("Operations: %v, %v", all, err)
		}
		if _, err := q.Operation(ctx, "op-999"); !errors.Is(err, duemq.ErrUnknownOperation) {
			t.Errorf("Operation of none: %v, want %v", err, duemq.ErrUnknownOperation)
		}
	})
}

func TestMoveWhere(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithQueues(1))
		ctx := t.Context()
		start := q.Now()
		at := start.Add
		dues := func(filters ...duemq.Filter) string {
			t.Helper()
			var all []string
			for _, m := range pending(t, q.Queue, filters...) {
				all = append(all, m.DueAt.Sub(start).String())
			}
			return strings.Join(all, " ")
		}
		minutely(t, q.Queue, 6)
		op, err := q.ShiftWhere(ctx, time.Hour, duemq.Keyed("k0"))
		done(t, op, err)
		op, err = q.ShiftWhere(ctx, -30*time.Second, duemq.Keyed("k1"))
		done(t, op, err)
		if got := dues(duemq.Keyed("all")); got != "1m30s 3m0s 4m0s 5m0s 6m0s 1h1m0s" {
			t.Errorf("after ShiftWhere: %s", got)
		}
		op, err = q.RescheduleWhere(ctx, duemq.At(at(2*time.Hour)), duemq.DueFrom(at(time.Hour)))
		done(t, op, err)
		op, err = q.RescheduleWhere(ctx, duemq.After(10*time.Minute), duemq.DueBefore(at(2*time.Minute)))
		done(t, op, err)
		op, err = q.RescheduleWhere(ctx, duemq.Level(5), duemq.IDs(pending(t, q.Queue, duemq.Keyed("k2"))[0].ID))
		done(t, op, err)
		if got := dues(); got != "1m0s 4m0s 5m0s 6m0s 10m0s 2h0m0s" {
			t.Errorf("after RescheduleWhere: %s", got)
		}
		op, err = q.SpreadWhere(ctx, at(time.Hour), time.Minute, duemq.Within(7*time.Minute))
		if op = done(t, op, err); op.Done != 4 || op.Matched != 4 {
			t.Errorf("SpreadWhere: %+v", op)
		}
		if got := dues(); got != "10m0s 1h0m0s 1h0m15s 1h0m30s 1h0m45s 2h0m0s" {
			t.Errorf("after SpreadWhere: %s", got)
		}
		op, err = q.SpreadWhere(ctx, time.Time{}, time.Second, duemq.Within(11*time.Minute))
		done(t, op, err)
		op, err = q.DeliverWhere(ctx, duemq.All())
		if op = done(t, op, err); op.Done+op.Missed < 5 {
			t.Errorf("DeliverWhere: %+v", op)
		}
		q.Advance(time.Second)
		if got := take(t, q.Queue); len(got) != 6 {
			t.Errorf("received %q, want all six", bodies(got))
		}
		if _, err := q.SpreadWhere(ctx, time.Time{}, 0, duemq.All()); !errors.Is(err, duemq.ErrInvalid) {
			t.Errorf("SpreadWhere over nothing: %v, want %v", err, duemq.ErrInvalid)
		}
		if _, err := q.RescheduleWhere(ctx, duemq.At(time.Time{}), duemq.All()); !errors.Is(err, duemq.ErrInvalid) {
			t.Errorf("RescheduleWhere to the zero time: %v, want %v", err, duemq.ErrInvalid)
		}
	})
}

// TestOperationGoesOn: one that was under way when the power went is finished
// after the start, and counts exactly.
func TestOperationGoesOn(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		const n = 10_000
		batch(t, q.Queue, numbered(n, func(_ int, m *duemq.Message) { m.After = time.Hour }))
		op, err := q.CancelWhere(ctx, duemq.All())
		if err != nil {
			t.Fatalf("CancelWhere: %v", err)
		}
		q.Crash()
		again, err := q.Operation(ctx, op.ID)
		again = done(t, again, err)
		if again.Done != n || again.Missed != 0 {
			t.Errorf("%d cancelled and %d missed, want %d and 0", again.Done, again.Missed, n)
		}
		if left, err := q.Count(ctx); left != 0 || err != nil {
			t.Errorf("%d wait afterwards, %v", left, err)
		}
	})
}

func TestTimeline(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		start := q.Now()
		if got, err := q.Timeline(ctx); err != nil || got.Total != 0 || len(got.Buckets) != 0 || !got.Earliest.IsZero() {
			t.Errorf("with nothing: %+v, %v", got, err)
		}
		minutely(t, q.Queue, 60)
		if _, err := q.Send(ctx, "other", nil, duemq.After(30*time.Minute)); err != nil {
			t.Fatalf("Send: %v", err)
		}
		show := func(opts ...duemq.TimelineOption) string {
			t.Helper()
			got, err := q.Timeline(ctx, opts...)
			if err != nil {
				t.Fatalf("Timeline: %v", err)
			}
			var text strings.Builder
			fmt.Fprintf(&text, "%v %d:", got.Step, got.Total)
			for _, b := range got.Buckets {
				fmt.Fprintf(&text, " %v=%d", b.From.Sub(start), b.Count)
				if b.Topics != nil {
					fmt.Fprint(&text, b.Topics)
				}
			}
			return text.String()
		}
		from, to := duemq.DueFrom(start.Add(25*time.Minute)), duemq.DueBefore(start.Add(35*time.Minute))
		if got := show(from, to, duemq.Step(5*time.Minute), duemq.ByTopic()); got != "5m0s 11: 25m0s=5map[orders:5] 30m0s=6map[orders:5 other:1]" {
			t.Errorf("by topic: %s", got)
		}
		if got := show(duemq.Topic("other"), duemq.Step(time.Minute)); got != "1m0s 1: 30m0s=1" {
			t.Errorf("of a topic: %s", got)
		}
		if got := show(duemq.Within(3*time.Minute), duemq.Step(time.Minute)); got != "1m0s 2: 1m0s=1 2m0s=1" {
			t.Errorf("within: %s", got)
		}
		whole, err := q.Timeline(ctx)
		if err != nil || whole.Total != 61 || whole.Step != time.Minute || !whole.Earliest.Equal(start.Add(time.Minute)) || !whole.Latest.Equal(start.Add(time.Hour)) {
			t.Errorf("whole: %+v, %v", whole, err)
		}
		for _, step := range []time.Duration{time.Second, 90 * time.Second, -time.Minute} {
			if _, err := q.Timeline(ctx, duemq.Step(step)); !errors.Is(err, duemq.ErrInvalid) {
				t.Errorf("step %v: %v, want %v", step, err, duemq.ErrInvalid)
			}
		}
		if _, err := q.Timeline(ctx, duemq.Topic("none")); !errors.Is(err, duemq.ErrUnknownTopic) {
			t.Errorf("of no topic: %v, want %v", err, duemq.ErrUnknownTopic)
		}
	})
}
