package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/httpapi"
	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

var testStart = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// serve gives a client of a server on a fake clock, and how to move it.
func serve(t *testing.T) (*client.Client, func(time.Duration)) {
	t.Helper()
	c := clock.NewFake(testStart)
	b, err := broker.Open(t.Context(), broker.Options{Queues: 1, Engine: engine.Options{
		FS: fs.NewMem(), Dir: "data", Clock: c, Rand: strings.NewReader(strings.Repeat("duemq test store", 4)),
		SegmentBytes: 16 << 20, CacheBytes: 1 << 20,
	}})
	if err != nil {
		t.Fatal(err)
	}
	h := httpapi.New(b, httpapi.Options{Version: "1.2.3"})
	srv := httptest.NewServer(h)
	cl, err := client.New(srv.URL+"/", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cl.Close()
		h.Drain()
		srv.Close()
		_ = b.Close()
	})
	return cl, func(d time.Duration) {
		t.Helper()
		c.Advance(d)
		if err := b.Settle(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func code(t *testing.T, err error, want wire.Code, detail string) {
	t.Helper()
	if client.CodeOf(err) != want || !strings.Contains(err.Error(), detail) {
		t.Errorf("error %v with code %q, want %q and %q", err, client.CodeOf(err), want, detail)
	}
}

// TestEverythingTravels: each field of a message arrives as it was sent, awkward
// ones too.
func TestEverythingTravels(t *testing.T) {
	c, after := serve(t)
	queue := 0
	sends := []wire.Send{
		{Topic: "orders", Body: []byte("\x00\xff\n"), Key: "k & k=1+1", Tag: "a%20b", Queue: &queue, Headers: map[string]string{"userId": "ü ; &", "A": "1", "a": "2", "empty": ""}},
		{Topic: "%RETRY_not|quite-", Text: "héllo"},
		{Topic: "orders", Body: bytes.Repeat([]byte("\xff"), 1<<20)},
		{Topic: "orders"},
	}
	check := func(s *wire.Send, m *wire.Message) {
		t.Helper()
		body := s.Body
		if s.Text != "" {
			body = []byte(s.Text)
		}
		if m.Topic != s.Topic || !bytes.Equal(m.Body, body) || m.Key != s.Key || m.Tag != s.Tag || len(m.Headers) != len(s.Headers) {
			t.Errorf("sent %.200v, got %.200v", s, m)
		}
		for name, v := range s.Headers {
			if got, ok := m.Headers[name]; !ok || got != v {
				t.Errorf("header %q: %q, want %q", name, got, v)
			}
		}
	}
	for i := range sends {
		r := must[wire.Receipt](t)(c.Publish(t.Context(), sends[i]))
		m := must[wire.Message](t)(c.Message(t.Context(), r.ID))
		if check(&sends[i], &m); m.State != wire.StateReady || r.Offset == nil || *r.Offset != *m.Offset {
			t.Errorf("receipt %+v, message %.300v", r, m)
		}
	}
	reply := must[wire.BatchReply](t)(c.Batch(t.Context(), sends))
	if reply.Accepted != len(sends) {
		t.Fatalf("batch %+v", reply)
	}
	for i := range sends {
		m := must[wire.Message](t)(c.Message(t.Context(), reply.Results[i].Receipt.ID))
		check(&sends[i], &m)
	}
	after(time.Second)
}

func TestRoundTrip(t *testing.T) {
	c, after := serve(t)
	ctx := t.Context()
	for name, s := range map[string]wire.Send{
		"after": {After: "10s"}, "at": {At: "2026-12-01T17:00:10+08:00"}, "zone": {At: "2026-12-01 17:00:10", Zone: "Asia/Shanghai"},
		"level": {Level: "3"}, "level's delay": {Level: "10s"},
	} {
		s.Topic, s.Text = "orders", name
		r := must[wire.Receipt](t)(c.Publish(ctx, s))
		if r.DeliverAt != wire.TimeOf(testStart.Add(10*time.Second)) || r.State != wire.StateWaiting || r.Handle == "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if n := must[int64](t)(c.Count(ctx, wire.PendingQuery{Topic: "orders", Limit: 3, Cursor: "not read"})); n != 5 {
		t.Errorf("%d wait, want 5", n)
	}
	after(10 * time.Second)
	ms := must[[]wire.Message](t)(c.Receive(ctx, "orders", wire.Receive{Group: "g", Max: 10, Invisible: wire.Duration(time.Minute)}))
	if len(ms) != 5 {
		t.Fatalf("received %+v", ms)
	}
	if err := c.Ack(ctx, ms[0].Lease); err != nil {
		t.Error(err)
	}
	all := must[wire.AckAllReply](t)(c.AckAll(ctx, []string{ms[1].Lease, "nonsense"}))
	if all.Acked != 1 || all.Refused != 1 || all.Results[1].Problem.Code != wire.CodeInvalidValue {
		t.Errorf("ack of many %+v", all)
	}
	if err := c.Nack(ctx, ms[2].Lease, 5*time.Second); err != nil {
		t.Error(err)
	}
	if err := c.Extend(ctx, ms[3].Lease, time.Hour); err != nil {
		t.Error(err)
	}
	after(5 * time.Second)
	again := must[[]wire.Message](t)(c.Receive(ctx, "orders", wire.Receive{Group: "g", Max: 10}))
	if len(again) != 1 || again[0].ID != ms[2].ID || again[0].Attempt != 2 {
		t.Errorf("after nack: %+v", again)
	}
	code(t, c.Ack(ctx, ms[2].Lease), wire.CodeLeaseLost, "another receiver")
	if ms := must[[]wire.Message](t)(c.Receive(ctx, "orders", wire.Receive{Group: "g"})); len(ms) != 0 {
		t.Errorf("received %+v", ms)
	}
}

func TestSteering(t *testing.T) {
	c, after := serve(t)
	ctx := t.Context()
	r := must[wire.Receipt](t)(c.Publish(ctx, wire.Send{Topic: "orders", After: "1h", Tag: "t"}))
	a := must[wire.Answer](t)(c.Reschedule(ctx, r.Handle, wire.Reschedule{By: "-30m"}))
	if a.DeliverAt != wire.TimeOf(testStart.Add(30*time.Minute)) {
		t.Errorf("answer %+v", a)
	}
	other := must[wire.Receipt](t)(c.Publish(ctx, wire.Send{Topic: "orders", After: "2h"}))
	q := wire.PendingQuery{Topic: "orders", Limit: 1}
	p := must[wire.Page](t)(c.Pending(ctx, q))
	if len(p.Messages) != 1 || p.Messages[0].ID != r.ID || p.Cursor == "" {
		t.Fatalf("page %+v", p)
	}
	q.Cursor = p.Cursor
	if p = must[wire.Page](t)(c.Pending(ctx, q)); len(p.Messages) != 1 || p.Messages[0].ID != other.ID {
		t.Errorf("page %+v", p)
	}
	for _, c2 := range []struct {
		q    wire.PendingQuery
		want int64
	}{
		{wire.PendingQuery{}, 2},
		{wire.PendingQuery{Tag: "t"}, 1},
		{wire.PendingQuery{Within: wire.Duration(time.Hour)}, 1},
		{wire.PendingQuery{From: wire.TimeOf(testStart.Add(time.Hour))}, 1},
		{wire.PendingQuery{From: wire.TimeOf(testStart), To: wire.TimeOf(testStart.Add(2 * time.Hour))}, 1},
	} {
		if n := must[int64](t)(c.Count(ctx, c2.q)); n != c2.want {
			t.Errorf("%+v: %d, want %d", c2.q, n, c2.want)
		}
	}
	must[wire.Answer](t)(c.DeliverNow(ctx, r.ID))
	if a := must[wire.Answer](t)(c.Cancel(ctx, other.ID)); a.State != wire.StateCancelled {
		t.Errorf("answer %+v", a)
	}
	after(0)
	_, err := c.Cancel(ctx, r.ID)
	code(t, err, wire.CodeAlreadyDelivered, "2026-12-01T09:00:00.000Z")
	_, err = c.Cancel(ctx, other.ID)
	code(t, err, wire.CodeAlreadyCancelled, other.ID)
	_, err = c.Message(ctx, "ffffffffffffffff")
	code(t, err, wire.CodeMessageUnknown, "")
	_, err = c.Publish(ctx, wire.Send{Topic: "orders", After: "366d"})
	code(t, err, wire.CodeDelayTooLong, "8760h")
	if e := (*client.Error)(nil); !errors.As(err, &e) || e.MaxDelay != wire.Duration(365*24*time.Hour) || e.Status != 422 {
		t.Errorf("error %+v", e)
	}
	_, err = c.Publish(ctx, wire.Send{Topic: "orders", Text: "a", Body: []byte("b")})
	code(t, err, wire.CodeBadRequest, "both body and text")
	for _, name := range []string{"", ".", ".."} {
		_, err = c.Publish(ctx, wire.Send{Topic: name})
		code(t, err, wire.CodeInvalidValue, "")
		_, err = c.Message(ctx, name)
		code(t, err, wire.CodeInvalidValue, "")
	}
}

func TestAboutTheServer(t *testing.T) {
	c, _ := serve(t)
	ctx := t.Context()
	if v := must[wire.Version](t)(c.Version(ctx)); v.Version != "1.2.3" {
		t.Errorf("version %+v", v)
	}
	if err := c.Ready(ctx); err != nil {
		t.Error(err)
	}
	must[wire.Receipt](t)(c.Publish(ctx, wire.Send{Topic: "orders", After: "1h"}))
	s := must[wire.Stats](t)(c.Stats(ctx))
	if s.Name != "broker-a" || s.Messages.Waiting != 1 || s.Messages.NextDue != wire.TimeOf(testStart.Add(time.Hour)) || s.Schedule.AnyTime.Waiting != 1 ||
		!s.Recovery.New || s.Log.Batches == 0 || s.Clock.Now != wire.TimeOf(testStart) {
		t.Errorf("stats %+v", s)
	}
	if k := must[wire.Clock](t)(c.AcceptClock(ctx)); k.Suspect || k.Now != wire.TimeOf(testStart) {
		t.Errorf("clock %+v", k)
	}
}

func TestBadServers(t *testing.T) {
	for _, url := range []string{"", "127.0.0.1:9870", "ftp://127.0.0.1", "http://", "http://a/?q=1", "http://a/#f", "://"} {
		if _, err := client.New(url, client.Options{}); err == nil || !strings.Contains(err.Error(), "http://127.0.0.1:9870") {
			t.Errorf("%q: %v", url, err)
		}
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	c := must[*client.Client](t)(client.New("http://"+l.Addr().String(), client.Options{}))
	if _, err := c.Stats(t.Context()); !errors.Is(err, client.ErrUnavailable) || !strings.Contains(err.Error(), l.Addr().String()) || client.CodeOf(err) != "" {
		t.Errorf("nobody there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Stats(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
}

// TestCredentials: a token goes with each request; a password in a URL, which
// errors would show, is refused without being shown.
func TestCredentials(t *testing.T) {
	if _, err := client.New("http://user:secret@127.0.0.1", client.Options{}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("password in the URL: %v", err)
	}
	for token, want := range map[string][]string{"": nil, "abc": {"Bearer abc"}} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header["Authorization"]; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("token %q: Authorization %q, want %q", token, got, want)
			}
			w.WriteHeader(http.StatusNoContent)
		}))
		c := must[*client.Client](t)(client.New(srv.URL, client.Options{Token: token}))
		if err := c.Ack(t.Context(), "lease"); err != nil {
			t.Error(err)
		}
		c.Close()
		srv.Close()
	}
}

// TestRedirectsAreNotFollowed: a POST would become a GET, and a token would go
// where nobody has meant it to go.
func TestRedirectsAreNotFollowed(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer srv.Close()
	c := must[*client.Client](t)(client.New(srv.URL, client.Options{}))
	defer c.Close()
	if _, err := c.Publish(t.Context(), wire.Send{Topic: "orders"}); err == nil || !strings.Contains(err.Error(), "302 Found, to /elsewhere") || asked != 1 {
		t.Errorf("%v after %d requests", err, asked)
	}
}

// TestBytesOfRequests: a lease that is to end at once says so, since the server
// takes nothing for its default; what is given back is one request.
func TestBytesOfRequests(t *testing.T) {
	var got string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = r.Method + " " + r.URL.Path + " " + string(body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer srv.Close()
	c := must[*client.Client](t)(client.New(srv.URL, client.Options{}))
	defer c.Close()
	ctx := t.Context()
	for want, call := range map[string]func() error{
		`POST /v1/leases/l/extend {"invisible":"0s"}`:   func() error { return c.Extend(ctx, "l", 0) },
		`POST /v1/leases/l/extend {"invisible":"1m0s"}`: func() error { return c.Extend(ctx, "l", time.Minute) },
		`POST /v1/leases/l/nack {"delay":"0s"}`:         func() error { return c.Nack(ctx, "l", 0) },
		`POST /v1/leases/return {"leases":["l1","l2"]}`: func() error { return c.Return(ctx, []string{"l1", "l2"}) },
		`GET /healthz `: func() error { return c.Health(ctx) },
	} {
		if err := call(); err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
}

// TestUnsent: no connection, no request.
func TestUnsent(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	c := must[*client.Client](t)(client.New(srv.URL, client.Options{}))
	defer c.Close()
	for _, there := range []bool{true, false} {
		if !there {
			srv.Close()
		}
		if err := c.Ready(t.Context()); !errors.Is(err, client.ErrUnavailable) || client.Unsent(err) == there || client.Answered(err) {
			t.Errorf("server there %v: %v, unsent %v", there, err, client.Unsent(err))
		}
	}
}

// TestOtherServers: what answers is not always ours.
func TestOtherServers(t *testing.T) {
	for body, want := range map[string]string{
		"502 text/html <html>":                 "answered 502 Bad Gateway",
		"503 application/problem+json no json": "answered 503",
		"200 text/html <html>":                 "not from a DueMQ server",
		"404 application/problem+json {\"status\":404,\"code\":\"topic_unknown\",\"detail\":\"gone\"}": "gone",
		"404 application/problem+json {\"status\":404}":                                                "404 Not Found",
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var status int
			var kind string
			fmt.Sscan(body, &status, &kind)
			if r.UserAgent() != "test" {
				t.Errorf("User-Agent %q", r.UserAgent())
			}
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			fmt.Fprint(w, strings.SplitN(body, " ", 3)[2])
		}))
		c := must[*client.Client](t)(client.New(srv.URL, client.Options{HTTP: srv.Client(), UserAgent: "test"}))
		if _, err := c.Stats(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
		c.Close()
		srv.Close()
	}
}
