package duemq_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duemq/duemq"
)

// TestHandle: everything is handled, no more at once than was said, and what has
// begun when the context ends is finished.
func TestHandle(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		const n, most = 50, 4
		batch(t, q.Queue, numbered(n, func(int, *duemq.Message) {}))
		ctx, cancel := context.WithCancel(t.Context())
		var busy, handled atomic.Int32
		full, hold := make(chan struct{}), make(chan struct{})
		handler := func(ctx context.Context, _ *duemq.Message) error {
			switch now := busy.Add(1); {
			case now > most:
				t.Errorf("%d at once", now)
			case now == most && handled.Load() == 0:
				close(full)
			}
			<-hold
			busy.Add(-1)
			if handled.Add(1) == n-10 {
				cancel()
			}
			return ctx.Err() // must not have ended
		}
		ended := make(chan error)
		go func() { ended <- q.Handle(ctx, topic, handler, duemq.Concurrency(most), duemq.Group("g")) }()
		<-full
		close(hold)
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Handle: %v, want %v", err, context.Canceled)
		}
		done := int(handled.Load())
		if busy.Load() != 0 || done < n-10 || done > n-10+most {
			t.Errorf("%d handlers run, %d have", busy.Load(), done)
		}
		if rest := take(t, q.Queue, duemq.Group("g")); len(rest) != n-done {
			t.Errorf("%d are left, want %d", len(rest), n-done)
		}
		err := q.Handle(t.Context(), topic, handler, duemq.Wait(0), duemq.Group("g"))
		if err != nil {
			t.Errorf("Handle of nothing: %v", err)
		}
	})
}

// TestHandlerFails: an error and a panic are retries with back-off, and a dead
// letter at last; each is told to the logger.
func TestHandlerFails(t *testing.T) {
	var told lockedBuffer
	logger := duemq.WithLogger(slog.New(slog.NewTextHandler(&told, nil)))
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, logger)
		if q.remote() {
			q.dial(logger)
		}
		ctx := t.Context()
		if _, err := q.CreateGroup(ctx, "g", duemq.MaxAttempts(2), duemq.Backoff(time.Minute)); err != nil {
			t.Fatalf("CreateGroup: %v", err)
		}
		send(t, q.Queue, "error")
		send(t, q.Queue, "panic")
		send(t, q.Queue, "late")
		tries := make(map[string]int)
		handler := func(_ context.Context, m *duemq.Message) error {
			tries[string(m.Body)]++
			switch {
			case m.Attempt == 2 && string(m.Body) == "late":
				return nil
			case string(m.Body) == "panic":
				panic("nobody can")
			}
			return errors.New("not now")
		}
		for range 5 {
			if err := q.Handle(ctx, topic, handler, duemq.Wait(0), duemq.Group("g")); err != nil {
				t.Fatalf("Handle: %v", err)
			}
			q.Advance(30 * time.Second)
		}
		if tries["error"] != 2 || tries["panic"] != 2 || tries["late"] != 2 {
			t.Errorf("tries %v, want 2 each", tries)
		}
		if letters := dead(t, q.Queue, "g"); bodies(letters) != "error panic" {
			t.Errorf("dead letters: %q", bodies(letters))
		}
		for _, want := range []string{"not now", "nobody can", "handle_test.go", "handler failed for the last time", "next_attempt"} {
			if !strings.Contains(told.String(), want) {
				t.Errorf("the log does not tell of %q:\n%s", want, told.String())
			}
		}
	})
}

// A lockedBuffer is a buffer that several write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestHandlerDecides: one that has settled its message is not asked again.
func TestHandlerDecides(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		for _, body := range []string{"ack", "retry", "bury", "ack and fail"} {
			send(t, q.Queue, body)
		}
		seen := make(map[string]int)
		err := q.Handle(ctx, topic, func(ctx context.Context, m *duemq.Message) error {
			seen[string(m.Body)]++
			switch string(m.Body) {
			case "ack":
				return m.Ack(ctx)
			case "retry":
				if m.Attempt == 2 {
					return nil
				}
				return m.Retry(ctx, duemq.After(0))
			case "bury":
				return m.Bury(ctx, "no use")
			}
			return errors.Join(m.Ack(ctx), errors.New("all the same"))
		}, duemq.Wait(0))
		if err != nil {
			t.Errorf("Handle: %v", err)
		}
		if len(seen) != 4 || seen["retry"] != 2 || seen["ack"]+seen["bury"]+seen["ack and fail"] != 3 {
			t.Errorf("seen %v", seen)
		}
		q.Advance(time.Hour)
		if got := take(t, q.Queue); len(got) != 0 {
			t.Errorf("received again: %q", bodies(got))
		}
		if letters := dead(t, q.Queue, duemq.DefaultGroup); bodies(letters) != "bury" {
			t.Errorf("dead letters: %q", bodies(letters))
		}
	})
}

// TestHandleOrdered: a failure keeps back what comes after it in its queue, and
// nothing else.
func TestHandleOrdered(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithQueues(4))
		batch(t, q.Queue, numbered(40, func(i int, m *duemq.Message) { m.Queue, m.InQueue = i%4, true }))
		var mu sync.Mutex
		last := make(map[int]int64)
		failed := false
		handler := func(_ context.Context, m *duemq.Message) error {
			mu.Lock()
			defer mu.Unlock()
			if m.Offset == 3 && m.Queue == 1 && !failed {
				failed = true
				return errors.New("not now")
			}
			if m.Offset != last[m.Queue] {
				t.Errorf("queue %d: offset %d, want %d", m.Queue, m.Offset, last[m.Queue])
			}
			last[m.Queue]++
			return nil
		}
		opts := []duemq.HandleOption{duemq.Ordered(), duemq.Concurrency(8), duemq.Wait(0)}
		if err := q.Handle(t.Context(), topic, handler, opts...); err != nil {
			t.Fatalf("Handle: %v", err)
		}
		for range 100 {
			q.Advance(10 * time.Second)
			if err := q.Handle(t.Context(), topic, handler, opts...); err != nil {
				t.Fatalf("Handle: %v", err)
			}
		}
		for queue := range 4 {
			if last[queue] != 10 {
				t.Errorf("queue %d: %d handled, want 10", queue, last[queue])
			}
		}
	})
}

// TestCloseWaitsForHandlers, which can still acknowledge; and a Handle that comes
// later does not begin.
func TestCloseWaitsForHandlers(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		send(t, q.Queue, "x")
		begun, ended, closed := make(chan struct{}), make(chan error), make(chan error)
		go func() {
			ended <- q.Handle(t.Context(), topic, func(ctx context.Context, _ *duemq.Message) error {
				close(begun)
				_, err := q.ReceiveBatch(ctx, "other") // until the queue begins to close
				if !errors.Is(err, duemq.ErrClosed) {
					t.Errorf("ReceiveBatch: %v, want %v", err, duemq.ErrClosed)
				}
				return nil
			}, duemq.Concurrency(2))
		}()
		<-begun
		go func() { closed <- q.Close() }()
		if err := <-ended; !errors.Is(err, duemq.ErrClosed) {
			t.Errorf("Handle: %v, want %v", err, duemq.ErrClosed)
		}
		if err := <-closed; err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := q.Handle(t.Context(), topic, func(context.Context, *duemq.Message) error { return nil }); !errors.Is(err, duemq.ErrClosed) {
			t.Errorf("Handle of a closed queue: %v, want %v", err, duemq.ErrClosed)
		}
		q.Reopen()
		q.Advance(time.Hour)
		if got := take(t, q.Queue); len(got) != 0 {
			t.Errorf("received again: %q", bodies(got))
		}
	})
}

func TestHandleRefuses(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		handler := func(context.Context, *duemq.Message) error { return nil }
		for name, err := range map[string]error{
			"no handler":     q.Handle(t.Context(), topic, nil),
			"no concurrency": q.Handle(t.Context(), topic, handler, duemq.Concurrency(0)),
			"too much":       q.Handle(t.Context(), topic, handler, duemq.Concurrency(duemq.MaxConcurrency+1)),
			"too many":       q.Handle(t.Context(), topic, handler, duemq.Max(duemq.MaxReceive+1)),
			"no group":       q.Handle(t.Context(), topic, handler, duemq.Group("")),
		} {
			if !errors.Is(err, duemq.ErrInvalid) {
				t.Errorf("%s: %v, want %v", name, err, duemq.ErrInvalid)
			}
		}
	})
}
