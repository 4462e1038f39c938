package httpapi

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// put sends one message under a name of the client's own. One that waits under
// the name is replaced, and the answer is 200.
func (h *Handler) put(r *request) (*wire.Receipt, error) {
	s, err := r.send()
	if err != nil {
		return nil, err
	}
	s.Name = r.path("name")
	out, err := h.publishOne(r, &s)
	if err != nil {
		return nil, err
	}
	if out.Replaced != "" {
		r.status = http.StatusOK
	}
	r.header("Location", "/v1/topics/"+segment(s.Topic)+"/messages/"+segment(s.Name))
	return out, nil
}

// showNamed shows the message that has a name.
func (h *Handler) showNamed(r *request) (*wire.Message, error) {
	v, err := h.b.MessageByName(r.Context(), r.path("topic"), r.path("name"))
	if err != nil {
		return nil, err
	}
	m := message(&v)
	return &m, nil
}

// cancelNamed takes the waiting message of a name away.
func (h *Handler) cancelNamed(r *request) (*wire.Answer, error) {
	v, err := h.b.MessageByName(r.Context(), r.path("topic"), r.path("name"))
	if err != nil {
		return nil, err
	}
	a, err := h.b.Cancel(r.Context(), v.ID.String())
	return answer(a, wire.StateCancelled), err
}

// segment escapes a name as one segment of a path, also one that would be a
// direction: . and ..
func segment(name string) string {
	s := url.PathEscape(name)
	if s == "." || s == ".." {
		s = strings.ReplaceAll(s, ".", "%2E")
	}
	return s
}
