package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// cancelAll begins to cancel what a filter selects.
func (h *Handler) cancelAll(r *request, q *wire.BulkCancel) (*wire.Operation, error) {
	return h.bulk(r, &q.Filter, broker.Bulk{Kind: broker.BulkCancel, DryRun: q.DryRun})
}

// deliverAll begins to deliver what a filter selects at once.
func (h *Handler) deliverAll(r *request, q *wire.BulkCancel) (*wire.Operation, error) {
	return h.bulk(r, &q.Filter, broker.Bulk{Kind: broker.BulkDeliver, DryRun: q.DryRun})
}

// rescheduleAll begins to give what a filter selects another due.
func (h *Handler) rescheduleAll(r *request, q *wire.BulkReschedule) (*wire.Operation, error) {
	b := broker.Bulk{Kind: broker.BulkReschedule, DryRun: q.DryRun}
	var err error
	if b.Delay, b.By, err = h.newDue(&wire.Reschedule{At: q.At, After: q.After, By: q.By, Zone: q.Zone, Level: q.Level}); err != nil {
		return nil, err
	}
	return h.bulk(r, &q.Filter, b)
}

// spread begins to spread what a filter selects over a stretch of time.
func (h *Handler) spread(r *request, q *wire.BulkSpread) (*wire.Operation, error) {
	b := broker.Bulk{Kind: broker.BulkSpread, DryRun: q.DryRun, SpreadOver: wire.CeilMs(time.Duration(q.Over))}
	if q.At != "" || q.Zone != "" {
		d, err := h.delay("", q.At, q.Zone, "")
		if err != nil {
			return nil, err
		}
		b.SpreadFrom = d.Value
	}
	return h.bulk(r, &q.Filter, b)
}

// bulk begins an operation, or only counts for it.
func (h *Handler) bulk(r *request, f *wire.Filter, b broker.Bulk) (*wire.Operation, error) {
	var err error
	if b.Filter, err = h.selected(f); err != nil {
		return nil, err
	}
	op, err := h.b.StartBulk(r.Context(), b)
	return r.begun(&op, err)
}

// selected reads a filter, which must not select everything by accident.
func (h *Handler) selected(f *wire.Filter) (broker.Filter, error) {
	out := broker.Filter{
		Topic: f.Topic, Tag: f.Tag, Key: f.Key, IDs: f.IDs,
		From: int64(f.From), To: int64(f.To), State: broker.State(f.State), Overdue: f.Overdue,
	}
	some := f.Selects()
	switch {
	case f.All && some:
		return out, fmt.Errorf("%w: the filter has all and more; give one", errBadRequest)
	case !f.All && !some:
		return out, fmt.Errorf(`%w: no filter; say what to select, or {"filter":{"all":true}} for everything that waits`, errBadRequest)
	case f.IDs != nil && len(f.IDs) == 0:
		return out, fmt.Errorf("%w: no ids; leave ids out, or name some", errBadRequest)
	case f.Within != 0 && f.To != 0:
		return out, errTwoEnds
	case f.Within != 0:
		out.To = h.end(time.Duration(f.Within))
	}
	return out, nil
}

// begun answers with an operation: 202 when it has begun, 200 when it was only
// counted.
func (r *request) begun(op *broker.Operation, err error) (*wire.Operation, error) {
	if err != nil {
		return nil, err
	}
	if op.State == broker.OperationDryRun {
		r.status = http.StatusOK
		return operationOf(op), nil
	}
	r.status = http.StatusAccepted
	r.header("Location", "/v1/operations/"+op.ID)
	return operationOf(op), nil
}

// operationOf makes the wire's operation of the broker's.
func operationOf(op *broker.Operation) *wire.Operation {
	out := wire.Operation{
		ID: op.ID, Kind: op.Kind, State: wire.OperationState(op.State), Matched: op.Matched, Done: op.Done, Missed: op.Missed,
		BeganAt: wire.Time(op.Began), EndedAt: wire.Time(op.Ended), Error: op.Error,
	}
	if op.Kind != redriveKind {
		out.Filter = filterOf(&op.Filter)
	}
	if len(op.Samples) > 0 {
		out.Samples = messages(op.Samples)
	}
	return &out
}

// redriveKind is the kind of operation that selects no part of what waits.
const redriveKind = "redrive"

// filterOf makes the wire's filter of the broker's.
func filterOf(f *broker.Filter) *wire.Filter {
	out := &wire.Filter{
		Topic: f.Topic, Tag: f.Tag, Key: f.Key, IDs: f.IDs, From: wire.Time(f.From), To: wire.Time(f.To),
		State: wire.State(f.State), Overdue: f.Overdue,
	}
	out.All = !out.Selects()
	return out
}

// operations lists the bulk operations that are remembered.
func (h *Handler) operations(*request) (*wire.Operations, error) {
	all := h.b.Operations()
	out := wire.Operations{Operations: make([]wire.Operation, len(all))}
	for i := range all {
		out.Operations[i] = *operationOf(&all[i])
	}
	return &out, nil
}

// showOperation shows an operation, waiting for its end if asked to.
func (h *Handler) showOperation(r *request) (*wire.Operation, error) {
	wait, err := r.duration("wait")
	if err != nil {
		return nil, err
	}
	if wait < 0 || wait > broker.MaxWait {
		return nil, fmt.Errorf("%w: wait %v, want 0 to %v", errBadRequest, wait, broker.MaxWait)
	}
	id := r.path("operation")
	op, err := h.b.Operation(id)
	if err != nil || wait == 0 || op.State != broker.OperationRunning {
		return operationOf(&op), err
	}
	if op, err = h.wait(r.Context(), id, wait); err != nil {
		return nil, err
	}
	return operationOf(&op), nil
}

// wait waits for the end of an operation, for a time.
func (h *Handler) wait(ctx context.Context, id string, d time.Duration) (broker.Operation, error) {
	enough, stop := context.WithTimeout(ctx, d)
	defer stop()
	op, err := h.b.WaitOperation(enough, id)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return h.b.Operation(id)
	}
	return op, err
}

// stopOperation ends an operation before its end.
func (h *Handler) stopOperation(r *request) (*wire.Operation, error) {
	id := r.path("operation")
	if err := h.b.StopOperation(r.Context(), id); err != nil {
		return nil, err
	}
	op, err := h.b.Operation(id)
	return operationOf(&op), err
}
