// Package httpapi is the HTTP door: it turns requests into use cases of the
// broker and their results into JSON. docs/http.md is its reference; the types
// that travel are in the package wire, the Go client in the package client.
//
// routes.go is the table of contents: a line for each route. A route's function
// reads the request, calls one use case and writes the answer; an error that it
// returns becomes a problem by the one table in errors.go.
//
//	request ─► admit (host, origin, room) ─► route ─► broker ─► JSON
//	                     └────────── error ──────────┴────────► problem
//
// The door is meant for loopback. A browser page must not be able to use it:
// requests that change something are refused when they come from another
// origin, and connections to a loopback address when their Host names none.
package httpapi

import (
	"log/slog"
	"net/http"
	"path"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/clock"
)

// Options configure the door. Zero means the default.
type Options struct {
	Version string   // default unknown; what /version says
	Hosts   []string // default none: names, without port, that the Host of a loopback connection may have beside localhost

	MaxRequests int64         // default 4096: requests at once; more are refused with 503
	MaxPolls    int64         // default 4096: receives at once, apart from the others
	MaxBodies   int64         // default 64 MiB: bytes of bodies above 16 KiB at once; more wait
	Grace       time.Duration // default 10 s: what Serve gives requests to end when it stops

	Clock  clock.Clock  // default the machine's: how long requests take
	Logger *slog.Logger // default discards
}

func (o *Options) setDefaults() {
	if o.Version == "" {
		o.Version = "unknown"
	}
	if o.MaxRequests == 0 {
		o.MaxRequests = 4096
	}
	if o.MaxPolls == 0 {
		o.MaxPolls = 4096
	}
	if o.MaxBodies == 0 {
		o.MaxBodies = 64 << 20
	}
	o.MaxBodies = max(o.MaxBodies, maxBatchBody)
	if o.Grace == 0 {
		o.Grace = 10 * time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Handler answers the HTTP API of one broker. It is safe for concurrent use.
type Handler struct {
	o        Options
	b        *broker.Broker
	mux      *http.ServeMux
	origin   *http.CrossOriginProtection
	requests room
	polls    room
	backups  room
	bodies   *semaphore.Weighted
	metrics  *metrics
	draining atomic.Bool
}

// New gives the HTTP API of a broker, which stays the caller's to close, after
// the last request.
func New(b *broker.Broker, o Options) *Handler {
	o.setDefaults()
	h := &Handler{
		o: o, b: b, mux: http.NewServeMux(), origin: http.NewCrossOriginProtection(),
		requests: room{limit: o.MaxRequests},
		polls:    room{limit: o.MaxPolls},
		backups:  room{limit: 1},
		bodies:   semaphore.NewWeighted(o.MaxBodies),
	}
	h.metrics = newMetrics(h)
	for i := range routes {
		h.mux.Handle(routes[i].pattern, h.endpoint(&routes[i]))
	}
	return h
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := h.o.Clock.Now().Mono
	rec := &recorder{ResponseWriter: w}
	defer func() {
		h.metrics.answered(r.Pattern, rec.status, time.Duration(h.o.Clock.Now().Mono-began))
	}()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if err := h.admit(r); err != nil {
		h.refuse(rec, r, err)
		return
	}
	if found, pattern := h.mux.Handler(r); pattern == "" || path.Clean(r.URL.EscapedPath()) != r.URL.EscapedPath() {
		h.unrouted(rec, r, found) // the mux would redirect a path that is not clean, and a POST would get lost
		return
	}
	h.mux.ServeHTTP(rec, r)
}

// Drain ends waiting receives and has readiness say no; everything else still
// works. It is the first step of stopping.
func (h *Handler) Drain() {
	h.draining.Store(true)
	h.b.Drain()
}

// A recorder remembers the status that was answered.
type recorder struct {
	http.ResponseWriter

	status int // 0 before it is written
}

// WriteHeader notes the status and passes it on.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write passes bytes on; without a status before, it is 200.
func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
