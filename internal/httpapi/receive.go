package httpapi

import (
	"fmt"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// receive leases messages to a group, waiting for the first one if asked to. A
// client that leaves meanwhile ends it, and what it would have got is given back.
func (h *Handler) receive(r *request, q *wire.Receive) (*wire.ReceiveReply, error) {
	got, err := h.b.Receive(r.Context(), broker.ReceiveRequest{
		Topic: r.path("topic"), Group: q.Group, Max: q.Max, MaxBytes: q.MaxBytes,
		Wait: time.Duration(q.Wait), Invisible: time.Duration(q.Invisible),
		Tags: q.Tags, Ordered: q.Ordered,
	})
	if err == nil {
		err = r.Context().Err()
	}
	reply := wire.ReceiveReply{Messages: make([]wire.Message, len(got))}
	leases := make([]string, len(got))
	for i := range got {
		reply.Messages[i] = message(&got[i].View)
		reply.Messages[i].Lease, leases[i] = got[i].Lease, got[i].Lease
	}
	if err != nil {
		h.b.Return(leases) // nobody will see them
		return nil, err
	}
	return &reply, nil
}

// ack finishes one message.
func (h *Handler) ack(r *request) error {
	errs, err := h.b.Ack(r.Context(), []string{r.path("lease")})
	if err == nil {
		err = errs[0]
	}
	return err
}

// ackAll finishes messages, each on its own.
func (h *Handler) ackAll(r *request, q *wire.AckAll) (*wire.AckAllReply, error) {
	if len(q.Leases) == 0 {
		return nil, fmt.Errorf("%w: no leases", errBadRequest)
	}
	errs, err := h.b.Ack(r.Context(), q.Leases)
	if err != nil {
		return nil, err
	}
	reply := wire.AckAllReply{Results: make([]wire.AckResult, len(errs))}
	for i, err := range errs {
		if err != nil {
			reply.Results[i].Problem, _ = h.problem(err)
			reply.Refused++
			continue
		}
		reply.Acked++
	}
	return &reply, nil
}

// giveBack gives back messages that nobody has seen: their attempts do not
// count. What is not leased any more is passed over.
func (h *Handler) giveBack(r *request, q *wire.AckAll) error {
	if len(q.Leases) == 0 {
		return fmt.Errorf("%w: no leases", errBadRequest)
	}
	h.b.Return(q.Leases)
	return nil
}

// nack gives a message back, for a time or for the group's back-off.
func (h *Handler) nack(r *request, q *wire.Nack) (*wire.NackReply, error) {
	got, err := h.b.Nack(r.Context(), r.path("lease"), (*time.Duration)(q.Delay))
	out := wire.NackReply{Due: wire.Time(got.Due), Dead: got.Dead}
	if got.Dead {
		out.DeadID = got.DeadID.String()
	}
	return &out, err
}

// extend prolongs a lease.
func (h *Handler) extend(r *request, q *wire.Extend) error {
	return h.b.Extend(r.Context(), r.path("lease"), time.Duration(q.Invisible))
}
