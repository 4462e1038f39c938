package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
)

// TestAfterAnOutage: what fell due while nobody was there comes first, oldest due
// first, and the rest on time. A paused topic goes on waiting and then does the
// same; a topic with a rate keeps it.
func TestAfterAnOutage(t *testing.T) {
	const n, rate = 3000, 50
	disk := fs.NewMem()
	c := clock.NewFake(testStart)
	o := options(disk, c)
	e := open(t, o)
	paused, capped, plain := topic(t, e, "paused", 1), topic(t, e, "capped", 1), topic(t, e, "plain", 1)
	if err := e.Pause(t.Context(), paused, true); err != nil {
		t.Fatal(err)
	}
	if err := e.Configure(t.Context(), capped, []record.Property{{Name: RateAttribute, Value: "50"}}); err != nil {
		t.Fatal(err)
	}
	for _, tp := range []*Topic{paused, capped, plain} {
		sends := make([]Send, n)
		for i := range sends { // due within an hour, in no order
			sends[i] = Send{Message: record.Message{Body: []byte("x")}, Topic: tp.Number, Turn: tp, Delay: Delay{DelayAfter, int64(i*7919%n+1) * 1200}}
		}
		if err := e.Send(t.Context(), sends); err != nil {
			t.Fatal(err)
		}
	}
	e, _ = crashed(t, disk, o)
	mustClose(t, e)
	c.Advance(30 * time.Minute)
	back := c.Now().Time().UnixMilli()
	o.FS = e.o.FS
	e = open(t, o)
	if found := e.Recovered(); !found.Overdue || found.Missed != 3*n/2 {
		t.Errorf("recovered %+v, want %d missed", found, 3*n/2)
	}
	settle(t, e)
	plain = e.TopicNamed("plain")
	overdue := entries(t, e, plain)
	if len(overdue) != n/2 || !inOrder(overdue) {
		t.Fatalf("%d overdue are visible, in order: %v", len(overdue), inOrder(overdue))
	}
	for range 1500 { // the rest, on time
		c.Advance(1200 * time.Millisecond)
		settle(t, e)
	}
	all := entries(t, e, plain)
	if len(all) != n || !inOrder(all) {
		t.Fatalf("%d of %d are visible, in order: %v", len(all), n, inOrder(all))
	}
	for i, x := range all {
		if want := max(x.Due, back); x.VisibleAt != want {
			t.Fatalf("message %d, due %d: visible at %d, want %d", i, x.Due, x.VisibleAt, want)
		}
	}
	keepsRate(t, entries(t, e, e.TopicNamed("capped")), n, rate)
	held := e.TopicNamed("paused")
	if got := e.Count(held); len(entries(t, e, held)) != 0 || got.Held != n || got.Waiting != n {
		t.Fatalf("the paused topic: %+v", got)
	}
	if err := e.Pause(t.Context(), held, false); err != nil {
		t.Fatal(err)
	}
	settle(t, e)
	if got := entries(t, e, held); len(got) != n || !inOrder(got) {
		t.Errorf("%d come after the pause, in order: %v", len(got), inOrder(got))
	}
}

// inOrder says that the oldest due comes first, and of equal ones what was sent
// first.
func inOrder(all []queue.Entry) bool {
	return slices.IsSortedFunc(all, func(a, b queue.Entry) int {
		return record.Key{Due: a.Due, ID: a.ID}.Compare(record.Key{Due: b.Due, ID: b.ID})
	})
}

// keepsRate demands that all came, in order, and that no second saw more than the
// rate and what may be saved up.
func keepsRate(t *testing.T, all []queue.Entry, n int, rate int64) {
	t.Helper()
	if len(all) != n || !inOrder(all) {
		t.Fatalf("with a rate: %d of %d are visible, in order: %v", len(all), n, inOrder(all))
	}
	from := 0
	for i, x := range all {
		for all[from].VisibleAt <= x.VisibleAt-1000 {
			from++
		}
		if got := int64(i - from + 1); got > rate+rate/10+1 {
			t.Fatalf("%d became visible in the second before %d, the rate is %d", got, x.VisibleAt, rate)
		}
	}
}
