package httpapi

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// errTwoEnds refuses a range that ends twice.
var errTwoEnds = fmt.Errorf("%w: to and within both say where it ends; give one", errBadRequest)

// pending lists what waits, a page at a time.
func (h *Handler) pending(r *request) (*wire.Page, error) {
	f, err := h.filter(r)
	if err != nil {
		return nil, err
	}
	limit, err := r.limit()
	if err != nil {
		return nil, err
	}
	page, err := h.b.Pending(r.Context(), f, r.text("cursor"), limit)
	if err != nil {
		return nil, err
	}
	r.next(page.Cursor)
	return &wire.Page{Messages: messages(page.Messages), Cursor: page.Cursor}, nil
}

// count counts what waits.
func (h *Handler) count(r *request) (*wire.Count, error) {
	f, err := h.filter(r)
	if err != nil {
		return nil, err
	}
	n, err := h.b.Count(r.Context(), f)
	return &wire.Count{Count: n}, err
}

// filter reads what to look for.
func (h *Handler) filter(r *request) (broker.Filter, error) {
	f := broker.Filter{Topic: r.text("topic"), Tag: r.text("tag"), Key: r.text("key"), State: broker.State(r.text("state"))}
	if v, ok := r.query("ids"); ok {
		f.IDs = strings.Split(v, ",")
	}
	var err error
	if f.From, err = r.instant("from", r.text("tz")); err != nil {
		return f, err
	}
	if f.To, err = r.instant("to", r.text("tz")); err != nil {
		return f, err
	}
	if f.Overdue, err = r.flag("overdue"); err != nil {
		return f, err
	}
	if _, ok := r.query("within"); !ok {
		return f, nil
	}
	if f.To != 0 {
		return f, errTwoEnds
	}
	d, err := r.duration("within")
	f.To = h.end(d)
	return f, err
}

// end is where a range ends that lies within d from now: what is due at the end
// of it is in it. Beyond all time it has no end.
func (h *Handler) end(d time.Duration) int64 {
	now := h.b.Now()
	if ms := wire.CeilMs(d); ms < math.MaxInt64-now {
		return now + ms + 1
	}
	return 0
}

// timeline counts what waits by when it falls due.
func (h *Handler) timeline(r *request) (*wire.Timeline, error) {
	q := broker.TimelineRequest{Topic: r.text("topic")}
	switch by := r.text("by"); by {
	case "":
	case "topic":
		q.ByTopic = true
	default:
		return nil, fmt.Errorf("%w: by %q, want topic", errBadRequest, shorten(by))
	}
	var err error
	if q.From, err = r.instant("from", r.text("tz")); err != nil {
		return nil, err
	}
	if q.To, err = r.instant("to", r.text("tz")); err != nil {
		return nil, err
	}
	if q.Step, err = r.duration("step"); err != nil {
		return nil, err
	}
	got, err := h.b.Timeline(r.Context(), q)
	if err != nil {
		return nil, err
	}
	return timeline(&got), nil
}

func timeline(t *broker.TimelineResult) *wire.Timeline {
	out := wire.Timeline{
		From: wire.Time(t.From), To: wire.Time(t.To), Step: wire.Duration(t.Step), Buckets: make([]wire.TimelineBucket, len(t.Buckets)),
		Total: t.Total, Paused: t.Paused, Overdue: t.Overdue, Earliest: wire.Time(t.Earliest), Latest: wire.Time(t.Latest),
	}
	for i, b := range t.Buckets {
		out.Buckets[i] = wire.TimelineBucket{From: wire.Time(b.From), Count: b.Count}
		if b.Topics == nil {
			continue
		}
		out.Buckets[i].Topics = make(map[string]wire.Number, len(b.Topics))
		for name, n := range b.Topics {
			out.Buckets[i].Topics[name] = wire.Number(n)
		}
	}
	return &out
}
