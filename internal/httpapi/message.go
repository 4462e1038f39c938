package httpapi

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// message shows one message, by id or handle.
func (h *Handler) message(r *request) (*wire.Message, error) {
	v, err := h.b.Message(r.Context(), r.path("id"))
	if err != nil {
		return nil, err
	}
	m := message(&v)
	return &m, nil
}

// cancel takes a waiting message away.
func (h *Handler) cancel(r *request) (*wire.Answer, error) {
	a, err := h.b.Cancel(r.Context(), r.path("id"))
	return answer(a, wire.StateCancelled), err
}

// reschedule gives a waiting message another due.
func (h *Handler) reschedule(r *request, q *wire.Reschedule) (*wire.Answer, error) {
	a, err := h.move(r, q)
	return answer(a, wire.StateWaiting), err
}

func (h *Handler) move(r *request, q *wire.Reschedule) (broker.Answer, error) {
	to, by, err := h.newDue(q)
	switch {
	case err != nil:
		return broker.Answer{}, err
	case q.By != "":
		return h.b.Shift(r.Context(), r.path("id"), by)
	}
	return h.b.Reschedule(r.Context(), r.path("id"), to)
}

// newDue reads where a message is moved to, or by how much.
func (h *Handler) newDue(q *wire.Reschedule) (to broker.Delay, by time.Duration, err error) {
	switch {
	case q.By != "" && (q.At != "" || q.After != "" || q.Level != ""):
		err = fmt.Errorf("%w: by moves the due that the message has; give it alone", errDelayConflict)
	case q.By != "":
		by, err = h.length(q.By)
	case q.At == "" && q.After == "" && q.Level == "":
		err = fmt.Errorf("%w: no new due; give deliverAt, deliverAfter, by or level", errBadRequest)
	default:
		to, err = h.delay(q.After, q.At, q.Zone, q.Level)
	}
	return to, by, err
}

// deliverNow has a waiting message delivered at once.
func (h *Handler) deliverNow(r *request) (*wire.Answer, error) {
	a, err := h.b.DeliverNow(r.Context(), r.path("id"))
	return answer(a, wire.StateWaiting), err
}

func answer(a broker.Answer, s wire.State) *wire.Answer {
	return &wire.Answer{ID: a.ID.String(), Topic: a.Topic, DeliverAt: wire.Time(a.Due), State: s}
}

// message makes the wire's message of a view.
func message(v *broker.View) wire.Message {
	m := wire.Message{
		ID: v.ID.String(), Topic: v.Topic, Queue: v.Queue, Key: v.Key, Tag: v.Tag, Body: v.Body,
		BornAt: wire.Time(v.Born), StoredAt: wire.Time(v.Stored), Level: v.Level,
		DeliverAt: wire.Time(v.Due), VisibleAt: wire.Time(v.VisibleAt),
		Attempt: v.Attempt, Handle: v.Handle, State: wire.State(v.State),
		NextAttemptAt: wire.Time(v.NextAttempt), Group: v.Group, OriginTopic: v.OriginTopic, Reason: v.Reason,
	}
	if v.Origin != 0 {
		m.Origin = v.Origin.String()
	}
	if v.HasOffset {
		o := uint64(v.Offset)
		m.Offset = &o
	}
	if len(v.Properties) > 0 {
		m.Headers = make(map[string]string, len(v.Properties))
		for _, p := range v.Properties {
			m.Headers[p.Name] = p.Value
		}
	}
	if utf8.Valid(v.Body) {
		m.Text = string(v.Body)
	}
	if v.Due != 0 && v.VisibleAt != 0 {
		late := v.Lateness().Milliseconds()
		m.LatenessMs = &late
	}
	return m
}

// messages makes the wire's messages of views.
func messages(vs []broker.View) []wire.Message {
	out := make([]wire.Message, len(vs))
	for i := range vs {
		out[i] = message(&vs[i])
	}
	return out
}

// receipt makes the wire's receipt of the broker's.
func receipt(r *broker.Receipt) wire.Receipt {
	out := wire.Receipt{
		ID: r.ID.String(), Topic: r.Topic, Queue: r.Queue,
		DeliverAt: wire.Time(r.Due), Handle: r.Handle, State: wire.State(r.State),
	}
	if r.Ready {
		o := uint64(r.Offset)
		out.Offset = &o
	}
	if r.Replaced != 0 {
		out.Replaced = r.Replaced.String()
	}
	return out
}
