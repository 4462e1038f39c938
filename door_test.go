package duemq_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duemq/duemq"
	"github.com/duemq/duemq/duemqtest"
	"github.com/duemq/duemq/internal/httpapi"
)

// A bench is a queue on the bench: the store in memory whose clock and power the
// test has in hand, or a queue dialled to a server of that store. The test calls
// the methods of the Queue in it and must not notice which one it is.
type bench struct {
	*duemq.Queue

	t      *testing.T
	store  *duemqtest.TestQueue
	server *server // nil: the store itself
	url    string
	away   error // what calls fail with while the store is stopped
}

// An opener opens what is to be tested.
type opener func(t *testing.T, opts ...duemq.Option) *bench

// bothWays runs a test with Open and with Dial.
func bothWays(t *testing.T, test func(t *testing.T, open opener)) {
	t.Helper()
	t.Run("open", func(t *testing.T) { test(t, openBench) })
	t.Run("dial", func(t *testing.T) { test(t, dialBench) })
}

func openBench(t *testing.T, opts ...duemq.Option) *bench {
	t.Helper()
	store := duemqtest.New(t, opts...)
	return &bench{Queue: store.Queue, t: t, store: store, away: duemq.ErrClosed}
}

func dialBench(t *testing.T, opts ...duemq.Option) *bench {
	t.Helper()
	b := &bench{t: t, store: duemqtest.New(t, opts...), server: new(server), away: duemq.ErrUnavailable}
	b.server.serve(b.store.Queue)
	web := httptest.NewServer(b.server)
	t.Cleanup(web.Close)
	t.Cleanup(b.server.stop)
	b.url = web.URL
	b.dial()
	return b
}

// dial puts a new queue into the bench.
func (b *bench) dial(opts ...duemq.Option) {
	b.t.Helper()
	q, err := duemq.Dial(b.t.Context(), b.url, opts...)
	if err != nil {
		b.t.Fatalf("Dial(%q): %v", b.url, err)
	}
	b.Queue = q
	b.t.Cleanup(func() {
		if err := q.Close(); err != nil {
			b.t.Errorf("Close: %v", err)
		}
	})
}

// remote says that the queue is dialled.
func (b *bench) remote() bool { return b.server != nil }

func (b *bench) Advance(d time.Duration) { b.t.Helper(); b.store.Advance(d) }
func (b *bench) FailDisk()               { b.t.Helper(); b.store.FailDisk() }
func (b *bench) Stop()                   { b.t.Helper(); b.down(b.store.Stop) }
func (b *bench) PowerCut()               { b.t.Helper(); b.down(b.store.PowerCut) }
func (b *bench) Restart()                { b.t.Helper(); b.Stop(); b.Start() }
func (b *bench) Crash()                  { b.t.Helper(); b.PowerCut(); b.Start() }

func (b *bench) down(how func()) {
	if b.remote() {
		b.server.stop()
	}
	how()
}

// Reopen opens what was closed.
func (b *bench) Reopen() {
	b.t.Helper()
	if b.remote() {
		b.dial()
		return
	}
	b.Restart()
}

func (b *bench) Start() {
	b.t.Helper()
	b.store.Start()
	if b.remote() {
		b.server.serve(b.store.Queue)
		return
	}
	b.Queue = b.store.Queue
}

// A server answers for the store that is open, and hangs up while there is none.
type server struct {
	h      atomic.Pointer[httpapi.Handler]
	before atomic.Pointer[http.HandlerFunc] // sees requests first, if there is one
}

func (s *server) serve(store *duemq.Queue) {
	s.h.Store(httpapi.New(store.Broker(), httpapi.Options{Version: "test"}))
}

func (s *server) stop() {
	if h := s.h.Swap(nil); h != nil {
		h.Drain()
	}
}

// ServeHTTP answers.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f := s.before.Load(); f != nil {
		(*f)(w, r)
	}
	h := s.h.Load()
	if h == nil {
		panic(http.ErrAbortHandler)
	}
	h.ServeHTTP(w, r)
}

// pipes is a network within the process, for bubbles: a real socket keeps the
// time of a bubble from passing.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	ended chan struct{}

	refused atomic.Int32 // connections that are not to come about
	mu      sync.Mutex   // guards open
	open    []net.Conn
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), ended: make(chan struct{})} }

// Accept gives the server's end of the next connection.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.ended) })
	return nil
}

// Addr names the network.
func (*pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// dial gives the client's end of a new connection.
func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if p.refused.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: errors.New("refused")}
	}
	mine, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open = append(p.open, mine)
		return mine, nil
	case <-p.ended:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// client gives an HTTP client that knows this network only. Its connections are
// the caller's to close: CloseIdleConnections.
func (p *pipes) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: p.dial}}
}
