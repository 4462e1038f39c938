package httpapi

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

func TestGroups(t *testing.T) {
	d := newDoor(t)
	const at = "/v1/groups/billing"
	var got wire.Group
	const made = `{"name":"billing","start":"latest","maxAttempts":4,"backoff":["1s","5s"],"inflightMax":10,"invisible":"1m"}`
	r := d.do("POST", "/v1/groups", made).want(201, &got)
	want := wire.Group{
		Name: "billing", Start: "latest", MaxAttempts: 4, Backoff: []wire.Duration{wire.Duration(time.Second), wire.Duration(5 * time.Second)},
		InflightMax: 10, Invisible: wire.Duration(time.Minute),
	}
	if !reflect.DeepEqual(got, want) || r.header.Get("Location") != at {
		t.Errorf("%+v at %s", got, r.header.Get("Location"))
	}
	d.do("POST", "/v1/groups", made).want(200, nil)
	d.do("POST", "/v1/groups", `{"name":"billing"}`).refused(409, wire.CodeExists, "another configuration")
	d.do("PATCH", at, `{"maxAttempts":5,"inflightMax":20,"invisible":"2m"}`).want(200, &got)
	want.MaxAttempts, want.InflightMax, want.Invisible = 5, 20, wire.Duration(2*time.Minute)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("patched %+v, want %+v", got, want)
	}
	for start, want := range map[string]string{"2026-12-01T09:00+08:00": "2026-12-01T01:00:00.000Z", "earliest": "earliest", "latest": "latest"} {
		if d.do("PATCH", at, `{"start":"`+start+`"}`).want(200, &got); got.Start != want {
			t.Errorf("start %q became %q", start, got.Start)
		}
	}
	d.do("PUT", at, "{}").want(200, &got)
	if got.Start != "earliest" || got.MaxAttempts != 17 || len(got.Backoff) != 16 || got.Backoff[0] != wire.Duration(10*time.Second) || got.InflightMax != 10000 {
		t.Errorf("put, the defaults: %+v", got)
	}
	if r := d.do("PUT", "/v1/groups/other", "").want(201, nil); r.header.Get("Location") != "/v1/groups/other" {
		t.Errorf("Location %q", r.header.Get("Location"))
	}
	for body, want := range map[string]string{
		`{"start":"noon"}`:       "want earliest, latest or an instant",
		`{"maxAttempts":-1}`:     "-1 attempts",
		`{"invisible":"13h"}`:    "want 1ms to 12h",
		`{"backoff":["x"]}`:      "is no length of time",
		`{"inflightMax":100000}`: "want 1 to 10000",
		`{"maxattempt":1}`:       "did you mean maxAttempts?",
	} {
		for _, method := range []string{"PATCH", "PUT"} {
			if r := d.do(method, at, body); r.status != 400 || !strings.Contains(r.body, want) {
				t.Errorf("%s %s: %d %s", method, body, r.status, r.body)
			}
		}
	}
	d.do("PATCH", "/v1/groups/nobody", "{}").refused(404, wire.CodeGroupUnknown, "nobody")
	d.do("DELETE", at, "").refused(428, wire.CodeConfirm, "?confirm=billing")
	d.do("DELETE", at+"?confirm=billing", "").want(204, nil)
	d.do("GET", at, "").refused(404, wire.CodeGroupUnknown, "billing")
	d.do("DELETE", at+"?confirm=billing", "").refused(404, wire.CodeGroupUnknown, "billing")
}

// TestGroupStands: lag, what is leased and what waits for its retry are told by
// topic and queue.
func TestGroupStands(t *testing.T) {
	d := newDoor(t)
	for _, body := range []string{"a", "b", "c", "d"} {
		d.publish("orders", "", body)
	}
	ms := d.receive("g")
	d.do("POST", "/v1/leases/"+ms[0].Lease+"/ack", "").want(204, nil)
	d.do("POST", "/v1/leases/"+ms[1].Lease+"/nack", "").want(200, nil)
	var g wire.Group
	d.do("GET", "/v1/groups/g", "").want(200, &g)
	if len(g.Topics) != 1 || len(g.Topics[0].Queues) != 1 {
		t.Fatalf("%+v", g)
	}
	q := g.Topics[0].Queues[0]
	if topic := g.Topics[0]; topic.Topic != "orders" || topic.Lag != 3 || topic.Inflight != 2 || topic.Retrying != 1 || topic.Skipped != 0 {
		t.Errorf("%+v", topic)
	}
	if q.Low != 0 || q.Next != 4 || q.Base != 1 || q.Lag != 3 || q.Inflight != 2 || q.Retrying != 1 {
		t.Errorf("%+v", q)
	}
	var m wire.Message
	d.do("GET", "/v1/messages/"+ms[1].ID, "").want(200, &m)
	if m.State != wire.StateRetrying || m.NextAttemptAt.String() != "2026-12-01T09:00:10.000Z" {
		t.Errorf("given back: %+v", m)
	}
}

// TestReset moves a group to and fro.
func TestReset(t *testing.T) {
	d := newDoor(t)
	for _, body := range []string{"a", "b", "c"} {
		d.publish("orders", "", body)
		d.after(time.Minute)
	}
	for _, m := range d.receive("g") {
		d.do("POST", "/v1/leases/"+m.Lease+"/ack", "").want(204, nil)
	}
	const at = "/v1/groups/g/reset"
	for _, tt := range []struct{ ask, want string }{
		{`{"topic":"orders","to":"earliest"}`, "a b c"},
		{`{"topic":"orders","to":"latest"}`, ""},
		{`{"topic":"orders","to":"2026-12-01T09:00:30Z"}`, "b c"},
		{`{"topic":"orders","to":"2026-12-01T17:01:30","tz":"Asia/Shanghai"}`, "c"},
		{`{"topic":"orders","offset":"1"}`, "b c"},
	} {
		var dry, got wire.ResetReply
		d.do("POST", at, strings.Replace(tt.ask, "{", `{"dryRun":true,`, 1)).want(200, &dry)
		if ms := d.receive("g"); !dry.DryRun || len(ms) != 0 {
			t.Errorf("%s: a dry run gives %+v", tt.ask, ms)
		}
		d.do("POST", at, tt.ask).want(200, &got)
		if got.DryRun || !reflect.DeepEqual(got.Queues, dry.Queues) || len(got.Queues) != 1 || got.Queues[0].Base != 3 {
			t.Errorf("%s: %+v, dry %+v", tt.ask, got, dry)
		}
		ms := d.receive("g")
		if bodies(ms) != tt.want {
			t.Errorf("%s: received %q, want %q", tt.ask, bodies(ms), tt.want)
		}
		for _, m := range ms {
			d.do("POST", "/v1/leases/"+m.Lease+"/ack", "").want(204, nil)
		}
	}
	for ask, want := range map[string]string{
		`{"topic":"orders"}`:                                "give one of to",
		`{"topic":"orders","to":"latest","offset":"1"}`:     "give one of to",
		`{"topic":"orders","to":"noon"}`:                    "want earliest, latest or an instant",
		`{"topic":"orders","offset":"9999999999999999999"}`: "less than 2^63",
	} {
		if r := d.do("POST", at, ask); r.status != 400 || !strings.Contains(r.body, want) {
			t.Errorf("%s: %d %s", ask, r.status, r.body)
		}
	}
	d.do("POST", at, `{"topic":"nowhere","to":"latest"}`).refused(404, wire.CodeTopicUnknown, "nowhere")
	d.do("POST", "/v1/groups/nobody/reset", `{"topic":"orders","to":"latest"}`).refused(404, wire.CodeGroupUnknown, "nobody")
}

// TestOffsets: a pull consumer's positions are kept for it.
func TestOffsets(t *testing.T) {
	d := newDoor(t)
	for range 3 {
		d.publish("orders", "", "x")
	}
	const at = "/v1/groups/g/offsets"
	d.do("PUT", at+"?topic=orders", `{"offsets":{"0":"2"}}`).want(204, nil)
	if got := d.do("GET", at+"?topic=orders", "").want(200, nil).body; got != `{"offsets":{"0":"2"}}`+"\n" {
		t.Errorf("%s", got)
	}
	var g wire.Group
	d.do("GET", "/v1/groups/g", "").want(200, &g)
	if len(g.Topics) != 1 || g.Topics[0].Queues[0].Pulled != 2 || g.Topics[0].Lag != 1 {
		t.Errorf("%+v", g)
	}
	for body, want := range map[string]string{
		`{}`: "no offsets", `{"offsets":{"0":"-1"}}`: "want 0 or more", `{"offsets":{"0":1}}`: "does not fit", `{"offsets":{"x":"1"}}`: "", `{"offsets":{"7":"1"}}`: "queue 7",
		`{"offsets":{"0":"one"}}`: "no whole number",
	} {
		if r := d.do("PUT", at+"?topic=orders", body); r.status != 400 || !strings.Contains(r.body, want) {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	d.do("PUT", at, `{"offsets":{"0":"2"}}`).refused(400, wire.CodeBadRequest, "?topic=")
	d.do("GET", at, "").refused(400, wire.CodeBadRequest, "?topic=")
	d.do("GET", "/v1/groups/nobody/offsets?topic=orders", "").refused(404, wire.CodeGroupUnknown, "nobody")
}

// TestLocks: a queue has one client at a time.
func TestLocks(t *testing.T) {
	d := newDoor(t)
	d.do("PUT", "/v1/topics/orders", `{"queues":3}`).want(201, nil)
	d.do("PUT", "/v1/groups/g", "").want(201, nil)
	lock := func(client, queues string) []int {
		t.Helper()
		var got wire.LockReply
		d.do("POST", "/v1/groups/g/locks", `{"client":"`+client+`","topic":"orders","queues":`+queues+`,"ttl":"10s"}`).want(200, &got)
		return got.Held
	}
	for _, tt := range []struct {
		client, queues string
		want           []int
	}{{"a", "[0,1]", []int{0, 1}}, {"b", "[1,2]", []int{2}}, {"b", "[0]", []int{}}, {"a", "[0]", []int{0}}} {
		if got := lock(tt.client, tt.queues); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s asks for %s and has %v, want %v", tt.client, tt.queues, got, tt.want)
		}
	}
	d.do("POST", "/v1/groups/g/unlock", `{"client":"a","topic":"orders","queues":[1]}`).want(204, nil)
	if got := lock("b", "[0,1]"); !reflect.DeepEqual(got, []int{1}) {
		t.Errorf("b has %v", got)
	}
	d.clock.Advance(10 * time.Second)
	if got := lock("b", "[0]"); !reflect.DeepEqual(got, []int{0}) {
		t.Errorf("after the end b has %v", got)
	}
	d.do("POST", "/v1/groups/g/locks", `{"topic":"orders","queues":[0]}`).refused(400, wire.CodeInvalidValue, "client")
	d.do("POST", "/v1/groups/g/locks", `{"client":"a","topic":"nowhere","queues":[0]}`).refused(404, wire.CodeTopicUnknown, "nowhere")
}

// TestReceiveSelects: by tags, in order, and no more than so many bytes.
func TestReceiveSelects(t *testing.T) {
	d := newDoor(t)
	for _, tag := range []string{"a", "b", "c", "a"} {
		d.publish("orders", "tag="+tag, tag)
	}
	receive := func(ask string) []wire.Message {
		t.Helper()
		var got wire.ReceiveReply
		d.do("POST", "/v1/topics/orders/receive", ask).want(200, &got)
		return got.Messages
	}
	if got := bodies(receive(`{"group":"g","max":10,"tags":"a || c"}`)); got != "a c a" {
		t.Errorf("by tags: %q", got)
	}
	if got := bodies(receive(`{"group":"h","max":10,"maxBytes":1}`)); got != "a" {
		t.Errorf("by bytes: %q", got)
	}
	first := receive(`{"group":"o","ordered":true}`)
	if got := receive(`{"group":"o","ordered":true}`); bodies(first) != "a" || len(got) != 0 {
		t.Errorf("in order: %q, then %q", bodies(first), bodies(got))
	}
	d.do("POST", "/v1/leases/"+first[0].Lease+"/ack", "").want(204, nil)
	if got := bodies(receive(`{"group":"o","ordered":true}`)); got != "b" {
		t.Errorf("next in order: %q", got)
	}
}

// TestReturn: what nobody has seen is given back, and its attempt does not count.
func TestReturn(t *testing.T) {
	d := newDoor(t)
	d.publish("orders", "", "x")
	first := d.receive("g")[0]
	d.do("POST", "/v1/leases/return", `{"leases":["`+first.Lease+`","nonsense"]}`).want(204, nil)
	if ms := d.receive("g"); len(ms) != 1 || ms[0].Attempt != 1 {
		t.Errorf("received %+v", ms)
	}
	d.do("POST", "/v1/leases/return", "").refused(400, wire.CodeBadRequest, "no leases")
}
