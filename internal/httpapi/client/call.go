package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// Limits of answers. A reply of messages may be as large as the server makes it.
const (
	maxReply   = 256 << 20
	maxProblem = 1 << 20
	maxDrain   = 64 << 10 // read of what is not looked at, so that its connection can be used again
)

// path joins escaped segments under /v1.
func path(segments ...string) string {
	escaped := []string{"/v1"}
	for _, s := range segments {
		s = url.PathEscape(s)
		if s == "." || s == ".." {
			s = strings.ReplaceAll(s, ".", "%2E") // it is a name, not a direction
		}
		escaped = append(escaped, s)
	}
	return strings.Join(escaped, "/")
}

// call sends in as JSON, if there is any, and reads the answer into out.
func (c *Client) call(ctx context.Context, method, to string, in, out any) error {
	q := request{method: method, to: to}
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return err
		}
		q.kind, q.body = "application/json", body
	}
	return c.do(ctx, &q, out)
}

// A request is one before it is sent.
type request struct {
	method string
	to     string // path and query
	kind   string // media type of the body; empty without one
	body   []byte
	header http.Header // what else it has

	answered http.Header // of the answer
}

// do sends one request, and reads its answer as JSON into out, if there is any.
func (c *Client) do(ctx context.Context, q *request, out any) error {
	w, err := c.open(ctx, q)
	if err != nil {
		return err
	}
	defer w.Body.Close()
	defer drain(w)
	q.answered = w.Header
	if out == nil {
		return nil // the status says it all
	}
	reply, err := io.ReadAll(io.LimitReader(w.Body, maxReply+1))
	if err != nil {
		return c.unavailable(err)
	}
	if len(reply) > maxReply {
		return fmt.Errorf("%s %s: the answer is longer than %d bytes", q.method, c.base+q.to, maxReply)
	}
	if err := json.Unmarshal(reply, out); err != nil {
		return fmt.Errorf("%s %s: the answer is not from a DueMQ server: %w", q.method, c.base+q.to, err)
	}
	return nil
}

// open sends one request. An error of the server is an error here; any other
// answer has to be closed. An empty segment in the path is an empty name, which
// no route can take.
func (c *Client) open(ctx context.Context, q *request) (*http.Response, error) {
	if p, _, _ := strings.Cut(q.to, "?"); strings.Contains(p, "//") || strings.HasSuffix(p, "/") {
		return nil, &Error{wire.Problem{Status: http.StatusBadRequest, Code: wire.CodeInvalidValue, Detail: "a topic, group, id or lease is empty"}}
	}
	var body io.Reader
	if q.kind != "" {
		body = bytes.NewReader(q.body)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, c.base+q.to, body)
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, q.header)
	r.Header.Set("User-Agent", c.agent)
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if q.kind != "" {
		r.Header.Set("Content-Type", q.kind)
	}
	w, err := c.http.Do(r)
	if err != nil {
		return nil, c.unavailable(err)
	}
	if w.StatusCode >= http.StatusMultipleChoices {
		err := refusal(w)
		drain(w)
		_ = w.Body.Close()
		return nil, err
	}
	return w, nil
}

// drain reads what nobody has looked at, so that the connection can be used
// again.
func drain(w *http.Response) {
	_, _ = io.CopyN(io.Discard, w.Body, maxDrain) // mostly nothing is left
}

// unavailable names the server once and keeps the reason.
func (c *Client) unavailable(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // its text repeats method and URL
	}
	return fmt.Errorf("%w: %s: %w", ErrUnavailable, c.base, err)
}

// refusal reads a problem. An answer without one, from a proxy perhaps, is told
// by its status.
func refusal(w *http.Response) error {
	e := &Error{}
	kind, _, err := mime.ParseMediaType(w.Header.Get("Content-Type"))
	if err == nil && kind == wire.ProblemType {
		text, rerr := io.ReadAll(io.LimitReader(w.Body, maxProblem))
		if rerr != nil || json.Unmarshal(text, &e.Problem) != nil {
			e.Problem = wire.Problem{}
		}
	}
	if e.Status == 0 {
		e.Status = w.StatusCode
		e.Detail = fmt.Sprintf("%s answered %s", w.Request.URL.Host, w.Status)
		if to := w.Header.Get("Location"); to != "" {
			e.Detail += ", to " + to
		}
	}
	return e
}
