package httpapi

import (
	"fmt"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
	"github.com/duemq/duemq/internal/record"
)

// publish sends one message whose body is the request's:
//
//	curl -d hello 'http://127.0.0.1:9870/v1/topics/orders/messages?after=10s'
func (h *Handler) publish(r *request) (*wire.Receipt, error) {
	s, err := r.send()
	if err != nil {
		return nil, err
	}
	out, err := h.publishOne(r, &s)
	if err != nil {
		return nil, err
	}
	r.header("Location", "/v1/messages/"+out.ID)
	return out, nil
}

// publishOne sends a message with the request's body.
func (h *Handler) publishOne(r *request, s *wire.Send) (*wire.Receipt, error) {
	m, err := h.toSend(s)
	if err != nil {
		return nil, err
	}
	if m.Body, err = r.body(record.MaxBody); err != nil {
		return nil, err
	}
	receipts, err := h.b.Send(r.Context(), []broker.Message{m})
	if err != nil {
		return nil, err
	}
	if err := receipts[0].Err; err != nil {
		return nil, err
	}
	if receipts[0].Repeat {
		r.header(wire.ReplayedHeader, "true")
	}
	out := receipt(&receipts[0])
	return &out, nil
}

// idempotency reads the key under which the request may be repeated. The draft
// wants it in quotes; without them it is taken as well.
func (r *request) idempotency() (string, error) {
	values := r.Header.Values(wire.IdempotencyHeader)
	if len(values) == 0 {
		return "", nil
	}
	v := values[0]
	switch {
	case len(values) > 1:
		return "", fmt.Errorf("%w: header %s is given %d times", errBadRequest, wire.IdempotencyHeader, len(values))
	case !utf8.ValidString(v):
		return "", fmt.Errorf("%w: header %s is not UTF-8", errBadRequest, wire.IdempotencyHeader)
	case len(v) >= 2 && v[0] == '"' && v[len(v)-1] == '"':
		v = quoted.Replace(v[1 : len(v)-1])
	}
	if v == "" {
		return "", fmt.Errorf("%w: header %s is empty", errBadRequest, wire.IdempotencyHeader)
	}
	return v, nil
}

// quoted undoes the escapes of a string in quotes.
var quoted = strings.NewReplacer(`\\`, `\`, `\"`, `"`)

// An option of a message, by query or by header.
type option struct {
	name   string // in the query
	header string
	set    func(s *wire.Send, value string) error
}

var options = []option{
	{"after", "Duemq-After", func(s *wire.Send, v string) error { s.After = v; return nil }},
	{"at", "Duemq-At", func(s *wire.Send, v string) error { s.At = plus(v); return nil }},
	{"tz", "Duemq-Tz", func(s *wire.Send, v string) error { s.Zone = v; return nil }},
	{"level", "Duemq-Level", func(s *wire.Send, v string) error { s.Level = wire.Level(v); return nil }},
	{"key", "Duemq-Key", func(s *wire.Send, v string) error { s.Key = v; return nil }},
	{"tag", "Duemq-Tag", func(s *wire.Send, v string) error { s.Tag = v; return nil }},
	{"queue", "Duemq-Queue", setQueue},
	{"transaction", "Duemq-Transaction", func(s *wire.Send, v string) error { s.Transaction = v; return nil }},
}

func setQueue(s *wire.Send, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil {
		return fmt.Errorf("%w: queue %q is no number", errBadRequest, shorten(v))
	}
	s.Queue = &n
	return nil
}

// spaceOffset is an instant whose offset lost its plus.
var spaceOffset = regexp.MustCompile(`(:\d{2}(?:\.\d+)?) (\d{2}:\d{2})$`)

// plus mends the instant of a URL in which somebody wrote +08:00 as it is: in a
// query, + is a blank. Nothing else can be meant.
func plus(at string) string { return spaceOffset.ReplaceAllString(at, "$1+$2") }

const propertyHeader = "Duemq-Property-"

// send reads a message but for its body. What is given both by query and by
// header is refused, and so is a header of ours that is not known.
func (r *request) send() (wire.Send, error) {
	key, err := r.idempotency()
	s := wire.Send{Topic: r.path("topic"), IdempotencyKey: key}
	if err != nil {
		return s, err
	}
	for name, value := range r.values {
		if p, ok := strings.CutPrefix(name, "property."); ok {
			setProperty(&s, p, value)
		}
	}
	for name, values := range r.Header {
		if !strings.HasPrefix(name, "Duemq-") {
			continue
		}
		if len(values) > 1 {
			return s, fmt.Errorf("%w: header %s is given %d times", errBadRequest, shorten(name), len(values))
		}
		if !utf8.ValidString(values[0]) {
			return s, fmt.Errorf("%w: header %s is not UTF-8", errBadRequest, shorten(name))
		}
		if p, ok := strings.CutPrefix(name, propertyHeader); ok && p != "" {
			// HTTP does not keep the case of names, so lower case it is.
			if !setProperty(&s, strings.ToLower(p), values[0]) {
				return s, fmt.Errorf("%w: property %q is given by query and by header", errBadRequest, shorten(p))
			}
			continue
		}
		if !slices.ContainsFunc(options, func(o option) bool { return o.header == name }) {
			return s, fmt.Errorf("%w: unknown header %s: %s", errBadRequest, shorten(name), instead(name, headers()))
		}
	}
	for _, o := range options {
		v, inQuery := r.query(o.name)
		if hv := r.Header[textproto.CanonicalMIMEHeaderKey(o.header)]; len(hv) > 0 {
			if inQuery {
				return s, fmt.Errorf("%w: %s is given by query and by header %s", errBadRequest, o.name, o.header)
			}
			v, inQuery = hv[0], true
		}
		if !inQuery {
			continue
		}
		if v == "" {
			return s, fmt.Errorf("%w: %s is empty", errBadRequest, o.name)
		}
		if err := o.set(&s, v); err != nil {
			return s, err
		}
	}
	return s, nil
}

func headers() []string {
	names := make([]string, 0, len(options)+1)
	for _, o := range options {
		names = append(names, o.header)
	}
	return append(names, propertyHeader+"NAME")
}

// setProperty says whether the property is new.
func setProperty(s *wire.Send, name, value string) bool {
	if s.Headers == nil {
		s.Headers = make(map[string]string)
	}
	_, there := s.Headers[name]
	s.Headers[name] = value
	return !there
}

// toSend makes the broker's message of a wire one.
func (h *Handler) toSend(s *wire.Send) (broker.Message, error) {
	m := broker.Message{
		Topic: s.Topic, Key: s.Key, Tag: s.Tag, Body: s.Body,
		Idempotency: s.IdempotencyKey, Name: s.Name, Half: s.Transaction,
	}
	if s.Text != "" {
		if len(s.Body) > 0 {
			return m, fmt.Errorf("%w: both body and text; give one", errBadRequest)
		}
		m.Body = []byte(s.Text)
	}
	if s.Queue != nil {
		m.Queue, m.HasQueue = *s.Queue, true
	}
	for name, value := range s.Headers {
		m.Properties = append(m.Properties, record.Property{Name: name, Value: value})
	}
	slices.SortFunc(m.Properties, func(a, b record.Property) int { return strings.Compare(a.Name, b.Name) })
	var err error
	m.Delay, err = h.delay(s.After, s.At, s.Zone, s.Level)
	return m, err
}

// delay reads a delay as the user typed it. More than one way of saying it is
// refused, since nobody can know which one was meant.
func (h *Handler) delay(after, at, zone string, level wire.Level) (broker.Delay, error) {
	var given []string
	for name, v := range map[string]string{"after": after, "at": at, "level": string(level)} {
		if v != "" {
			given = append(given, name)
		}
	}
	slices.Sort(given)
	if len(given) > 1 {
		return broker.Delay{}, fmt.Errorf("%w: %s are given; give one of them", errDelayConflict, strings.Join(given, " and "))
	}
	if zone != "" && at == "" {
		return broker.Delay{}, fmt.Errorf("%w: tz %q without an instant whose zone it is", errDelay, shorten(zone))
	}
	switch {
	case after != "":
		d, err := h.length(after)
		return broker.Delay{Kind: broker.DelayAfter, Value: wire.CeilMs(d)}, err
	case at != "":
		t, err := instant(at, zone)
		return broker.Delay{Kind: broker.DelayAt, Value: int64(wire.TimeOf(t))}, delayError(err)
	case level != "":
		n, err := wire.ParseLevel(level, h.b.LevelTable())
		return broker.Delay{Kind: broker.DelayLevel, Value: int64(n)}, delayError(err)
	}
	return broker.Delay{}, nil
}

// length reads a delay. One of more than 292 years is too long, as one of 292.
func (h *Handler) length(s string) (time.Duration, error) {
	d, err := wire.ParseDelay(s)
	if rowOf(err).class == wire.ErrRange { //nolint:errorlint // a class of the table
		return 0, fmt.Errorf("%w: %w, limit %v", broker.ErrDelayTooLong, err, h.b.MaxDelay())
	}
	return d, delayError(err)
}

func delayError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errDelay, err)
}

// instant reads an instant, in a zone if it names none itself.
func instant(s, zone string) (time.Time, error) {
	if zone == "" {
		return wire.ParseInstant(s, nil)
	}
	if zone == "Local" {
		return time.Time{}, fmt.Errorf("%w: tz %q is this server's own; name the zone, as in Asia/Shanghai", errBadRequest, zone)
	}
	z, err := time.LoadLocation(zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: tz %q is no time zone; write it as Asia/Shanghai", errBadRequest, shorten(zone))
	}
	return wire.ParseInstant(s, z)
}
