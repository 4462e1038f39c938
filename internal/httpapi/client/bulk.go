package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// Timeline counts what waits by when it falls due.
func (c *Client) Timeline(ctx context.Context, q wire.TimelineQuery) (t wire.Timeline, err error) {
	v := url.Values{}
	if q.Topic != "" {
		v.Set("topic", q.Topic)
	}
	if q.From != 0 {
		v.Set("from", q.From.String())
	}
	if q.To != 0 {
		v.Set("to", q.To.String())
	}
	if q.Step != 0 {
		v.Set("step", q.Step.String())
	}
	if q.ByTopic {
		v.Set("by", "topic")
	}
	err = c.call(ctx, http.MethodGet, path("pending", "timeline")+values(v), nil, &t)
	return t, err
}

// BulkCancel begins to cancel what a filter selects, or counts it.
func (c *Client) BulkCancel(ctx context.Context, b wire.BulkCancel) (o wire.Operation, err error) {
	err = c.call(ctx, http.MethodPost, path("pending", "cancel"), &b, &o)
	return o, err
}

// BulkDeliver begins to deliver at once what a filter selects, or counts it.
func (c *Client) BulkDeliver(ctx context.Context, b wire.BulkCancel) (o wire.Operation, err error) {
	err = c.call(ctx, http.MethodPost, path("pending", "deliver"), &b, &o)
	return o, err
}

// BulkReschedule begins to give what a filter selects another due, or counts it.
func (c *Client) BulkReschedule(ctx context.Context, b wire.BulkReschedule) (o wire.Operation, err error) {
	err = c.call(ctx, http.MethodPost, path("pending", "reschedule"), &b, &o)
	return o, err
}

// BulkSpread begins to spread what a filter selects over a stretch of time, or
// counts it.
func (c *Client) BulkSpread(ctx context.Context, b wire.BulkSpread) (o wire.Operation, err error) {
	err = c.call(ctx, http.MethodPost, path("pending", "spread"), &b, &o)
	return o, err
}

// Operations lists the bulk operations that are remembered, oldest first.
func (c *Client) Operations(ctx context.Context) (o wire.Operations, err error) {
	err = c.call(ctx, http.MethodGet, path("operations"), nil, &o)
	return o, err
}

// Operation shows a bulk operation. With a wait it is answered when the operation
// has ended, or when so much time has passed.
func (c *Client) Operation(ctx context.Context, id string, wait time.Duration) (o wire.Operation, err error) {
	v := url.Values{}
	if wait > 0 {
		v.Set("wait", wire.Duration(wait).String())
	}
	err = c.call(ctx, http.MethodGet, path("operations", id)+values(v), nil, &o)
	return o, err
}

// StopOperation has a bulk operation end before its end. What it has done stays
// done.
func (c *Client) StopOperation(ctx context.Context, id string) (o wire.Operation, err error) {
	err = c.call(ctx, http.MethodPost, path("operations", id, "stop"), nil, &o)
	return o, err
}

// Transactions lists the half messages of a group of producers, of all if it is
// empty.
func (c *Client) Transactions(ctx context.Context, producer string) (h wire.Halves, err error) {
	v := url.Values{}
	if producer != "" {
		v.Set("producer", producer)
	}
	err = c.call(ctx, http.MethodGet, path("transactions")+values(v), nil, &h)
	return h, err
}

// EndTransaction has a half message delivered, or drops it.
func (c *Client) EndTransaction(ctx context.Context, id string, commit bool) (a wire.Answer, err error) {
	end := "rollback"
	if commit {
		end = "commit"
	}
	err = c.call(ctx, http.MethodPost, path("transactions", id, end), nil, &a)
	return a, err
}

// Limits lists the limits of everything.
func (c *Client) Limits(ctx context.Context) (l wire.Limits, err error) {
	err = c.call(ctx, http.MethodGet, path("limits"), nil, &l)
	return l, err
}

// page gives the query of a page of a listing.
func page(limit int, cursor string) url.Values {
	v := url.Values{}
	if limit != 0 {
		v.Set("limit", strconv.Itoa(limit))
	}
	if cursor != "" {
		v.Set("cursor", cursor)
	}
	return v
}

// values writes a query with what leads to it.
func values(v url.Values) string {
	if len(v) == 0 {
		return ""
	}
	return "?" + v.Encode()
}
