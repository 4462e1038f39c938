package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// receive leases messages to a group, waiting for the first one if asked to. A
// client that leaves meanwhile ends it, and what it would have got is given back.
func (h *Handler) receive(w http.ResponseWriter, r *request) error {
	var q wire.Receive
	if err := r.decode(maxBody, &q); err != nil {
		return err
	}
	got, err := h.b.Receive(r.Context(), broker.ReceiveRequest{
		Topic: r.PathValue("topic"), Group: q.Group, Max: q.Max,
		Wait: time.Duration(q.Wait), Invisible: time.Duration(q.Invisible),
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
		return err
	}
	return writeJSON(w, http.StatusOK, &reply)
}

// ack finishes one message.
func (h *Handler) ack(w http.ResponseWriter, r *request) error {
	errs, err := h.b.Ack(r.Context(), []string{r.PathValue("lease")})
	if err == nil {
		err = errs[0]
	}
	return done(w, err)
}

// ackAll finishes messages, each on its own.
func (h *Handler) ackAll(w http.ResponseWriter, r *request) error {
	var q wire.AckAll
	if err := r.decode(maxBody, &q); err != nil {
		return err
	}
	if len(q.Leases) == 0 {
		return fmt.Errorf("%w: no leases", errBadRequest)
	}
	errs, err := h.b.Ack(r.Context(), q.Leases)
	if err != nil {
		return err
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
	return writeJSON(w, http.StatusOK, &reply)
}

// nack gives a message back.
func (h *Handler) nack(w http.ResponseWriter, r *request) error {
	var q wire.Nack
	if err := r.decode(maxBody, &q); err != nil {
		return err
	}
	return done(w, h.b.Nack(r.Context(), r.PathValue("lease"), time.Duration(q.Delay)))
}

// extend prolongs a lease.
func (h *Handler) extend(w http.ResponseWriter, r *request) error {
	q := wire.Extend{Invisible: wire.Duration(broker.DefaultInvisible)}
	if err := r.decode(maxBody, &q); err != nil {
		return err
	}
	return done(w, h.b.Extend(r.Context(), r.PathValue("lease"), time.Duration(q.Invisible)))
}

func done(w http.ResponseWriter, err error) error {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
