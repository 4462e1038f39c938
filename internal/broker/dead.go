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
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
)

// MaxReason is how long the reason of a dead letter may be, in bytes.
const MaxReason = 1024

// reasonUsedUp is why a message is a dead letter unless somebody said why.
const reasonUsedUp = "attempts used up"

const deadPrefix = "%DLQ%"

// deadTopic is where a group's dead letters are.
func deadTopic(group string) string { return deadPrefix + group }

// moveTime is for how many ms a message is out of everybody's reach while it is
// moved. If the move fails it comes back after that.
const moveTime = int64(30 * time.Second / time.Millisecond)

// A letter is a message on its way to the dead letters of a group, or to where
// the group gets it again.
type letter struct {
	group    string
	number   record.GroupNumber
	queue    record.QueueNumber // where it is
	offset   record.Offset
	lease    uint32 // attempt that its lease names
	visible  int64  // Unix ms
	topic    string // of its first sending
	origin   record.ID
	attempts int // how often it was delivered
	reason   string
	m        record.Message
}

// take copies a message, and notes what it was at first.
func (l *letter) take(m *record.Message, id record.ID) {
	l.origin = id
	if first := originOf(m); first != 0 {
		l.origin = first
	}
	l.m = *m
	l.m.Properties = slices.Clone(m.Properties)
	l.m.Body = slices.Clone(m.Body)
	l.m.Extensions = slices.Clone(m.Extensions)
	for i := range l.m.Extensions {
		l.m.Extensions[i].Value = slices.Clone(l.m.Extensions[i].Value)
	}
}

// ack finishes the message where it is.
func (l *letter) ack() record.Ack {
	return record.Ack{Group: l.number, Queue: l.queue, Ranges: []record.OffsetRange{{From: l.offset, To: l.offset + 1}}}
}

// again makes the message that is sent to a retry topic, delivered so often
// before.
func (l *letter) again(to *engine.Topic, attempts int) record.Message {
	m := l.m
	m.Queue = to.First()
	ext := []record.Extension{l.originExtension(), {Number: record.ExtAttempts}, {Number: record.ExtTopic}, {Number: record.ExtReason}}
	if attempts > 0 {
		ext[1] = attemptsExtension(attempts)
	}
	m.Extensions = withExtensions(m.Extensions, ext...)
	return m
}

// dead makes the dead letter.
func (l *letter) dead(to *engine.Topic) record.Message {
	m := l.m
	m.Queue = to.First()
	m.Extensions = withExtensions(m.Extensions, l.originExtension(), attemptsExtension(l.attempts),
		record.Extension{Number: record.ExtTopic, Value: []byte(l.topic)},
		record.Extension{Number: record.ExtReason, Value: []byte(clip(l.reason, MaxReason))})
	return m
}

func (l *letter) originExtension() record.Extension {
	return record.Extension{Number: record.ExtOrigin, Value: binary.LittleEndian.AppendUint64(nil, uint64(l.origin))}
}

func attemptsExtension(n int) record.Extension {
	return record.Extension{Number: record.ExtAttempts, Value: binary.LittleEndian.AppendUint32(nil, uint32(n))}
}

// clip shortens a text, not within a character.
func clip(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}

// letterOf reads the message that a lease names. One that cannot be read is
// moved without its body rather than kept in the way of others.
func (b *Broker) letterOf(f *finder) (letter, error) {
	l := letter{group: f.s.Name, number: f.key.group, queue: f.key.queue, offset: f.offset, lease: f.attempt, attempts: int(f.attempt)}
	t, _ := b.e.TopicOf(l.queue)
	if t == nil {
		return l, fmt.Errorf("%w: %s: its topic was deleted or purged", ErrLeaseLost, short(f.text))
	}
	_, origin, retried := parseRetry(t.Name)
	if l.topic = t.Name; retried {
		l.topic = origin
	}
	entries, err := b.e.Entries(nil, l.queue, l.offset, 1)
	if err != nil {
		return l, fmt.Errorf("%w: %s: %w", ErrLeaseLost, short(f.text), err)
	}
	l.visible = entries[0].VisibleAt
	b.e.Messages(entries[:1], func(_ int, m *record.Message, err error) {
		if err != nil {
			m = unreadable(&entries[0])
		}
		if l.take(m, entries[0].ID); retried {
			l.attempts += attemptsBefore(m)
		}
	})
	return l, nil
}

// unreadable stands for a message whose bytes are damaged.
func unreadable(e *queue.Entry) *record.Message {
	return &record.Message{Stored: e.VisibleAt, Born: e.VisibleAt}
}

// Bury makes a leased message a dead letter at once, for a reason that is kept
// with it, and gives its id there. The move is one durable step. Errors are as
// for Nack.
func (b *Broker) Bury(ctx context.Context, lease, reason string) (record.ID, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if len(reason) > MaxReason {
		return 0, fmt.Errorf("%w: reason of %d bytes, limit %d", ErrInvalid, len(reason), MaxReason)
	}
	f := finder{b: b}
	if err := f.held(lease); err != nil {
		return 0, err
	}
	l, err := b.letterOf(&f)
	if err != nil {
		return 0, err
	}
	l.reason = reason
	return b.buryHeld(context.WithoutCancel(ctx), &f, &l)
}

// buryHeld moves the message that somebody's lease names.
func (b *Broker) buryHeld(ctx context.Context, f *finder, l *letter) (record.ID, error) {
	st := f.leases.Back(f.offset, f.attempt, b.mono()+moveTime)
	err := f.standing(st)
	if st == group.Unknown { // from before a restart: nothing in memory says that somebody is burying it
		b.burying.Lock()
		defer b.burying.Unlock()
		err = f.back(b.mono() + moveTime)
	}
	if err != nil {
		return 0, err
	}
	return b.bury(ctx, l)
}

// buryLeased moves a message that a receive has leased and does not hand out.
func (b *Broker) buryLeased(ctx context.Context, l *letter) (record.ID, error) {
	if b.leasesOf(l.number, l.queue).Back(l.offset, l.lease, b.mono()+moveTime) != group.Holds {
		return 0, nil // it took so long that another receiver has it
	}
	return b.bury(ctx, l)
}

// bury finishes the message for its group and sends the dead letter, in one
// step.
func (b *Broker) bury(ctx context.Context, l *letter) (record.ID, error) {
	t, err := b.systemTopic(ctx, deadTopic(l.group))
	if err != nil {
		return 0, err
	}
	m := l.dead(t)
	id, err := b.e.Bury(ctx, l.ack(), &m, engine.Delay{})
	if err == nil {
		b.ring(l.queue) // what stands behind it, for who consumes in order
	}
	return id, err
}
