package broker

import (
	"testing"
	"time"
)

// TestRetriesAreOfTheirTopic: what waits to be received again by groups is shown
// with the topic that it was sent to, and is listed, counted, drawn and cancelled
// by it.
func TestRetriesAreOfTheirTopic(t *testing.T) {
	s := newStand(t)
	s.send(Message{Topic: "orders"})
	for _, group := range []string{"g", "h"} {
		if _, err := s.b.Bury(t.Context(), s.one(ReceiveRequest{Group: group}).Lease, "r"); err != nil {
			t.Fatal(err)
		}
		op, err := s.b.Redrive(t.Context(), RedriveRequest{Group: group, Delay: after(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		s.finish(op.ID, 1)
	}
	s.send(Message{Topic: "orders", Delay: after(2 * time.Hour)}, Message{Topic: "order", Delay: after(time.Hour)})
	const waiting = 3
	f := Filter{Topic: "orders"}
	for _, v := range s.pending(Filter{}) {
		if v.Topic != "orders" && v.Topic != "order" {
			t.Errorf("shown as of topic %q", v.Topic)
		}
	}
	if got := s.pending(f); len(got) != waiting {
		t.Errorf("%d listed by topic, want %d", len(got), waiting)
	}
	ranged := f
	ranged.From, ranged.To = s.now()+1, s.now()+(90*time.Minute).Milliseconds()
	for _, c := range []struct {
		f    Filter
		want int64
	}{{f, waiting}, {ranged, 2}, {Filter{Topic: "order"}, 1}, {Filter{Topic: "orders", State: StatePaused}, 0}} {
		if got, err := s.b.Count(t.Context(), c.f); err != nil || got != c.want {
			t.Errorf("Count %+v: %d, %v; want %d", c.f, got, err, c.want)
		}
	}
	for _, topic := range []string{"orders", ""} {
		line, err := s.b.Timeline(t.Context(), TimelineRequest{Topic: topic, ByTopic: true, Step: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if len(line.Buckets) != 2 || line.Buckets[0].Topics["orders"] != 2 || line.Buckets[1].Topics["orders"] != 1 ||
			line.Latest-line.Earliest != time.Hour.Milliseconds() {
			t.Errorf("timeline of %q: %+v", topic, line)
		}
	}
	if op := s.bulk(Bulk{Kind: BulkReschedule, Filter: f, By: time.Minute}); s.finish(op.ID, waiting).State != OperationDone {
		t.Error("not moved")
	}
	if op := s.bulk(Bulk{Kind: BulkCancel, Filter: f}); s.finish(op.ID, waiting).State != OperationDone {
		t.Error("not cancelled")
	}
	if got := s.pending(Filter{}); len(got) != 1 || got[0].Topic != "order" {
		t.Errorf("left: %+v", got)
	}
}
