package duemq

import (
	"context"
	"time"
)

// Cancel takes a message away that waits. A nil error means that it will never
// be delivered, and is as durable as the [SyncPolicy] says. Otherwise it is
// [ErrAlreadyDelivered], [ErrAlreadyCancelled], [ErrUnknownMessage] or
// [ErrInvalid]. A message that is due but not yet visible can still be
// cancelled.
//
// id is a [Receipt]'s ID or Handle, here and in the other calls that take one.
func (q *Queue) Cancel(ctx context.Context, id string) error {
	return q.during(ctx, func() error { return q.b.cancel(ctx, id) })
}

// Reschedule gives a waiting message another due, as if it were sent now with
// that delay; it keeps its identity. Errors are those of Cancel,
// [ErrDelayTooLong] and [ErrClockSuspect].
func (q *Queue) Reschedule(ctx context.Context, id string, d Delay) error {
	return q.during(ctx, func() error {
		if err := d.check(); err != nil {
			return err
		}
		return q.b.reschedule(ctx, id, d)
	})
}

// Shift moves the due of a waiting message by that much, later or, if it is
// negative, sooner, rounded up to whole milliseconds; it keeps its identity. A
// due that has passed thereby is at once. Errors are those of Reschedule.
func (q *Queue) Shift(ctx context.Context, id string, by time.Duration) error {
	return q.during(ctx, func() error { return q.b.shift(ctx, id, wholeMs(by)) })
}

// DeliverNow has a waiting message delivered at once: it is due when DeliverNow
// returns, or in the next millisecond if others fell due in this one, and
// becomes visible as any message does that falls due. Errors are those of
// Cancel.
func (q *Queue) DeliverNow(ctx context.Context, id string) error {
	return q.during(ctx, func() error { return q.b.deliverNow(ctx, id) })
}

// Get looks at a message, wherever it is, with its body. It leases nothing.
// Errors are [ErrUnknownMessage] and [ErrInvalid].
func (q *Queue) Get(ctx context.Context, id string) (m *Message, err error) {
	err = q.during(ctx, func() (err error) {
		m, err = q.b.message(ctx, id)
		return err
	})
	return m, err
}

// GetNamed looks at the message that waits in a topic under a [Name], or did
// last, as far as that is remembered; otherwise [ErrUnknownMessage].
func (q *Queue) GetNamed(ctx context.Context, topic, name string) (m *Message, err error) {
	err = q.during(ctx, func() (err error) {
		m, err = q.b.named(ctx, topic, name)
		return err
	})
	return m, err
}

// CancelNamed cancels the message that waits in a topic under a [Name]. Errors
// are those of Cancel.
func (q *Queue) CancelNamed(ctx context.Context, topic, name string) error {
	return q.during(ctx, func() error { return q.b.cancelNamed(ctx, topic, name) })
}
