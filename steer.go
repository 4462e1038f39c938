package duemq

import (
	"context"
	"slices"

	"github.com/duemq/duemq/internal/broker"
)

// Cancel takes a message away that waits. A nil error means that it will never
// be delivered, and is as durable as the [SyncPolicy] says. Otherwise it is
// [ErrAlreadyDelivered], [ErrAlreadyCancelled], [ErrUnknownMessage] or
// [ErrInvalid]. A message that is due but not yet visible can still be
// cancelled.
//
// id is a [Receipt]'s ID or Handle, here and in the other calls that take one.
func (q *Queue) Cancel(ctx context.Context, id string) error {
	return q.steer(ctx, func() error {
		_, err := q.b.Cancel(ctx, id)
		return err
	})
}

// Reschedule gives a waiting message another due, as if it were sent now with
// that delay; it keeps its identity. Errors are those of Cancel,
// [ErrDelayTooLong] and [ErrClockSuspect].
func (q *Queue) Reschedule(ctx context.Context, id string, d Delay) error {
	return q.steer(ctx, func() error {
		if err := d.check(); err != nil {
			return err
		}
		_, err := q.b.Reschedule(ctx, id, d.d)
		return err
	})
}

// DeliverNow has a waiting message delivered at once: it is due when DeliverNow
// returns, or in the next millisecond if others fell due in this one, and
// becomes visible as any message does that falls due. Errors are those of
// Cancel.
func (q *Queue) DeliverNow(ctx context.Context, id string) error {
	return q.steer(ctx, func() error {
		_, err := q.b.DeliverNow(ctx, id)
		return err
	})
}

func (q *Queue) steer(ctx context.Context, do func() error) error {
	if err := q.enter(); err != nil {
		return err
	}
	defer q.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	return do()
}

// Get looks at a message, wherever it is, with its body. It leases nothing.
// Errors are [ErrUnknownMessage] and [ErrInvalid].
func (q *Queue) Get(ctx context.Context, id string) (*Message, error) {
	var v broker.View
	err := q.steer(ctx, func() (err error) {
		v, err = q.b.Message(ctx, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	v.Body = slices.Clone(v.Body)
	return messageOf(&v), nil
}
