package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// Publish sends one message; its body travels as it is. With a name it takes the
// place of one that waits under it.
func (c *Client) Publish(ctx context.Context, m wire.Send) (wire.Receipt, error) {
	r, _, err := c.PublishOnce(ctx, m)
	return r, err
}

// PublishOnce is Publish, and says whether the idempotency key of m was used
// before: the receipt is of the first message then.
func (c *Client) PublishOnce(ctx context.Context, m wire.Send) (out wire.Receipt, replayed bool, err error) {
	q := url.Values{}
	for name, value := range map[string]string{
		"after": m.After, "at": m.At, "tz": m.Zone, "level": string(m.Level), "key": m.Key, "tag": m.Tag, "transaction": m.Transaction,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if m.Queue != nil {
		q.Set("queue", strconv.Itoa(*m.Queue))
	}
	for name, value := range m.Headers {
		q.Set("property."+name, value)
	}
	r := request{method: http.MethodPost, to: path("topics", m.Topic, "messages"), kind: "application/octet-stream", body: m.Body}
	if m.Name != "" {
		r.method, r.to = http.MethodPut, path("topics", m.Topic, "messages", m.Name)
	}
	if len(q) > 0 {
		r.to += "?" + q.Encode()
	}
	if m.Text != "" {
		if len(m.Body) > 0 {
			return out, false, &Error{wire.Problem{Status: http.StatusBadRequest, Code: wire.CodeBadRequest, Detail: "both body and text; give one"}}
		}
		r.body = []byte(m.Text)
	}
	if m.IdempotencyKey != "" {
		r.header = http.Header{wire.IdempotencyHeader: {quoted(m.IdempotencyKey)}}
	}
	err = c.do(ctx, &r, &out)
	return out, r.answered.Get(wire.ReplayedHeader) == "true", err
}

// quoted writes a string as a header has it.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// MessageNamed looks at the message that waits, or waited last, under a name.
func (c *Client) MessageNamed(ctx context.Context, topic, name string) (m wire.Message, err error) {
	err = c.call(ctx, http.MethodGet, path("topics", topic, "messages", name), nil, &m)
	return m, err
}

// CancelNamed takes the message that waits under a name away.
func (c *Client) CancelNamed(ctx context.Context, topic, name string) (a wire.Answer, err error) {
	err = c.call(ctx, http.MethodDelete, path("topics", topic, "messages", name), nil, &a)
	return a, err
}

// Batch sends messages, each on its own: see the results.
func (c *Client) Batch(ctx context.Context, msgs []wire.Send) (r wire.BatchReply, err error) {
	err = c.call(ctx, http.MethodPost, path("batch"), &wire.Batch{Messages: msgs}, &r)
	return r, err
}

// Receive leases messages; none within r.Wait is an empty answer.
func (c *Client) Receive(ctx context.Context, topic string, r wire.Receive) ([]wire.Message, error) {
	var out wire.ReceiveReply
	err := c.call(ctx, http.MethodPost, path("topics", topic, "receive"), &r, &out)
	return out.Messages, err
}

// Ack finishes a message.
func (c *Client) Ack(ctx context.Context, lease string) error {
	return c.call(ctx, http.MethodPost, path("leases", lease, "ack"), nil, nil)
}

// AckAll finishes messages. The results have a problem for each lease that did
// not hold.
func (c *Client) AckAll(ctx context.Context, leases []string) (r wire.AckAllReply, err error) {
	err = c.call(ctx, http.MethodPost, path("leases", "ack"), &wire.AckAll{Leases: leases}, &r)
	return r, err
}

// Nack gives a message back: it may be received again after d.
func (c *Client) Nack(ctx context.Context, lease string, d time.Duration) error {
	return c.call(ctx, http.MethodPost, path("leases", lease, "nack"), &wire.Nack{Delay: (*wire.Duration)(&d)}, nil)
}

// Reject gives a message back: it may be received again after d, or after the
// group's back-off if d is nil. When its attempts are used up it is a dead
// letter instead.
func (c *Client) Reject(ctx context.Context, lease string, d *time.Duration) (r wire.NackReply, err error) {
	err = c.call(ctx, http.MethodPost, path("leases", lease, "nack"), &wire.Nack{Delay: (*wire.Duration)(d)}, &r)
	return r, err
}

// Bury makes a message a dead letter at once, and gives its id there.
func (c *Client) Bury(ctx context.Context, lease, reason string) (string, error) {
	var out wire.Buried
	err := c.call(ctx, http.MethodPost, path("leases", lease, "bury"), &wire.Bury{Reason: reason}, &out)
	return out.ID, err
}

// Extend has a lease run for d from now on; with 0 it ends.
func (c *Client) Extend(ctx context.Context, lease string, d time.Duration) error {
	in := struct { // a wire.Extend leaves 0 out, which is the server's default
		Invisible wire.Duration `json:"invisible"`
	}{wire.Duration(d)}
	return c.call(ctx, http.MethodPost, path("leases", lease, "extend"), &in, nil)
}

// Return gives back leases of messages that nobody has seen: they may be
// received again at once, and the attempt does not count.
func (c *Client) Return(ctx context.Context, leases []string) error {
	return c.call(ctx, http.MethodPost, path("leases", "return"), &wire.AckAll{Leases: leases}, nil)
}
