package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// TestTransactions: a half message is delivered after its commit, with its delay
// counted from then, and never after its rollback.
func TestTransactions(t *testing.T) {
	d := newDoor(t)
	const query = "transaction=shop&after=10s"
	one, two := d.publish("orders", query, "one"), d.publish("orders", query, "two")
	if one.State != wire.StateHalf || one.Handle != "" || one.Offset != nil {
		t.Errorf("%+v", one)
	}
	var m wire.Message
	d.do("GET", "/v1/messages/"+one.ID, "").want(200, &m)
	if m.State != wire.StateHalf {
		t.Errorf("%+v", m)
	}
	var halves wire.Halves
	d.do("GET", "/v1/transactions?producer=shop", "").want(200, &halves)
	if len(halves.Messages) != 2 || halves.Messages[0].ID != one.ID || halves.Messages[0].State != wire.StateHalf || halves.Messages[0].Text != "" {
		t.Errorf("%+v", halves)
	}
	d.do("GET", "/v1/transactions?producer=other", "").want(200, &halves)
	if len(halves.Messages) != 0 {
		t.Errorf("of another producer: %+v", halves)
	}
	d.after(5 * time.Second)
	var a wire.Answer
	d.do("POST", "/v1/transactions/"+one.ID+"/commit", "").want(200, &a)
	if a.ID != one.ID || a.Topic != "orders" || a.State != wire.StateWaiting || a.DeliverAt.String() != "2026-12-01T09:00:15.000Z" {
		t.Errorf("committed %+v", a)
	}
	d.do("POST", "/v1/transactions/"+two.ID+"/rollback", "").want(200, &a)
	if a.State != wire.StateCancelled {
		t.Errorf("rolled back %+v", a)
	}
	for _, id := range []string{one.ID, two.ID} {
		for _, end := range []string{"commit", "rollback"} {
			d.do("POST", "/v1/transactions/"+id+"/"+end, "").refused(409, wire.CodeTransactionEnded, id)
		}
	}
	d.do("POST", "/v1/transactions/0000000000ffffff/commit", "").refused(404, wire.CodeMessageUnknown, "")
	d.after(10 * time.Second)
	if got := bodies(d.receive("g")); got != "one" {
		t.Errorf("received %q", got)
	}
	d.do("POST", "/v1/topics/orders/messages", "x", "Duemq-Transaction", "two words").refused(400, wire.CodeInvalidValue, "two words")
}

// TestCancelRollsBack: a half message can be cancelled, and what ends its
// transaction afterwards says so.
func TestCancelRollsBack(t *testing.T) {
	d := newDoor(t)
	half := d.publish("orders", "transaction=shop", "one")
	d.do("DELETE", "/v1/messages/"+half.ID, "").want(200, nil)
	d.do("POST", "/v1/transactions/"+half.ID+"/commit", "").refused(409, wire.CodeTransactionEnded, "rolled back or cancelled before")
	if halves := section(t, readPage(t), "Groups"); !strings.Contains(halves, "half message can be [cancelled]") {
		t.Errorf("%s does not say that a half message can be cancelled", page)
	}
}

// TestChecks: a producer is asked about half messages that nobody ended.
func TestChecks(t *testing.T) {
	d := newDoor(t)
	sent := d.publish("orders", "transaction=shop", "one")
	const at = "/v1/transactions/checks"
	var got wire.Halves
	d.do("POST", at, `{"producer":"shop","max":10}`).want(200, &got)
	if len(got.Messages) != 0 {
		t.Errorf("at once: %+v", got)
	}
	waiting := make(chan *reply, 1)
	go func() { waiting <- d.do("POST", at, `{"producer":"shop","max":10,"wait":"30s"}`) }()
	d.inside(&d.h.polls, 1)
	d.after(6 * time.Second)
	(<-waiting).want(200, &got)
	if len(got.Messages) != 1 || got.Messages[0].ID != sent.ID || got.Messages[0].Checks != 1 || got.Messages[0].Text != "one" {
		t.Errorf("after 6 s: %+v", got)
	}
	d.do("POST", at, `{"producer":"shop","max":5000}`).refused(400, wire.CodeInvalidValue, "max 5000")
	d.do("POST", at, `{"producer":"shop","wait":"2m"}`).refused(400, wire.CodeInvalidValue, "want 0 to 1m")
}
