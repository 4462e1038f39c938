package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// Topics lists topics by name, a page at a time; system has those that the
// broker made for itself listed as well. limit 0 is the server's default.
func (c *Client) Topics(ctx context.Context, system bool, limit int, cursor string) (t wire.Topics, err error) {
	v := page(limit, cursor)
	if system {
		v.Set("system", "true")
	}
	err = c.call(ctx, http.MethodGet, path("topics")+values(v), nil, &t)
	return t, err
}

// Topic shows a topic with the offsets of its queues.
func (c *Client) Topic(ctx context.Context, name string) (t wire.Topic, err error) {
	err = c.call(ctx, http.MethodGet, path("topics", name), nil, &t)
	return t, err
}

// CreateTopic makes a topic. One that is there and is the same is no error.
func (c *Client) CreateTopic(ctx context.Context, n wire.NewTopic) (t wire.Topic, err error) {
	err = c.call(ctx, http.MethodPost, path("topics"), &n, &t)
	return t, err
}

// UpdateTopic changes attributes of a topic; the others stay.
func (c *Client) UpdateTopic(ctx context.Context, name string, p wire.TopicPatch) (t wire.Topic, err error) {
	err = c.call(ctx, http.MethodPatch, path("topics", name), &p, &t)
	return t, err
}

// PauseTopic stops a topic from delivering: what falls due is held back.
func (c *Client) PauseTopic(ctx context.Context, name string) (t wire.Topic, err error) {
	err = c.call(ctx, http.MethodPost, path("topics", name, "pause"), nil, &t)
	return t, err
}

// ResumeTopic lets a topic go on.
func (c *Client) ResumeTopic(ctx context.Context, name string) (t wire.Topic, err error) {
	err = c.call(ctx, http.MethodPost, path("topics", name, "resume"), nil, &t)
	return t, err
}

// DeleteTopic deletes a topic with all that is in it, and says how much went.
// That cannot be undone.
func (c *Client) DeleteTopic(ctx context.Context, name string) (p wire.Purged, err error) {
	err = c.call(ctx, http.MethodDelete, path("topics", name)+confirm(name), nil, &p)
	return p, err
}

// PurgeTopic empties a topic, and says how much went. That cannot be undone.
func (c *Client) PurgeTopic(ctx context.Context, name string) (p wire.Purged, err error) {
	err = c.call(ctx, http.MethodPost, path("topics", name, "purge")+confirm(name), nil, &p)
	return p, err
}

// confirm repeats the name of what is destroyed, as the server asks for.
func confirm(name string) string { return values(url.Values{"confirm": {name}}) }
