package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// with adds parameters to a path: name, value and so on; empty ones are left
// out.
func with(to string, pairs ...string) string {
	v := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			v.Set(pair[0], pair[1])
		}
	}
	if len(v) == 0 {
		return to
	}
	return to + "?" + v.Encode()
}

// text gives what is not zero.
func text[T int | int64 | uint64](n T) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func span(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// PutTopic makes a topic, or gives the one that is there these attributes and no
// others.
func (c *Client) PutTopic(ctx context.Context, name string, s wire.TopicSettings) (t wire.Topic, err error) {
	err = c.call(ctx, http.MethodPut, path("topics", name), &s, &t)
	return t, err
}

// A PullQuery asks for messages of a queue. Zero is the server's default.
type PullQuery struct {
	Topic    string
	Queue    int
	Offset   uint64
	Max      int // default 1
	MaxBytes int
	Wait     time.Duration // for the first one; default 0
	Tags     string
}

// Pull reads messages of a queue, without a group and without leases.
func (c *Client) Pull(ctx context.Context, q PullQuery) (p wire.Pulled, err error) {
	to := with(path("topics", q.Topic, "queues", strconv.Itoa(q.Queue), "messages"),
		"offset", text(q.Offset), "max", text(q.Max), "maxBytes", text(q.MaxBytes), "wait", span(q.Wait), "tags", q.Tags)
	err = c.call(ctx, http.MethodGet, to, nil, &p)
	return p, err
}

// SearchOffset finds the first offset of a queue that became visible at an
// instant or later.
func (c *Client) SearchOffset(ctx context.Context, topic string, queue int, at wire.Time) (uint64, error) {
	var o wire.Offset
	err := c.call(ctx, http.MethodGet, with(path("topics", topic, "queues", strconv.Itoa(queue), "offset"), "at", at.String()), nil, &o)
	return o.Offset, err
}

// PutGroup makes a consumer group, or gives the one that is there this
// configuration.
func (c *Client) PutGroup(ctx context.Context, name string, s wire.GroupSettings) (g wire.Group, err error) {
	err = c.call(ctx, http.MethodPut, path("groups", name), &s, &g)
	return g, err
}

// Offsets gives a pull consumer's next offsets in a topic, by queue.
func (c *Client) Offsets(ctx context.Context, group, topic string) (map[int]wire.Number, error) {
	var o wire.Offsets
	err := c.call(ctx, http.MethodGet, with(path("groups", group, "offsets"), "topic", topic), nil, &o)
	return o.Offsets, err
}

// CommitOffsets notes a pull consumer's next offsets in a topic, by queue.
func (c *Client) CommitOffsets(ctx context.Context, group, topic string, offsets map[int]wire.Number) error {
	return c.call(ctx, http.MethodPut, with(path("groups", group, "offsets"), "topic", topic), &wire.Offsets{Offsets: offsets}, nil)
}

// LockQueues takes queues for a client that consumes them in order, or renews
// that, and says which it has.
func (c *Client) LockQueues(ctx context.Context, group string, q wire.Lock) ([]int, error) {
	var r wire.LockReply
	err := c.call(ctx, http.MethodPost, path("groups", group, "locks"), &q, &r)
	return r.Held, err
}

// UnlockQueues gives such queues back.
func (c *Client) UnlockQueues(ctx context.Context, group string, q wire.Unlock) error {
	return c.call(ctx, http.MethodPost, path("groups", group, "unlock"), &q, nil)
}

// maxLine bounds one line of an export: a message in JSON.
const maxLine = 32 << 20

// ExportDead hands each of a group's dead letters, with its body, to fn, as one
// line of JSON and as the message that it is. It ends with fn's error.
func (c *Client) ExportDead(ctx context.Context, group string, fn func(line []byte, m *wire.Message) error) error {
	w, err := c.open(ctx, &request{method: http.MethodGet, to: path("dlq", group), header: http.Header{"Accept": {"application/x-ndjson"}}})
	if err != nil {
		return err
	}
	defer w.Body.Close()
	lines := bufio.NewScanner(w.Body)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var m wire.Message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return fmt.Errorf("dead letters of %s: %w", group, err)
		}
		if err := fn(lines.Bytes(), &m); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return c.unavailable(err)
	}
	return nil
}

// Backup copies the store to w, as it is now. A copy that ends early is told
// from a whole one by its reader.
func (c *Client) Backup(ctx context.Context, w io.Writer) (int64, error) {
	r, err := c.open(ctx, &request{method: http.MethodGet, to: path("backup")})
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	n, err := io.Copy(w, body{c, r.Body})
	return n, err
}

// body tells the server's failures from those of who takes what it sends.
type body struct {
	c *Client
	r io.Reader
}

// Read reads.
func (b body) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // the very value, as io.Copy compares it
		err = b.c.unavailable(err)
	}
	return n, err
}

// Checks hands out half messages that their producer must decide about, waiting
// for the first one if asked to.
func (c *Client) Checks(ctx context.Context, q wire.Checks) (h wire.Halves, err error) {
	err = c.call(ctx, http.MethodPost, path("transactions", "checks"), &q, &h)
	return h, err
}

// Retention says what is kept, and for how long.
func (c *Client) Retention(ctx context.Context) (r wire.Retention, err error) {
	err = c.call(ctx, http.MethodGet, path("retention"), nil, &r)
	return r, err
}
