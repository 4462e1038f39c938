package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// TestPull reads a queue from any offset, and says where it is.
func TestPull(t *testing.T) {
	d := newDoor(t)
	for _, tag := range []string{"a", "b", "a"} {
		d.publish("orders", "tag="+tag, tag)
		d.after(time.Second)
	}
	const at = "/v1/topics/orders/queues/0/messages"
	var got wire.Pulled
	d.do("GET", at+"?max=10", "").want(200, &got)
	if bodies(got.Messages) != "a b a" || got.Next != 3 || got.Low != 0 || got.High != 3 || got.Moved || got.Skipped != 0 {
		t.Errorf("pulled %+v", got)
	}
	if m := got.Messages[1]; m.Lease != "" || m.Offset == nil || *m.Offset != 1 {
		t.Errorf("a message %+v", m)
	}
	d.do("GET", at+"?offset=1&tags=a&max=10&maxBytes=1000&wait=0s", "").want(200, &got)
	if bodies(got.Messages) != "a" || got.Next != 3 {
		t.Errorf("with tags %+v", got)
	}
	d.do("GET", at+"?offset=99", "").want(200, &got)
	if len(got.Messages) != 0 || !got.Moved || got.Next != 3 {
		t.Errorf("beyond the end %+v", got)
	}
	for query, want := range map[string]string{
		"offset=-1": "no whole number from 0", "offset=x": "no whole number from 0", "max=x": "no whole number", "wait=1": "wait:", "max=-1": "want 1 to",
		"max=99999999999999": "want 1 to", "wait=2m": "want 0 to", "ofset=1": "did you mean offset?",
	} {
		if r := d.do("GET", at+"?"+query, ""); r.status != 400 || !strings.Contains(r.body, want) {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
	d.do("GET", "/v1/topics/orders/queues/one/messages", "").refused(400, wire.CodeBadRequest, "is no number")
	d.do("GET", "/v1/topics/orders/queues/1/messages", "").refused(400, wire.CodeInvalidValue, "queue 1")
	d.do("GET", "/v1/topics/nowhere/queues/0/messages", "").refused(404, wire.CodeTopicUnknown, "nowhere")
}

// TestPullWaits for a message that falls due meanwhile.
func TestPullWaits(t *testing.T) {
	d := newDoor(t)
	d.publish("orders", "after=10s", "hello")
	got := make(chan *reply, 1)
	go func() { got <- d.do("GET", "/v1/topics/orders/queues/0/messages?wait=30s", "") }()
	d.inside(&d.h.polls, 1)
	d.after(10 * time.Second)
	var p wire.Pulled
	(<-got).want(200, &p)
	if bodies(p.Messages) != "hello" {
		t.Errorf("pulled %+v", p)
	}
}

func TestSearchOffset(t *testing.T) {
	d := newDoor(t)
	d.publish("orders", "", "a")
	d.after(time.Minute)
	d.publish("orders", "", "b")
	for query, want := range map[string]uint64{
		"at=2026-12-01T09:00Z": 0, "at=2026-12-01T09:00:01Z": 1, "at=2027-01-01T00:00Z": 2, "at=2026-12-01T17:00:30&tz=Asia/Shanghai": 1,
	} {
		var got wire.Offset
		d.do("GET", "/v1/topics/orders/queues/0/offset?"+query, "").want(200, &got)
		if got.Offset != want {
			t.Errorf("%s: %d, want %d", query, got.Offset, want)
		}
	}
	d.do("GET", "/v1/topics/orders/queues/0/offset", "").refused(400, wire.CodeBadRequest, "give at")
	d.do("GET", "/v1/topics/orders/queues/0/offset?at=noon", "").refused(400, wire.CodeBadRequest, `at: "noon"`)
	d.do("GET", "/v1/topics/orders/queues/x/offset?at=2026-12-01T09:00Z", "").refused(400, wire.CodeBadRequest, "is no number")
}
