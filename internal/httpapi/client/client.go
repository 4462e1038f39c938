// Package client speaks DueMQ's HTTP API. The command line and the library's
// Dial use it.
package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// ErrUnavailable is the class of servers that cannot be reached, or that broke
// off before they answered; what was asked may have happened. The error of a
// context that ended is in the same error.
var ErrUnavailable = errors.New("server cannot be reached")

// An Error is an answer that refuses. Its text is the problem's detail.
type Error struct{ wire.Problem }

// Error gives the detail, or what there is.
func (e *Error) Error() string {
	if e.Detail != "" {
		return e.Detail
	}
	return fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
}

// Answered says that an error is a server's answer.
func Answered(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok
}

// Unsent says that a request cannot have reached the server: no connection came
// about. Whatever it asks may be asked again.
func Unsent(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "dial"
}

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
	HTTP      *http.Client // default: one of its own, see New
	UserAgent string       // default duemq
	Token     string       // sent as Authorization: Bearer; default none
}

// Client talks to one server. Its methods are safe for concurrent use.
type Client struct {
	base  string // without a slash at its end
	http  *http.Client
	agent string
	token string
	own   *http.Transport // closed by Close; nil if the HTTP client is the caller's
}

// maxIdle is how many connections to the server are kept: as many as a busy
// program has calls at once.
const maxIdle = 256

// dialTimeout bounds how long a connection may take: a host that does not answer
// is told from one that is slow.
const dialTimeout = 10 * time.Second

// idleTimeout is how long a connection is kept without use. The server closes
// those that were idle for 2 minutes; a request that crosses that would be lost.
const idleTimeout = 90 * time.Second

// headerTimeout bounds how long the head of an answer may take. The server gives
// up on any request after 150 s, the longest wait of a receive included: what
// takes longer is no answer.
const headerTimeout = 3 * time.Minute

// New gives a client of the server at a URL such as http://127.0.0.1:9870, with
// a path before that of the API if there is one. It does not connect yet.
//
// Without an HTTP client in the options it has one of its own, which keeps
// connections, takes the proxy from the environment, follows no redirects (a
// POST would become a GET) and has no overall time-out: the context bounds each
// call.
func New(server string, o Options) (*Client, error) {
	u, err := url.Parse(server)
	switch {
	case err == nil && u.User != nil:
		// The text would show the password, now and in every later error.
		return nil, errors.New("server URL with a user name or password: give a token in their place")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("server %q: want a URL such as http://127.0.0.1:9870", server)
	}
	c := &Client{base: strings.TrimSuffix(u.String(), "/"), http: o.HTTP, agent: o.UserAgent, token: o.Token}
	if c.agent == "" {
		c.agent = "duemq"
	}
	if c.http == nil {
		dial := &net.Dialer{Timeout: dialTimeout}
		c.own = &http.Transport{
			DialContext: dial.DialContext, Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: dialTimeout, ResponseHeaderTimeout: headerTimeout,
			MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTimeout,
		}
		c.http = &http.Client{
			Transport:     c.own,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// Message looks at a message by id or handle.
func (c *Client) Message(ctx context.Context, ref string) (m wire.Message, err error) {
	err = c.call(ctx, http.MethodGet, path("messages", ref), nil, &m)
	return m, err
}

// Cancel takes a waiting message away, by id or handle. A nil error means that
// it will never be delivered.
func (c *Client) Cancel(ctx context.Context, ref string) (a wire.Answer, err error) {
	err = c.call(ctx, http.MethodDelete, path("messages", ref), nil, &a)
	return a, err
}

// Reschedule gives a waiting message another due, by id or handle.
func (c *Client) Reschedule(ctx context.Context, ref string, r wire.Reschedule) (a wire.Answer, err error) {
	err = c.call(ctx, http.MethodPatch, path("messages", ref), &r, &a)
	return a, err
}

// DeliverNow has a waiting message delivered at once, by id or handle.
func (c *Client) DeliverNow(ctx context.Context, ref string) (a wire.Answer, err error) {
	err = c.call(ctx, http.MethodPost, path("messages", ref, "deliver"), nil, &a)
	return a, err
}

// Pending lists what waits, a page at a time.
func (c *Client) Pending(ctx context.Context, q wire.PendingQuery) (p wire.Page, err error) {
	err = c.call(ctx, http.MethodGet, path("pending")+query(&q, true), nil, &p)
	return p, err
}

// Count counts what waits. Limit and Cursor are not read.
func (c *Client) Count(ctx context.Context, q wire.PendingQuery) (int64, error) {
	var n wire.Count
	err := c.call(ctx, http.MethodGet, path("pending", "count")+query(&q, false), nil, &n)
	return n.Count, err
}

// Stats gives the broker's figures.
func (c *Client) Stats(ctx context.Context) (s wire.Stats, err error) {
	err = c.call(ctx, http.MethodGet, path("stats"), nil, &s)
	return s, err
}

// AcceptClock has the broker believe its machine's clock as it is.
func (c *Client) AcceptClock(ctx context.Context) (k wire.Clock, err error) {
	err = c.call(ctx, http.MethodPost, path("clock", "accept"), nil, &k)
	return k, err
}

// Health says why only a restart of the server can help, nil if it is well.
func (c *Client) Health(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, "/healthz", nil, nil)
}

// Ready says why the server should get no traffic, nil if it should.
func (c *Client) Ready(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, "/readyz", nil, nil)
}

// Version says what runs.
func (c *Client) Version(ctx context.Context) (v wire.Version, err error) {
	err = c.call(ctx, http.MethodGet, "/version", nil, &v)
	return v, err
}

// query writes a PendingQuery; paged says whether limit and cursor count.
func query(q *wire.PendingQuery, paged bool) string {
	v := url.Values{}
	set := func(name, value string, given bool) {
		if given {
			v.Set(name, value)
		}
	}
	set("topic", q.Topic, q.Topic != "")
	set("tag", q.Tag, q.Tag != "")
	set("key", q.Key, q.Key != "")
	set("ids", strings.Join(q.IDs, ","), len(q.IDs) > 0)
	set("state", string(q.State), q.State != "")
	set("overdue", "true", q.Overdue)
	set("from", q.From.String(), q.From != 0)
	set("to", q.To.String(), q.To != 0)
	set("within", q.Within.String(), q.Within != 0)
	set("limit", strconv.Itoa(q.Limit), paged && q.Limit != 0)
	set("cursor", q.Cursor, paged && q.Cursor != "")
	return values(v)
}
