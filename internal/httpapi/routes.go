package httpapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// A route is one line of the API.
type route struct {
	pattern string
	room    func(h *Handler) *room // what it counts against; nil: it must answer when all else is full
	summary string                 // for openapi.json
	query   []string               // the parameters that it takes, each one of parameters; property.* stands for all that begin so
	action
}

func work(h *Handler) *room { return &h.requests }
func poll(h *Handler) *room { return &h.polls }

// properties stands for the parameters that give user properties.
const properties = "property.*"

// routes is the whole API; docs/http.md lists the same, and openapi.json is made
// from it. To add one: a function of the handler, types in the package wire for
// its JSON, a line here and one in docs/http.md, then
// go test ./internal/httpapi -run TestOpenAPI -update.
var routes = []route{
	{
		"POST /v1/topics/{topic}/messages", work, "Publish the body as one message",
		[]string{"after", "at", "tz", "level", "key", "tag", "queue", properties},
		show((*Handler).publish).takingMessage().answering(http.StatusCreated).header("Location", "URL of the message"),
	},
	{"POST /v1/topics/{topic}/receive", poll, "Lease messages to a group, waiting for the first one if asked to", nil, ask((*Handler).receive)},
	{"POST /v1/batch", work, "Publish messages, each on its own", nil, takingLines[wire.Batch](show((*Handler).batch), linesType)},
	{"POST /v1/leases/ack", work, "Finish messages, each on its own", nil, ask((*Handler).ackAll)},
	{"POST /v1/leases/{lease}/ack", work, "Finish a message", nil, act((*Handler).ack)},
	{"POST /v1/leases/{lease}/nack", work, "Give a message back", nil, tell(wire.Nack{}, (*Handler).nack)},
	{
		"POST /v1/leases/{lease}/extend", work, "Have a lease run on from now", nil,
		tell(wire.Extend{Invisible: wire.Duration(broker.DefaultInvisible)}, (*Handler).extend),
	},
	{"GET /v1/messages/{id}", work, "Show a message, wherever it is", nil, show((*Handler).message)},
	{"DELETE /v1/messages/{id}", work, "Cancel a message that waits", nil, show((*Handler).cancel)},
	{"PATCH /v1/messages/{id}", work, "Reschedule a message that waits", nil, ask((*Handler).reschedule)},
	{"POST /v1/messages/{id}/deliver", work, "Have a message that waits delivered at once", nil, show((*Handler).deliverNow)},
	{
		"GET /v1/pending", work, "List what waits, in the order of falling due",
		[]string{"topic", "tag", "from", "to", "within", "tz", "limit", "cursor"},
		show((*Handler).pending).header("Link", "URL of the next page, with rel=next"),
	},
	{"GET /v1/pending/count", work, "Count what waits", []string{"topic", "tag", "from", "to", "within", "tz"}, show((*Handler).count)},
	{"GET /v1/stats", work, "Show the broker's figures", nil, show((*Handler).stats)},
	{"POST /v1/clock/accept", work, "Believe the machine's clock as it is", nil, show((*Handler).acceptClock)},
	{"GET /healthz", nil, "503 when only a restart can help", nil, show((*Handler).health)},
	{"GET /readyz", nil, "503 when the server should get no traffic", nil, show((*Handler).ready)},
	{"GET /version", nil, "Show the versions of the server and of Go", nil, show((*Handler).version)},
	{"GET /metrics", nil, "Show figures for Prometheus", nil, write("text/plain", (*Handler).showMetrics)},
	{"GET /openapi.json", work, "Show this document", nil, write("application/json", (*Handler).openAPI)},
	{"GET /docs", work, "Show this document to people", nil, write("text/html", (*Handler).docs)},
}

// A parameter is one of a path or of a query. It means the same in every route.
type parameter struct {
	name string
	kind string // of JSON: string or integer
	says string
}

// parameters describes the parameters of all routes.
var parameters = []parameter{
	{"topic", "string", "Name of a topic."},
	{"lease", "string", "Lease of a message that was received."},
	{"id", "string", "Id of a message (16 hexadecimal digits), or its recall handle."},
	{"after", "string", "Deliver after a delay: 10s, 1h30m, 2d, PT30M. At most one of after, at and level is given."},
	{"at", "string", "Deliver at an instant: 2026-12-01T09:00+08:00, or Unix milliseconds of 13 digits."},
	{"tz", "string", "IANA zone of instants that name none: Asia/Shanghai."},
	{"level", "string", "Deliver after the delay of a level, by its number or its delay: 3, 10s."},
	{"key", "string", "The business key; several are separated by blanks."},
	{"tag", "string", "The tag of a message."},
	{"queue", "integer", "The topic's queue; its queues in turn if absent."},
	{properties, "string", "A user property; its name follows the dot."},
	{"from", "string", "Due at or after that instant."},
	{"to", "string", "Due before that instant."},
	{"within", "string", "Due within that time from now: 10m."},
	{"limit", "integer", "Messages of a page at most: 1 to 1000, default 100."},
	{"cursor", "string", "The cursor of the page before."},
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
		req := &request{Request: r, h: h, rt: rt, reply: w.Header()}
		defer req.release()
		var err error
		if req.values, err = parseQuery(r.URL.RawQuery, rt.query); err == nil {
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
