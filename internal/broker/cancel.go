package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// An Answer says how a message stands after a cancel or a reschedule.
type Answer struct {
	ID    record.ID
	Topic string
	Due   int64 // how it waits now, or waited, Unix ms
}

// Cancel takes a waiting message away, by id or handle. A nil error means that
// it will never be delivered; that holds after a crash. Otherwise ErrDelivered
// (with when), ErrCancelled or ErrUnknown. A half message is rolled back.
func (b *Broker) Cancel(ctx context.Context, reference string) (Answer, error) {
	_, r, t, err := b.find(reference)
	if err != nil {
		return Answer{}, err
	}
	if _, half := b.e.Half(r.ID); half {
		if a, err := b.EndTransaction(ctx, reference, false); !errors.Is(err, ErrTransactionEnded) {
			return a, err
		}
	}
	out, err := b.e.Cancel(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	return b.answer(t, r, out)
}

// Reschedule gives a waiting message another due, by id or handle. Errors are
// as for Cancel, and engine.ErrDelayTooLong.
func (b *Broker) Reschedule(ctx context.Context, reference string, d engine.Delay) (Answer, error) {
	_, r, t, err := b.find(reference)
	if err != nil {
		return Answer{}, err
	}
	if err := b.refuseHalf(r.ID); err != nil {
		return Answer{}, err
	}
	out, err := b.e.Reschedule(ctx, r, d)
	if err != nil {
		return Answer{}, err
	}
	return b.answer(t, r, out)
}

// Shift moves a waiting message's due by a duration, either way.
func (b *Broker) Shift(ctx context.Context, reference string, by time.Duration) (Answer, error) {
	_, r, t, err := b.find(reference)
	if err != nil {
		return Answer{}, err
	}
	if err := b.refuseHalf(r.ID); err != nil {
		return Answer{}, err
	}
	s, err := b.e.Standing(r)
	if err != nil {
		return Answer{}, err
	}
	now := s.Ref
	out := engine.Outcome{Verdict: s.Verdict, Due: now.Due}
	if s.Verdict == timeline.Done {
		out, err = b.e.Reschedule(ctx, r, engine.Delay{Kind: engine.DelayAt, Value: max(now.Due+by.Milliseconds(), 1)})
		if err != nil {
			return Answer{}, err
		}
	}
	return b.answer(t, r, out)
}

// DeliverNow has a waiting message delivered at once.
func (b *Broker) DeliverNow(ctx context.Context, reference string) (Answer, error) {
	return b.Reschedule(ctx, reference, engine.Delay{})
}

// refuseHalf refuses to move what waits for no time.
func (b *Broker) refuseHalf(id record.ID) error {
	if _, half := b.e.Half(id); half {
		return fmt.Errorf("%w: %v is half of a transaction: its delay counts from the commit; commit it, or roll it back", ErrInvalid, id)
	}
	return nil
}

// answer turns a verdict into a class of error.
func (b *Broker) answer(t *engine.Topic, r record.Ref, out engine.Outcome) (Answer, error) {
	a := Answer{ID: r.ID, Topic: t.Name, Due: out.Due}
	switch out.Verdict {
	case timeline.Done:
		return a, nil
	case timeline.AlreadyCancelled:
		return a, fmt.Errorf("%w: %v", ErrCancelled, r.ID)
	case timeline.NotWaiting:
	}
	m, _, err := b.e.Find(r.ID)
	if err != nil {
		return a, err
	}
	v := View{ID: r.ID}
	if err := b.locate(&v, r.Queue, out.Due, m.Stored); err != nil {
		return a, err
	}
	if v.VisibleAt == 0 {
		return a, fmt.Errorf("%w: %v", ErrDelivered, r.ID)
	}
	return a, fmt.Errorf("%w: %v at %s", ErrDelivered, r.ID, time.UnixMilli(v.VisibleAt).UTC().Format("2006-01-02T15:04:05.000Z"))
}
