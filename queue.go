package duemq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/clock"
)

// A Queue is an open store of messages with its topics: one in this process
// ([Open]), or that of a server ([Dial]). It is safe for concurrent use.
type Queue struct {
	b     backend
	clock clock.Clock
	line  *line // to the server of a Dial; nil if there is none
	log   *slog.Logger

	// open is held for reading by every call that is under way, so that Close
	// waits for them. It guards closed.
	open   sync.RWMutex
	closed bool

	// handling is held for reading by every Handle, so that Close waits for what it
	// has begun. It is taken before open.
	handling sync.RWMutex

	closeOnce sync.Once
	closeErr  error
	closing   chan struct{} // closed when Close begins
}

// Open opens the store in the folder dir, which is made when missing, and
// recovers what is in it. When it returns, everything that was acknowledged
// before is there, and what fell due meanwhile is being delivered.
//
// ctx bounds the recovery only. The errors are [ErrInvalid] for options,
// [ErrInUse], [ErrCorrupt], [ErrVersion] and those of the disk; none of them
// changes what the folder holds.
func Open(ctx context.Context, dir string, opts ...Option) (*Queue, error) {
	var s settings
	for _, o := range opts {
		o(&s)
	}
	if err := s.check(dir); err != nil {
		return nil, err
	}
	if s.memory == nil {
		// Files are opened as long as the queue is, and the program may change its
		// working directory.
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("data folder: %w", err)
		}
		dir = abs
	}
	o := s.broker(dir)
	b, err := broker.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	q := &Queue{b: local{b}, clock: o.Engine.Clock, log: s.loggerOr(), closing: make(chan struct{})}
	if s.memory != nil && q.clock.Now().Time().Year() < firstYear {
		if err := b.AcceptClock(); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	return q, nil
}

// firstYear is the first year that a machine's clock may show; see
// [ErrClockSuspect].
const firstYear = 2020

// Close ends calls that wait, lets handlers ([Queue.Handle]) and other calls
// finish, makes everything durable and closes the store. No goroutine is left
// when it returns. Once is enough; a second call returns what the first one did.
// Of a queue that was dialled it ends the use, not the server.
func (q *Queue) Close() error {
	q.closeOnce.Do(func() {
		close(q.closing)
		q.b.drain()
		q.handling.Lock()
		defer q.handling.Unlock()
		q.open.Lock()
		q.closed = true
		q.open.Unlock()
		q.closeErr = q.b.close()
	})
	return q.closeErr
}

// enter lets a call in unless the queue is closed. The caller leaves through
// leave if there was no error. A call never enters twice: a Close between would
// wait for it for ever.
func (q *Queue) enter() error {
	q.open.RLock()
	if q.closed {
		q.open.RUnlock()
		return ErrClosed
	}
	return nil
}

func (q *Queue) leave() { q.open.RUnlock() }

// during makes a call that ends before the queue is closed, unless ctx has
// ended already.
func (q *Queue) during(ctx context.Context, do func() error) error {
	if err := q.enter(); err != nil {
		return err
	}
	defer q.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	return do()
}

// patiently is during for a call that may take long: a Close ends it, with
// ErrClosed.
func (q *Queue) patiently(ctx context.Context, do func(ctx context.Context) error) error {
	return q.during(ctx, func() error {
		ctx, end := context.WithCancelCause(ctx)
		var watch sync.WaitGroup
		watch.Go(func() {
			select {
			case <-q.closing:
				end(ErrClosed)
			case <-ctx.Done():
			}
		})
		defer watch.Wait()
		defer end(nil)
		err := do(ctx)
		if err != nil && context.Cause(ctx) == ErrClosed { //nolint:errorlint // the very value given above
			return ErrClosed
		}
		return err
	})
}

// A Recovery says what Open found.
type Recovery struct {
	New      bool          // the store was made by this Open
	Waiting  int64         // messages that waited
	Overdue  bool          // some of them fell due while nobody was there
	Replayed uint64        // batches of the log read again
	Torn     uint64        // bytes at the log's end that a crash left unfinished; nothing in them was acknowledged
	Took     time.Duration // until ready
}

// Recovered says what Open found; of a queue that was dialled, what the last
// start of its server did, without Torn, and zero if it does not answer.
func (q *Queue) Recovered() Recovery { return q.b.recovered() }

// Failed is closed when the disk has failed; [Queue.Err] says how. A program
// that cannot do without its queue exits then, or closes it and opens it again.
// Of a queue that was dialled it is nil and never ready: the server is started
// again, and until then calls fail.
func (q *Queue) Failed() <-chan struct{} { return q.b.failed() }

// Err is why the queue failed, an [ErrFailed], or nil while it has not.
func (q *Queue) Err() error { return q.b.err() }

// Ready says why the queue does not do all its work: [ErrClosed], [ErrFailed] or
// [ErrClockSuspect], or [ErrUnavailable]. Nil is ready.
func (q *Queue) Ready() error {
	if err := q.enter(); err != nil {
		return err
	}
	defer q.leave()
	return q.b.ready()
}

// AcceptClock believes the machine's clock as it is: one that is suspect
// ([ErrClockSuspect]), or one that was set less than 5 seconds ago.
func (q *Queue) AcceptClock() error {
	if err := q.enter(); err != nil {
		return err
	}
	defer q.leave()
	return q.b.acceptClock()
}

// Now is the time that the queue believes, in whole milliseconds, from which
// delays count. Of a queue that was dialled it is the server's, and the zero time
// if that does not answer.
func (q *Queue) Now() time.Time { return q.b.now() }

// Settle returns when everything that is due by the queue's clock is visible.
// Tests that move a clock of their own ([WithClock]) call it instead of
// sleeping.
func (q *Queue) Settle(ctx context.Context) error {
	if err := q.enter(); err != nil {
		return err
	}
	defer q.leave()
	return q.b.settle(ctx)
}

// Stats are figures about a queue since it was opened.
type Stats struct {
	Waiting     int64         // messages that wait now
	Visible     uint64        // messages that ever became visible, also before it was opened
	Overdue     bool          // something is due and not visible yet
	Wakeups     int64         // times the timer for the next due fired
	Fruitless   int64         // of these, found nothing due
	Ticks       int64         // writes made because something fell due
	Syncs       int64         // of the log
	SyncTime    time.Duration // in all
	Cuts        int64         // checkpoints
	CutFailures int64         // put off, and tried again later
	ClockSteps  int64         // times the machine's clock was set and followed
	LogBytes    uint64        // ever written to the log
}

// Stats gives the figures.
func (q *Queue) Stats() (Stats, error) {
	if err := q.enter(); err != nil {
		return Stats{}, err
	}
	defer q.leave()
	return q.b.stats()
}
