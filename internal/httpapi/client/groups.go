package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// Groups lists consumer groups by name, a page at a time. limit 0 is the
// server's default.
func (c *Client) Groups(ctx context.Context, limit int, cursor string) (g wire.Groups, err error) {
	err = c.call(ctx, http.MethodGet, path("groups")+values(page(limit, cursor)), nil, &g)
	return g, err
}

// Group shows a consumer group and how it stands in its topics.
func (c *Client) Group(ctx context.Context, name string) (g wire.Group, err error) {
	err = c.call(ctx, http.MethodGet, path("groups", name), nil, &g)
	return g, err
}

// CreateGroup makes a consumer group. One that is there and is the same is no
// error.
func (c *Client) CreateGroup(ctx context.Context, n wire.NewGroup) (g wire.Group, err error) {
	err = c.call(ctx, http.MethodPost, path("groups"), &n, &g)
	return g, err
}

// UpdateGroup changes what is given of a group's settings; the others stay.
func (c *Client) UpdateGroup(ctx context.Context, name string, s wire.GroupSettings) (g wire.Group, err error) {
	err = c.call(ctx, http.MethodPatch, path("groups", name), &s, &g)
	return g, err
}

// DeleteGroup deletes a group with its positions and its dead letters. That
// cannot be undone.
func (c *Client) DeleteGroup(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, path("groups", name)+confirm(name), nil, nil)
}

// ResetGroup has a group go on elsewhere in a topic, or says where it would.
func (c *Client) ResetGroup(ctx context.Context, name string, r wire.Reset) (w wire.ResetReply, err error) {
	err = c.call(ctx, http.MethodPost, path("groups", name, "reset"), &r, &w)
	return w, err
}

// DeadGroups lists the groups that have dead letters, a page at a time.
func (c *Client) DeadGroups(ctx context.Context, limit int, cursor string) (g wire.DeadGroups, err error) {
	err = c.call(ctx, http.MethodGet, path("dlq")+values(page(limit, cursor)), nil, &g)
	return g, err
}

// DeadLetters lists the dead letters of a group, oldest first, a page at a time,
// with their bodies if asked.
func (c *Client) DeadLetters(ctx context.Context, group string, bodies bool, limit int, cursor string) (p wire.Page, err error) {
	v := page(limit, cursor)
	if bodies {
		v.Set("bodies", "true")
	}
	err = c.call(ctx, http.MethodGet, path("dlq", group)+values(v), nil, &p)
	return p, err
}

// Redrive begins to deliver dead letters of a group to it again, or says how
// many there are.
func (c *Client) Redrive(ctx context.Context, group string, r wire.Redrive) (o wire.Operation, err error) {
	err = c.call(ctx, http.MethodPost, path("dlq", group, "redrive"), &r, &o)
	return o, err
}

// PurgeDead drops dead letters of a group: those that are named, or all. That
// cannot be undone.
func (c *Client) PurgeDead(ctx context.Context, group string, ids []string) (p wire.PurgedDead, err error) {
	v := url.Values{}
	if len(ids) == 0 {
		v.Set("confirm", group)
	}
	err = c.call(ctx, http.MethodPost, path("dlq", group, "purge")+values(v), &wire.PurgeDead{IDs: ids}, &p)
	return p, err
}
