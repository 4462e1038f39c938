package duemq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duemq/duemq/internal/engine"
)

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
			continue
		}
		m.settled = true
	}
	return errors.Join(lost...)
}

// Retry gives the message back, since it could not be dealt with now. Somebody
// of the group receives it again when the group's back-off for this attempt has
// passed ([Backoff]), or when that of an [After] has, at most [MaxInvisible]. A
// message that has been received as often as the group allows ([MaxAttempts])
// becomes a dead letter instead.
//
// When Retry returns, State is [StateRetrying] and NextAttempt is set, or State
// is [StateDead]. It is written down as an acknowledgement is, so that neither
// attempts nor back-off begin anew with a restart. A lease that was lost is
// [ErrLeaseLost].
func (m *Message) Retry(ctx context.Context, after ...Delay) error {
	d, err := backoffOf(after)
	if err != nil {
		return err
	}
	return m.giveUp(ctx, func() error {
		got, err := m.queue.b.nack(ctx, m.lease, d)
		if err != nil {
			return err
		}
		m.State, m.NextAttempt = StateRetrying, got.due
		if got.dead {
			m.State, m.NextAttempt = StateDead, time.Time{}
		}
		return nil
	})
}

// backoffOf is the one delay that was given, nil if there is none.
func backoffOf(after []Delay) (*time.Duration, error) {
	switch {
	case len(after) == 0:
		return nil, nil //nolint:nilnil // no delay is one of the answers
	case len(after) > 1 || after[0].d.Kind != engine.DelayAfter && after[0] != (Delay{}):
		return nil, fmt.Errorf("%w: %v: a retry takes one After, or none for the group's back-off", ErrInvalid, after)
	}
	d := time.Duration(max(after[0].d.Value, 0)) * time.Millisecond
	return &d, nil
}

// Bury makes the message a dead letter of its group at once, since it can never
// be dealt with: [Queue.DeadLetters]. The reason, which may be empty, is kept
// with it. State is [StateDead] when Bury returns. The move is one step, as
// durable as the [SyncPolicy] says. A lease that was lost is [ErrLeaseLost].
func (m *Message) Bury(ctx context.Context, reason string) error {
	return m.giveUp(ctx, func() error {
		if err := m.queue.b.bury(ctx, m.lease, reason); err != nil {
			return err
		}
		m.State = StateDead
		return nil
	})
}

// giveUp makes a call that ends the lease.
func (m *Message) giveUp(ctx context.Context, call func() error) error {
	if err := m.received(); err != nil {
		return err
	}
	err := m.queue.during(ctx, call)
	m.settled = m.settled || err == nil
	return err
}

// Extend has the lease run for d from now on, longer or shorter than before. At
// most [MaxInvisible]; rounded up to whole milliseconds.
func (m *Message) Extend(ctx context.Context, d time.Duration) error {
	if err := m.received(); err != nil {
		return err
	}
	return m.queue.during(ctx, func() error { return m.queue.b.extend(ctx, m.lease, wholeMs(d)) })
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
