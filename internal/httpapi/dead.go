package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// bury makes a leased message a dead letter.
func (h *Handler) bury(r *request, q *wire.Bury) (*wire.Buried, error) {
	id, err := h.b.Bury(r.Context(), r.path("lease"), q.Reason)
	return &wire.Buried{ID: id.String()}, err
}

// deadGroups lists the groups that have dead letters, a page at a time.
func (h *Handler) deadGroups(r *request) (*wire.DeadGroups, error) {
	all := slices.DeleteFunc(h.b.GroupList(), func(g broker.GroupInfo) bool { return g.Dead == 0 })
	page, cursor, err := namedPage(r, all, func(g *broker.GroupInfo) string { return g.Name })
	if err != nil {
		return nil, err
	}
	out := wire.DeadGroups{Groups: make([]wire.DeadGroup, len(page)), Cursor: cursor}
	for i, g := range page {
		out.Groups[i] = wire.DeadGroup{Group: g.Name, Dead: g.Dead}
	}
	return &out, nil
}

// deadLetters lists a group's dead letters, a page at a time.
func (h *Handler) deadLetters(r *request) (*wire.Page, error) {
	whole, err := r.flag("bodies")
	if err != nil {
		return nil, err
	}
	limit, err := r.limit()
	if err != nil {
		return nil, err
	}
	page, cursor, err := h.b.DeadLetters(r.Context(), r.path("group"), r.text("cursor"), limit)
	if err != nil {
		return nil, err
	}
	for i := range page {
		if !whole {
			page[i].Body = nil
		}
	}
	r.next(cursor)
	return &wire.Page{Messages: messages(page), Cursor: cursor}, nil
}

// exportPage is how many dead letters of an export are in memory at once.
const exportPage = 64

// exportDead writes a group's dead letters, from the cursor on, with their
// bodies: a message a line. It breaks off if it cannot go on, since the status
// is written.
func (h *Handler) exportDead(w http.ResponseWriter, r *request) error {
	for _, name := range []string{"limit", "bodies"} {
		if _, ok := r.query(name); ok {
			return fmt.Errorf("%w: an export has all dead letters, with their bodies; leave %s out", errBadRequest, name)
		}
	}
	group, cursor := r.path("group"), r.text("cursor")
	page, next, err := h.b.DeadLetters(r.Context(), group, cursor, exportPage)
	if err != nil {
		return err
	}
	out := h.stream(w, linesType)
	for r.Method != http.MethodHead {
		for i := range page {
			line, err := json.Marshal(message(&page[i]))
			if err == nil {
				_, err = out.Write(append(line, '\n'))
			}
			if err != nil {
				return out.broken(r, err)
			}
		}
		if next == "" {
			return nil
		}
		if page, next, err = h.b.DeadLetters(r.Context(), group, next, exportPage); err != nil {
			return out.broken(r, err)
		}
	}
	return nil
}

// redrive has dead letters delivered to their group again.
func (h *Handler) redrive(r *request, q *wire.Redrive) (*wire.Operation, error) {
	ask := broker.RedriveRequest{Group: r.path("group"), IDs: q.IDs, Rate: q.Rate, DryRun: q.DryRun}
	if q.Delay < 0 {
		return nil, fmt.Errorf("%w: delay %v, want 0 or more", errBadRequest, q.Delay)
	}
	if q.Delay > 0 {
		ask.Delay = broker.Delay{Kind: broker.DelayAfter, Value: wire.CeilMs(time.Duration(q.Delay))}
	}
	op, err := h.b.Redrive(r.Context(), ask)
	return r.begun(&op, err)
}

// purgeDead drops dead letters. Without ids they are all dropped, which wants to
// be confirmed.
func (h *Handler) purgeDead(r *request, q *wire.PurgeDead) (*wire.PurgedDead, error) {
	group := r.path("group")
	if len(q.IDs) == 0 {
		if err := r.confirmed(group); err != nil {
			return nil, err
		}
	}
	n, err := h.b.PurgeDead(r.Context(), group, q.IDs)
	return &wire.PurgedDead{Purged: n}, err
}
