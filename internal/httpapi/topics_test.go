package httpapi

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

func TestTopics(t *testing.T) {
	d := newDoor(t)
	var got wire.Topic
	r := d.do("POST", "/v1/topics", `{"name":"orders","queues":2,"maxRate":500,"attributes":{"owner":"ops"}}`).want(201, &got)
	want := wire.Topic{
		Name: "orders", Queues: 2, MaxRate: 500, Attributes: map[string]string{"owner": "ops", "max_rate": "500"},
		Offsets: []wire.QueueOffsets{{Queue: 0}, {Queue: 1}},
	}
	if !reflect.DeepEqual(got, want) || r.header.Get("Location") != "/v1/topics/orders" {
		t.Errorf("%+v at %q", got, r.header.Get("Location"))
	}
	d.do("POST", "/v1/topics", `{"name":"orders","queues":2,"maxRate":500,"attributes":{"owner":"ops"}}`).want(200, nil)
	d.do("POST", "/v1/topics", `{"name":"orders","queues":3}`).refused(409, wire.CodeExists, "with 2 queues")
	d.do("PATCH", "/v1/topics/orders", `{"attributes":{"owner":"","team":"x"}}`).want(200, &got)
	if !reflect.DeepEqual(got.Attributes, map[string]string{"team": "x", "max_rate": "500"}) {
		t.Errorf("patched: %+v", got)
	}
	got = wire.Topic{}
	d.do("PATCH", "/v1/topics/orders", `{"maxRate":0}`).want(200, &got)
	if got.MaxRate != 0 || !reflect.DeepEqual(got.Attributes, map[string]string{"team": "x"}) {
		t.Errorf("any rate: %+v", got)
	}
	got = wire.Topic{}
	d.do("PUT", "/v1/topics/orders", `{"queues":2,"attributes":{"a":"b"},"maxRate":7}`).want(200, &got)
	if got.MaxRate != 7 || !reflect.DeepEqual(got.Attributes, map[string]string{"a": "b", "max_rate": "7"}) {
		t.Errorf("put: %+v", got)
	}
	d.do("PUT", "/v1/topics/orders", `{"queues":4}`).refused(409, wire.CodeExists, "which cannot be changed")
	if r := d.do("PUT", "/v1/topics/fresh", "").want(201, &got); got.Queues != 1 || r.header.Get("Location") != "/v1/topics/fresh" {
		t.Errorf("made by put: %+v", got)
	}
	d.do("GET", "/v1/topics/fresh", "").want(200, nil)
	d.do("GET", "/v1/topics/nowhere", "").refused(404, wire.CodeTopicUnknown, "nowhere")
	d.do("PATCH", "/v1/topics/nowhere", "{}").refused(404, wire.CodeTopicUnknown, "nowhere")
	for body, want := range map[string]string{
		`{"name":"a","maxRate":1,"attributes":{"max_rate":"2"}}`: "both maxRate",
		`{"name":"a","maxRate":-1}`:                              "max_rate",
		`{"name":"a","queues":-1}`:                               "want 1 to",
		`{"name":"a b"}`:                                         "a b",
		`{"name":"a","queue":1}`:                                 "did you mean queues?",
	} {
		if r := d.do("POST", "/v1/topics", body); r.status != 400 || !strings.Contains(r.body, want) {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	d.do("POST", "/v1/topics", `{"name":"SCHEDULE_TOPIC_XXXX"}`).refused(403, wire.CodeForbidden, "SCHEDULE_TOPIC_XXXX")
}

// TestPause: what falls due in a paused topic is held back, listed as such, and
// comes first when the topic goes on.
func TestPause(t *testing.T) {
	d := newDoor(t)
	d.publish("orders", "after=10s", "one")
	var got wire.Topic
	d.do("POST", "/v1/topics/orders/pause", "").want(200, &got)
	if !got.Paused || got.Waiting != 1 {
		t.Errorf("paused: %+v", got)
	}
	d.after(time.Minute)
	d.do("GET", "/v1/topics/orders", "").want(200, &got)
	if !got.Paused || got.Waiting != 1 || got.Held != 1 || got.Visible != 0 {
		t.Errorf("paused and due: %+v", got)
	}
	var page wire.Page
	d.do("GET", "/v1/pending?state=paused&overdue", "").want(200, &page)
	if len(page.Messages) != 1 || page.Messages[0].State != wire.StatePaused {
		t.Errorf("pending %+v", page)
	}
	d.do("GET", "/v1/pending?state=waiting", "").want(200, &page)
	if len(page.Messages) != 0 {
		t.Errorf("waiting %+v", page)
	}
	if ms := d.receive("g"); len(ms) != 0 {
		t.Errorf("received %+v", ms)
	}
	d.do("POST", "/v1/topics/orders/resume", "").want(200, &got)
	d.after(0)
	if ms := d.receive("g"); bodies(ms) != "one" {
		t.Errorf("received %+v", ms)
	}
	for _, verb := range []string{"pause", "resume"} {
		d.do("POST", "/v1/topics/nowhere/"+verb, "").refused(404, wire.CodeTopicUnknown, "nowhere")
	}
}

// TestPurgeDelete: what destroys wants the name again, and says how much went.
func TestPurgeDelete(t *testing.T) {
	d := newDoor(t)
	for range 3 {
		d.publish("orders", "after=10s", "w")
	}
	d.publish("orders", "", "v")
	const purge, remove = "/v1/topics/orders/purge", "/v1/topics/orders"
	d.do("POST", purge, "").refused(428, wire.CodeConfirm, "?confirm=orders")
	d.do("POST", purge+"?confirm=other", "").refused(428, wire.CodeConfirm, `is "other", and this is about "orders"`)
	d.do("DELETE", remove, "").refused(428, wire.CodeConfirm, "?confirm=orders")
	var went wire.Purged
	d.do("POST", purge+"?confirm=orders", "").want(200, &went)
	if went.Waiting != 3 || went.Visible != 1 {
		t.Errorf("purged %+v", went)
	}
	d.publish("orders", "", "new")
	d.after(time.Minute)
	if got := bodies(d.receive("g")); got != "new" {
		t.Errorf("received %q", got)
	}
	d.publish("orders", "after=10s", "w")
	d.do("DELETE", remove+"?confirm=orders", "").want(200, &went)
	if went.Waiting != 1 || went.Visible != 1 {
		t.Errorf("deleted %+v", went)
	}
	d.do("GET", remove, "").refused(404, wire.CodeTopicUnknown, "orders")
	d.do("DELETE", remove+"?confirm=orders", "").refused(404, wire.CodeTopicUnknown, "orders")
}

// TestSystemTopics: the broker's own are listed on demand, and nobody's to use.
func TestSystemTopics(t *testing.T) {
	d := newDoor(t)
	d.die("x")
	var some, all wire.Topics
	d.do("GET", "/v1/topics", "").want(200, &some)
	d.do("GET", "/v1/topics?system=true", "").want(200, &all)
	if len(some.Topics) != 1 || len(all.Topics) < 2 {
		t.Fatalf("%d topics, %d with the broker's own", len(some.Topics), len(all.Topics))
	}
	for _, topic := range all.Topics {
		if topic.System != strings.HasPrefix(topic.Name, "%") {
			t.Errorf("%+v", topic)
		}
	}
	own := "/v1/topics/" + segment("%DLQ%g")
	d.do("GET", own, "").want(200, nil)
	d.do("DELETE", own+"?confirm="+segment("%DLQ%g"), "").refused(403, wire.CodeForbidden, "%DLQ%g")
	d.do("POST", own+"/messages", "x").refused(403, wire.CodeForbidden, "%DLQ%g")
}
