package httpapi

import (
	"fmt"
	"math"
	"net/url"
	"strconv"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// pending lists what waits, a page at a time.
func (h *Handler) pending(r *request) (*wire.Page, error) {
	f, err := h.filter(r)
	if err != nil {
		return nil, err
	}
	limit := 0
	if v, ok := r.query("limit"); ok {
		if limit, err = strconv.Atoi(v); err != nil || limit < 1 {
			return nil, fmt.Errorf("%w: limit %q, want 1 to %d", errBadRequest, shorten(v), broker.MaxPage)
		}
	}
	page, err := h.b.Pending(r.Context(), f, r.text("cursor"), limit)
	if err != nil {
		return nil, err
	}
	out := wire.Page{Messages: make([]wire.Message, len(page.Messages)), Cursor: page.Cursor}
	for i := range page.Messages {
		out.Messages[i] = message(&page.Messages[i])
	}
	if page.Cursor != "" {
		next := url.Values{}
		for name, v := range r.values {
			next.Set(name, v)
		}
		next.Set("cursor", page.Cursor)
		r.header("Link", "<"+r.URL.Path+"?"+next.Encode()+`>; rel="next"`)
	}
	return &out, nil
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
	f := broker.Filter{Topic: r.text("topic"), Tag: r.text("tag")}
	for _, edge := range []struct {
		name string
		at   *int64
	}{{"from", &f.From}, {"to", &f.To}} {
		v, ok := r.query(edge.name)
		if !ok {
			continue
		}
		t, err := instant(plus(v), r.text("tz"))
		if err != nil {
			return f, fmt.Errorf("%s: %w", edge.name, err)
		}
		*edge.at = int64(wire.TimeOf(t))
	}
	v, ok := r.query("within")
	if !ok {
		return f, nil
	}
	if f.To != 0 {
		return f, fmt.Errorf("%w: to and within both say where it ends; give one", errBadRequest)
	}
	d, err := wire.ParseDuration(v)
	if err != nil {
		return f, fmt.Errorf("within: %w", err)
	}
	now := h.b.Now()
	if ms := wire.CeilMs(d); ms < math.MaxInt64-now {
		f.To = now + ms + 1 // whole: due at the end of it too
	}
	return f, nil
}
