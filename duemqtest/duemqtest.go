// Package duemqtest tests programs that use duemq, without waiting: a queue in
// memory whose clock passes 30 minutes in a call.
//
//	func TestReminder(t *testing.T) {
//		q := duemqtest.New(t)
//		remindLater(q.Queue) // the code under test: sends with a delay of 30 minutes
//		q.Advance(30 * time.Minute)
//		got, err := q.ReceiveBatch(t.Context(), "reminders", duemq.Wait(0))
//		...
//	}
//
// Every message becomes visible at its own due, to the millisecond, as if the
// time had passed. The same queue can be stopped, started again and lose its
// power ([TestQueue.Crash]), to see what the program makes of it.
//
// Inside a [testing/synctest] bubble there is a clock that moves by itself:
// [NewInBubble] follows it, so that [time.Sleep] delivers. New works there too.
package duemqtest

import (
	"context"
	"slices"
	"time"

	"github.com/duemq/duemq"
	"github.com/duemq/duemq/internal/clock"
)

// TB is what of a [testing.TB] is used here. Tests hand in their t.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
	Context() context.Context
}

// start is what the clock of a new TestQueue shows. It is the same in every run,
// so that a test's output can be compared.
func start() time.Time { return time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC) }

// A TestQueue is a queue under the hand of a test. Its own methods, which move
// time or stop the queue, are for one goroutine at a time and fail the test
// when they cannot do what they say. Those of the [duemq.Queue] in it are safe
// for concurrent use, but Start, Restart and Crash put a new one there.
type TestQueue struct {
	*duemq.Queue

	t      TB
	opts   []duemq.Option
	memory *duemq.Memory
	clock  *Clock // nil in a bubble: time passes by itself
	down   bool
	broken bool // the disk, and with it the queue
}

// New opens an empty queue in memory with a clock that stands still, at 9:00
// UTC on 1 December 2026. It is closed when the test ends. The options are those
// of [duemq.Open]; WithMemory and WithClock are set already.
func New(t TB, opts ...duemq.Option) *TestQueue {
	t.Helper()
	return open(t, NewClock(start()), opts)
}

// NewInBubble opens an empty queue in memory that follows the clock of the
// [testing/synctest] bubble in which it is called, and in which it must be
// closed: by Close, or by the end of the bubble's test.
func NewInBubble(t TB, opts ...duemq.Option) *TestQueue {
	t.Helper()
	return open(t, nil, opts)
}

func open(t TB, c *Clock, opts []duemq.Option) *TestQueue {
	t.Helper()
	q := &TestQueue{t: t, opts: opts, memory: duemq.NewMemory(), clock: c, down: true}
	q.Start()
	t.Cleanup(func() {
		if q.down {
			return
		}
		if err := q.Close(); err != nil && !q.broken {
			t.Errorf("close the queue: %v", err)
		}
	})
	return q
}

// Advance has d pass. Each message that falls due on the way becomes visible at
// its due, in order; when Advance returns, all of them are. While the queue is
// down, time passes all the same.
//
// It moves the clock from due to due, from one message to the next while a topic
// holds some back for its rate, and no further than a second while a step of the
// wall clock is pending, so a message sent meanwhile by another
// goroutine may be visible late, never early. In a bubble it sleeps.
func (q *TestQueue) Advance(d time.Duration) {
	q.t.Helper()
	if d < 0 {
		q.t.Fatalf("Advance(%v): time does not go back; Step sets the wall clock", d)
	}
	if q.clock == nil {
		<-clock.Real().NewTimer(d).C()
		d = 0
	}
	if q.down {
		if d > 0 {
			q.clock.Advance(d)
		}
		return
	}
	q.settle()
	for d > 0 {
		by := q.stride(d)
		q.clock.Advance(by)
		q.settle()
		d -= by
	}
}

// longStride is how far time goes at once while the queue does not believe the
// wall clock: it looks once a second.
const longStride = time.Second

// stride is how far time may go at once, at most d: to the next due.
func (q *TestQueue) stride(d time.Duration) time.Duration {
	wall, _ := q.clock.Now()
	if ahead := wall.Sub(q.Now()); ahead < 0 || ahead >= time.Millisecond {
		d = min(d, longStride)
		wall = q.Now()
	}
	d = min(d, q.share(d))
	due, ok := q.NextDue()
	if !ok {
		return d
	}
	if until := due.Sub(wall); until > 0 {
		return min(d, until)
	}
	return min(d, longStride) // overdue, since the clock is suspect
}

// share is the time in which a topic may deliver one more of the messages that
// it holds back for its rate; other if none does.
func (q *TestQueue) share(other time.Duration) time.Duration {
	all, err := q.Topics(q.t.Context())
	if err != nil && !q.broken {
		q.t.Fatalf("topics: %v", err)
	}
	least := other
	for _, t := range all {
		if t.MaxRate > 0 && t.Held > 0 && !t.Paused {
			least = min(least, time.Duration((1000+t.MaxRate-1)/t.MaxRate)*time.Millisecond)
		}
	}
	return least
}

// Step sets the wall clock by d, forward or back, as somebody does who sets a
// machine's clock; no time passes. A step of a second or more is followed once
// it has held for 5 seconds (Advance), a smaller one at once if it is forward.
func (q *TestQueue) Step(d time.Duration) {
	q.t.Helper()
	if q.clock == nil {
		q.t.Fatalf("Step(%v): nobody sets the clock of a bubble", d)
	}
	q.clock.Step(d)
	if !q.down {
		q.settle()
	}
}

// Stop closes the queue; calls on it are [duemq.ErrClosed] until Start.
func (q *TestQueue) Stop() {
	q.t.Helper()
	if err := q.Close(); err != nil && !q.broken {
		q.t.Fatalf("stop the queue: %v", err)
	}
	q.down = true
}

// FailDisk breaks the disk: whatever must be written from now on fails with
// [duemq.ErrFailed], and so does everything after that. Crash puts a sound disk
// in its place, with what was synced.
func (q *TestQueue) FailDisk() {
	q.t.Helper()
	q.memory.Fail()
	q.broken = true
}

// PowerCut stops the queue as a power cut does: everything that was not synced
// is lost. Calls on it are [duemq.ErrClosed] until Start.
func (q *TestQueue) PowerCut() {
	q.t.Helper()
	left := q.memory.AfterPowerCut()
	q.Stop()
	q.memory, q.broken = left, false
}

// Start opens the queue again, with what its disk holds. When it returns,
// everything that fell due meanwhile is visible.
func (q *TestQueue) Start() {
	q.t.Helper()
	if !q.down {
		q.t.Fatalf("Start: the queue is running")
	}
	opts := slices.Concat(q.opts, []duemq.Option{duemq.WithMemory(q.memory)})
	if q.clock != nil {
		opts = append(opts, duemq.WithClock(q.clock))
	}
	opened, err := duemq.Open(q.t.Context(), "", opts...)
	if err != nil {
		q.t.Fatalf("open the queue: %v", err)
	}
	q.Queue, q.down = opened, false
	q.settle()
}

// Restart closes the queue and opens it again. Leases do not survive that.
func (q *TestQueue) Restart() {
	q.t.Helper()
	q.Stop()
	q.Start()
}

// Crash cuts the power and opens the queue again with what was synced.
func (q *TestQueue) Crash() {
	q.t.Helper()
	q.PowerCut()
	q.Start()
}

func (q *TestQueue) settle() {
	q.t.Helper()
	if err := q.Settle(q.t.Context()); err != nil && !q.broken {
		q.t.Fatalf("settle: %v", err)
	}
}
