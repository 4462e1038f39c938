package duemq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/record"
)

// MaxBatch is the largest number of messages of one SendBatch.
const MaxBatch = broker.MaxBatch

// A BeginOption says something about a message that is sent in a transaction
// ([Queue.Begin]): [Producer], and whatever is a SendOption.
type BeginOption interface{ send(o *outgoing) }

// A SendOption says something about a message that is sent.
type SendOption interface {
	BeginOption
	sends()
}

// outgoing is a message on its way to the broker.
type outgoing struct {
	m       broker.Message
	headers map[string]string
	delay   Delay
	delayed bool
	err     error // the first thing that is wrong
}

func (o *outgoing) refuse(format string, args ...any) {
	if o.err == nil {
		o.err = fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
	}
}

// A Delay says when a message falls due: [After], [At] or [Level]. It is a
// SendOption, and what [Queue.Reschedule], [Message.Retry] and [Queue.Redrive]
// take. The zero Delay is at once.
type Delay struct {
	d    engine.Delay
	zero bool // the zero time was given
}

// After is due once d has passed since the queue took the message; d is rounded
// up to whole milliseconds. Zero and negative are at once.
func After(d time.Duration) Delay {
	return Delay{d: engine.Delay{Kind: engine.DelayAfter, Value: ceilMs(d)}}
}

// At is due at t on the queue's clock, rounded up to whole milliseconds. Past is
// at once. The zero time is refused with [ErrInvalid], as most likely somebody
// forgot to set it.
func At(t time.Time) Delay {
	return Delay{d: engine.Delay{Kind: engine.DelayAt, Value: unixMs(t)}, zero: t.IsZero()}
}

// Level is due after the delay that [WithLevels] gives level n, from 1; without
// it level 3 is 10 s, 16 is 30 min, 18 is 2 h. Above the last level is the last
// level. Zero and negative are at once.
func Level(n int) Delay {
	return Delay{d: engine.Delay{Kind: engine.DelayLevel, Value: int64(n)}}
}

func (d Delay) send(o *outgoing) {
	if o.delayed {
		o.refuse("%s and %s: a message has one delay", o.delay, d)
		return
	}
	if err := d.check(); err != nil && o.err == nil {
		o.err = err
	}
	o.delay, o.delayed, o.m.Delay = d, true, d.d
}

func (Delay) sends() {}

func (d Delay) check() error {
	if d.zero {
		return fmt.Errorf("%w: the zero time as due", ErrInvalid)
	}
	return nil
}

// String says how the delay was given.
func (d Delay) String() string {
	switch d.d.Kind {
	case engine.DelayAfter:
		return fmt.Sprintf("After(%v)", time.Duration(d.d.Value)*time.Millisecond)
	case engine.DelayAt:
		return fmt.Sprintf("At(%s)", time.UnixMilli(d.d.Value).UTC().Format(time.RFC3339Nano))
	case engine.DelayLevel:
		return fmt.Sprintf("Level(%d)", d.d.Value)
	default:
		return "at once"
	}
}

type beginFunc func(*outgoing)

func (f beginFunc) send(o *outgoing) { f(o) }

type sendFunc func(*outgoing)

func (f sendFunc) send(o *outgoing) { f(o) }
func (sendFunc) sends()             {}

// Key says what the message is about, such as an order's number; several keys
// have blanks between them.
func Key(key string) SendOption { return sendFunc(func(o *outgoing) { o.m.Key = key }) }

// Tag is the message's kind within its topic.
func Tag(tag string) SendOption { return sendFunc(func(o *outgoing) { o.m.Tag = tag }) }

// Header adds a header, RocketMQ's user property. The last value of a name wins.
func Header(name, value string) SendOption {
	return sendFunc(func(o *outgoing) {
		if o.headers == nil {
			o.headers = make(map[string]string)
		}
		o.headers[name] = value
	})
}

// InQueue sends into the topic's queue n, from 0, so that messages which name
// the same one stay in order. Without it the queues take turns.
func InQueue(n int) SendOption {
	return sendFunc(func(o *outgoing) { o.m.Queue, o.m.HasQueue = n, true })
}

// IdempotencyKey has the message sent once, however often it is sent under that
// key: a repeat adds nothing and is answered with the receipt of the first one
// ([Receipt].Repeat). The same key in one topic with another message is an
// [ErrMismatch]. A key, 1 to 256 bytes, is remembered for the
// [WithIdempotencyWindow], or until its message is delivered if that is later.
//
// A queue that was dialled sends such a message again when it is not answered;
// Repeat may then mean the same call.
func IdempotencyKey(key string) SendOption {
	return sendFunc(func(o *outgoing) {
		if key == "" {
			o.refuse("an empty idempotency key")
		}
		o.m.Idempotency = key
	})
}

// Name gives the message a name of the sender's own within its topic, 1 to 256
// bytes. While a message of that name waits, the new one takes its place: the
// old one is cancelled ([Receipt].Replaced) in the same step. Name is for what
// can be there once, such as the reminder of a certain appointment; it is found
// again with [Queue.GetNamed] and [Queue.CancelNamed].
func Name(name string) SendOption {
	return sendFunc(func(o *outgoing) {
		if name == "" {
			o.refuse("an empty name")
		}
		o.m.Name = name
	})
}

// A Receipt says what became of a message that was sent.
type Receipt struct {
	ID     string // the message's identity for ever: 16 hexadecimal digits
	Topic  string
	Queue  int
	DueAt  time.Time // in UTC; zero if it was not delayed
	Ready  bool      // it can be received already
	Offset int64     // its number in its queue; -1 unless Ready
	Handle string    // RocketMQ's recall handle, good wherever an ID is; empty if Ready

	Repeat   bool   // its idempotency key was used before: the rest is of the first message, as it is now
	Replaced string // ID of the message of its name that waited and is cancelled; empty if none did

	Err error // of SendBatch: why this one was refused
}

// Send sends a message to a topic, which is made on first use. When the error is
// nil the message is as durable as the [SyncPolicy] says. If ctx ends first, or
// the queue fails, whether it was sent is unknown; every other error means that
// it was not: [ErrInvalid], [ErrTooLarge], [ErrForbidden], [ErrDelayTooLong],
// [ErrMismatch], [ErrFull], [ErrDiskFull], [ErrClockSuspect], [ErrClosed].
//
// The body is the caller's again when Send returns.
func (q *Queue) Send(ctx context.Context, topic string, body []byte, opts ...SendOption) (Receipt, error) {
	return sendOne(ctx, q, topic, body, opts)
}

func sendOne[O BeginOption](ctx context.Context, q *Queue, topic string, body []byte, opts []O) (Receipt, error) {
	o := outgoing{m: broker.Message{Topic: topic, Body: body}}
	for _, opt := range opts {
		opt.send(&o)
	}
	o.finish()
	if o.err != nil {
		return Receipt{}, o.err
	}
	one := [1]broker.Message{o.m}
	rs, err := q.send(ctx, one[:])
	if err != nil {
		return Receipt{}, err
	}
	if rs[0].Err != nil {
		return Receipt{}, rs[0].Err
	}
	return rs[0], nil
}

// SendBatch sends messages in one write, at most [MaxBatch], to any topics. The
// messages stand for themselves: one that is refused does not keep the others
// back. There is a receipt for each, in order, a refused one with its Err, and
// the error joins these, each with its number. Receipts are nil when nothing is
// known of any: ctx has ended, or the queue failed or is closed.
//
// What the queue sets in a Message is not looked at. The bodies are the caller's
// again when SendBatch returns.
func (q *Queue) SendBatch(ctx context.Context, msgs []Message) ([]Receipt, error) {
	receipts := make([]Receipt, len(msgs))
	sends := make([]broker.Message, 0, len(msgs))
	where := make([]int, 0, len(msgs))
	for i := range msgs {
		o := msgs[i].outgoing()
		if o.err != nil {
			receipts[i] = Receipt{Topic: msgs[i].Topic, Offset: -1, Err: o.err}
			continue
		}
		sends, where = append(sends, o.m), append(where, i)
	}
	rs, err := q.send(ctx, sends)
	if err != nil {
		return nil, err
	}
	for k := range rs {
		receipts[where[k]] = rs[k]
	}
	var errs []error
	for i := range receipts {
		if err := receipts[i].Err; err != nil {
			errs = append(errs, fmt.Errorf("message %d: %w", i, err))
		}
	}
	return receipts, errors.Join(errs...)
}

// outgoing is the message with all that can be sent of it.
func (m *Message) outgoing() outgoing {
	o := outgoing{
		m: broker.Message{
			Topic: m.Topic, Body: m.Body, Key: m.Key, Tag: m.Tag, Queue: m.Queue, HasQueue: m.InQueue,
			Idempotency: m.IdempotencyKey, Name: m.Name,
		},
		headers: m.Headers,
	}
	if m.After != 0 {
		After(m.After).send(&o)
	}
	if !m.At.IsZero() {
		At(m.At).send(&o)
	}
	if m.Level != 0 {
		Level(m.Level).send(&o)
	}
	o.finish()
	return o
}

// finish puts the headers into an order.
func (o *outgoing) finish() {
	if len(o.headers) == 0 {
		return
	}
	o.m.Properties = make([]record.Property, 0, len(o.headers))
	for _, name := range slices.Sorted(maps.Keys(o.headers)) {
		o.m.Properties = append(o.m.Properties, record.Property{Name: name, Value: o.headers[name]})
	}
}

// send sends messages that are the callee's, but for their bodies.
func (q *Queue) send(ctx context.Context, msgs []broker.Message) (rs []Receipt, err error) {
	err = q.during(ctx, func() (err error) {
		rs, err = q.b.send(ctx, msgs)
		return err
	})
	return rs, err
}
