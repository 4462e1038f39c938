package duemq

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/duemq/duemq/internal/broker"
)

// Limits and defaults of receiving.
const (
	MaxReceive   = broker.MaxReceive   // messages fetched at once
	MaxInvisible = broker.MaxInvisible // of a lease

	DefaultGroup     = "default"
	DefaultInvisible = broker.DefaultInvisible
)

// defaultBatch is how many messages ReceiveBatch fetches unless told.
const defaultBatch = 256

// A ReceiveOption says how messages are received.
type ReceiveOption func(*reception)

// reception is one Receive or ReceiveBatch.
type reception struct {
	req     broker.ReceiveRequest
	bounded bool // Wait was given
}

// Group names the group for which messages are received; default
// [DefaultGroup]. Each group receives every message of the topic, from the
// earliest on when it is new. Its receivers share the messages.
func Group(name string) ReceiveOption { return func(r *reception) { r.req.Group = name } }

// Max says how many messages are fetched, and leased, at once: 1 to
// [MaxReceive]. Default 1 for Receive, 256 for ReceiveBatch. More is faster, but
// the last one's lease is running while the first is being worked on.
func Max(n int) ReceiveOption { return func(r *reception) { r.req.Max = n } }

// Invisible says how long a message is leased: until then nobody else of the
// group gets it, and after that somebody does, unless it was acknowledged.
// Default [DefaultInvisible], at most [MaxInvisible]; rounded up to whole
// milliseconds.
func Invisible(d time.Duration) ReceiveOption {
	return func(r *reception) { r.req.Invisible = d }
}

// Wait says how long to wait for a message when there is none. Zero does not
// wait. Without it, the context alone says when to stop.
func Wait(d time.Duration) ReceiveOption {
	return func(r *reception) { r.req.Wait, r.bounded = d, true }
}

func newReception(topic string, most int, opts []ReceiveOption) (*reception, error) {
	r := &reception{req: broker.ReceiveRequest{
		Topic: topic, Group: DefaultGroup, Max: most, Invisible: DefaultInvisible,
	}}
	for _, o := range opts {
		o(r)
	}
	if r.req.Max < 1 {
		return nil, fmt.Errorf("%w: max %d, want 1 to %d", ErrInvalid, r.req.Max, MaxReceive)
	}
	if r.req.Invisible <= 0 {
		return nil, fmt.Errorf("%w: invisible %v, want more than 0 and at most %v", ErrInvalid, r.req.Invisible, MaxInvisible)
	}
	if r.req.Wait < 0 {
		return nil, fmt.Errorf("%w: wait %v, want none below zero", ErrInvalid, r.req.Wait)
	}
	r.req.Invisible = wholeMs(r.req.Invisible)
	return r, nil
}

// wholeMs rounds up.
func wholeMs(d time.Duration) time.Duration {
	return time.Duration(ceilMs(min(d, math.MaxInt64-time.Millisecond))) * time.Millisecond
}

// Receive yields messages of a topic as they become visible, each leased to the
// caller, who acknowledges it ([Message.Ack]), gives it back ([Message.Retry])
// or lets the lease run out.
//
// The loop ends by itself when [Wait] was given and no message came within it;
// otherwise with an error, which is yielded once with a nil message: the
// context's, [ErrClosed], [ErrFailed], [ErrInvalid]. When the loop ends, however
// it ends, a panic included, messages that were fetched and not yielded are
// given back at once, as if they had not been fetched. Those that were yielded
// stay leased, also when ctx has ended.
//
// Several loops may run at once, on one topic and group too.
func (q *Queue) Receive(ctx context.Context, topic string, opts ...ReceiveOption) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		r, err := newReception(topic, 1, opts)
		if err != nil {
			yield(nil, err)
			return
		}
		for {
			got, err := q.fetch(ctx, r)
			if err != nil {
				yield(nil, err)
				return
			}
			if len(got) == 0 || !q.hand(ctx, got, yield) {
				return
			}
		}
	}
}

// hand yields messages and says whether the loop goes on.
func (q *Queue) hand(ctx context.Context, got []*Message, yield func(*Message, error) bool) bool {
	next := 0
	giveBack := func() {
		q.giveBack(got[next:])
		next = len(got)
	}
	defer giveBack()
	for next < len(got) {
		if err := ctx.Err(); err != nil {
			giveBack()
			yield(nil, err)
			return false
		}
		m := got[next]
		next++
		if !yield(m, nil) {
			return false
		}
	}
	return true
}

// giveBack returns the leases of messages that nobody has seen. On a closed
// queue there are none.
func (q *Queue) giveBack(msgs []*Message) {
	if len(msgs) == 0 || q.enter() != nil {
		return
	}
	defer q.leave()
	leases := make([]string, len(msgs))
	for i, m := range msgs {
		leases[i] = m.lease
	}
	q.b.giveBack(leases)
}

// ReceiveBatch receives at least one message and at most [Max], all leased to
// the caller: what is there, or the first to come. With [Wait] it returns none,
// and no error, when none came within it. Together with [Queue.AckAll] it is
// the fastest way to receive.
func (q *Queue) ReceiveBatch(ctx context.Context, topic string, opts ...ReceiveOption) ([]*Message, error) {
	r, err := newReception(topic, defaultBatch, opts)
	if err != nil {
		return nil, err
	}
	return q.fetch(ctx, r)
}

// fetch receives what is there, or waits for the first message in steps that the
// broker allows.
func (q *Queue) fetch(ctx context.Context, r *reception) ([]*Message, error) {
	began := q.clock.Now().Mono
	for lost := 0; ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		step := r.req
		step.Wait = broker.MaxWait
		if r.bounded {
			left := r.req.Wait - time.Duration(q.clock.Now().Mono-began)
			step.Wait = min(max(left, 0), broker.MaxWait)
		}
		got, err := q.receive(ctx, step)
		left := time.Duration(math.MaxInt64)
		if r.bounded {
			left = r.req.Wait - time.Duration(q.clock.Now().Mono-began)
		}
		if q.line != nil && errors.Is(err, ErrUnavailable) && (left > 0 || lost < tries-1) {
			lost++
			if err := q.line.bridge(ctx, lost, left, err); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil || len(got) > 0 || left <= 0 {
			return got, err
		}
	}
}

func (q *Queue) receive(ctx context.Context, r broker.ReceiveRequest) ([]*Message, error) {
	if err := q.enter(); err != nil {
		return nil, err
	}
	defer q.leave()
	r.Wait = wholeMs(r.Wait)
	msgs, err := q.b.receive(ctx, r)
	for _, m := range msgs {
		m.queue = q
	}
	return msgs, err
}

// Ack finishes the message for its group: it is not received again. It is
// written when Ack returns, and on disk at most 10 ms later. A lease that has
// run out still holds unless somebody else got the message meanwhile, else
// [ErrLeaseLost]. A message that was not received, but looked at or made by the
// caller, is [ErrInvalid].
func (m *Message) Ack(ctx context.Context) error {
	if err := m.received(); err != nil {
		return err
	}
	return m.queue.AckAll(ctx, []*Message{m})
}

// AckAll acknowledges messages that this queue has given, in one write. The
// error joins those of the messages whose lease did not hold; the others are
// acknowledged.
func (q *Queue) AckAll(ctx context.Context, msgs []*Message) error {
	leases := make([]string, len(msgs))
	for i, m := range msgs {
		if m.queue != q {
			return m.foreign()
		}
		leases[i] = m.lease
	}
	if err := q.enter(); err != nil {
		return err
	}
	defer q.leave()
	errs, err := q.b.ack(ctx, leases)
	if err != nil {
		return err
	}
	var lost []error
	for i, m := range msgs {
		if errs[i] != nil {
			lost = append(lost, fmt.Errorf("message %s: %w", m.ID, errs[i]))
		}
	}
	return errors.Join(lost...)
}

// Retry gives the message back: somebody of the group receives it again once d
// has passed, and at once if d is zero. At most [MaxInvisible]; rounded up to
// whole milliseconds. After a restart it comes at once.
func (m *Message) Retry(ctx context.Context, d time.Duration) error {
	return m.lend(ctx, d, backend.nack)
}

// Extend has the lease run for d from now on, longer or shorter than before. At
// most [MaxInvisible]; rounded up to whole milliseconds.
func (m *Message) Extend(ctx context.Context, d time.Duration) error {
	return m.lend(ctx, d, backend.extend)
}

func (m *Message) lend(ctx context.Context, d time.Duration, how func(backend, context.Context, string, time.Duration) error) error {
	if err := m.received(); err != nil {
		return err
	}
	return m.queue.during(ctx, func() error { return how(m.queue.b, ctx, m.lease, wholeMs(d)) })
}

func (m *Message) received() error {
	if m.queue == nil {
		return m.foreign()
	}
	return nil
}

func (m *Message) foreign() error {
	return fmt.Errorf("%w: message %q was not received from this queue, so there is no lease", ErrInvalid, m.ID)
}
