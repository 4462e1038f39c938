package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// Publish sends one message; its body travels as it is.
func (c *Client) Publish(ctx context.Context, m wire.Send) (wire.Receipt, error) {
	q := url.Values{}
	for name, value := range map[string]string{
		"after": m.After, "at": m.At, "tz": m.Zone, "level": string(m.Level), "key": m.Key, "tag": m.Tag,
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
	to := path("topics", m.Topic, "messages")
	if len(q) > 0 {
		to += "?" + q.Encode()
	}
	body := m.Body
	if m.Text != "" {
		if len(body) > 0 {
			return wire.Receipt{}, &Error{wire.Problem{Status: http.StatusBadRequest, Code: wire.CodeBadRequest, Detail: "both body and text; give one"}}
		}
		body = []byte(m.Text)
	}
	var out wire.Receipt
	err := c.do(ctx, &request{http.MethodPost, to, "application/octet-stream", body}, &out)
	return out, err
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
	return c.call(ctx, http.MethodPost, path("leases", lease, "nack"), &wire.Nack{Delay: wire.Duration(d)}, nil)
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
