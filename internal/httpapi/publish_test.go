package httpapi

import (
	"encoding/base64"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones of the tests, wherever they run

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// TestPublishLikeCurl is the line of the README: curl -d says that the body is
// a form, and it is taken as it is all the same.
func TestPublishLikeCurl(t *testing.T) {
	d := newDoor(t)
	var got wire.Receipt
	r := d.do("POST", "/v1/topics/orders/messages?after=10s", "hello", "Content-Type", "application/x-www-form-urlencoded", "User-Agent", "curl/8.5.0", "Accept", "*/*").
		want(http.StatusCreated, &got)
	if at := wire.TimeOf(testStart.Add(10 * time.Second)); got.DeliverAt != at || got.State != wire.StateWaiting || got.Topic != "orders" || got.Offset != nil || got.Handle == "" {
		t.Errorf("receipt %+v", got)
	}
	if loc := r.header.Get("Location"); loc != "/v1/messages/"+got.ID || len(got.ID) != 16 {
		t.Errorf("Location %q, id %q", loc, got.ID)
	}
	d.after(10*time.Second - time.Millisecond)
	if ms := d.receive("g"); len(ms) != 0 {
		t.Fatalf("1 ms early: %+v", ms)
	}
	d.after(time.Millisecond)
	ms := d.receive("g")
	if len(ms) != 1 || ms[0].Text != "hello" || string(ms[0].Body) != "hello" || ms[0].ID != got.ID || *ms[0].LatenessMs != 0 || ms[0].State != wire.StateInflight || ms[0].Attempt != 1 {
		t.Fatalf("received %+v", ms)
	}
}

func TestPublishAtOnce(t *testing.T) {
	d := newDoor(t)
	got := d.publish("orders", "", "now")
	if got.State != wire.StateReady || got.Offset == nil || *got.Offset != 0 || got.Handle != "" || got.DeliverAt != 0 {
		t.Errorf("receipt %+v", got)
	}
	if got := d.publish("orders", "", ""); got.State != wire.StateReady || *got.Offset != 1 {
		t.Errorf("empty body: %+v", got)
	}
	if r := d.do("POST", "/v1/topics/orders/messages", ""); !strings.Contains(r.body, `"offset":"2"`) {
		t.Errorf("64-bit numbers are strings: %s", r.body)
	}
}

func TestPublishOptions(t *testing.T) {
	d := newDoor(t)
	q := "key=order%2042&tag=paid&queue=0&property.userId=u%C3%A9&property.empty="
	d.publish("orders", q, "by query")
	var byHeader wire.Receipt
	d.do("POST", "/v1/topics/orders/messages", "by header", "Duemq-Key", "k2", "Duemq-Tag", "t2", "Duemq-Property-User-Id", "u2", "Duemq-Queue", "0").
		want(http.StatusCreated, &byHeader)
	ms := d.receive("g")
	if len(ms) != 2 {
		t.Fatalf("received %+v", ms)
	}
	if m := ms[0]; m.Key != "order 42" || m.Tag != "paid" || fmt.Sprint(m.Headers) != "map[empty: userId:ué]" {
		t.Errorf("by query: %+v", m)
	}
	if m := ms[1]; m.Key != "k2" || m.Tag != "t2" || fmt.Sprint(m.Headers) != "map[user-id:u2]" {
		t.Errorf("by header: %+v", m)
	}
	if m := ms[0]; m.BornAt != wire.TimeOf(testStart) || m.VisibleAt != wire.TimeOf(testStart) || m.DeliverAt != 0 || m.LatenessMs != nil {
		t.Errorf("times: %+v", m)
	}
}

func TestDelaysByHeader(t *testing.T) {
	d := newDoor(t)
	for header, value := range map[string]string{"Duemq-After": "10s", "Duemq-At": "2026-12-01T17:00:10+08:00", "Duemq-Level": "3"} {
		var got wire.Receipt
		d.do("POST", "/v1/topics/orders/messages", "x", header, value).want(http.StatusCreated, &got)
		if got.DeliverAt != wire.TimeOf(testStart.Add(10*time.Second)) {
			t.Errorf("%s: %s: %+v", header, value, got)
		}
	}
	var got wire.Receipt
	d.do("POST", "/v1/topics/orders/messages", "x", "Duemq-At", "2026-12-01 17:00:10", "Duemq-Tz", "Asia/Shanghai").want(http.StatusCreated, &got)
	if got.DeliverAt != wire.TimeOf(testStart.Add(10*time.Second)) {
		t.Errorf("by zone: %+v", got)
	}
}

// TestWaysToSayWhen: each way gives the same instant, one minute from now. A +
// that a shell user wrote as it is reaches the server as a blank.
func TestWaysToSayWhen(t *testing.T) {
	d := newDoor(t)
	for _, q := range []string{
		"after=60s", "after=1m", "after=PT1M", "after=60000ms", "after=0.1m&key=k", "level=5", "level=1m", "level=60s",
		"at=2026-12-01T09:01Z", "at=2026-12-01T17:01%2B08:00", "at=2026-12-01T17:01+08:00", "at=2026-12-01+17:01+08:00", "at=2026-12-01+09:01Z",
		"at=2026-12-01T17:01&tz=Asia/Shanghai", "at=1796115660000",
	} {
		want := testStart.Add(time.Minute)
		if strings.Contains(q, "0.1m") {
			want = testStart.Add(6 * time.Second)
		}
		if got := d.publish("orders", q, "x"); got.DeliverAt != wire.TimeOf(want) {
			t.Errorf("%s: due %v, want %v", q, got.DeliverAt, want)
		}
	}
	if got := d.publish("orders", "after=1us", "x"); got.DeliverAt != wire.TimeOf(testStart.Add(time.Millisecond)) {
		t.Errorf("a microsecond is rounded up: due %v", got.DeliverAt)
	}
}

func TestDelaysRefused(t *testing.T) {
	d := newDoor(t)
	for _, c := range []struct {
		query  string
		status int
		code   wire.Code
		detail string
	}{
		{"after=10", 422, wire.CodeDelayInvalid, `"10" has no unit: seconds or a level? write 10s, or level 10`},
		{"after=0", 422, wire.CodeDelayInvalid, "has no unit"},
		{"after=soon", 422, wire.CodeDelayInvalid, "write 10s, 1h30m, 2d"},
		{"after=1y", 422, wire.CodeDelayInvalid, "months and years"},
		{"level=25m", 422, wire.CodeDelayInvalid, "25m is no delay level; its neighbours are 15 (20m) and 16 (30m)"},
		{"level=2147483648", 422, wire.CodeDelayInvalid, "32 bits"},
		{"level=high", 422, wire.CodeDelayInvalid, "want a number such as 3"},
		{"at=tomorrow", 422, wire.CodeDelayInvalid, "2026-12-01T09:00+08:00"},
		{"at=1796115660", 422, wire.CodeDelayInvalid, "13 digits"},
		{"at=2026-12-01T09:01", 422, wire.CodeDelayInvalid, "names no time zone"},
		{"at=2026-03-29T02:30&tz=Europe/Berlin", 422, wire.CodeDelayInvalid, "does not exist in Europe/Berlin"},
		{"at=2026-12-01T09:01&tz=Mars/Base", 422, wire.CodeDelayInvalid, "no time zone"},
		{"at=2026-12-01T09:01&tz=Local", 422, wire.CodeDelayInvalid, "name the zone"},
		{"after=1s&tz=Asia/Shanghai", 422, wire.CodeDelayInvalid, "without an instant"},
		{"after=1s&level=1", 422, wire.CodeDelayConflict, "after and level are given; give one"},
		{"after=0s&level=0", 422, wire.CodeDelayConflict, "after and level are given"},
		{"after=1s&at=2026-12-01T09:01Z&level=1", 422, wire.CodeDelayConflict, "after and at and level"},
		{"after=366d", 422, wire.CodeDelayTooLong, "limit 8760h0m0s"},
		{"after=99999w", 422, wire.CodeDelayTooLong, "limit 8760h0m0s"},
		{"at=2027-12-02T09:00Z", 422, wire.CodeDelayTooLong, "limit 8760h0m0s"},
		{"at=9999-12-31T23:59:59Z", 422, wire.CodeDelayTooLong, "limit 8760h0m0s"},
		{"after=", 400, wire.CodeBadRequest, "after is empty"},
	} {
		p := d.do("POST", "/v1/topics/orders/messages?"+c.query, "x").refused(c.status, c.code, c.detail)
		if c.code == wire.CodeDelayTooLong && p.MaxDelay != wire.Duration(365*24*time.Hour) {
			t.Errorf("%s: maxDelay %v", c.query, p.MaxDelay)
		}
	}
	d.do("POST", "/v1/topics/orders/messages?after=1s", "x", "Duemq-Level", "1").refused(422, wire.CodeDelayConflict, "after and level")
	var n wire.Count
	d.do("GET", "/v1/pending/count", "").want(200, &n)
	if n.Count != 0 {
		t.Errorf("%d messages wait after refusals", n.Count)
	}
}

func TestLongestDelay(t *testing.T) {
	d := newDoor(t)
	if got := d.publish("orders", "after=365d", "x"); got.DeliverAt != wire.TimeOf(testStart.Add(365*24*time.Hour)) {
		t.Errorf("due %v", got.DeliverAt)
	}
	d.publish("orders", "at=2027-12-01T09:00Z", "x")
	d.do("POST", "/v1/topics/orders/messages?after=8760h1ms", "x").refused(422, wire.CodeDelayTooLong, "31536000000 ms")
}

// TestZeroNegativePast is case G3: at once, no handle.
func TestZeroNegativePast(t *testing.T) {
	d := newDoor(t)
	for i, q := range []string{"level=0", "level=-1", "after=0s", "after=-5s", "at=2026-12-01T08:59:59Z", "at=1970-01-01T00:00:00.001Z"} {
		got := d.publish("orders", q, q)
		if got.State != wire.StateReady || got.Handle != "" || *got.Offset != uint64(i) {
			t.Errorf("%s: %+v", q, got)
		}
	}
	if ms := d.receive("g"); len(ms) != 6 {
		t.Errorf("%d received, want 6", len(ms))
	}
}

// TestLevelsClamp is case G2: a level above the table is its last one.
func TestLevelsClamp(t *testing.T) {
	d := setup{engine: func(o *engine.Options) {
		o.Levels = []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}
	}}.open(t)
	for _, l := range []int{3, 4, 18, math.MaxInt32} {
		got := d.publish("orders", fmt.Sprintf("level=%d", l), strconv.Itoa(l))
		if got.DeliverAt != wire.TimeOf(testStart.Add(3*time.Second)) {
			t.Errorf("level %d: due %v", l, got.DeliverAt)
		}
	}
	d.after(3*time.Second - time.Millisecond)
	if ms := d.receive("g"); len(ms) != 0 {
		t.Errorf("early: %+v", ms)
	}
	d.after(time.Millisecond)
	if got := bodies(d.receive("g")); got != "3 4 18 2147483647" {
		t.Errorf("received %q", got)
	}
}

// TestLevels is case G1: each of the 18 levels at its table delay, none twice,
// and each shown as queue level-1 of SCHEDULE_TOPIC_XXXX.
func TestLevels(t *testing.T) {
	d := newDoor(t)
	table := engine.DefaultLevels()
	for l := range table {
		got := d.publish("orders", fmt.Sprintf("level=%d", l+1), strconv.Itoa(l+1))
		if got.DeliverAt != wire.TimeOf(testStart.Add(table[l])) {
			t.Errorf("level %d: due %v", l+1, got.DeliverAt)
		}
	}
	check := func(delivered int) {
		t.Helper()
		var s wire.Stats
		d.do("GET", "/v1/stats", "").want(200, &s)
		if s.Schedule.Topic != "SCHEDULE_TOPIC_XXXX" || len(s.Schedule.Queues) != 18 {
			t.Fatalf("schedule %+v", s.Schedule)
		}
		for i, q := range s.Schedule.Queues {
			done := uint64(0)
			if i < delivered {
				done = 1
			}
			want := wire.LevelStats{Queue: i, Level: i + 1, Delay: wire.Duration(table[i]), LevelCount: wire.LevelCount{Waiting: int64(1 - done), DeliveredOffset: done, TotalOffset: 1}}
			if q != want {
				t.Errorf("after %d: queue %+v, want %+v", delivered, q, want)
			}
		}
		if s.Messages.Waiting != int64(18-delivered) || s.Messages.Visible != uint64(delivered) || s.Wakeups.Fruitless != 0 {
			t.Errorf("after %d: %+v, %+v", delivered, s.Messages, s.Wakeups)
		}
	}
	check(0)
	last := time.Duration(0)
	for l, delay := range table {
		d.after(delay - last - time.Millisecond)
		if ms := d.receive("g"); len(ms) != 0 {
			t.Fatalf("level %d: 1 ms before: %+v", l+1, ms)
		}
		d.after(time.Millisecond)
		last = delay
		ms := d.receive("g")
		if len(ms) != 1 || ms[0].Text != strconv.Itoa(l+1) || *ms[0].LatenessMs != 0 {
			t.Fatalf("level %d: received %+v", l+1, ms)
		}
		d.do("POST", "/v1/leases/"+ms[0].Lease+"/ack", "").want(http.StatusNoContent, nil)
		check(l + 1)
	}
	d.after(24 * time.Hour)
	if ms := d.receive("g"); len(ms) != 0 {
		t.Errorf("a day later: %+v", ms)
	}
}

func TestPublishRefused(t *testing.T) {
	d := newDoor(t)
	const to = "/v1/topics/orders/messages"
	d.do("POST", to+"?aftr=10s", "x").refused(400, wire.CodeUnknownParameter, `"aftr": did you mean after?`)
	d.do("POST", to+"?delay=10s", "x").refused(400, wire.CodeUnknownParameter, "taken are after, at, tz, level, key, tag, queue, transaction, property.*")
	d.do("POST", to+"?property.=x", "x").refused(400, wire.CodeUnknownParameter, "property.")
	d.do("POST", to+"?after=1s&after=2s", "x").refused(400, wire.CodeBadRequest, "given 2 times")
	d.do("POST", to+"?key=%ff", "x").refused(400, wire.CodeBadRequest, "not UTF-8")
	d.do("POST", to+"?key=%zz", "x").refused(400, wire.CodeBadRequest, "query")
	d.do("POST", to+"?key=a;tag=b", "x").refused(400, wire.CodeBadRequest, "semicolon")
	d.do("POST", to+"?queue=one", "x").refused(400, wire.CodeBadRequest, `queue "one"`)
	d.do("POST", to+"?queue=1", "x").refused(400, wire.CodeInvalidValue, "queues 0 to 0")
	d.do("POST", to, "x", "Duemq-Delay", "10s").refused(400, wire.CodeBadRequest, "unknown header Duemq-Delay")
	d.do("POST", to, "x", "Duemq-Aftr", "10s").refused(400, wire.CodeBadRequest, "did you mean Duemq-After?")
	d.do("POST", to, "x", "Duemq-Key", "a", "Duemq-Key", "b").refused(400, wire.CodeBadRequest, "given 2 times")
	d.do("POST", to+"?key=a", "x", "Duemq-Key", "b").refused(400, wire.CodeBadRequest, "by query and by header")
	d.do("POST", to+"?property.a=1", "x", "Duemq-Property-A", "2").refused(400, wire.CodeBadRequest, "by query and by header")
	d.do("POST", to, "x", "Duemq-Key", "\xff").refused(400, wire.CodeBadRequest, "not UTF-8")
	d.do("POST", to+"?property.TIMER_DELIVER_MS=1", "x").refused(403, wire.CodeForbidden, "RocketMQ's own; give at instead")
	d.do("POST", to+"?tag=a||b", "x").refused(400, wire.CodeInvalidValue, "||")
	d.do("POST", to+"?property.a=%01", "x").refused(400, wire.CodeInvalidValue, "control character")
	d.do("POST", "/v1/topics/SCHEDULE_TOPIC_XXXX/messages", "x").refused(403, wire.CodeForbidden, "belongs to the broker")
	d.do("POST", "/v1/topics/%25RETRY%25g/messages", "x").refused(403, wire.CodeForbidden, "%RETRY%g")
	d.do("POST", "/v1/topics/two%20words/messages", "x").refused(400, wire.CodeInvalidValue, "two words")
	d.do("POST", "/v1/topics/"+strings.Repeat("x", 128)+"/messages", "x").refused(400, wire.CodeInvalidValue, "limit 127")
	d.do("POST", to+"?property.big="+strings.Repeat("x", 40<<10), "x").refused(413, wire.CodeTooLarge, "limit 32768")
}

func TestBodySizes(t *testing.T) {
	d := newDoor(t)
	const limit = 4 << 20
	full := strings.Repeat("\xff", limit) // no text, which would be slow under the race detector
	d.publish("orders", "", full)
	d.do("POST", "/v1/topics/orders/messages", full+"x").refused(413, wire.CodeTooLarge, "4194304")
	var got wire.Receipt
	d.chunked("/v1/topics/orders/messages", full).want(201, &got)
	d.chunked("/v1/topics/orders/messages", full+"x").refused(413, wire.CodeTooLarge, "4194304")
	d.chunked("/v1/topics/orders/messages", "").want(201, &got)
	var sizes []int
	for _, m := range d.receive("g") {
		sizes = append(sizes, len(m.Body))
	}
	if fmt.Sprint(sizes) != "[4194304 4194304 0]" {
		t.Errorf("received %v", sizes)
	}
	d.do("POST", "/v1/topics/orders/receive", strings.Repeat(" ", maxBody+1)).refused(413, wire.CodeTooLarge, "1048576")
	d.do("POST", "/v1/batch", strings.Repeat(" ", maxBatchBody+1)).refused(413, wire.CodeTooLarge, "16777216")
}

// TestBodyNotText: bytes that are no UTF-8 come back in base64 only.
func TestBodyNotText(t *testing.T) {
	d := newDoor(t)
	d.publish("orders", "", "\xff\x00\xfe")
	r := d.do("POST", "/v1/topics/orders/receive", `{"group":"g"}`).want(200, nil)
	if want := `"body":"` + base64.StdEncoding.EncodeToString([]byte("\xff\x00\xfe")) + `"`; !strings.Contains(r.body, want) || strings.Contains(r.body, `"text"`) {
		t.Errorf("received %s", r.body)
	}
}
