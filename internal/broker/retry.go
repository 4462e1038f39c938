package broker

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/record"
)

// Names of the topics in which a group alone gets messages again. The separator
// is RocketMQ's of its second form (enableRetryTopicV2): no name holds it, so
// that no two pairs of group and topic share a name.
const (
	retryPrefix    = "%RETRY%"
	retrySeparator = "+"
)

func retryTopic(group, topic string) string { return retryPrefix + group + retrySeparator + topic }

// parseRetry reads the name of a retry topic.
func parseRetry(name string) (group, topic string, ok bool) {
	rest, ok := strings.CutPrefix(name, retryPrefix)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, retrySeparator)
}

// attemptsBefore is how often a message was delivered before it was sent again
// as this one.
func attemptsBefore(m *record.Message) int {
	if v := extension(m, record.ExtAttempts); len(v) == 4 {
		return int(binary.LittleEndian.Uint32(v))
	}
	return 0
}

// originOf is the id that a message had at first.
func originOf(m *record.Message) record.ID {
	if v := extension(m, record.ExtOrigin); len(v) == 8 {
		return record.ID(binary.LittleEndian.Uint64(v))
	}
	return 0
}

func extension(m *record.Message, number uint16) []byte {
	for i := range m.Extensions {
		if m.Extensions[i].Number == number {
			return m.Extensions[i].Value
		}
	}
	return nil
}

// A NackResult says what became of a message that was given back.
type NackResult struct {
	Due    int64     // Unix ms: not received again before
	Dead   bool      // its attempts were used up: it is among the dead letters
	DeadID record.ID // and this is its id there
}

// Nack gives a leased message back: it may be received again after d, or after
// the group's back-off for this attempt if d is nil. A message whose attempts
// are used up becomes a dead letter instead. What was decided is written down
// when Nack returns, as durable as an ack; a dead letter is synced. Errors are as
// for Extend, but a lease from before a restart holds if nobody else got the
// message.
func (b *Broker) Nack(ctx context.Context, s string, d *time.Duration) (NackResult, error) {
	if err := ctx.Err(); err != nil {
		return NackResult{}, err
	}
	if d != nil {
		if err := checkInvisible(*d); err != nil {
			return NackResult{}, err
		}
	}
	f := finder{b: b}
	if err := f.held(s); err != nil {
		return NackResult{}, err
	}
	ctx = context.WithoutCancel(ctx)
	config := configOf(&f.s.Group, b.e.LevelTable())
	l, err := b.letterOf(&f)
	if err != nil {
		return NackResult{}, err
	}
	if l.attempts >= config.MaxAttempts {
		l.reason = reasonUsedUp
		id, err := b.buryHeld(ctx, &f, &l)
		return NackResult{Dead: err == nil, DeadID: id}, err
	}
	if d == nil {
		step := config.backoff(l.attempts)
		d = &step
	}
	r := NackResult{Due: b.e.Now()}
	if *d > 0 {
		r.Due = b.e.Soon() + d.Milliseconds()
	}
	if b.outlives(r.Due, l.visible) {
		return r, b.resend(ctx, &f, &l, r.Due)
	}
	return r, b.release(ctx, &f, d.Milliseconds(), r.Due)
}

// release gives a leased message back, until a due.
func (b *Broker) release(ctx context.Context, f *finder, ms, due int64) error {
	until := b.e.Reached(due) + 1 // as mono counts
	if ms == 0 {
		until, due = b.mono(), 0
	}
	if err := f.back(until); err != nil {
		return err
	}
	defer b.ring(f.key.queue) // who waits must learn of the new instant
	return b.e.Release(ctx, record.Release{
		Group: f.key.group, Queue: f.key.queue, Reason: record.ReasonNack,
		Entries: []record.Released{{Offset: f.offset, Attempt: f.attempt, Due: due}},
	})
}

// back ends the lease; the message may be leased again from an instant on
// (monotonic ms). A lease from before a restart is believed if nobody else got
// the message.
func (f *finder) back(until int64) error {
	st := f.leases.Back(f.offset, f.attempt, until)
	if st != group.Unknown {
		return f.standing(st)
	}
	err := f.b.e.Progress(f.s.state, f.key.queue, func(p *group.Progress, _ engine.Bounds) {
		switch {
		case p.Finished(f.offset):
			st = group.Finished
		case p.Attempts(f.offset) == f.attempt && p.Due(f.offset) == 0:
			st = group.Holds
		}
	})
	if err != nil {
		return err
	}
	return f.standing(st)
}

// outlives says whether a message that became visible at an instant will not be
// kept until a due. Then it is sent again, and kept on its own account.
func (b *Broker) outlives(due, visible int64) bool {
	keep := b.e.Kept().Time
	return keep > 0 && due-visible >= (keep-keep/10).Milliseconds()
}

// resend gives a message back by sending it to the group's retry topic.
func (b *Broker) resend(ctx context.Context, f *finder, l *letter, due int64) error {
	t, err := b.makeRetry(ctx, f.s, l.topic)
	if err != nil {
		return err
	}
	if err := f.back(b.mono() + moveTime); err != nil {
		return err
	}
	defer b.ring(f.key.queue)
	m := l.again(t, l.attempts)
	_, err = b.e.Bury(ctx, l.ack(), &m, engine.Delay{Kind: engine.DelayAt, Value: due})
	return err
}

// makeRetry finds the topic in which a group alone gets messages of a topic
// again, or makes it. The group begins with what is sent there from now on,
// wherever it begins elsewhere.
func (b *Broker) makeRetry(ctx context.Context, s subscriber, topic string) (*engine.Topic, error) {
	t, err := b.systemTopic(ctx, retryTopic(s.Name, topic))
	if err != nil {
		return nil, err
	}
	q := t.First()
	if !b.e.Began(s.state, q) {
		if err := b.e.Ack(ctx, []record.Ack{{Group: s.Number, Queue: q}}); err != nil {
			return nil, err
		}
		if main := b.e.TopicNamed(topic); main != nil {
			main.Bell.Ring() // who waits there listens here too from now on
		}
	}
	return t, nil
}

// systemTopic finds a topic of the broker's own, or makes it, with one queue.
func (b *Broker) systemTopic(ctx context.Context, name string) (*engine.Topic, error) {
	if t := b.e.TopicNamed(name); t != nil {
		return t, nil
	}
	t, err := b.e.MakeTopic(ctx, name, 1, nil)
	if err == nil && t == nil {
		err = fmt.Errorf("topic %q: %w", name, engine.ErrNotFound)
	}
	return t, err
}

// withExtensions gives a message's extensions with some others in their places,
// in order. An empty value is none.
func withExtensions(old []record.Extension, set ...record.Extension) []record.Extension {
	out := slices.DeleteFunc(slices.Clone(old), func(x record.Extension) bool {
		return slices.ContainsFunc(set, func(y record.Extension) bool { return x.Number == y.Number })
	})
	for _, x := range set {
		if len(x.Value) > 0 {
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(x, y record.Extension) int { return int(x.Number) - int(y.Number) })
	return out
}
