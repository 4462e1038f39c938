package httpapi

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

func TestUnknownRoutes(t *testing.T) {
	d := newDoor(t)
	for _, path := range []string{"/", "/v1", "/v1/topics/orders/mesages", "/v1/stats/", "/v2/stats", "//v1/stats", "/v1//stats", "/v1/../v1/stats", "/v1/topics//messages"} {
		d.do("GET", path, "").refused(404, wire.CodeRouteUnknown, "POST /v1/topics/orders/messages")
		d.do("POST", path, "").refused(404, wire.CodeRouteUnknown, "")
	}
	for _, c := range []struct{ method, path, allow string }{
		{"GET", "/v1/topics/orders/messages", "POST"},
		{"POST", "/v1/stats", "GET, HEAD"},
		{"PUT", "/v1/messages/0000000000000001", "DELETE, GET, HEAD, PATCH"},
		{"GET", "/v1/leases/x/ack", "POST"},
		{"OPTIONS", "/v1/topics/orders/messages", "POST"},
	} {
		r := d.do(c.method, c.path, "")
		r.refused(405, wire.CodeMethod, "it takes "+c.allow)
		if got := r.header.Get("Allow"); got != c.allow {
			t.Errorf("%s %s: Allow %q, want %q", c.method, c.path, got, c.allow)
		}
	}
}

// TestHostOnLoopback: a name that somebody made to resolve to 127.0.0.1 is not
// this server.
func TestHostOnLoopback(t *testing.T) {
	d := setup{options: Options{Hosts: []string{"broker.example"}}}.open(t)
	for _, host := range []string{"localhost", "LOCALHOST:9870", "127.0.0.1", "127.0.0.1:80", "127.9.9.9:1", "[::1]:9870", "[::1]", "broker.example", "Broker.Example:9870"} {
		d.do("GET", "/v1/stats", "", "Host", host).want(200, nil)
	}
	for _, host := range []string{"evil.example", "evil.example:9870", "localhost.evil.example", "10.0.0.1", "0.0.0.0:9870", "127.0.0.1.evil.example", "[::2]:80"} {
		for _, path := range []string{"/v1/stats", "/metrics", "/nowhere"} {
			d.do("GET", path, "", "Host", host).refused(421, wire.CodeHostRefused, "use localhost or 127.0.0.1")
		}
	}
}

// TestHostElsewhere: a connection to another address may have any Host, since
// its names are not known here.
func TestHostElsewhere(t *testing.T) {
	d := newDoor(t)
	for addr, want := range map[net.Addr]int{
		&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 9870}: 200,
		&net.UnixAddr{Name: "/run/duemq.sock"}:              200,
		&net.TCPAddr{IP: net.IPv6loopback, Port: 9870}:      421,
		nil: 421,
	} {
		r := httptest.NewRequest(http.MethodGet, "http://mq.example/v1/stats", nil)
		if addr != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, addr))
		}
		w := httptest.NewRecorder()
		if d.h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%v: status %d, want %d", addr, w.Code, want)
		}
	}
}

// TestBrowserPages cannot change anything, neither modern nor old browsers'.
func TestBrowserPages(t *testing.T) {
	d := newDoor(t)
	own := strings.TrimPrefix(d.url, "http://")
	for _, h := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example"},
		{"Origin", "null"},
		{"Origin", "http://localhost:3000"},
	} {
		for _, c := range []struct{ method, path string }{
			{"POST", "/v1/topics/orders/messages"},
			{"POST", "/v1/batch"},
			{"POST", "/v1/topics/orders/receive"},
			{"DELETE", "/v1/messages/0000000000000001"},
			{"PATCH", "/v1/messages/0000000000000001"},
			{"POST", "/v1/leases/x/ack"},
			{"POST", "/v1/leases/ack"},
			{"POST", "/v1/clock/accept"},
		} {
			d.do(c.method, c.path, "hello", h...).refused(403, wire.CodeCrossOrigin, "another origin")
		}
	}
	d.do("POST", "/v1/topics/orders/messages", "x", "Sec-Fetch-Site", "same-origin", "Origin", "http://"+own).want(201, nil)
	d.do("POST", "/v1/topics/orders/messages", "x", "Sec-Fetch-Site", "none").want(201, nil)
	if r := d.do("GET", "/v1/stats", "", "Origin", "https://evil.example"); r.header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("another origin may read")
	}
}

func TestProbesAndVersion(t *testing.T) {
	d := setup{options: Options{Version: "1.2.3"}}.open(t)
	var s wire.Status
	if d.do("GET", "/healthz", "").want(200, &s); s.Status != "ok" {
		t.Errorf("health %+v", s)
	}
	if d.do("GET", "/readyz", "").want(200, &s); s.Status != "ready" {
		t.Errorf("ready %+v", s)
	}
	var v wire.Version
	if d.do("GET", "/version", "").want(200, &v); v.Version != "1.2.3" || !strings.HasPrefix(v.Go, "go") {
		t.Errorf("version %+v", v)
	}
	r := d.do("GET", "/version", "")
	if r.header.Get("X-Content-Type-Options") != "nosniff" || r.header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", r.header)
	}
	if r := d.do("HEAD", "/healthz", ""); r.status != 200 || r.body != "" {
		t.Errorf("HEAD: %d %q", r.status, r.body)
	}
}

// TestPanicIsAnswered: a defect is told as one, and is logged.
func TestPanicIsAnswered(t *testing.T) {
	d := newDoor(t)
	serve := d.h.endpoint(&route{action: action{serve: func(*Handler, http.ResponseWriter, *request) error { panic("oops") }}})
	w := httptest.NewRecorder()
	serve(w, httptest.NewRequest(http.MethodGet, "/v1/stats", nil))
	(&reply{t: t, what: "panic", status: w.Code, header: w.Header(), body: w.Body.String()}).refused(500, wire.CodeInternal, "oops")
	defer func() {
		if recover() != http.ErrAbortHandler { //nolint:errorlint // the very value
			t.Error("http.ErrAbortHandler was swallowed")
		}
	}()
	d.h.endpoint(&route{action: action{serve: func(*Handler, http.ResponseWriter, *request) error { panic(http.ErrAbortHandler) }}})(w, httptest.NewRequest(http.MethodGet, "/", nil))
}
