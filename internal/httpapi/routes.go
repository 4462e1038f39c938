package httpapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// A route is one line of the API.
type route struct {
	pattern string
	room    func(h *Handler) *room // what it counts against; nil: it must answer when all else is full
	query   []string               // the parameters that it takes; property.* stands for all that begin so
	serve   func(h *Handler, w http.ResponseWriter, r *request) error
}

func work(h *Handler) *room { return &h.requests }
func poll(h *Handler) *room { return &h.polls }

// properties stands for the parameters that give user properties.
const properties = "property.*"

// routes is the whole API; docs/http.md lists the same, which a test checks.
var routes = []route{
	{"POST /v1/topics/{topic}/messages", work, []string{"after", "at", "tz", "level", "key", "tag", "queue", properties}, (*Handler).publish},
	{"POST /v1/topics/{topic}/receive", poll, nil, (*Handler).receive},
	{"POST /v1/batch", work, nil, (*Handler).batch},
	{"POST /v1/leases/ack", work, nil, (*Handler).ackAll},
	{"POST /v1/leases/{lease}/ack", work, nil, (*Handler).ack},
	{"POST /v1/leases/{lease}/nack", work, nil, (*Handler).nack},
	{"POST /v1/leases/{lease}/extend", work, nil, (*Handler).extend},
	{"GET /v1/messages/{id}", work, nil, (*Handler).message},
	{"DELETE /v1/messages/{id}", work, nil, (*Handler).cancel},
	{"PATCH /v1/messages/{id}", work, nil, (*Handler).reschedule},
	{"POST /v1/messages/{id}/deliver", work, nil, (*Handler).deliverNow},
	{"GET /v1/pending", work, []string{"topic", "tag", "from", "to", "within", "tz", "limit", "cursor"}, (*Handler).pending},
	{"GET /v1/pending/count", work, []string{"topic", "tag", "from", "to", "within", "tz"}, (*Handler).count},
	{"GET /v1/stats", work, nil, (*Handler).stats},
	{"POST /v1/clock/accept", work, nil, (*Handler).acceptClock},
	{"GET /healthz", nil, nil, (*Handler).health},
	{"GET /readyz", nil, nil, (*Handler).ready},
	{"GET /version", nil, nil, (*Handler).version},
	{"GET /metrics", nil, nil, (*Handler).showMetrics},
}

// endpoint gives what all routes have in common: room, parameters, problems.
func (h *Handler) endpoint(rt *route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer h.contain(w, r)
		if rt.room != nil {
			if err := rt.room(h).enter(); err != nil {
				h.refuse(w, r, err)
				return
			}
			defer rt.room(h).leave()
		}
		req := &request{Request: r, h: h}
		defer req.release()
		var err error
		if req.query, err = parseQuery(r.URL.RawQuery, rt.query); err == nil {
			err = rt.serve(h, w, req)
		}
		if err != nil {
			h.refuse(w, r, err)
		}
	}
}

// contain turns a panic into an answer, so that one defect does not look like a
// broken connection.
func (h *Handler) contain(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler { //nolint:errorlint // the very value, as net/http compares it
		panic(p)
	}
	h.o.Logger.Error("request panicked", slog.Any("panic", p), slog.String("path", r.URL.Path), slog.String("stack", string(debug.Stack())))
	h.refuse(w, r, fmt.Errorf("a defect of the server: %v", p))
}
