package httpapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"

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

// saving admits one backup at a time.
func saving(h *Handler) *room { return &h.backups }

// properties stands for the parameters that give user properties.
const properties = "property.*"

// routes is the whole API; docs/http.md lists the same, and openapi.json is made
// from it. To add one: a function of the handler, types in the package wire for
// its JSON, a line here and one in docs/http.md, then
// go test ./internal/httpapi -run TestOpenAPI -update.
var routes = slices.Concat(messageRoutes, topicRoutes, groupRoutes, pendingRoutes, serverRoutes)

// What the options of a message and the filters of what waits are called.
var (
	sendQuery   = []string{"after", "at", "tz", "level", "key", "tag", "queue", "transaction", properties}
	filterQuery = []string{"topic", "tag", "key", "ids", "from", "to", "within", "tz", "state", "overdue"}
	pageQuery   = []string{"limit", "cursor"}
)

var messageRoutes = []route{
	{
		"POST /v1/topics/{topic}/messages", work, "Publish the body as one message", sendQuery,
		show((*Handler).publish).takingMessage().answering(http.StatusCreated).header("Location", "URL of the message"),
	},
	{
		"PUT /v1/topics/{topic}/messages/{name}", work, "Publish the body as the message of that name, in place of one that waits", sendQuery,
		show((*Handler).put).takingMessage().answering(http.StatusCreated, http.StatusOK).header("Location", "URL of the message"),
	},
	{"GET /v1/topics/{topic}/messages/{name}", work, "Show the message that waits, or waited last, under a name", nil, show((*Handler).showNamed)},
	{"DELETE /v1/topics/{topic}/messages/{name}", work, "Cancel the message that waits under a name", nil, show((*Handler).cancelNamed)},
	{"POST /v1/topics/{topic}/receive", poll, "Lease messages to a group, waiting for the first one if asked to", nil, ask((*Handler).receive)},
	{"POST /v1/batch", work, "Publish messages, each on its own", nil, takingLines[wire.Batch](show((*Handler).batch), linesType)},
	{"POST /v1/leases/ack", work, "Finish messages, each on its own", nil, ask((*Handler).ackAll)},
	{"POST /v1/leases/return", work, "Give back messages that nobody has seen: their attempts do not count", nil, tell(wire.AckAll{}, (*Handler).giveBack)},
	{"POST /v1/leases/{lease}/ack", work, "Finish a message", nil, act((*Handler).ack)},
	{"POST /v1/leases/{lease}/nack", work, "Give a message back", nil, ask((*Handler).nack)},
	{
		"POST /v1/leases/{lease}/extend", work, "Have a lease run on from now", nil,
		tell(wire.Extend{Invisible: wire.Duration(broker.DefaultInvisible)}, (*Handler).extend),
	},
	{"POST /v1/leases/{lease}/bury", work, "Make a message a dead letter at once", nil, ask((*Handler).bury)},
	{"GET /v1/messages/{id}", work, "Show a message, wherever it is", nil, show((*Handler).message)},
	{"DELETE /v1/messages/{id}", work, "Cancel a message that waits", nil, show((*Handler).cancel)},
	{"PATCH /v1/messages/{id}", work, "Reschedule a message that waits", nil, ask((*Handler).reschedule)},
	{"POST /v1/messages/{id}/deliver", work, "Have a message that waits delivered at once", nil, show((*Handler).deliverNow)},
	{"GET /v1/transactions", work, "List half messages, in the order of sending", []string{"producer"}, show((*Handler).transactions)},
	{"POST /v1/transactions/checks", poll, "Hand out half messages that their producer must decide about, waiting for the first one if asked to", nil, ask((*Handler).checks)},
	{"POST /v1/transactions/{id}/commit", work, "Have a half message delivered; its delay counts from now", nil, show((*Handler).commit)},
	{"POST /v1/transactions/{id}/rollback", work, "Drop a half message", nil, show((*Handler).rollback)},
}

var topicRoutes = []route{
	{
		"GET /v1/topics", work, "List topics, by name", append([]string{"system"}, pageQuery...),
		show((*Handler).topics).header("Link", linkSays),
	},
	{
		"POST /v1/topics", work, "Make a topic; 200 if it is there and the same", nil,
		ask((*Handler).makeTopic).answering(http.StatusCreated, http.StatusOK).header("Location", "URL of the topic"),
	},
	{"GET /v1/topics/{topic}", work, "Show a topic", nil, show((*Handler).showTopic)},
	{
		"PUT /v1/topics/{topic}", work, "Make a topic, or give the one that is there other attributes", nil,
		ask((*Handler).putTopic).answering(http.StatusOK, http.StatusCreated).header("Location", "URL of the topic"),
	},
	{"PATCH /v1/topics/{topic}", work, "Change attributes of a topic", nil, ask((*Handler).patchTopic)},
	{"DELETE /v1/topics/{topic}", work, "Delete a topic with everything in it and everything that waits for it", []string{"confirm"}, show((*Handler).deleteTopic)},
	{"POST /v1/topics/{topic}/purge", work, "Empty a topic, of what waits for it too", []string{"confirm"}, show((*Handler).purgeTopic)},
	{"POST /v1/topics/{topic}/pause", work, "Stop a topic from delivering", nil, show((*Handler).pauseTopic)},
	{"POST /v1/topics/{topic}/resume", work, "Let a topic go on", nil, show((*Handler).resumeTopic)},
	{
		"GET /v1/topics/{topic}/queues/{queue}/messages", poll, "Read messages of a queue, waiting for the first one if asked to",
		[]string{"offset", "max", "maxBytes", "wait", "tags"},
		show((*Handler).pull),
	},
	{
		"GET /v1/topics/{topic}/queues/{queue}/offset", work, "Find the first offset that became visible at an instant or later",
		[]string{"at", "tz"},
		show((*Handler).searchOffset),
	},
}

var groupRoutes = []route{
	{"GET /v1/groups", work, "List consumer groups, by name", pageQuery, show((*Handler).groups).header("Link", linkSays)},
	{
		"POST /v1/groups", work, "Make a consumer group; 200 if it is there and the same", nil,
		ask((*Handler).makeGroup).answering(http.StatusCreated, http.StatusOK).header("Location", "URL of the group"),
	},
	{"GET /v1/groups/{group}", work, "Show a consumer group, and how it stands in each queue", nil, show((*Handler).showGroup)},
	{
		"PUT /v1/groups/{group}", work, "Make a consumer group, or give the one that is there this configuration", nil,
		ask((*Handler).putGroup).answering(http.StatusOK, http.StatusCreated).header("Location", "URL of the group"),
	},
	{"PATCH /v1/groups/{group}", work, "Change a consumer group's configuration", nil, ask((*Handler).patchGroup)},
	{"DELETE /v1/groups/{group}", work, "Delete a consumer group with its positions and its dead letters", []string{"confirm"}, act((*Handler).deleteGroup)},
	{"GET /v1/groups/{group}/offsets", work, "Show a pull consumer's next offsets", []string{"topic"}, show((*Handler).groupOffsets)},
	{"PUT /v1/groups/{group}/offsets", work, "Note a pull consumer's next offsets", []string{"topic"}, tell(wire.Offsets{}, (*Handler).commitOffsets)},
	{"POST /v1/groups/{group}/reset", work, "Have a group go on elsewhere in a topic", nil, ask((*Handler).reset)},
	{"POST /v1/groups/{group}/locks", work, "Take queues for a client that consumes them in order, or renew that", nil, ask((*Handler).lock)},
	{"POST /v1/groups/{group}/unlock", work, "Give such queues back", nil, tell(wire.Unlock{}, (*Handler).unlock)},
	{"GET /v1/dlq", work, "List the groups that have dead letters, by name", pageQuery, show((*Handler).deadGroups).header("Link", linkSays)},
	{
		"GET /v1/dlq/{group}", work, "List a group's dead letters, oldest first; in lines, all of them with their bodies",
		append([]string{"bodies"}, pageQuery...),
		show((*Handler).deadLetters).orStream(linesType, (*Handler).exportDead).header("Link", linkSays),
	},
	{
		"POST /v1/dlq/{group}/redrive", work, "Have dead letters delivered to their group again", nil,
		ask((*Handler).redrive).answering(http.StatusAccepted, http.StatusOK).header("Location", "URL of the operation"),
	},
	{"POST /v1/dlq/{group}/purge", work, "Drop dead letters", []string{"confirm"}, ask((*Handler).purgeDead)},
}

var pendingRoutes = []route{
	{
		"GET /v1/pending", work, "List what waits, in the order of falling due", slices.Concat(filterQuery, pageQuery),
		show((*Handler).pending).header("Link", linkSays),
	},
	{"GET /v1/pending/count", work, "Count what waits", filterQuery, show((*Handler).count)},
	{
		"GET /v1/pending/timeline", work, "Count what waits by when it falls due",
		[]string{"topic", "from", "to", "tz", "step", "by"},
		show((*Handler).timeline),
	},
	{"POST /v1/pending/cancel", work, "Cancel what a filter selects", nil, bulk(ask((*Handler).cancelAll))},
	{"POST /v1/pending/reschedule", work, "Give what a filter selects another due", nil, bulk(ask((*Handler).rescheduleAll))},
	{"POST /v1/pending/deliver", work, "Deliver what a filter selects at once", nil, bulk(ask((*Handler).deliverAll))},
	{"POST /v1/pending/spread", work, "Spread what a filter selects evenly over a stretch of time", nil, bulk(ask((*Handler).spread))},
	{"GET /v1/operations", work, "List bulk operations, oldest first", nil, show((*Handler).operations)},
	{"GET /v1/operations/{operation}", poll, "Show a bulk operation, waiting for its end if asked to", []string{"wait"}, show((*Handler).showOperation)},
	{"POST /v1/operations/{operation}/stop", work, "Stop a bulk operation; what it did stays done", nil, show((*Handler).stopOperation)},
}

var serverRoutes = []route{
	{"GET /v1/stats", work, "Show the broker's figures", nil, show((*Handler).stats)},
	{"GET /v1/retention", work, "Show what is kept, and for how long", nil, show((*Handler).retention)},
	{"GET /v1/limits", work, "List the limits of everything", nil, show((*Handler).limits)},
	{"GET /v1/backup", saving, "Copy the store as it is now, while everything goes on", nil, write(backupType, (*Handler).backup).header("Content-Disposition", "Name for a file")},
	{"POST /v1/clock/accept", work, "Believe the machine's clock as it is", nil, show((*Handler).acceptClock)},
	{"GET /healthz", nil, "503 when only a restart can help", nil, show((*Handler).health)},
	{"GET /readyz", nil, "503 when the server should get no traffic", nil, show((*Handler).ready)},
	{"GET /version", nil, "Show the versions of the server and of Go", nil, show((*Handler).version)},
	{"GET /metrics", nil, "Show figures for Prometheus", nil, write("text/plain", (*Handler).showMetrics)},
	{"GET /openapi.json", work, "Show this document", nil, write("application/json", (*Handler).openAPI)},
	{"GET /docs", work, "Show this document to people", nil, write("text/html", (*Handler).docs)},
}

// linkSays is what the header Link of a listing has.
const linkSays = "URL of the next page, with rel=next"

// bulk makes an action one that begins an operation.
func bulk(a action) action {
	return a.answering(http.StatusAccepted, http.StatusOK).header("Location", "URL of the operation")
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
	{"name", "string", "The client's own name of a message, within its topic."},
	{"queue", "integer", "A queue of the topic, by number from 0. To publish: its queues in turn if absent."},
	{"group", "string", "Name of a consumer group."},
	{"lease", "string", "Lease of a message that was received."},
	{"id", "string", "Id of a message (16 hexadecimal digits), or its recall handle."},
	{"operation", "string", "Id of a bulk operation: op-12."},
	{"after", "string", "Deliver after a delay: 10s, 1h30m, 2d, PT30M. At most one of after, at and level is given."},
	{"at", "string", "An instant: 2026-12-01T09:00+08:00, or Unix milliseconds of 13 digits. To publish: deliver at it."},
	{"tz", "string", "IANA zone of instants that name none: Asia/Shanghai."},
	{"level", "string", "Deliver after the delay of a level, by its number or its delay: 3, 10s."},
	{"key", "string", "The business key; several are separated by blanks."},
	{"tag", "string", "The tag of a message."},
	{"transaction", "string", "A group of producers: a half message, which is delivered when its transaction is committed."},
	{properties, "string", "A user property; its name follows the dot."},
	{"producer", "string", "A group of producers; all if absent."},
	{"ids", "string", "Ids or handles of messages, separated by commas."},
	{"from", "string", "Due at or after that instant."},
	{"to", "string", "Due before that instant."},
	{"within", "string", "Due within that time from now: 10m."},
	{"state", "string", "waiting, or paused: due and held back by its topic. Both if absent."},
	{"overdue", "boolean", "Due by now, and not delivered."},
	{"step", "string", "Length of a bucket, whole minutes: 15m. About 60 buckets if absent."},
	{"by", "string", "topic: tell topics apart."},
	{"offset", "string", "Where to begin; the nearest offset that is kept counts. Default 0."},
	{"max", "integer", "Messages at most; default 1, limit 4096."},
	{"maxBytes", "integer", "Bytes of bodies at most; default and limit 16 MiB. One message always fits."},
	{"wait", "string", "How long to wait: 30s; default 0, limit 60s."},
	{"tags", "string", "Only messages with one of these tags: a || b."},
	{"system", "boolean", "The broker's own topics too."},
	{"bodies", "boolean", "With their bodies."},
	{"confirm", "string", "The name again, of what will be gone."},
	{"limit", "integer", "Items of a page at most: 1 to 1000, default 100."},
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
