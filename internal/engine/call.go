package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/duemq/duemq/internal/record"
)

// A DelayKind says how a due was given.
type DelayKind uint8

// The kinds of delay.
const (
	DelayNone  DelayKind = iota
	DelayLevel           // Value is a delay level, from 1; above the table is its last
	DelayAfter           // Value is milliseconds from now, on the broker's clock
	DelayAt              // Value is an instant on the broker's clock, Unix ms
)

// A Delay is when a message may be consumed, as its sender said it. Zero,
// negative and past are at once.
type Delay struct {
	Kind  DelayKind
	Value int64
}

// A Send is one message to be sent and, once [Engine.Send] has returned, what
// became of it.
type Send struct {
	Message record.Message     // Queue, Stored, Due and Level are the proposer's to set
	Topic   record.TopicNumber // for the refusal of a topic that ended
	To      record.QueueNumber // 0: the topic's queues in turn, see Turn
	Turn    *Topic
	Delay   Delay
	Terms   record.Terms // Until, Check, Kind and Delay are the proposer's to set

	ID     record.ID
	Due    int64 // how it waits, Unix ms; 0 if it was not delayed
	Ready  bool  // visible already, at Offset
	Held   bool  // due already, and held back by its topic
	Offset record.Offset
	Repeat bool      // its key was used before: ID is the first message's
	Took   record.ID // the message whose name it took, which was cancelled
	Err    error     // refused, alone; the others of the call are not affected
}

// A call is one proposal on its way.
type call struct {
	sends    []Send
	encode   func(dst []byte, now instant) ([]byte, error) // one other command; nil: a barrier
	outcome  Outcome
	id       record.ID    // position of the other command
	lazy     bool         // may ride on the next sync
	commands int          // how many commands encode appends
	next     int          // the next of sends to encode
	weight   int64        // what it holds of the engine's room until it is answered
	left     atomic.Int64 // commands not yet answered
	err      error
	done     chan struct{}
}

// finish answers n of the call's commands, and says whether they were the last.
func (c *call) finish(n int) bool { return c.left.Add(-int64(n)) == 0 }

// newCall takes a call from the engine's pool. The pool is not shared between
// engines: a channel made in one testing/synctest bubble must not come up in
// another.
func (e *Engine) newCall() *call {
	c, ok := e.calls.Get().(*call)
	if !ok {
		c = &call{done: make(chan struct{}, 1)}
	}
	c.sends, c.encode, c.outcome, c.id = nil, nil, Outcome{}, 0
	c.lazy, c.commands, c.next, c.err = false, 0, 0, nil
	return c
}

func (c *call) expect(commands int) {
	c.commands = commands
	c.left.Store(int64(commands))
}

// pendingCalls is the queue in front of the proposer. Its length is bounded by
// the bytes that the engine's semaphore admits.
type pendingCalls struct {
	mu     sync.Mutex
	calls  []*call
	closed bool
}

func (p *pendingCalls) put(c *call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.calls = append(p.calls, c)
	return true
}

// take swaps the queue with an empty slice.
func (p *pendingCalls) take(empty []*call) []*call {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.calls
	p.calls = empty
	return got
}

func (p *pendingCalls) close() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.closed
	p.closed = true
	return !was
}

// callOverhead is what a call weighs beside its bytes.
const callOverhead = 256

// do hands a call in and waits for it. If ctx ends first the outcome is
// unknown: the call may still take effect, and its memory stays the engine's.
func (e *Engine) do(ctx context.Context, c *call, weight int64) error {
	c.weight = min(weight+callOverhead, maxPending)
	if err := e.room.Acquire(ctx, c.weight); err != nil {
		return err
	}
	err := e.Err()
	if err == nil && !e.pending.put(c) {
		err = ErrClosed
	}
	if err != nil {
		e.room.Release(c.weight)
		return err
	}
	e.nudge()
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answered gives back what the call held, and tells its caller if that still
// waits. One that has left does not free the room: its call is in memory until
// the disk has taken it.
func (e *Engine) answered(c *call) {
	e.room.Release(c.weight)
	c.done <- struct{}{}
}

// recycle gives a call back whose do returned without the context ending.
func (e *Engine) recycle(c *call) { e.calls.Put(c) }

// Send sends messages. When it returns nil, each Send tells what became of it:
// one that was refused has Err, any other is as durable as the sync policy
// says. The slice belongs to the engine until then, and for good if ctx ended.
// Messages were checked by [record.Message.Check].
func (e *Engine) Send(ctx context.Context, sends []Send) error {
	if len(sends) == 0 {
		return nil
	}
	c := e.newCall()
	c.sends = sends
	c.left.Store(int64(len(sends)))
	var weight int64
	for i := range sends {
		m := &sends[i].Message
		weight += int64(len(m.Body)+len(m.Key)+len(m.Tag)) + 64
		for _, p := range m.Properties {
			weight += int64(len(p.Name) + len(p.Value))
		}
	}
	if err := e.do(ctx, c, weight); err != nil {
		return err
	}
	e.recycle(c)
	return nil
}

// propose proposes one other command.
func (e *Engine) propose(ctx context.Context, c *call) (Outcome, error) {
	c.expect(1)
	if err := e.do(ctx, c, 0); err != nil {
		return Outcome{}, err
	}
	out := c.outcome
	e.recycle(c)
	return out, nil
}

// Cancel takes a message away that waits. r is the reference as the message was
// sent, with a due of 0 if it was due by its own stamp. The answer is durable.
func (e *Engine) Cancel(ctx context.Context, r record.Ref) (Outcome, error) {
	c := e.newCall()
	c.encode = func(dst []byte, _ instant) ([]byte, error) {
		return record.AppendCancel(dst, &record.Cancel{Key: r.Key(), Level: r.Level}), nil
	}
	return e.propose(ctx, c)
}

// Reschedule gives a waiting message another due. r is as for Cancel.
func (e *Engine) Reschedule(ctx context.Context, r record.Ref, d Delay) (Outcome, error) {
	c := e.newCall()
	c.encode = func(dst []byte, now instant) ([]byte, error) {
		due, _, err := now.resolve(d)
		if err != nil {
			return dst, err
		}
		if due == 0 {
			due = now.stamp
		}
		return record.AppendReschedule(dst, &record.Reschedule{Ref: r, Due: due}), nil
	}
	return e.propose(ctx, c)
}

// together proposes commands that go into one batch, all or none, and returns the
// outcome of the last. encode appends them; it is called once, by the proposer,
// and an error of it refuses them. n is how many there are, bytes about how long
// they are.
func (e *Engine) together(ctx context.Context, n, bytes int, encode func(dst []byte, now instant) ([]byte, error)) (Outcome, record.ID, error) {
	c := e.newCall()
	c.encode = encode
	c.expect(n)
	if err := e.do(ctx, c, int64(bytes)); err != nil {
		return Outcome{}, 0, err
	}
	out, id := c.outcome, c.id
	e.recycle(c)
	return out, id, nil
}

// Settle returns when everything proposed before it has been applied and
// everything that is due by the clock has been moved to its queue. Tests that
// step a clock call it instead of sleeping.
func (e *Engine) Settle(ctx context.Context) error {
	for {
		c := e.newCall()
		if err := e.do(ctx, c, 0); err != nil {
			return err
		}
		e.recycle(c)
		if e.nextDue.Load() > e.Now() || e.Suspect() {
			return nil
		}
	}
}
