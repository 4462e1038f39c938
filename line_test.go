package duemq_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duemq/duemq"
	"github.com/duemq/duemq/duemqtest"
	"github.com/duemq/duemq/internal/httpapi"
)

// inBubble runs a test in a bubble with a server that h makes, on a network of
// the bubble's own, and a queue dialled to it.
func inBubble(t *testing.T, h http.Handler, test func(t *testing.T, q *duemq.Queue, n *pipes), opts ...duemq.Option) {
	t.Helper()
	n := newPipes()
	web := &http.Server{Handler: h}
	var wg sync.WaitGroup
	wg.Go(func() { web.Serve(n) })
	defer wg.Wait()
	defer web.Close()
	c := n.client()
	defer c.CloseIdleConnections()
	q, err := duemq.Dial(t.Context(), "localhost", append(opts, duemq.WithHTTPClient(c))...)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	test(t, q, n)
	if err := q.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// everyRequest makes each call that is one request, and says whether twice is
// the same as once.
var everyRequest = []struct {
	name  string
	twice bool
	call  func(ctx context.Context, q *duemq.Queue, held *duemq.Message) error
}{
	{"Send", false, func(ctx context.Context, q *duemq.Queue, _ *duemq.Message) error {
		_, err := q.Send(ctx, topic, nil)
		return err
	}},
	{"SendBatch", false, func(ctx context.Context, q *duemq.Queue, _ *duemq.Message) error {
		_, err := q.SendBatch(ctx, []duemq.Message{{Topic: topic}, {Topic: topic}})
		return err
	}},
	{"Cancel", false, func(ctx context.Context, q *duemq.Queue, m *duemq.Message) error { return q.Cancel(ctx, m.ID) }},
	{"Reschedule", false, func(ctx context.Context, q *duemq.Queue, m *duemq.Message) error {
		return q.Reschedule(ctx, m.ID, duemq.After(time.Hour))
	}},
	{"Shift", false, func(ctx context.Context, q *duemq.Queue, m *duemq.Message) error {
		return q.Shift(ctx, m.ID, time.Hour)
	}},
	{"DeliverNow", false, func(ctx context.Context, q *duemq.Queue, m *duemq.Message) error { return q.DeliverNow(ctx, m.ID) }},
	{"Retry", false, func(ctx context.Context, _ *duemq.Queue, m *duemq.Message) error { return m.Retry(ctx, duemq.After(0)) }},
	{"Bury", false, func(ctx context.Context, _ *duemq.Queue, m *duemq.Message) error { return m.Bury(ctx, "") }},
	{"Send under a key", true, func(ctx context.Context, q *duemq.Queue, _ *duemq.Message) error {
		_, err := q.Send(ctx, topic, nil, duemq.IdempotencyKey("k"))
		return err
	}},
	{"SendBatch under keys", true, func(ctx context.Context, q *duemq.Queue, _ *duemq.Message) error {
		_, err := q.SendBatch(ctx, []duemq.Message{{Topic: topic, IdempotencyKey: "a"}, {Topic: topic, IdempotencyKey: "b"}})
		return err
	}},
	{"SendBatch, one without a key", false, func(ctx context.Context, q *duemq.Queue, _ *duemq.Message) error {
		_, err := q.SendBatch(ctx, []duemq.Message{{Topic: topic, IdempotencyKey: "a"}, {Topic: topic}})
		return err
	}},
	{"CommitTx", false, func(ctx context.Context, q *duemq.Queue, m *duemq.Message) error { return q.CommitTx(ctx, m.ID) }},
	{"CancelNamed", false, func(ctx context.Context, q *duemq.Queue, _ *duemq.Message) error {
		return q.CancelNamed(ctx, topic, "n")
	}},
	{"CancelWhere", false, func(ctx context.Context, q *duemq.Queue, _ *duemq.Message) error {
		_, err := q.CancelWhere(ctx, duemq.All())
		return err
	}},
	{"Redrive", false, func(ctx context.Context, q *duemq.Queue, _ *duemq.Message) error {
		_, err := q.Redrive(ctx, "g")
		return err
	}},
	{"Purge", false, func(ctx context.Context, q *duemq.Queue, _ *duemq.Message) error {
		_, err := q.Purge(ctx, topic)
		return err
	}},
	{"Resume", true, func(ctx context.Context, q *duemq.Queue, _ *duemq.Message) error { return q.Resume(ctx, topic) }},
	{"CreateGroup", true, func(ctx context.Context, q *duemq.Queue, _ *duemq.Message) error {
		_, err := q.CreateGroup(ctx, "g")
		return err
	}},
	{"Commit", true, func(ctx context.Context, q *duemq.Queue, _ *duemq.Message) error {
		return q.Commit(ctx, "g", topic, map[int]int64{0: 1})
	}},
	{"Topics", true, func(ctx context.Context, q *duemq.Queue, _ *duemq.Message) error { _, err := q.Topics(ctx); return err }},
	{"Pull", true, func(ctx context.Context, q *duemq.Queue, _ *duemq.Message) error {
		_, err := q.Pull(ctx, topic, 0, 0, duemq.Wait(0))
		return err
	}},
	{"Extend", true, func(ctx context.Context, _ *duemq.Queue, m *duemq.Message) error { return m.Extend(ctx, time.Minute) }},
	{"Ack", true, func(ctx context.Context, _ *duemq.Queue, m *duemq.Message) error { return m.Ack(ctx) }},
	{"Get", true, func(ctx context.Context, q *duemq.Queue, m *duemq.Message) error {
		_, err := q.Get(ctx, m.ID)
		return err
	}},
	{"Count", true, func(ctx context.Context, q *duemq.Queue, _ *duemq.Message) error { _, err := q.Count(ctx); return err }},
	{"Stats", true, func(_ context.Context, q *duemq.Queue, _ *duemq.Message) error { _, err := q.Stats(); return err }},
	{"Ready", true, func(_ context.Context, q *duemq.Queue, _ *duemq.Message) error { return q.Ready() }},
	{"ReceiveBatch", true, func(ctx context.Context, q *duemq.Queue, _ *duemq.Message) error {
		_, err := q.ReceiveBatch(ctx, topic, duemq.Wait(0))
		return err
	}},
	{"Pending", true, func(ctx context.Context, q *duemq.Queue, _ *duemq.Message) (err error) {
		for _, err = range q.Pending(ctx) {
		}
		return err
	}},
}

// TestWhatIsAskedTwice: a call that broke off before it was answered is made
// again only if twice is the same as once; one that did not reach the server, or
// was turned away at its door, always.
func TestWhatIsAskedTwice(t *testing.T) {
	problem := func(code string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintf(w, `{"status":503,"code":%q}`, code)
		}
	}
	for name, c := range map[string]struct {
		fail    http.HandlerFunc
		untaken bool
	}{
		"broken off":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false},
		"proxy":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, false},
		"out of time":   {problem("timeout"), false},
		"stopping":      {problem("draining"), true},
		"too much":      {problem("overloaded"), true},
		"no connection": {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { askTwice(t, c.fail, c.untaken) })
		})
	}
}

func askTwice(t *testing.T, fail http.HandlerFunc, untaken bool) {
	store := duemqtest.NewInBubble(t)
	h := httpapi.New(store.Broker(), httpapi.Options{})
	left, asked := 0, 0
	door := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; left > 0 {
			left--
			fail(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
	inBubble(t, door, func(t *testing.T, q *duemq.Queue, n *pipes) {
		for _, c := range everyRequest {
			send(t, store.Queue, "x")
			got, err := q.ReceiveBatch(t.Context(), topic, duemq.Wait(0))
			if err != nil || len(got) == 0 {
				t.Fatalf("%s: %d received, %v", c.name, len(got), err)
			}
			held := got[0]
			if !slices.Contains([]string{"Ack", "Retry", "Bury", "Extend"}, c.name) {
				held = &duemq.Message{ID: send(t, store.Queue, "y", duemq.After(time.Hour)).ID}
			}
			for _, failures := range []int{1, 3, 4} {
				asked, left = 0, failures
				if fail == nil {
					n.refuse(failures)
					left = 0
				}
				err := c.call(t.Context(), q, held)
				again := (c.twice || untaken) && failures < 4
				if away := errors.Is(err, duemq.ErrUnavailable); away == again {
					t.Errorf("%s, %d failures: %v; want it made again: %v", c.name, failures, err, again)
				}
				if want := map[bool]int{true: min(failures+1, 4), false: 1}[c.twice || untaken]; fail != nil && asked != want {
					t.Errorf("%s, %d failures: asked %d times, want %d", c.name, failures, asked, want)
				}
				left = 0
				n.refuse(0)
			}
		}
	})
}

// refuse has the next connections not come about; those that are idle break.
func (p *pipes) refuse(n int) {
	p.refused.Store(int32(n))
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		c.Close()
	}
	p.open = nil
	synctest.Wait()
}

// TestReceiveOutlivesItsServer: a loop goes on when the server is back, and the
// operator is told twice.
func TestReceiveOutlivesItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := duemqtest.NewInBubble(t)
		door := new(server)
		door.serve(store.Queue)
		var told bytes.Buffer
		inBubble(t, door, func(t *testing.T, q *duemq.Queue, _ *pipes) {
			start := time.Now()
			send(t, q, "before", duemq.After(time.Second))
			send(t, q, "while away", duemq.After(time.Minute))
			send(t, q, "after", duemq.After(10*time.Minute))
			var got []string
			var wg sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			wg.Go(func() {
				for m, err := range q.Receive(ctx, topic) {
					if err != nil {
						if !errors.Is(err, context.Canceled) {
							t.Errorf("Receive: %v", err)
						}
						return
					}
					got = append(got, fmt.Sprintf("%s %v", m.Body, m.VisibleAt.Sub(start)))
					if err := m.Ack(ctx); err != nil {
						t.Errorf("Ack: %v", err)
					}
				}
			})
			time.Sleep(30 * time.Second)
			door.stop()
			store.Stop()
			time.Sleep(5 * time.Minute)
			store.Start()
			door.serve(store.Queue)
			time.Sleep(5 * time.Minute)
			cancel()
			wg.Wait()
			if s := strings.Join(got, ", "); s != "before 1s, while away 5m30s, after 10m0s" {
				t.Errorf("received %s", s)
			}
		}, duemq.WithLogger(slog.New(slog.NewTextHandler(&told, nil))))
		if s := told.String(); strings.Count(s, "\n") != 2 || !strings.Contains(s, "level=WARN msg=\"the server is away") || !strings.Contains(s, "the server is back") {
			t.Errorf("told:\n%s", s)
		}
	})
}

// TestWaitForAServerThatIsAway is no longer than was said, and not shorter.
func TestWaitForAServerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := duemqtest.NewInBubble(t)
		door := new(server)
		door.serve(store.Queue)
		inBubble(t, door, func(t *testing.T, q *duemq.Queue, _ *pipes) {
			door.stop()
			for wait, most := range map[time.Duration]time.Duration{0: 2 * time.Second, time.Minute: time.Minute} {
				began := time.Now()
				got, err := q.ReceiveBatch(t.Context(), topic, duemq.Wait(wait))
				if took := time.Since(began); len(got) != 0 || !errors.Is(err, duemq.ErrUnavailable) || took < wait || took > most {
					t.Errorf("Wait(%v): %d messages, %v, after %v", wait, len(got), err, took)
				}
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := q.ReceiveBatch(t.Context(), topic); !errors.Is(err, duemq.ErrClosed) {
					t.Errorf("ReceiveBatch: %v, want %v", err, duemq.ErrClosed)
				}
			})
			time.Sleep(time.Hour)
			if err := q.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			wg.Wait()
		})
	})
}

// TestPollsAreBounded: a receive is a request of 30 seconds, or of half of what
// the HTTP client allows.
func TestPollsAreBounded(t *testing.T) {
	for timeout, want := range map[time.Duration]string{0: "30s", 10 * time.Second: "5s", 2 * time.Minute: "30s"} {
		synctest.Test(t, func(t *testing.T) {
			store := duemqtest.NewInBubble(t)
			h := httpapi.New(store.Broker(), httpapi.Options{})
			var waits []string
			n := newPipes()
			web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if body, _ := io.ReadAll(r.Body); strings.HasSuffix(r.URL.Path, "/receive") {
					_, wait, _ := strings.Cut(string(body), `"wait":"`)
					wait, _, _ = strings.Cut(wait, `"`)
					waits = append(waits, wait)
					r.Body = io.NopCloser(bytes.NewReader(body))
				}
				h.ServeHTTP(w, r)
			})}
			go web.Serve(n)
			defer web.Close()
			c := n.client()
			c.Timeout = timeout
			defer c.CloseIdleConnections()
			q := dialled(t, "localhost", duemq.WithHTTPClient(c))
			began := time.Now()
			if got, err := q.ReceiveBatch(t.Context(), topic, duemq.Wait(time.Minute)); len(got) != 0 || err != nil {
				t.Errorf("time-out %v: %d messages, %v", timeout, len(got), err)
			}
			if took := time.Since(began); took != time.Minute || len(waits) < 2 || waits[0] != want {
				t.Errorf("time-out %v: waited %v in steps %v, want steps of %s", timeout, took, waits, want)
			}
			q.Close()
		})
	}
}

// TestHalfAnHourOverTheNetwork: a message is there at its millisecond, to a
// receiver who has polled all the time, and nothing runs after Close.
func TestHalfAnHourOverTheNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := duemqtest.NewInBubble(t)
		inBubble(t, httpapi.New(store.Broker(), httpapi.Options{}), func(t *testing.T, q *duemq.Queue, _ *pipes) {
			start := time.Now()
			send(t, q, "x", duemq.After(30*time.Minute))
			for m, err := range q.Receive(t.Context(), topic) {
				if err != nil || string(m.Body) != "x" || time.Since(start) != 30*time.Minute {
					t.Errorf("received %+v, %v after %v", m, err, time.Since(start))
				}
				break
			}
		})
	})
}

// TestConnectionsAreUsedAgain, also after refusals.
func TestConnectionsAreUsedAgain(t *testing.T) {
	store := duemqtest.New(t)
	web := &http.Server{Handler: httpapi.New(store.Broker(), httpapi.Options{})}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var made atomic.Int32
	web.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			made.Add(1)
		}
	}
	go web.Serve(l)
	defer web.Close()
	q := dialled(t, l.Addr().String())
	for range 50 {
		r := send(t, q, "x", duemq.After(time.Hour))
		for range 2 {
			_ = q.Cancel(t.Context(), r.ID)
		}
		if _, err := q.Get(t.Context(), "none"); !errors.Is(err, duemq.ErrInvalid) {
			t.Errorf("Get: %v", err)
		}
	}
	if n := made.Load(); n != 1 {
		t.Errorf("%d connections for calls one after the other", n)
	}
}
