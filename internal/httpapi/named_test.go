package httpapi

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// TestPut: a message under a name takes the place of the one that waits under
// it, and of none that was delivered.
func TestPut(t *testing.T) {
	d := newDoor(t)
	const to = "/v1/topics/orders/messages/user-7"
	var first, second, third wire.Receipt
	r := d.do("PUT", to+"?after=10s&key=k", "one").want(201, &first)
	if first.State != wire.StateWaiting || first.Replaced != "" || r.header.Get("Location") != to {
		t.Errorf("%+v at %s", first, r.header.Get("Location"))
	}
	r = d.do("PUT", to+"?after=20s", "two").want(200, &second)
	if second.Replaced != first.ID || second.ID == first.ID || r.header.Get("Location") != to {
		t.Errorf("second %+v, first %+v", second, first)
	}
	var m wire.Message
	d.do("GET", "/v1/messages/"+first.ID, "").want(200, &m)
	if m.State != wire.StateCancelled {
		t.Errorf("the first one: %+v", m)
	}
	d.do("GET", to, "").want(200, &m)
	if m.ID != second.ID || m.Text != "two" || m.State != wire.StateWaiting {
		t.Errorf("by name: %+v", m)
	}
	d.after(20 * time.Second)
	if got := bodies(d.receive("g")); got != "two" {
		t.Errorf("received %q", got)
	}
	d.do("PUT", to+"?after=1h", "three").want(201, &third)
	var a wire.Answer
	d.do("DELETE", to, "").want(200, &a)
	if a.ID != third.ID || a.State != wire.StateCancelled || a.Topic != "orders" {
		t.Errorf("cancelled %+v", a)
	}
	d.do("PUT", to+"?after=1h", "four").want(201, nil)
	d.do("DELETE", "/v1/topics/orders/messages/nobody", "").refused(404, wire.CodeMessageUnknown, "nobody")
	d.do("GET", "/v1/topics/nowhere/messages/x", "").refused(404, wire.CodeTopicUnknown, "nowhere")
	d.do("PUT", "/v1/topics/orders/messages/"+strings.Repeat("x", 257), "").refused(400, wire.CodeInvalidValue, "limit 256")
}

// TestNames: a name is any text, and one segment of a path.
func TestNames(t *testing.T) {
	d := newDoor(t)
	for i, name := range []string{"a/b", "..", ".", "%", "é ü", "a?b#c", "+", "%2F", "messages", strings.Repeat("ü", 128)} {
		to := "/v1/topics/orders/messages/" + segment(name)
		var sent wire.Receipt
		r := d.do("PUT", to+"?after=1h", strconv.Itoa(i)).want(201, &sent)
		var m wire.Message
		for _, at := range []string{to, r.header.Get("Location")} {
			d.do("GET", at, "").want(200, &m)
			if m.ID != sent.ID || m.Text != strconv.Itoa(i) {
				t.Errorf("%q at %s: %+v", name, at, m)
			}
		}
	}
}

// TestIdempotencyKey: what is sent again is answered as before, and sent once.
func TestIdempotencyKey(t *testing.T) {
	d := newDoor(t)
	const to = "/v1/topics/orders/messages?after=10s"
	send := func(body, key string) *reply { return d.do("POST", to, body, "Idempotency-Key", key) }
	var first, again wire.Receipt
	if r := send("hello", "order-42").want(201, &first); r.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("headers %v", r.header)
	}
	for _, key := range []string{"order-42", `"order-42"`} {
		r := send("hello", key).want(201, &again)
		if again != first || r.header.Get("Idempotency-Replayed") != "true" || r.header.Get("Location") != "/v1/messages/"+first.ID {
			t.Errorf("%s: %+v, first %+v, headers %v", key, again, first, r.header)
		}
	}
	send("other", "order-42").refused(422, wire.CodeMismatch, first.ID)
	send("hello", `"order \"42\" \\"`).want(201, &again)
	if again.ID == first.ID {
		t.Error("another key, the same message")
	}
	send("hello", `order "42" \`).want(201, &again)
	for key, want := range map[string]string{"": "is empty", `""`: "is empty", "\xff": "not UTF-8"} {
		send("hello", key).refused(400, wire.CodeBadRequest, want)
	}
	d.do("POST", to, "x", "Idempotency-Key", "a", "Idempotency-Key", "b").refused(400, wire.CodeBadRequest, "2 times")
	send("x", strings.Repeat("k", 257)).refused(400, wire.CodeInvalidValue, "limit 256")
	d.after(10 * time.Second)
	if got := bodies(d.receive("g")); got != "hello hello" {
		t.Errorf("received %q", got)
	}
	d.do("PUT", "/v1/topics/orders/messages/n?after=1h", "x", "Idempotency-Key", "put").want(201, &first)
	r := d.do("PUT", "/v1/topics/orders/messages/n?after=1h", "x", "Idempotency-Key", "put").want(201, &again)
	if again.ID != first.ID || r.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("put again: %+v, first %+v", again, first)
	}
}

// TestTermsOfBatch: the messages of a batch have keys, names and transactions of
// their own.
func TestTermsOfBatch(t *testing.T) {
	d := newDoor(t)
	const batch = `{"messages":[
		{"topic":"orders","text":"a","idempotencyKey":"k","deliverAfter":"1h"},{"topic":"orders","text":"a","idempotencyKey":"k","deliverAfter":"1h"},
		{"topic":"orders","text":"b","idempotencyKey":"k","deliverAfter":"1h"},
		{"topic":"orders","text":"c","name":"n","deliverAfter":"1h"},{"topic":"orders","text":"d","name":"n","deliverAfter":"1h"},
		{"topic":"orders","text":"e","transaction":"shop"}]}`
	var got wire.BatchReply
	d.do("POST", "/v1/batch", batch).want(200, &got)
	rs := got.Results
	if got.Accepted != 5 || got.Refused != 1 || rs[0].Replayed || !rs[1].Replayed || rs[1].Receipt.ID != rs[0].Receipt.ID {
		t.Errorf("%+v", got)
	}
	if p := rs[2].Problem; p == nil || p.Code != wire.CodeMismatch {
		t.Errorf("other content: %+v", rs[2])
	}
	if rs[4].Receipt.Replaced != rs[3].Receipt.ID || rs[5].Receipt.State != wire.StateHalf {
		t.Errorf("names and halves: %+v", got)
	}
	d.do("POST", "/v1/batch", batch, "Idempotency-Key", "k").refused(http.StatusBadRequest, wire.CodeBadRequest, "give each message its idempotencyKey")
}

// TestPutOptions: a message under a name takes all that another takes.
func TestPutOptions(t *testing.T) {
	d := newDoor(t)
	const to = "/v1/topics/orders/messages/"
	for i, tt := range []struct {
		query   string
		headers []string
	}{
		{"at=2026-12-01T17:00:10&tz=Asia/Shanghai&queue=0&tag=t&property.a=b", nil},
		{"", []string{"Duemq-At", "2026-12-01T17:00:10", "Duemq-Tz", "Asia/Shanghai", "Duemq-Queue", "0", "Duemq-Tag", "t", "Duemq-Property-A", "b", "Duemq-Key", "k"}},
		{"level=3", nil},
		{"", []string{"Duemq-Level", "3"}},
		{"", []string{"Duemq-After", "10s"}},
	} {
		var got wire.Receipt
		d.do("PUT", fmt.Sprint(to, i, "?", tt.query), "x", tt.headers...).want(201, &got)
		if got.DeliverAt.String() != "2026-12-01T09:00:10.000Z" {
			t.Errorf("%s %v: %+v", tt.query, tt.headers, got)
		}
		var m wire.Message
		if d.do("GET", fmt.Sprint(to, i), "").want(200, &m); i < 2 && (m.Tag != "t" || m.Headers["a"] != "b") {
			t.Errorf("%s %v: %+v", tt.query, tt.headers, m)
		}
	}
	for i, r := range []*reply{
		d.do("PUT", to+"half?transaction=shop", "x"), d.do("PUT", to+"half2", "x", "Duemq-Transaction", "shop"),
		d.do("POST", "/v1/topics/orders/messages", "x", "Duemq-Transaction", "shop"),
	} {
		var got wire.Receipt
		if r.want(201, &got); got.State != wire.StateHalf {
			t.Errorf("%d: %+v", i, got)
		}
	}
}
