package httpapi

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// testStart is the wall clock at which tests begin.
var testStart = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// A door is a broker on a disk in memory with a fake clock, behind a real
// socket.
type door struct {
	t     testing.TB
	clock *clock.Fake
	disk  fs.FS
	b     *broker.Broker
	h     *Handler
	url   string
}

type setup struct {
	engine  func(*engine.Options)
	options Options
}

func newDoor(t testing.TB) *door { return setup{}.open(t) }

func (s setup) open(t testing.TB) *door {
	t.Helper()
	c := clock.NewFake(testStart)
	disk := fs.NewMem()
	o := engine.Options{
		FS: disk, Dir: "data", Clock: c, Rand: strings.NewReader(strings.Repeat("duemq test store", 4)),
		SegmentBytes: 16 << 20, CacheBytes: 1 << 20,
	}
	if s.engine != nil {
		s.engine(&o)
	}
	b, err := broker.Open(t.Context(), broker.Options{Queues: 1, Engine: o})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	d := &door{t: t, clock: c, disk: disk, b: b, h: New(b, s.options)}
	srv := httptest.NewServer(d.h)
	d.url = srv.URL
	t.Cleanup(func() {
		d.h.Drain()
		srv.Close()
		_ = b.Close()
	})
	return d
}

// after moves the clock and waits until what is due is visible.
func (d *door) after(by time.Duration) {
	d.t.Helper()
	d.clock.Advance(by)
	if err := d.b.Settle(d.t.Context()); err != nil {
		d.t.Fatalf("settle: %v", err)
	}
}

// A reply is what came back.
type reply struct {
	t      testing.TB
	what   string
	status int
	header http.Header
	body   string
}

// do sends a request; headers are name, value and so on.
func (d *door) do(method, path, body string, headers ...string) *reply {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	return d.send(r, body)
}

// send sends a request, and holds it and its answer against openapi.json.
func (d *door) send(r *http.Request, body string) *reply {
	d.t.Helper()
	what := r.Method + " " + r.URL.RequestURI()
	w, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		d.t.Fatalf("%s: %v", what, err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		d.t.Fatalf("%s: %v", what, err)
	}
	got := &reply{d.t, what, w.StatusCode, w.Header, string(text)}
	_, pattern := d.h.mux.Handler(r)
	if err := contract().check(&dialogue{pattern, r, body, got}); err != nil {
		d.t.Errorf("%s: openapi.json and the handlers differ: %v", what, err)
	}
	return got
}

// want checks the status and reads the JSON, unless into is nil.
func (r *reply) want(status int, into any) *reply {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("%s: status %d, want %d: %s", r.what, r.status, status, r.body)
	}
	if into == nil {
		return r
	}
	if kind := r.header.Get("Content-Type"); kind != "application/json" {
		r.t.Errorf("%s: Content-Type %q", r.what, kind)
	}
	reflect.ValueOf(into).Elem().SetZero() // what was read before is no part of it
	if err := json.Unmarshal([]byte(r.body), into); err != nil {
		r.t.Fatalf("%s: %v in %s", r.what, err, r.body)
	}
	return r
}

// refused checks that the answer is a problem with that code and that text in
// its detail.
func (r *reply) refused(status int, code wire.Code, detail string) wire.Problem {
	r.t.Helper()
	var p wire.Problem
	if err := json.Unmarshal([]byte(r.body), &p); err != nil {
		r.t.Fatalf("%s: status %d: no problem: %s", r.what, r.status, r.body)
	}
	if r.status != status || p.Status != status || p.Code != code || !strings.Contains(p.Detail, detail) {
		r.t.Fatalf("%s: status %d, %s\nwant %d %s with %q in the detail", r.what, r.status, r.body, status, code, detail)
	}
	if kind := r.header.Get("Content-Type"); kind != wire.ProblemType {
		r.t.Errorf("%s: Content-Type %q", r.what, kind)
	}
	if got := r.header.Get("Retry-After") != ""; got != p.Retryable {
		r.t.Errorf("%s: Retry-After %v, retryable %v", r.what, got, p.Retryable)
	}
	if p.Type != "urn:duemq:error:"+string(code) || p.Title == "" {
		r.t.Errorf("%s: type %q, title %q", r.what, p.Type, p.Title)
	}
	return p
}

// publish sends a message that must be accepted.
func (d *door) publish(topic, query, body string) wire.Receipt {
	d.t.Helper()
	var got wire.Receipt
	d.do("POST", "/v1/topics/"+topic+"/messages?"+query, body).want(http.StatusCreated, &got)
	return got
}

// receive gets what is there of the topic orders.
func (d *door) receive(group string) []wire.Message {
	d.t.Helper()
	var got wire.ReceiveReply
	d.do("POST", "/v1/topics/orders/receive", `{"group":"`+group+`","max":1000}`).want(http.StatusOK, &got)
	return got.Messages
}

// bodies gives the texts of messages.
func bodies(ms []wire.Message) string {
	var texts []string
	for _, m := range ms {
		texts = append(texts, m.Text)
	}
	return strings.Join(texts, " ")
}

// chunked posts a body without saying its length beforehand.
func (d *door) chunked(path, body string) *reply {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, d.url+path, bufio.NewReader(strings.NewReader(body)))
	if err != nil {
		d.t.Fatal(err)
	}
	return d.send(r, body)
}
