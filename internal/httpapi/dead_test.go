package httpapi

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// die publishes a message for group g and has it given up on.
func (d *door) die(body string) wire.Message {
	d.t.Helper()
	d.do("PUT", "/v1/groups/g", `{"maxAttempts":1}`)
	d.publish("orders", "key=k&tag=t&property.a=b", body)
	got := d.receive("g")
	if len(got) != 1 || got[0].Text != body {
		d.t.Fatalf("received %+v", got)
	}
	var reply wire.NackReply
	d.do("POST", "/v1/leases/"+got[0].Lease+"/nack", "").want(200, &reply)
	if !reply.Dead || reply.DeadID == "" {
		d.t.Fatalf("the last attempt: %+v", reply)
	}
	return got[0]
}

// TestBackoff: a message that is given back without a delay comes again after
// the group's back-off, and is a dead letter when its attempts are used up.
func TestBackoff(t *testing.T) {
	d := newDoor(t)
	d.do("PUT", "/v1/groups/g", `{"maxAttempts":3,"backoff":["1s","5s"]}`).want(201, nil)
	d.publish("orders", "", "x")
	for attempt, wait := range []time.Duration{time.Second, 5 * time.Second} {
		ms := d.receive("g")
		if len(ms) != 1 || ms[0].Attempt != attempt+1 {
			t.Fatalf("attempt %d: %+v", attempt+1, ms)
		}
		var got wire.NackReply
		d.do("POST", "/v1/leases/"+ms[0].Lease+"/nack", "").want(200, &got)
		if got.Dead || got.Due.Time() != d.clock.Now().Time().Add(wait) {
			t.Errorf("attempt %d: %+v", attempt+1, got)
		}
		d.after(wait)
	}
	ms := d.receive("g")
	var got wire.NackReply
	d.do("POST", "/v1/leases/"+ms[0].Lease+"/nack", "").want(200, &got)
	if !got.Dead || got.DeadID == "" {
		t.Errorf("the last attempt: %+v", got)
	}
	d.after(time.Hour)
	if ms := d.receive("g"); len(ms) != 0 {
		t.Errorf("received again: %+v", ms)
	}
}

func TestDeadLetters(t *testing.T) {
	d := newDoor(t)
	died := []wire.Message{d.die("one"), d.die("two"), d.die("three")}
	d.publish("orders", "", "four")
	m := d.receive("g")[0]
	var buried wire.Buried
	d.do("POST", "/v1/leases/"+m.Lease+"/bury", `{"reason":"cannot be read"}`).want(200, &buried)
	d.do("POST", "/v1/leases/"+m.Lease+"/bury", "").refused(410, wire.CodeLeaseLost, "")

	var groups wire.DeadGroups
	d.do("PUT", "/v1/groups/alive", "").want(201, nil)
	d.do("PUT", "/v1/groups/z", `{"maxAttempts":1}`).want(201, nil)
	for _, m := range d.receive("z")[:1] {
		d.do("POST", "/v1/leases/"+m.Lease+"/bury", "").want(200, nil)
	}
	r := d.do("GET", "/v1/dlq?limit=1", "").want(200, &groups)
	if len(groups.Groups) != 1 || groups.Groups[0].Group != "g" || groups.Cursor == "" || !strings.Contains(r.header.Get("Link"), groups.Cursor) {
		t.Errorf("%+v", groups)
	}
	d.do("GET", "/v1/dlq?limit=1&cursor="+groups.Cursor, "").want(200, &groups)
	if len(groups.Groups) != 1 || groups.Groups[0].Group != "z" || groups.Cursor != "" {
		t.Errorf("%+v", groups)
	}
	d.do("DELETE", "/v1/groups/z?confirm=z", "").want(204, nil)
	d.do("GET", "/v1/dlq", "").want(200, &groups)
	if len(groups.Groups) != 1 || groups.Groups[0] != (wire.DeadGroup{Group: "g", Dead: 4}) {
		t.Errorf("%+v", groups)
	}
	var page wire.Page
	r = d.do("GET", "/v1/dlq/g?limit=3", "").want(200, &page)
	first := page.Messages[0]
	if len(page.Messages) != 3 || page.Cursor == "" || !strings.Contains(r.header.Get("Link"), "cursor=") {
		t.Errorf("%+v", page)
	}
	if first.Origin != died[0].ID || first.OriginTopic != "orders" || first.Group != "g" || first.Attempt != 1 || first.Reason == "" || first.State != wire.StateDead ||
		first.Key != "k" || first.Tag != "t" || first.Headers["a"] != "b" || first.Body != nil || first.Text != "" {
		t.Errorf("%+v", first)
	}
	var rest wire.Page
	d.do("GET", "/v1/dlq/g?limit=3&bodies&cursor="+page.Cursor, "").want(200, &rest)
	if last := rest.Messages[0]; len(rest.Messages) != 1 || rest.Cursor != "" || last.Text != "four" || last.Reason != "cannot be read" || last.ID != buried.ID {
		t.Errorf("%+v", rest)
	}
	d.do("GET", "/v1/messages/"+buried.ID, "").want(200, &m)
	if m.State != wire.StateDead {
		t.Errorf("by its id: %+v", m)
	}
	d.do("GET", "/v1/dlq/nobody", "").refused(404, wire.CodeGroupUnknown, "nobody")
	d.do("GET", "/v1/dlq/g?bodies=some", "").refused(400, wire.CodeBadRequest, "want true or false")
	d.do("GET", "/v1/dlq/g?cursor=%21", "").refused(400, wire.CodeInvalidValue, "cursor")

	var gone wire.PurgedDead
	d.do("POST", "/v1/dlq/g/purge", `{"ids":["`+buried.ID+`"]}`).want(200, &gone)
	if gone.Purged != 1 {
		t.Errorf("%+v", gone)
	}
	d.do("POST", "/v1/dlq/g/purge", "").refused(428, wire.CodeConfirm, "?confirm=g")
	d.do("POST", "/v1/dlq/g/purge?confirm=g", "").want(200, &gone)
	if gone.Purged != 3 {
		t.Errorf("%+v", gone)
	}
	d.do("GET", "/v1/dlq", "").want(200, &groups)
	if len(groups.Groups) != 0 {
		t.Errorf("%+v", groups)
	}
}

// TestExportDead: who accepts lines gets all of them, with their bodies.
func TestExportDead(t *testing.T) {
	d := newDoor(t)
	const n = exportPage + 3
	for i := range n {
		d.die(strconv.Itoa(i))
	}
	r := d.do("GET", "/v1/dlq/g", "", "Accept", "text/html, application/x-ndjson;q=0.9").want(200, nil)
	lines := strings.Split(strings.TrimSuffix(r.body, "\n"), "\n")
	if len(lines) != n || r.header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("%d lines of %s", len(lines), r.header.Get("Content-Type"))
	}
	for i, line := range lines {
		var m wire.Message
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Text != strconv.Itoa(i) || m.State != wire.StateDead {
			t.Errorf("line %d: %v, %s", i, err, line)
		}
	}
	if r := d.do("GET", "/v1/dlq/g", "", "Accept", "*/*").want(200, nil); r.header.Get("Content-Type") != "application/json" {
		t.Errorf("for everything: %s", r.header.Get("Content-Type"))
	}
	if r := d.do("HEAD", "/v1/dlq/g", "", "Accept", "application/x-ndjson"); r.status != 200 || r.header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("HEAD: %d %s", r.status, r.header.Get("Content-Type"))
	}
	lined := []string{"Accept", "application/x-ndjson"}
	d.do("GET", "/v1/dlq/g?limit=1", "", lined...).refused(400, wire.CodeBadRequest, "leave limit out")
	d.do("GET", "/v1/dlq/nobody", "", lined...).refused(404, wire.CodeGroupUnknown, "nobody")
}

// TestRedrive: dead letters come back to their group, and to no other.
func TestRedrive(t *testing.T) {
	d := newDoor(t)
	d.die("one")
	d.die("two")
	if ms := d.receive("other"); len(ms) != 2 {
		t.Fatalf("%+v", ms)
	}
	const at = "/v1/dlq/g/redrive"
	var op wire.Operation
	d.do("POST", at, `{"dryRun":true}`).want(200, &op)
	if op.State != wire.OperationDryRun || op.Matched != 2 || op.Filter != nil || op.Kind != "redrive" {
		t.Errorf("dry run: %+v", op)
	}
	r := d.do("POST", at, `{"delay":"10s"}`).want(202, &op)
	d.do("GET", r.header.Get("Location")+"?wait=30s", "").want(200, &op)
	if op.State != wire.OperationDone || op.Done != 2 || op.Missed != 0 {
		t.Errorf("%+v", op)
	}
	if ms := d.receive("g"); len(ms) != 0 {
		t.Errorf("received early: %+v", ms)
	}
	d.after(10 * time.Second)
	ms := d.receive("g")
	if bodies(ms) != "one two" || ms[0].Topic != "orders" {
		t.Errorf("received %+v", ms)
	}
	if ms := d.receive("other"); len(ms) != 0 {
		t.Errorf("another group received %+v", ms)
	}
	var page wire.Page
	d.die("three")
	d.die("four")
	d.do("GET", "/v1/dlq/g", "").want(200, &page)
	if len(page.Messages) != 2 {
		t.Fatalf("%+v", page)
	}
	r = d.do("POST", at, `{"ids":["`+page.Messages[1].ID+`"],"rate":1000}`).want(202, &op)
	d.do("GET", r.header.Get("Location")+"?wait=30s", "").want(200, &op)
	d.after(0)
	if ms := d.receive("g"); op.Done != 1 || bodies(ms) != "four" {
		t.Errorf("by id: %+v, received %q", op, bodies(ms))
	}
	d.do("POST", at, `{"delay":"-1s"}`).refused(400, wire.CodeBadRequest, "want 0 or more")
	d.do("POST", at, `{"rate":-1}`).refused(400, wire.CodeInvalidValue, "rate")
	d.do("POST", "/v1/dlq/nobody/redrive", "").refused(404, wire.CodeGroupUnknown, "nobody")
}
