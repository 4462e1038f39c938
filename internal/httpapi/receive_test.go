package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

func TestReceiveAck(t *testing.T) {
	d := newDoor(t)
	for i := range 3 {
		d.publish("orders", "", strconv.Itoa(i))
	}
	ms := d.receive("g")
	if bodies(ms) != "0 1 2" {
		t.Fatalf("received %q", bodies(ms))
	}
	if again := d.receive("g"); len(again) != 0 {
		t.Errorf("leased twice: %+v", again)
	}
	if other := d.receive("h"); bodies(other) != "0 1 2" {
		t.Errorf("another group got %q", bodies(other))
	}
	lease := "/v1/leases/" + ms[0].Lease
	d.do("POST", lease+"/ack", "").want(http.StatusNoContent, nil)
	d.do("POST", lease+"/ack", "").want(http.StatusNoContent, nil) // again is no error
	var all wire.AckAllReply
	d.do("POST", "/v1/leases/ack", fmt.Sprintf(`{"leases":[%q,"nonsense",%q]}`, ms[1].Lease, ms[2].Lease)).want(200, &all)
	if all.Acked != 2 || all.Refused != 1 || all.Results[1].Problem.Code != wire.CodeInvalidValue || all.Results[0].Problem != nil {
		t.Errorf("ack of many: %+v", all)
	}
	d.after(time.Hour)
	if again := d.receive("g"); len(again) != 0 {
		t.Errorf("acknowledged and received again: %+v", again)
	}
	d.do("POST", "/v1/leases/ack", `{"leases":[]}`).refused(400, wire.CodeBadRequest, "no leases")
	d.do("POST", "/v1/leases/nonsense/ack", "").refused(400, wire.CodeInvalidValue, "is not a lease")
}

func TestNackExtend(t *testing.T) {
	d := newDoor(t)
	d.publish("orders", "", "x")
	first := d.receive("g")[0]
	lease := "/v1/leases/" + first.Lease
	d.do("POST", lease+"/nack", `{"delay":"5s"}`).want(200, nil)
	d.after(5*time.Second - time.Millisecond)
	if ms := d.receive("g"); len(ms) != 0 {
		t.Fatalf("given back for 5s, received early: %+v", ms)
	}
	d.after(time.Millisecond)
	second := d.receive("g")[0]
	if second.Attempt != 2 || second.Lease == first.Lease {
		t.Errorf("second delivery %+v", second)
	}
	d.do("POST", lease+"/ack", "").refused(410, wire.CodeLeaseLost, "another receiver")
	d.do("POST", lease+"/nack", "").refused(410, wire.CodeLeaseLost, "another receiver")
	lease = "/v1/leases/" + second.Lease
	d.do("POST", lease+"/extend", `{"invisible":"PT1M"}`).want(http.StatusNoContent, nil)
	d.after(time.Minute - time.Millisecond)
	if ms := d.receive("g"); len(ms) != 0 {
		t.Fatalf("extended, received early: %+v", ms)
	}
	d.do("POST", lease+"/extend", "").want(http.StatusNoContent, nil)
	d.after(30*time.Second - time.Millisecond)
	if ms := d.receive("g"); len(ms) != 0 {
		t.Fatalf("extended by the default, received early: %+v", ms)
	}
	d.after(time.Millisecond)
	third := d.receive("g")
	if len(third) != 1 || third[0].Attempt != 3 {
		t.Fatalf("third delivery %+v", third)
	}
	lease = "/v1/leases/" + third[0].Lease
	d.do("POST", lease+"/nack", `{"delay":"0s"}`).want(200, nil)
	if ms := d.receive("g"); len(ms) != 1 || ms[0].Attempt != 4 {
		t.Errorf("given back at once: %+v", ms)
	}
	d.do("POST", lease+"/extend", `{"invisible":"13h"}`).refused(400, wire.CodeInvalidValue, "12h0m0s")
	d.do("POST", lease+"/extend", `{"invisible":"30"}`).refused(400, wire.CodeBadRequest, `"30" has no unit`)
	d.do("POST", lease+"/nack", `{"dely":"5s"}`).refused(400, wire.CodeUnknownField, `"dely": did you mean delay?`)
}

func TestReceiveRefused(t *testing.T) {
	d := newDoor(t)
	const to = "/v1/topics/orders/receive"
	for body, want := range map[string]struct {
		code   wire.Code
		detail string
	}{
		``:                                  {wire.CodeInvalidValue, "no group given"},
		`{"group":"g","max":5000}`:          {wire.CodeInvalidValue, "max 5000, want 1 to 4096"},
		`{"group":"g","max":-1}`:            {wire.CodeInvalidValue, "want 1 to 4096"},
		`{"group":"g","wait":"61s"}`:        {wire.CodeInvalidValue, "want 0 to 1m0s"},
		`{"group":"g","invisible":"-1s"}`:   {wire.CodeInvalidValue, "want 1ms to 12h"},
		`{"group":"g","wait":10}`:           {wire.CodeBadRequest, `"10" has no unit; write 10s`},
		`{"group":"two words"}`:             {wire.CodeInvalidValue, "two words"},
		`{"group":"g","grp":"h"}`:           {wire.CodeUnknownField, "taken are group, invisible, max, maxBytes, ordered, tags, wait"},
		`{"group":7}`:                       {wire.CodeBadRequest, `number at byte 10 of the JSON does not fit field "group"`},
		`{"group":"g"} {"group":"h"}`:       {wire.CodeBadRequest, "something follows"},
		`{"group":"g"`:                      {wire.CodeBadRequest, "cut off"},
		`{"group":"g",}`:                    {wire.CodeBadRequest, "no JSON at byte"},
		`[]`:                                {wire.CodeBadRequest, "does not fit"},
		"{\"group\":\"\xff\"}":              {wire.CodeBadRequest, "not UTF-8"},
		`{"group":"g","max":1.5}`:           {wire.CodeBadRequest, `field "max"`},
		`{"group":"g","wait":"99999w"}`:     {wire.CodeBadRequest, "292 years"},
		strings.Repeat("[", 20_000) + `"x"`: {wire.CodeBadRequest, ""},
	} {
		d.do("POST", to, body).refused(400, want.code, want.detail)
	}
	d.do("POST", to+"?max=1", "{}").refused(400, wire.CodeUnknownParameter, "none is taken here")
	d.do("POST", "/v1/topics/SCHEDULE_TOPIC_XXXX/receive", `{"group":"g"}`).refused(403, wire.CodeForbidden, "belongs to the broker")
}

// TestReceiveInvisible: the message comes again when the lease has ended.
func TestReceiveInvisible(t *testing.T) {
	d := newDoor(t)
	d.publish("orders", "", "x")
	var got wire.ReceiveReply
	d.do("POST", "/v1/topics/orders/receive", `{"group":"g","invisible":"10s"}`).want(200, &got)
	d.after(10 * time.Second)
	if ms := d.receive("g"); len(ms) != 1 || ms[0].Attempt != 2 {
		t.Errorf("received %+v", ms)
	}
}

// TestLongPoll: a receive waits for a message that falls due meanwhile.
func TestLongPoll(t *testing.T) {
	d := newDoor(t)
	d.publish("orders", "after=10s", "hello")
	got := make(chan *reply, 1)
	go func() { got <- d.do("POST", "/v1/topics/orders/receive", `{"group":"g","wait":"60s"}`) }()
	d.waiting(1)
	d.after(10*time.Second - time.Millisecond)
	select {
	case r := <-got:
		t.Fatalf("answered early: %s", r.body)
	default:
	}
	d.after(time.Millisecond)
	var r wire.ReceiveReply
	(<-got).want(200, &r)
	if len(r.Messages) != 1 || r.Messages[0].Text != "hello" || *r.Messages[0].LatenessMs != 0 {
		t.Errorf("received %+v", r.Messages)
	}
}

// waiting returns when n receives are inside.
func (d *door) waiting(n int64) {
	d.t.Helper()
	d.inside(&d.h.polls, n)
}

// inside returns when n requests are in a room.
func (d *door) inside(r *room, n int64) {
	d.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); r.taken.Load() != n; runtime.Gosched() {
		if time.Now().After(deadline) {
			d.t.Fatalf("%d are inside, want %d", r.taken.Load(), n)
		}
	}
}

// TestLongPollEnds without a message when its wait is over.
func TestLongPollEnds(t *testing.T) {
	d := newDoor(t)
	got := make(chan *reply, 1)
	go func() { got <- d.do("POST", "/v1/topics/orders/receive", `{"group":"g","wait":"60s"}`) }()
	d.waiting(1)
	for {
		d.after(time.Second)
		select {
		case r := <-got:
			var out wire.ReceiveReply
			if r.want(200, &out); len(out.Messages) != 0 || !strings.Contains(r.body, `"messages":[]`) {
				t.Errorf("received %s", r.body)
			}
			return
		default:
		}
	}
}

// TestClientLeaves: a client that goes away ends its receive, and the message
// that becomes visible next goes to somebody else, as a first attempt.
func TestClientLeaves(t *testing.T) {
	d := newDoor(t)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url+"/v1/topics/orders/receive", strings.NewReader(`{"group":"g","wait":"60s"}`))
		if err == nil {
			var w *http.Response
			if w, err = http.DefaultTransport.RoundTrip(r); err == nil {
				w.Body.Close()
			}
		}
		left <- err
	}()
	d.waiting(1)
	cancel()
	if err := <-left; err == nil {
		t.Fatal("the receive was answered")
	}
	d.waiting(0)
	d.publish("orders", "", "x")
	if ms := d.receive("g"); len(ms) != 1 || ms[0].Attempt != 1 {
		t.Errorf("received %+v", ms)
	}
	want := `duemq_http_requests_total{code="499",route="POST /v1/topics/{topic}/receive"} 1`
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(d.do("GET", "/metrics", "").body, want); {
		if time.Now().After(deadline) { // it is counted after the place is free
			t.Fatalf("no %s", want)
		}
	}
}

func TestBatch(t *testing.T) {
	d := newDoor(t)
	body := `{"messages":[
		{"topic":"orders","text":"a"},
		{"topic":"orders","body":"aGVsbG8=","deliverAfter":"10s","key":"k","tag":"t","headers":{"userId":"7"}},
		{"topic":"orders","text":"c","level":3},
		{"topic":"orders","text":"d","level":"10s"},
		{"topic":"orders","text":"e","deliverAt":"2026-12-01 17:00:10","tz":"Asia/Shanghai"},
		{"topic":"orders","text":"bad","deliverAfter":"10"},
		{"topic":"orders","text":"bad","deliverAfter":"1s","level":1},
		{"topic":"orders","text":"bad","deliverAfter":"366d"},
		{"topic":"SCHEDULE_TOPIC_XXXX","text":"bad"},
		{"topic":"orders","text":"bad","body":"aGVsbG8="},
		{"topic":"orders","text":"bad","queue":9}
	]}`
	var got wire.BatchReply
	d.do("POST", "/v1/batch", body).want(200, &got)
	if got.Accepted != 5 || got.Refused != 6 || len(got.Results) != 11 {
		t.Fatalf("reply %+v", got)
	}
	for i, want := range []wire.Code{wire.CodeDelayInvalid, wire.CodeDelayConflict, wire.CodeDelayTooLong, wire.CodeForbidden, wire.CodeBadRequest, wire.CodeInvalidValue} {
		p := got.Results[5+i].Problem
		if p == nil || p.Code != want || p.Detail == "" || got.Results[5+i].Receipt != nil {
			t.Errorf("result %d: %+v, want %s", 5+i, p, want)
		}
	}
	for i := range 5 {
		r := got.Results[i].Receipt
		if r == nil || got.Results[i].Problem != nil {
			t.Fatalf("result %d: %+v", i, got.Results[i])
		}
		if due := wire.TimeOf(testStart.Add(10 * time.Second)); i > 0 && r.DeliverAt != due {
			t.Errorf("result %d: %+v", i, r)
		}
	}
	d.after(10 * time.Second)
	ms := d.receive("g")
	if bodies(ms) != "a hello c d e" || ms[1].Key != "k" || ms[1].Tag != "t" || ms[1].Headers["userId"] != "7" {
		t.Errorf("received %q, %+v", bodies(ms), ms)
	}
}

func TestBatchOfLines(t *testing.T) {
	d := newDoor(t)
	lines := "{\"topic\":\"orders\",\"text\":\"a\"}\r\n\n{\"topic\":\"orders\",\"text\":\"b\",\"level\":0}\n{\"topic\":\"orders\"}"
	for _, kind := range []string{"application/x-ndjson", "application/jsonl; charset=utf-8"} {
		var got wire.BatchReply
		d.do("POST", "/v1/batch", lines, "Content-Type", kind).want(200, &got)
		if got.Accepted != 3 || got.Refused != 0 {
			t.Errorf("%s: %+v", kind, got)
		}
	}
	if got := bodies(d.receive("g")); got != "a b  a b " {
		t.Errorf("received %q", got)
	}
	const ndjson = "application/x-ndjson"
	d.do("POST", "/v1/batch", "{\"topic\":\"a\"}\n{\"topc\":\"a\"}", "Content-Type", ndjson).refused(400, wire.CodeUnknownField, `line 2: unknown field "topc": did you mean topic?`)
	d.do("POST", "/v1/batch", "{\"topic\":\"a\"}\nnonsense", "Content-Type", ndjson).refused(400, wire.CodeBadRequest, "line 2")
	d.do("POST", "/v1/batch", "\n", "Content-Type", ndjson).refused(400, wire.CodeBadRequest, "no messages")
	d.do("POST", "/v1/batch", lines).refused(400, wire.CodeUnknownField, `"topic"`)
	d.do("POST", "/v1/batch", "").refused(400, wire.CodeBadRequest, "no messages")
	d.do("POST", "/v1/batch", `{"messages":[{"after":"1s"}]}`).refused(400, wire.CodeUnknownField, `deliverAfter`)
	many := strings.Repeat("{}\n", 16<<10+1)
	d.do("POST", "/v1/batch", many, "Content-Type", ndjson).refused(413, wire.CodeTooLarge, "16384")
	d.do("POST", "/v1/batch", `{"messages":[{}`+strings.Repeat(",{}", 16<<10)+`]}`).refused(413, wire.CodeTooLarge, "16384")
	d.do("POST", "/v1/batch", `{"messages":[{"topic":"a","level":1.5}]}`).refused(400, wire.CodeBadRequest, "level 1.5")
}

// TestDrain: waiting receives end, readiness says no, the rest still works.
func TestDrain(t *testing.T) {
	d := newDoor(t)
	d.do("GET", "/readyz", "").want(200, nil)
	got := make(chan *reply, 1)
	go func() { got <- d.do("POST", "/v1/topics/orders/receive", `{"group":"g","wait":"60s"}`) }()
	d.waiting(1)
	d.h.Drain()
	(<-got).refused(503, wire.CodeDraining, "stopping")
	d.do("GET", "/readyz", "").refused(503, wire.CodeDraining, "stopping")
	d.do("GET", "/healthz", "").want(200, nil)
	d.publish("orders", "", "x")
	if err := d.b.Close(); err != nil {
		t.Fatal(err)
	}
	d.do("POST", "/v1/topics/orders/messages", "x").refused(503, wire.CodeDraining, "closed")
}

// TestRooms: what does not fit is refused at once, probes are always answered.
func TestRooms(t *testing.T) {
	d := setup{options: Options{MaxRequests: 1, MaxPolls: 1}}.open(t)
	got := make(chan *reply, 1)
	go func() { got <- d.do("POST", "/v1/topics/orders/receive", `{"group":"g","wait":"60s"}`) }()
	d.waiting(1)
	d.do("POST", "/v1/topics/orders/receive", `{"group":"g"}`).refused(503, wire.CodeOverloaded, "1 at once is the limit")
	d.publish("orders", "", "x") // not held up by waiting receives
	(<-got).want(200, nil)
	if err := d.h.requests.enter(); err != nil {
		t.Fatal(err)
	}
	d.do("GET", "/v1/stats", "").refused(503, wire.CodeOverloaded, "1 at once is the limit")
	for _, path := range []string{"/healthz", "/readyz", "/version", "/metrics"} {
		d.do("GET", path, "").want(200, nil)
	}
	d.h.requests.leave()
	d.do("GET", "/v1/stats", "").want(200, nil)
}

// TestClockSuspect: relative delays are refused until an operator says that the
// clock is right.
func TestClockSuspect(t *testing.T) {
	d := setup{engine: func(o *engine.Options) { o.Guard.SuspectHold = time.Hour }}.open(t)
	d.publish("orders", "after=10s", "x")
	d.clock.Advance(time.Second)
	d.after(time.Second)
	if err := d.b.Close(); err != nil {
		t.Fatal(err)
	}
	d.clock.Step(-time.Hour)
	again := setup{engine: func(o *engine.Options) {
		o.FS, o.Clock, o.Guard.SuspectHold = d.disk, d.clock, time.Hour
	}}.open(t)
	again.do("GET", "/readyz", "").refused(503, wire.CodeClockSuspect, "duemq clock accept")
	again.do("GET", "/healthz", "").want(200, nil)
	again.do("POST", "/v1/topics/orders/messages?after=1s", "x").refused(503, wire.CodeClockSuspect, "duemq clock accept")
	var s wire.Stats
	again.do("GET", "/v1/stats", "").want(200, &s)
	if !s.Clock.Suspect || s.Messages.Waiting != 1 {
		t.Errorf("stats %+v", s)
	}
	var c wire.Clock
	again.do("POST", "/v1/clock/accept", "").want(200, &c)
	if c.Suspect || c.Now != wire.TimeOf(testStart.Add(2*time.Second-time.Hour)) {
		t.Errorf("clock %+v", c)
	}
	again.do("GET", "/readyz", "").want(200, nil)
	again.publish("orders", "after=1s", "x")
}

// TestStreamOfLines reads the answer of a batch as a program would.
func TestStreamOfLines(t *testing.T) {
	d := newDoor(t)
	r := d.do("POST", "/v1/batch", `{"messages":[{"topic":"orders"}]}`)
	s := bufio.NewScanner(strings.NewReader(r.body))
	n := 0
	for s.Scan() {
		n++
		if !json.Valid(s.Bytes()) {
			t.Errorf("line %d is no JSON", n)
		}
	}
	if n != 1 {
		t.Errorf("%d lines: an answer is one line, for jq and grep", n)
	}
}
