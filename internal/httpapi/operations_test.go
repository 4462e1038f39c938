package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// bulk asks for a bulk operation and waits for its end.
func (d *door) bulk(kind, ask string) wire.Operation {
	d.t.Helper()
	var op wire.Operation
	r := d.do("POST", "/v1/pending/"+kind, ask).want(202, &op)
	if r.header.Get("Location") != "/v1/operations/"+op.ID || op.Kind != kind {
		d.t.Errorf("%+v at %q", op, r.header.Get("Location"))
	}
	d.do("GET", "/v1/operations/"+op.ID+"?wait=30s", "").want(200, &op)
	if op.State != wire.OperationDone || op.BeganAt == 0 || op.EndedAt == 0 || op.Error != "" {
		d.t.Errorf("%s: %+v", kind, op)
	}
	return op
}

// dues gives the keys of what waits in order, with the time from the start.
func (d *door) dues() string {
	d.t.Helper()
	var page wire.Page
	d.do("GET", "/v1/pending", "").want(200, &page)
	var out []string
	for _, m := range page.Messages {
		out = append(out, fmt.Sprintf("%s+%v", m.Key, m.DeliverAt.Time().Sub(testStart)))
	}
	return strings.Join(out, " ")
}

func TestBulk(t *testing.T) {
	d := newDoor(t)
	for _, m := range []string{"key=a&after=10s&tag=x", "key=b&after=20s", "key=c&after=30s&tag=x", "key=d&after=1h"} {
		d.publish("orders", m, "")
	}
	d.publish("other", "key=e&after=40s", "")
	var dry wire.Operation
	r := d.do("POST", "/v1/pending/cancel", `{"filter":{"topic":"orders","within":"30s"},"dryRun":true}`).want(200, &dry)
	if dry.State != wire.OperationDryRun || dry.Matched != 3 || len(dry.Samples) != 3 || dry.ID != "" || dry.Kind != "cancel" || r.header.Get("Location") != "" {
		t.Errorf("dry run %+v", dry)
	}
	if dry.Filter.Topic != "orders" || dry.Filter.To == 0 || dry.Filter.All {
		t.Errorf("filter %+v", dry.Filter)
	}
	for kind, ask := range map[string]string{
		"deliver": "", "reschedule": `,"by":"5s"`, "spread": `,"deliverAt":"2026-12-01T18:00","tz":"Asia/Shanghai","over":"1m"`,
	} {
		d.do("POST", "/v1/pending/"+kind, `{"filter":{"topic":"orders"},"dryRun":true`+ask+`}`).want(200, &dry)
		if dry.State != wire.OperationDryRun || dry.Matched != 4 || dry.Kind != kind {
			t.Errorf("%s: %+v", kind, dry)
		}
	}
	if got := d.dues(); got != "a+10s b+20s c+30s e+40s d+1h0m0s" {
		t.Errorf("dry runs moved: %s", got)
	}
	if op := d.bulk("reschedule", `{"filter":{"tag":"x"},"by":"5s"}`); op.Done != 2 || op.Missed != 0 {
		t.Errorf("%+v", op)
	}
	if got := d.dues(); got != "a+15s b+20s c+35s e+40s d+1h0m0s" {
		t.Errorf("moved: %s", got)
	}
	d.bulk("reschedule", `{"filter":{"key":"b"},"level":18}`)
	if got := d.dues(); got != "a+15s c+35s e+40s d+1h0m0s b+2h0m0s" {
		t.Errorf("moved: %s", got)
	}
	d.bulk("reschedule", `{"filter":{"key":"b"},"deliverAfter":"50s"}`)
	d.bulk("reschedule", `{"filter":{"key":"c"},"deliverAt":"2026-12-01T17:01","tz":"Asia/Shanghai"}`)
	if got := d.dues(); got != "a+15s e+40s b+50s c+1m0s d+1h0m0s" {
		t.Errorf("moved: %s", got)
	}
	if op := d.bulk("spread", `{"filter":{"from":"2026-12-01T09:00:30Z","to":"2026-12-01T09:01:00Z","state":"waiting"},"deliverAt":"2026-12-01T10:00Z","over":"10s"}`); op.Done != 2 || op.Matched != 2 {
		t.Errorf("%+v", op)
	}
	if got := d.dues(); got != "a+15s c+1m0s d+1h0m0s e+1h0m0s b+1h0m5s" && got != "a+15s c+1m0s e+1h0m0s d+1h0m0s b+1h0m5s" {
		t.Errorf("spread: %s", got)
	}
	if op := d.bulk("deliver", `{"filter":{"key":"a"}}`); op.Done != 1 {
		t.Errorf("%+v", op)
	}
	d.after(0)
	var page wire.Page
	d.do("GET", "/v1/pending", "").want(200, &page)
	ids := page.Messages[0].ID + `","` + page.Messages[1].ID
	if op := d.bulk("cancel", `{"filter":{"ids":["`+ids+`"]}}`); op.Done != 2 {
		t.Errorf("%+v", op)
	}
	if op := d.bulk("cancel", `{"filter":{"overdue":true}}`); op.Done != 0 {
		t.Errorf("%+v", op)
	}
	if op := d.bulk("cancel", `{"filter":{"all":true}}`); op.Done != 2 || !op.Filter.All {
		t.Errorf("%+v", op)
	}
	if got := d.dues(); got != "" {
		t.Errorf("left: %s", got)
	}
	var all wire.Operations
	d.do("GET", "/v1/operations", "").want(200, &all)
	if len(all.Operations) != 9 || all.Operations[0].Kind != "reschedule" {
		t.Errorf("%d operations: %+v", len(all.Operations), all)
	}
	d.do("POST", "/v1/operations/"+all.Operations[0].ID+"/stop", "").want(200, &dry)
	if dry.State != wire.OperationDone {
		t.Errorf("stopped after its end: %+v", dry)
	}
}

func TestBulkRefused(t *testing.T) {
	d := newDoor(t)
	for kind, asks := range map[string]map[string]string{
		"cancel": {
			``: "no filter", `{"filter":{}}`: "no filter", `{"filter":{"all":true,"topic":"a"}}`: "all and more", `{"filter":{"ids":[]}}`: "no ids",
			`{"filter":{"to":"2026-12-01T09:00Z","within":"1h"}}`: "give one", `{"filter":{"state":"ready"}}`: "ready", `{"filter":{"key":"a","tga":"b"}}`: "did you mean tag?",
			`{"filter":{"ids":["x"]}}`: "x", `{"filter":{"from":"2026-12-01T09:00"}}`: "zone", `{"topic":"a"}`: "unknown field",
		},
		"reschedule": {`{"filter":{"all":true}}`: "no new due", `{"filter":{"all":true},"by":"0s"}`: "not 0"},
		"spread":     {`{"filter":{"all":true}}`: "want 1 to", `{"filter":{"all":true},"over":"1h","tz":"UTC"}`: "without an instant"},
	} {
		for ask, want := range asks {
			r := d.do("POST", "/v1/pending/"+kind, ask)
			if r.status != 400 && r.status != 422 || !strings.Contains(r.body, want) {
				t.Errorf("%s %s: %d %s", kind, ask, r.status, r.body)
			}
		}
	}
	d.do("POST", "/v1/pending/reschedule", `{"filter":{"all":true},"by":"1s","deliverAfter":"1s"}`).refused(422, wire.CodeDelayConflict, "alone")
	d.do("POST", "/v1/pending/reschedule", `{"filter":{"all":true},"deliverAfter":"500d"}`).refused(422, wire.CodeDelayTooLong, "8760h")
	d.do("POST", "/v1/pending/deliver", `{"filter":{"topic":"nowhere"}}`).refused(404, wire.CodeTopicUnknown, "nowhere")
	d.do("GET", "/v1/operations/op-99", "").refused(404, wire.CodeOperationUnknown, "op-99")
	d.do("POST", "/v1/operations/op-99/stop", "").refused(404, wire.CodeOperationUnknown, "op-99")
	d.do("GET", "/v1/operations/99", "").refused(400, wire.CodeInvalidValue, "99")
	d.do("GET", "/v1/operations/op-99?wait=2m", "").refused(400, wire.CodeBadRequest, "want 0 to 1m")
}

// TestPendingSearch: by key, by id, by state.
func TestPendingSearch(t *testing.T) {
	d := newDoor(t)
	a := d.publish("orders", "key=a+k&after=10s", "a")
	b := d.publish("orders", "key=b+k&after=20s", "b")
	for query, want := range map[string]string{
		"key=k": "a k+10s b k+20s", "key=a": "a k+10s", "key=c": "", "ids=" + b.ID + "," + a.Handle: "a k+10s b k+20s", "ids=" + b.ID: "b k+20s",
		"ids=" + b.ID + "&key=a": "", "overdue=true": "", "state=waiting&topic=orders": "a k+10s b k+20s",
	} {
		var page wire.Page
		d.do("GET", "/v1/pending?"+query, "").want(200, &page)
		var got []string
		for _, m := range page.Messages {
			got = append(got, fmt.Sprintf("%s+%v", m.Key, m.DeliverAt.Time().Sub(testStart)))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
		var n wire.Count
		d.do("GET", "/v1/pending/count?"+query, "").want(200, &n)
		if n.Count != int64(len(got)) {
			t.Errorf("%s: counted %d", query, n.Count)
		}
	}
	d.do("GET", "/v1/pending?state=acked", "").refused(400, wire.CodeInvalidValue, "acked")
	d.do("GET", "/v1/pending?ids=x", "").refused(400, wire.CodeInvalidValue, "x")
	d.do("GET", "/v1/pending?overdue=soon", "").refused(400, wire.CodeBadRequest, "true or false")
}

func TestTimeline(t *testing.T) {
	d := newDoor(t)
	for _, m := range []string{"orders/messages?after=61s", "orders/messages?after=62s", "other/messages?after=10m"} {
		d.do("POST", "/v1/topics/"+m, "x").want(201, nil)
	}
	var got wire.Timeline
	d.do("GET", "/v1/pending/timeline?step=5m&by=topic&from=2026-12-01T09:00Z&to=2026-12-01T18:00&tz=Asia/Shanghai", "").want(200, &got)
	if got.Total != 3 || got.Step != wire.Duration(5*time.Minute) || len(got.Buckets) != 2 || got.Paused != 0 || got.Overdue != 0 {
		t.Fatalf("%+v", got)
	}
	first, second := got.Buckets[0], got.Buckets[1]
	if first.Count != 2 || first.Topics["orders"] != 2 || second.Topics["other"] != 1 || second.From.String() != "2026-12-01T09:10:00.000Z" {
		t.Errorf("%+v", got.Buckets)
	}
	if got.From.String() != "2026-12-01T09:00:00.000Z" || got.To.String() != "2026-12-01T10:00:00.000Z" ||
		got.Earliest.String() != "2026-12-01T09:01:00.000Z" || got.Latest.String() != "2026-12-01T09:10:00.000Z" {
		t.Errorf("%+v", got)
	}
	got = wire.Timeline{}
	d.do("GET", "/v1/pending/timeline?topic=orders", "").want(200, &got)
	if got.Total != 2 || len(got.Buckets) != 1 || got.Buckets[0].Topics != nil {
		t.Errorf("of one topic: %+v", got)
	}
	for query, want := range map[string]string{
		"by=tag": "want topic", "step=1": "step:", "step=90s": "whole minutes", "from=noon": "from:", "stop=1m": "did you mean step?",
	} {
		if r := d.do("GET", "/v1/pending/timeline?"+query, ""); r.status != 400 || !strings.Contains(r.body, want) {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
	d.do("GET", "/v1/pending/timeline?topic=nowhere", "").refused(404, wire.CodeTopicUnknown, "nowhere")
}

// TestOperationWithoutEnd: one that cannot go on says why.
func TestOperationWithoutEnd(t *testing.T) {
	d := setup{engine: func(o *engine.Options) {
		e, err := engine.Open(t.Context(), *o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.BeginOperation(t.Context(), "of another version"); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		o.Rand = strings.NewReader(strings.Repeat("duemq test store", 4))
	}}.open(t)
	var op wire.Operation
	d.do("GET", "/v1/operations/op-1?wait=30s", "").want(200, &op)
	if op.State != wire.OperationRunning || op.Error == "" || op.EndedAt != 0 {
		t.Errorf("%+v", op)
	}
	d.do("POST", "/v1/operations/op-1/stop", "").want(200, &op)
	if op.State != wire.OperationStopped || op.EndedAt == 0 {
		t.Errorf("stopped: %+v", op)
	}
}
