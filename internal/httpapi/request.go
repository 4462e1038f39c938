package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// Limits of bodies. That of a raw message is record.MaxBody.
const (
	maxBatchBody = broker.MaxBatchJSON
	maxBody      = broker.MaxJSON
	smallBody    = 16 << 10 // bytes that need no room: what waits for large bodies to arrive must not keep these out
)

// A request is one request on its way through a route.
type request struct {
	*http.Request

	h      *Handler
	rt     *route
	values map[string]string // of the query
	held   int64             // bytes of h.bodies

	status int         // of the answer; 0: the route's
	reply  http.Header // of the answer; for a function that sees no ResponseWriter
}

// query gives a parameter of the query, which the route must have.
func (r *request) query(name string) (string, bool) {
	if !takes(r.rt.query, name) {
		panic("the route " + r.rt.pattern + " does not say that it takes " + name)
	}
	v, ok := r.values[name]
	return v, ok
}

// text is query for those to whom absent and empty are the same.
func (r *request) text(name string) string {
	v, _ := r.query(name)
	return v
}

// path gives a parameter of the path, which the route must have.
func (r *request) path(name string) string {
	if !strings.Contains(r.rt.pattern, "{"+name+"}") {
		panic("the route " + r.rt.pattern + " has no " + name)
	}
	return r.PathValue(name)
}

// header sets a header of the answer, when nothing can go wrong any more. The
// route lists it.
func (r *request) header(name, value string) { r.reply.Set(name, value) }

// release gives back the room for the body.
func (r *request) release() {
	if r.held > 0 {
		r.h.bodies.Release(r.held)
		r.held = 0
	}
}

// parseQuery reads the query. A parameter that the route does not take, or that
// is given twice, is refused: an option that is not understood must not get lost
// in silence.
func parseQuery(raw string, known []string) (map[string]string, error) {
	if raw == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: query: %w", errBadRequest, err)
	}
	query := make(map[string]string, len(values))
	for name, v := range values {
		switch {
		case !takes(known, name):
			return nil, fmt.Errorf("%w %q: %s", errUnknownParameter, shorten(name), instead(name, known))
		case len(v) > 1:
			return nil, fmt.Errorf("%w: query parameter %q is given %d times", errBadRequest, shorten(name), len(v))
		case !utf8.ValidString(name) || !utf8.ValidString(v[0]):
			return nil, fmt.Errorf("%w: query parameter %q is not UTF-8", errBadRequest, shorten(name))
		}
		query[name] = v[0]
	}
	return query, nil
}

// body reads the body, of limit bytes at most, when there is room for it.
func (r *request) body(limit int64) ([]byte, error) {
	n := r.ContentLength
	if n > limit {
		return nil, tooLarge(limit)
	}
	if n < 0 {
		n = limit // not said beforehand
	}
	if n == 0 {
		return nil, nil
	}
	if n > smallBody {
		if err := r.h.bodies.Acquire(r.Context(), n); err != nil {
			return nil, err
		}
		r.held += n
	}
	if r.ContentLength < 0 {
		b, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
		if err == nil && int64(len(b)) > limit {
			err = tooLarge(limit)
		}
		return b, r.broken(err)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r.Body, b)
	return b, r.broken(err)
}

func tooLarge(limit int64) error {
	return fmt.Errorf("%w: the body's limit is %d bytes", errTooLarge, limit)
}

// broken gives an error of reading the body its class.
func (r *request) broken(err error) error {
	switch {
	case err == nil || errors.Is(err, errTooLarge):
		return err
	case r.Context().Err() != nil:
		return r.Context().Err()
	}
	return fmt.Errorf("%w: the body broke off: %w", errBadRequest, err)
}

// decode reads a body that is one JSON value. An empty one leaves into as it is.
func (r *request) decode(limit int64, into any) error {
	b, err := r.body(limit)
	if err != nil || len(b) == 0 {
		return err
	}
	return decode(b, into)
}

// decode reads one JSON value strictly: known fields, UTF-8, nothing behind it.
func decode(b []byte, into any) error {
	if !utf8.Valid(b) {
		return fmt.Errorf("%w: the JSON is not UTF-8", errBadRequest)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return decodeError(err, into)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows the JSON at byte %d; several values in a row are taken by /v1/batch as application/x-ndjson", errBadRequest, d.InputOffset())
	}
	return nil
}

// decodeError puts what encoding/json says into words of the API.
func decodeError(err error, into any) error {
	const unknown = "json: unknown field " // encoding/json has no type for it
	if name, ok := strings.CutPrefix(err.Error(), unknown); ok {
		name = strings.Trim(name, `"`)
		return fmt.Errorf("%w %q: %s", errUnknownField, shorten(name), instead(name, fields(reflect.TypeOf(into))))
	}
	var kind *json.UnmarshalTypeError
	var bad *json.SyntaxError
	switch {
	case errors.As(err, &kind):
		return fmt.Errorf("%w: %s at byte %d of the JSON does not fit field %q", errBadRequest, kind.Value, kind.Offset, kind.Field)
	case errors.As(err, &bad):
		return fmt.Errorf("%w: no JSON at byte %d: %s", errBadRequest, bad.Offset, bad.Error())
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("%w: the JSON is cut off", errBadRequest)
	case errors.Is(err, wire.ErrSyntax), errors.Is(err, wire.ErrRange):
		return err
	}
	return fmt.Errorf("%w: %w", errBadRequest, err)
}

// fields names the JSON fields of a struct and of what it holds.
func fields(t reflect.Type) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
		names = append(names, fields(f.Type)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// writeJSON answers.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that has left needs no answer
	return nil
}
