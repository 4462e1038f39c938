package httpapi

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

func TestMessageThroughItsLife(t *testing.T) {
	d := newDoor(t)
	sent := d.publish("orders", "after=10s&key=k&tag=t&property.a=b", "hello")
	look := func(ref string, want wire.State) wire.Message {
		t.Helper()
		var m wire.Message
		d.do("GET", "/v1/messages/"+ref, "").want(200, &m)
		if m.State != want || m.ID != sent.ID || m.Topic != "orders" || m.Text != "hello" || m.Key != "k" || m.Tag != "t" || m.Headers["a"] != "b" {
			t.Fatalf("message %+v, want %s", m, want)
		}
		return m
	}
	for _, ref := range []string{sent.ID, strings.ToUpper(sent.ID), sent.Handle} {
		m := look(ref, wire.StateWaiting)
		if m.DeliverAt != sent.DeliverAt || m.VisibleAt != 0 || m.Offset != nil || m.Handle != sent.Handle || m.LatenessMs != nil {
			t.Errorf("waiting: %+v", m)
		}
	}
	d.after(10 * time.Second)
	m := look(sent.ID, wire.StateReady)
	if m.VisibleAt != sent.DeliverAt || m.Offset == nil || *m.Offset != 0 || m.Handle != "" || *m.LatenessMs != 0 {
		t.Errorf("ready: %+v", m)
	}
	got := d.receive("g")[0]
	if m := look(sent.ID, wire.StateInflight); m.Attempt != 1 {
		t.Errorf("inflight: %+v", m)
	}
	d.do("POST", "/v1/leases/"+got.Lease+"/ack", "").want(204, nil)
	look(sent.ID, wire.StateAcked)
}

// TestMessageAtOnce: one that was never delayed was never waiting.
func TestMessageAtOnce(t *testing.T) {
	d := newDoor(t)
	for _, q := range []string{"", "after=0s", "at=2020-01-01T00:00Z"} {
		sent := d.publish("orders", q, "x")
		var m wire.Message
		d.do("GET", "/v1/messages/"+sent.ID, "").want(200, &m)
		if m.State != wire.StateReady || m.Offset == nil || *m.Offset != *sent.Offset {
			t.Errorf("%q: %+v", q, m)
		}
		d.do("DELETE", "/v1/messages/"+sent.ID, "").refused(409, wire.CodeAlreadyDelivered, "2026-12-01T09:00:00.000Z")
		d.do("POST", "/v1/messages/"+sent.ID+"/deliver", "").refused(409, wire.CodeAlreadyDelivered, "")
	}
}

func TestMessageUnknown(t *testing.T) {
	d := newDoor(t)
	sent := d.publish("orders", "after=10s", "hello")
	for _, c := range []struct {
		id     string
		status int
		code   wire.Code
	}{
		{"00000000ffffffff", 404, wire.CodeMessageUnknown},
		{"ffffffffffffffff", 404, wire.CodeMessageUnknown},
		{"0000000000000001", 404, wire.CodeMessageUnknown},
		{sent.ID[:15] + string("0123456789abcdef"[(strings.IndexByte("0123456789abcdef", sent.ID[15])+1)%16]), 404, wire.CodeMessageUnknown},
		{"0000000000000000", 400, wire.CodeInvalidValue},
		{"abc", 400, wire.CodeInvalidValue},
		{"xyzxyzxyzxyzxyzx", 400, wire.CodeInvalidValue},
		{strings.Repeat("A", 4000), 400, wire.CodeInvalidValue},
		{"%2E%2E", 400, wire.CodeInvalidValue},
	} {
		d.do("GET", "/v1/messages/"+c.id, "").refused(c.status, c.code, "")
		d.do("DELETE", "/v1/messages/"+c.id, "").refused(c.status, c.code, "")
		d.do("PATCH", "/v1/messages/"+c.id, `{"by":"1s"}`).refused(c.status, c.code, "")
		d.do("POST", "/v1/messages/"+c.id+"/deliver", "").refused(c.status, c.code, "")
	}
	var m wire.Message
	if d.do("GET", "/v1/messages/"+sent.ID, "").want(200, &m); m.State != wire.StateWaiting {
		t.Errorf("message %+v", m)
	}
}

// TestCancel: before its due, again, after its due.
func TestCancel(t *testing.T) {
	d := newDoor(t)
	byID := d.publish("orders", "after=10s", "by id")
	byHandle := d.publish("orders", "level=3", "by handle")
	kept := d.publish("orders", "after=10s", "kept")
	for ref, sent := range map[string]wire.Receipt{byID.ID: byID, byHandle.Handle: byHandle} {
		var a wire.Answer
		d.do("DELETE", "/v1/messages/"+ref, "").want(200, &a)
		if want := (wire.Answer{ID: sent.ID, Topic: "orders", DeliverAt: sent.DeliverAt, State: wire.StateCancelled}); a != want {
			t.Errorf("answer %+v, want %+v", a, want)
		}
		d.do("DELETE", "/v1/messages/"+ref, "").refused(409, wire.CodeAlreadyCancelled, sent.ID)
		d.do("PATCH", "/v1/messages/"+ref, `{"by":"1s"}`).refused(409, wire.CodeAlreadyCancelled, sent.ID)
		d.do("POST", "/v1/messages/"+ref+"/deliver", "").refused(409, wire.CodeAlreadyCancelled, sent.ID)
		var m wire.Message
		if d.do("GET", "/v1/messages/"+ref, "").want(200, &m); m.State != wire.StateCancelled {
			t.Errorf("message %+v", m)
		}
	}
	d.after(time.Minute)
	if got := bodies(d.receive("g")); got != "kept" {
		t.Errorf("received %q", got)
	}
	d.do("DELETE", "/v1/messages/"+kept.ID, "").refused(409, wire.CodeAlreadyDelivered, kept.ID+" at 2026-12-01T09:01:00.000Z")
	d.do("DELETE", "/v1/messages/"+byID.ID, "").refused(409, wire.CodeAlreadyCancelled, byID.ID)
}

func TestReschedule(t *testing.T) {
	d := newDoor(t)
	sent := d.publish("orders", "level=4", "x")
	const to = "/v1/messages/"
	move := func(body string, want time.Duration) {
		t.Helper()
		var a wire.Answer
		d.do("PATCH", to+sent.Handle, body).want(200, &a)
		due := wire.TimeOf(testStart.Add(want))
		if a != (wire.Answer{ID: sent.ID, Topic: "orders", DeliverAt: due, State: wire.StateWaiting}) {
			t.Errorf("%s: answer %+v, want %v", body, a, due)
		}
		var m wire.Message
		if d.do("GET", to+sent.ID, "").want(200, &m); m.DeliverAt != due || m.State != wire.StateWaiting {
			t.Errorf("%s: message %+v", body, m)
		}
		d.do("GET", to+m.Handle, "").want(200, nil)
	}
	move(`{"level":16}`, 30*time.Minute)
	move(`{"level":"1m"}`, time.Minute)
	move(`{"deliverAfter":"1h"}`, time.Hour)
	move(`{"deliverAt":"2026-12-01T18:00+08:00"}`, time.Hour)
	move(`{"deliverAt":"2026-12-01 18:30","tz":"Asia/Shanghai"}`, 90*time.Minute)
	move(`{"by":"-30m"}`, time.Hour)
	move(`{"by":"1d"}`, 25*time.Hour)
	d.do("PATCH", to+sent.ID, `{}`).refused(400, wire.CodeBadRequest, "give deliverAt, deliverAfter, by or level")
	d.do("PATCH", to+sent.ID, ``).refused(400, wire.CodeBadRequest, "give deliverAt, deliverAfter, by or level")
	d.do("PATCH", to+sent.ID, `{"by":"1s","deliverAfter":"1s"}`).refused(422, wire.CodeDelayConflict, "give it alone")
	d.do("PATCH", to+sent.ID, `{"by":"1s","level":3}`).refused(422, wire.CodeDelayConflict, "give it alone")
	d.do("PATCH", to+sent.ID, `{"deliverAt":"2026-12-01T18:00Z","deliverAfter":"1s"}`).refused(422, wire.CodeDelayConflict, "after and at")
	d.do("PATCH", to+sent.ID, `{"deliverAfter":"10"}`).refused(422, wire.CodeDelayInvalid, "has no unit")
	d.do("PATCH", to+sent.ID, `{"by":"10"}`).refused(422, wire.CodeDelayInvalid, "has no unit")
	d.do("PATCH", to+sent.ID, `{"deliverAfter":"366d"}`).refused(422, wire.CodeDelayTooLong, "8760h")
	d.do("PATCH", to+sent.ID, `{"by":"365d"}`).refused(422, wire.CodeDelayTooLong, "8760h")
	d.do("PATCH", to+sent.ID, `{"by":"15000w"}`).refused(422, wire.CodeDelayTooLong, "8760h")
	d.do("PATCH", to+sent.ID, `{"after":"1s"}`).refused(400, wire.CodeUnknownField, "deliverAfter")
	move(`{"deliverAfter":"5s"}`, 5*time.Second)
	d.after(5 * time.Second)
	if got := bodies(d.receive("g")); got != "x" {
		t.Errorf("received %q", got)
	}
	d.after(48 * time.Hour)
	d.do("PATCH", to+sent.ID, `{"by":"1s"}`).refused(409, wire.CodeAlreadyDelivered, "2026-12-01T09:00:05.000Z")
	var m wire.Message
	if d.do("GET", to+sent.ID, "").want(200, &m); m.VisibleAt != wire.TimeOf(testStart.Add(5*time.Second)) || *m.Offset != 0 {
		t.Errorf("message %+v", m)
	}
}

// TestDeliverNow: a due in the past is one too.
func TestDeliverNow(t *testing.T) {
	d := newDoor(t)
	for i, how := range []func(id string) *reply{
		func(id string) *reply { return d.do("POST", "/v1/messages/"+id+"/deliver", "") },
		func(id string) *reply { return d.do("PATCH", "/v1/messages/"+id, `{"deliverAfter":"0s"}`) },
		func(id string) *reply { return d.do("PATCH", "/v1/messages/"+id, `{"deliverAt":"2020-01-01T00:00Z"}`) },
		func(id string) *reply { return d.do("PATCH", "/v1/messages/"+id, `{"by":"-2h"}`) },
		func(id string) *reply { return d.do("PATCH", "/v1/messages/"+id, `{"by":"-15000w"}`) },
	} {
		sent := d.publish("orders", "after=1h", strconv.Itoa(i))
		var a wire.Answer
		how(sent.ID).want(200, &a)
		if now := wire.TimeOf(testStart.Add(time.Duration(i) * time.Second)); a.DeliverAt != now {
			t.Errorf("%d: answer %+v, want %v", i, a, now)
		}
		d.after(0)
		if ms := d.receive("g"); bodies(ms) != strconv.Itoa(i) {
			t.Errorf("%d: received %+v", i, ms)
		}
		d.after(time.Second)
	}
}

func TestPendingPages(t *testing.T) {
	d := newDoor(t)
	const n = 25
	want := make([]string, n)
	for i := range n {
		at := (i * 7) % n // any order of sending
		tag := []string{"even", "odd"}[at%2]
		want[at] = d.publish("orders", fmt.Sprintf("after=%dm&key=k%d&tag=%s", at+1, at, tag), "hello").ID
	}
	d.publish("other", "after=1m", "x")
	d.publish("orders", "", "not waiting")
	walk := func(query string, limit int) (ids []string, pages int) {
		t.Helper()
		next := fmt.Sprintf("/v1/pending?limit=%d&%s", limit, query)
		for next != "" && pages < 100 {
			var p wire.Page
			r := d.do("GET", next, "").want(200, &p)
			if len(p.Messages) > limit || strings.Contains(r.body, `"body"`) {
				t.Fatalf("page %s", r.body)
			}
			for _, m := range p.Messages {
				if m.State != wire.StateWaiting || m.Handle == "" || m.DeliverAt == 0 {
					t.Errorf("message %+v", m)
				}
				ids = append(ids, m.ID)
			}
			pages++
			link := r.header.Get("Link")
			if (p.Cursor == "") != (link == "") {
				t.Fatalf("cursor %q, Link %q", p.Cursor, link)
			}
			next, _, _ = strings.Cut(strings.TrimPrefix(link, "<"), ">")
		}
		return ids, pages
	}
	for _, limit := range []int{1, 7, 25, 1000} {
		ids, pages := walk("topic=orders", limit)
		if fmt.Sprint(ids) != fmt.Sprint(want) || pages > n/limit+1 {
			t.Errorf("limit %d: %d pages, %v, want %v", limit, pages, ids, want)
		}
	}
	for query, count := range map[string]int{
		"": n + 1, "topic=orders": n, "topic=other": 1, "topic=orders&tag=odd": n / 2, "tag=none": 0, "tag=odd": n / 2,
		"topic=orders&within=10m": 10, "within=1m": 2, "topic=orders&within=PT600S&tag=odd": 5,
		"topic=orders&from=2026-12-01T09:10Z": 16, "topic=orders&from=2026-12-01T09:10Z&to=2026-12-01T09:20Z": 10,
		"topic=orders&from=2026-12-01T17:10%2B08:00": 16, "topic=orders&from=2026-12-01T17:10&tz=Asia/Shanghai": 16, "topic=orders&from=2026-12-01T17:10+08:00": 16,
		"topic=orders&to=2026-12-01T09:01Z": 0, "from=2030-12-01T09:10Z": 0,
	} {
		ids, _ := walk(query, 4)
		var c wire.Count
		r := d.do("GET", "/v1/pending/count?"+query, "").want(200, &c)
		if len(ids) != count || c.Count != int64(count) || !strings.Contains(r.body, fmt.Sprintf(`"count":"%d"`, count)) {
			t.Errorf("%s: %d listed, counted %s; want %d", query, len(ids), r.body, count)
		}
	}
	// A page goes on where the last one ended, whatever was delivered meanwhile.
	var p wire.Page
	d.do("GET", "/v1/pending?topic=orders&limit=5", "").want(200, &p)
	d.after(3 * time.Minute)
	d.do("DELETE", "/v1/messages/"+want[6], "").want(200, nil)
	d.do("GET", "/v1/pending?topic=orders&limit=3&cursor="+p.Cursor, "").want(200, &p)
	if got := []string{p.Messages[0].ID, p.Messages[1].ID, p.Messages[2].ID}; fmt.Sprint(got) != fmt.Sprint([]string{want[5], want[7], want[8]}) {
		t.Errorf("second page %v", got)
	}
}

func TestPendingRefused(t *testing.T) {
	d := newDoor(t)
	for query, c := range map[string]struct {
		status int
		code   wire.Code
		detail string
	}{
		"topic=nowhere":                      {404, wire.CodeTopicUnknown, "made by the first message"},
		"limit=0":                            {400, wire.CodeInvalidValue, "want 1 to 1000"},
		"limit=ten":                          {400, wire.CodeBadRequest, "no whole number"},
		"limit=1001":                         {400, wire.CodeInvalidValue, "want 1 to 1000"},
		"cursor=abc":                         {400, wire.CodeInvalidValue, "not made by this broker"},
		"within=10":                          {400, wire.CodeBadRequest, `within: "10" has no unit`},
		"within=1h&to=2026-12-01T09:00Z":     {400, wire.CodeBadRequest, "to and within"},
		"from=yesterday":                     {400, wire.CodeBadRequest, `from: "yesterday" is no instant`},
		"form=2026-12-01T09:00Z":             {400, wire.CodeUnknownParameter, "did you mean from?"},
		"from=2026-12-01T09:00&tz=Mars/Base": {400, wire.CodeBadRequest, "no time zone"},
	} {
		d.do("GET", "/v1/pending?"+query, "").refused(c.status, c.code, c.detail)
	}
	d.do("GET", "/v1/pending/count?limit=3", "").refused(400, wire.CodeUnknownParameter, "limit")
}
