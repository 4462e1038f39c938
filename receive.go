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

// A HandleOption says how messages are handled: [Concurrency], and whatever is a
// ReceiveOption.
type HandleOption interface{ set(r *reception) }

// A ReceiveOption says how messages are received.
type ReceiveOption interface {
	HandleOption
	receives()
}

// A PullOption says how messages are pulled. It is a ReceiveOption too.
type PullOption interface {
	ReceiveOption
	pulls()
}

// A CheckOption says how the checks of transactions are received. It is a
// PullOption too.
type CheckOption interface {
	PullOption
	checks()
}

// reception is one Receive, ReceiveBatch, Handle, Pull or Checks.
type reception struct {
	req     broker.ReceiveRequest
	leased  bool // Invisible was given
	bounded bool // Wait was given
	workers int  // of a Handle
}

type (
	handleFunc  func(*reception)
	receiveFunc struct{ handleFunc }
	pullFunc    struct{ receiveFunc }
	checkFunc   struct{ pullFunc }
)

func (f handleFunc) set(r *reception) { f(r) }
func (receiveFunc) receives()         {}
func (pullFunc) pulls()               {}
func (checkFunc) checks()             {}

func receiveOption(f handleFunc) receiveFunc { return receiveFunc{f} }
func pullOption(f handleFunc) pullFunc       { return pullFunc{receiveFunc{f}} }
func checkOption(f handleFunc) checkFunc     { return checkFunc{pullFunc{receiveFunc{f}}} }

// Group names the group for which messages are received; default
// [DefaultGroup]. Each group receives every message of the topic; one that is
// new is made and begins with the earliest, unless [Queue.CreateGroup] said
// otherwise. Its receivers share the messages.
func Group(name string) ReceiveOption {
	return receiveOption(func(r *reception) { r.req.Group = name })
}

// Max says how many messages are fetched, and leased, at once: 1 to
// [MaxReceive]. Default 1 for Receive, 256 for ReceiveBatch and Pull. More is
// faster, but the last one's lease is running while the first is being worked on.
func Max(n int) CheckOption { return checkOption(func(r *reception) { r.req.Max = n }) }

// MaxBytes says how many bytes of bodies are fetched at once; default and limit
// are 16 MiB. One message is fetched whatever its size.
func MaxBytes(n int) PullOption { return pullOption(func(r *reception) { r.req.MaxBytes = n }) }

// Tags selects messages by their tags: "paid || refunded". Others are finished
// for the group, and a Pull passes over them. Without it, and with "*", there is
// no selection.
func Tags(expression string) PullOption {
	return pullOption(func(r *reception) { r.req.Tags = expression })
}

// Ordered has the messages of each of the topic's queues come in order: nothing
// of a queue is given out while the group holds something of it, or waits with
// it for its next attempt. Receivers of one group must agree about it.
func Ordered() ReceiveOption { return receiveOption(func(r *reception) { r.req.Ordered = true }) }

// A LeaseOption is for receiving and for a group.
type LeaseOption interface {
	ReceiveOption
	GroupOption
}

type leaseOption struct {
	receiveFunc
	groupFunc
}

// Invisible says how long a message is leased: until then nobody else of the
// group gets it, and after that somebody does, unless it was acknowledged. At
// most [MaxInvisible]; rounded up to whole milliseconds. Default what the group
// was made with, and that is [DefaultInvisible] unless told.
func Invisible(d time.Duration) LeaseOption {
	return leaseOption{
		receiveOption(func(r *reception) { r.req.Invisible, r.leased = d, true }),
		func(g *groupTerms) { g.config.Invisible = wholeMs(d) },
	}
}

// Wait says how long to wait for a message when there is none. Zero does not
// wait. Without it, the context alone says when to stop.
func Wait(d time.Duration) CheckOption {
	return checkOption(func(r *reception) { r.req.Wait, r.bounded = d, true })
}

// receptionOf reads options.
func receptionOf[O HandleOption](topic string, most int, opts []O) (*reception, error) {
	r := &reception{req: broker.ReceiveRequest{Topic: topic, Group: DefaultGroup, Max: most}}
	for _, o := range opts {
		o.set(r)
	}
	if r.req.Max < 1 {
		return nil, fmt.Errorf("%w: max %d, want 1 to %d", ErrInvalid, r.req.Max, MaxReceive)
	}
	if r.leased && r.req.Invisible <= 0 {
		return nil, fmt.Errorf("%w: invisible %v, want more than 0 and at most %v", ErrInvalid, r.req.Invisible, MaxInvisible)
	}
	if r.req.Wait < 0 {
		return nil, fmt.Errorf("%w: wait %v, want none below zero", ErrInvalid, r.req.Wait)
	}
	if r.req.MaxBytes < 0 {
		return nil, fmt.Errorf("%w: max bytes %d, want none below zero", ErrInvalid, r.req.MaxBytes)
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
		r, err := receptionOf(topic, 1, opts)
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
	r, err := receptionOf(topic, defaultBatch, opts)
	if err != nil {
		return nil, err
	}
	return q.fetch(ctx, r)
}

// fetch receives what is there, or waits for the first message.
func (q *Queue) fetch(ctx context.Context, r *reception) (msgs []*Message, err error) {
	err = q.inSteps(ctx, r, func(wait time.Duration) (bool, error) {
		step := r.req
		step.Wait = wait
		msgs, err = q.receive(ctx, step)
		return len(msgs) > 0, err
	})
	return msgs, err
}

// inSteps asks for what r waits for until it is found or r has waited, in steps
// that the broker allows. It bridges the time for which a server is away.
func (q *Queue) inSteps(ctx context.Context, r *reception, ask func(wait time.Duration) (found bool, err error)) error {
	began := q.clock.Now().Mono
	for lost := 0; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		wait := broker.MaxWait
		if r.bounded {
			left := r.req.Wait - time.Duration(q.clock.Now().Mono-began)
			wait = min(max(left, 0), broker.MaxWait)
		}
		found, err := ask(wholeMs(wait))
		left := time.Duration(math.MaxInt64)
		if r.bounded {
			left = r.req.Wait - time.Duration(q.clock.Now().Mono-began)
		}
		if q.line != nil && errors.Is(err, ErrUnavailable) && (left > 0 || lost < tries-1) {
			lost++
			if err := q.line.bridge(ctx, lost, left, err); err != nil {
				return err
			}
			continue
		}
		if err != nil || found || left <= 0 {
			return err
		}
	}
}

func (q *Queue) receive(ctx context.Context, r broker.ReceiveRequest) ([]*Message, error) {
	if err := q.enter(); err != nil {
		return nil, err
	}
	defer q.leave()
	msgs, err := q.b.receive(ctx, r)
	for _, m := range msgs {
		m.queue = q
	}
	return msgs, err
}
