package httpapi

import (
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// commit ends the transaction of a half message: it is delivered, with its delay
// counted from now.
func (h *Handler) commit(r *request) (*wire.Answer, error) {
	a, err := h.b.EndTransaction(r.Context(), r.path("id"), true)
	return answer(a, wire.StateWaiting), err
}

// rollback ends the transaction of a half message: it is never delivered.
func (h *Handler) rollback(r *request) (*wire.Answer, error) {
	a, err := h.b.EndTransaction(r.Context(), r.path("id"), false)
	return answer(a, wire.StateCancelled), err
}

// checks gives a producer the half messages that it must decide about, waiting
// for the first one if asked to.
func (h *Handler) checks(r *request, q *wire.Checks) (*wire.Halves, error) {
	got, err := h.b.Checks(r.Context(), q.Producer, q.Max, time.Duration(q.Wait))
	if err != nil {
		return nil, err
	}
	out := wire.Halves{Messages: make([]wire.Message, len(got))}
	for i := range got {
		out.Messages[i] = message(&got[i].View)
		out.Messages[i].Checks = got[i].Checks
	}
	return &out, nil
}

// transactions lists half messages.
func (h *Handler) transactions(r *request) (*wire.Halves, error) {
	return &wire.Halves{Messages: messages(h.b.Transactions(r.text("producer")))}, nil
}
