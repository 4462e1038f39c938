package httpapi

import (
	"net/http"
	"reflect"
	"slices"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// An action is what a route does, with the types that travel through it: the
// same that its function has, so that openapi.json, which is made from them,
// cannot say anything else.
type action struct {
	function any          // of the handler; its name is the operation's
	in       reflect.Type // JSON that it takes; nil: none
	out      reflect.Type // JSON that it answers with; nil: none
	kind     string       // media type of an answer that is no JSON of ours
	status   int          // of an answer, unless the function says otherwise
	also     []int        // what else the function may say
	note     extras

	serve func(h *Handler, w http.ResponseWriter, r *request) error
}

// extras is what few operations have.
type extras struct {
	raw     bool        // the body is bytes, whatever they are
	options bool        // takes the options of a message by header too, and an Idempotency-Key
	lines   string      // media type of a body with a JSON object a line
	stream  string      // media type of an answer for clients that accept it by name
	headers [][2]string // of an answer, with what they say
}

// show makes the action of a function that takes no body and answers in JSON.
func show[Out any](f func(*Handler, *request) (*Out, error)) action {
	return action{
		function: f, out: reflect.TypeFor[Out](), status: http.StatusOK,
		serve: func(h *Handler, w http.ResponseWriter, r *request) error {
			out, err := f(h, r)
			return r.answer(w, out, err)
		},
	}
}

// ask makes the action of a function that takes JSON and answers in JSON. An
// empty body is one without fields.
func ask[In, Out any](f func(*Handler, *request, *In) (*Out, error)) action {
	return action{
		function: f, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](), status: http.StatusOK,
		serve: func(h *Handler, w http.ResponseWriter, r *request) error {
			var in In
			if err := r.decode(maxBody, &in); err != nil {
				return err
			}
			out, err := f(h, r, &in)
			return r.answer(w, out, err)
		},
	}
}

// act makes the action of a function that takes no body and has nothing to
// answer.
func act(f func(*Handler, *request) error) action {
	return action{
		function: f, status: http.StatusNoContent,
		serve: func(h *Handler, w http.ResponseWriter, r *request) error { return r.done(w, f(h, r)) },
	}
}

// tell makes the action of a function that takes JSON, whose absent fields are
// those of preset, and has nothing to answer.
func tell[In any](preset In, f func(*Handler, *request, *In) error) action {
	return action{
		function: f, in: reflect.TypeFor[In](), status: http.StatusNoContent,
		serve: func(h *Handler, w http.ResponseWriter, r *request) error {
			in := preset
			if err := r.decode(maxBody, &in); err != nil {
				return err
			}
			return r.done(w, f(h, r, &in))
		},
	}
}

// write makes the action of a function that writes its answer itself, of the
// media type kind.
func write(kind string, f func(*Handler, http.ResponseWriter, *request) error) action {
	return action{function: f, kind: kind, status: http.StatusOK, serve: f}
}

// answering says which statuses the answers have: the first one, unless the
// function sets another of them as request.status.
func (a action) answering(status int, others ...int) action {
	a.status, a.also = status, others
	return a
}

// takingMessage says that the body is a message, whose options may be headers.
func (a action) takingMessage() action {
	a.note.raw, a.note.options = true, true
	return a.header(wire.ReplayedHeader, "true if the Idempotency-Key was used before: the answer is that to the first message")
}

// orStream has clients that accept the media type kind by name answered by f.
func (a action) orStream(kind string, f func(*Handler, http.ResponseWriter, *request) error) action {
	otherwise := a.serve
	a.note.stream = kind
	a.serve = func(h *Handler, w http.ResponseWriter, r *request) error {
		if r.accepts(kind) {
			return f(h, w, r)
		}
		return otherwise(h, w, r)
	}
	return a
}

// takingLines says that the function reads JSON of the type In by itself, also
// when it comes as objects in lines of the media type kind.
func takingLines[In any](a action, kind string) action {
	a.in, a.note.lines = reflect.TypeFor[In](), kind
	return a
}

// header says that answers may have that header.
func (a action) header(name, says string) action {
	a.note.headers = append(slices.Clip(a.note.headers), [2]string{name, says})
	return a
}

// answer writes JSON, unless there was an error.
func (r *request) answer(w http.ResponseWriter, out any, err error) error {
	if err != nil {
		return err
	}
	return writeJSON(w, r.code(), out)
}

// done writes an answer without a body, unless there was an error.
func (r *request) done(w http.ResponseWriter, err error) error {
	if err == nil {
		w.WriteHeader(r.code())
	}
	return err
}

// code gives the status of an answer.
func (r *request) code() int {
	if r.status != 0 {
		return r.status
	}
	return r.rt.status
}
