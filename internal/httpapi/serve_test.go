package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// serving runs Serve on a listener of its own; stop begins the orderly stop.
func (d *door) serving() (addr string, stop func(), ended <-chan error) {
	d.t.Helper()
	l, err := new(net.ListenConfig).Listen(d.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.t.Cleanup(cancel)
	done := make(chan error, 1)
	go func() { done <- d.h.Serve(ctx, l) }()
	d.url = "http://" + l.Addr().String()
	return l.Addr().String(), cancel, done
}

// TestServeStops in order: a waiting receive is answered, a request that is
// being read ends well, and no new connection is taken.
func TestServeStops(t *testing.T) {
	d := newDoor(t)
	addr, stop, ended := d.serving()
	d.do("GET", "/readyz", "").want(200, nil)
	poll := make(chan *reply, 1)
	go func() { poll <- d.do("POST", "/v1/topics/orders/receive", `{"group":"g","wait":"60s"}`) }()
	d.waiting(1)
	slow, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	fmt.Fprintf(slow, "POST /v1/topics/orders/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhel")
	d.inside(&d.h.requests, 1)
	stop()
	(<-poll).refused(503, wire.CodeDraining, "stopping")
	fmt.Fprint(slow, "lo")
	w, err := http.ReadResponse(bufio.NewReader(slow), nil)
	if err != nil || w.StatusCode != http.StatusCreated {
		t.Fatalf("slow request: %v, %v", w, err)
	}
	w.Body.Close()
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("a connection was taken after the stop")
	}
}

// TestServeCutsOff a request that does not end within the grace.
func TestServeCutsOff(t *testing.T) {
	d := setup{options: Options{Grace: 10 * time.Millisecond}}.open(t)
	addr, stop, ended := d.serving()
	slow, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	fmt.Fprintf(slow, "POST /v1/topics/orders/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhel")
	d.inside(&d.h.requests, 1)
	stop()
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "cut off after 10ms") {
		t.Errorf("Serve: %v", err)
	}
	if _, err := io.ReadAll(slow); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("read: %v", err)
	}
}

func TestServeOnBrokenListener(t *testing.T) {
	d := newDoor(t)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := d.h.Serve(t.Context(), l); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
}

// TestLongHeads: what the limits of a message allow fits into the head, and a
// longer head is refused.
func TestLongHeads(t *testing.T) {
	d := newDoor(t)
	d.serving()
	q := "property.a=" + strings.Repeat("%C3%A9", 16<<10-100)
	d.publish("orders", q, "x")
	if ms := d.receive("g"); len(ms) != 1 || len(ms[0].Headers["a"]) != 32<<10-200 {
		t.Errorf("received %d", len(ms))
	}
	if r := d.do("POST", "/v1/topics/orders/messages", "x", "Duemq-Key", strings.Repeat("x", 2*maxHeaderBytes)); r.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d", r.status)
	}
}

// TestStoreFailed: after a failed sync nothing is acknowledged any more, and the
// probes say that only a restart helps.
func TestStoreFailed(t *testing.T) {
	disk := fs.NewFaulty(fs.NewMem())
	d := setup{engine: func(o *engine.Options) { o.FS = disk }}.open(t)
	d.publish("orders", "", "x")
	disk.Inject(fs.Fault{At: 1, Match: func(o fs.Op) bool { return o.Kind == fs.OpSync }, Err: errors.New("input/output error")})
	d.do("POST", "/v1/topics/orders/messages", "x").refused(503, wire.CodeFailed, "input/output error")
	d.do("POST", "/v1/topics/orders/messages", "x").refused(503, wire.CodeFailed, "input/output error")
	d.do("POST", "/v1/topics/orders/receive", `{"group":"new"}`).refused(503, wire.CodeFailed, "")
	d.do("GET", "/healthz", "").refused(503, wire.CodeFailed, "input/output error")
	d.do("GET", "/readyz", "").refused(503, wire.CodeFailed, "input/output error")
	d.do("GET", "/metrics", "").want(200, nil)
	d.do("GET", "/v1/stats", "").want(200, nil)
}
