package duemq

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/httpapi/client"
)

// WithHTTPClient has Dial's queue send its requests through c, for certificates,
// proxies or tests of one's own. A receive is a request that takes 30 seconds
// when no message comes, or half of c's Timeout if that is less. c stays the
// caller's: Close does not close its connections.
func WithHTTPClient(c *http.Client) Option {
	return func(s *settings) { s.dialOnly, s.httpClient = append(s.dialOnly, "WithHTTPClient"), c }
}

// WithToken has Dial's queue send a token with each request, as Authorization:
// Bearer. Whoever sees the requests can use it, so it belongs into https.
func WithToken(token string) Option {
	return func(s *settings) { s.dialOnly, s.token = append(s.dialOnly, "WithToken"), token }
}

// Dial opens the queue that a server keeps: its HTTP API is at url, such as
// http://127.0.0.1:9870, https://example.org/duemq or just host:port, which is
// http. What is returned is what [Open] returns, and does what it says there,
// durability and classes of error included: the server takes the place of the
// folder. Several programs may dial one server.
//
// ctx bounds the first request, which finds out whether a DueMQ server is
// there. The errors are [ErrInvalid] for url and options and [ErrUnavailable].
//
// # What the network adds
//
// A call that cannot reach the server is made again, up to four times in all
// within about a second, and so is one that the server refuses because it is
// stopping or has too much to do. One that broke off before it was answered is made again only
// if twice is the same as once: looking, receiving, acknowledging, extending,
// setting topics and groups, and sending under an [IdempotencyKey]. Other
// sending, cancelling, moving, giving back and purging are not, nor is what
// begins an [Operation]. What is left is [ErrUnavailable], and whether the call
// took effect is then unknown.
//
// [Queue.Receive], [Queue.ReceiveBatch], [Queue.Handle], [Queue.Pull] and
// [Queue.Checks] go on for as long as they were told to wait, through restarts
// of the server too: [WithLogger] tells of that. An answer that is lost on its
// way is a message whose lease runs out; it is received again.
//
// Topics, keys, tags and headers must be UTF-8. [Queue.SendBatch] takes more
// than one request for more than 15 MiB; if a later one fails, the receipts of
// its messages say so.
//
// Methods without a context ask the server too, for 10 seconds at most, but
// Failed and Err: they are about a store in this process.
func Dial(ctx context.Context, url string, opts ...Option) (*Queue, error) {
	var s settings
	for _, o := range opts {
		o(&s)
	}
	if err := s.checkDial(); err != nil {
		return nil, err
	}
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	c, err := client.New(url, client.Options{HTTP: s.httpClient, Token: s.token})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	s.logger = s.loggerOr()
	k := s.clockOr(clock.Real())
	r := newRemote(ctx, c, k, &s)
	if err := r.greet(ctx); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return &Queue{b: r, clock: k, line: r.line, log: s.logger, closing: make(chan struct{})}, nil
}

// checkDial reports everything that is wrong with the settings of a Dial.
func (s *settings) checkDial() error {
	var errs []error
	for _, name := range s.openOnly {
		errs = append(errs, fmt.Errorf("%w: %s is an option of Open: the server has its own", ErrInvalid, name))
	}
	for i := range len(s.token) {
		if b := s.token[i]; b <= ' ' || b > '~' {
			errs = append(errs, fmt.Errorf("%w: the token holds a blank, a control character or one that is not ASCII, at byte %d", ErrInvalid, i))
			break
		}
	}
	return errors.Join(errs...)
}
