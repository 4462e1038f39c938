package broker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A ReceiveRequest asks for messages of one topic, for one group.
type ReceiveRequest struct {
	Topic     string
	Group     string
	Max       int           // 1 to MaxReceive; 0 is 1
	Wait      time.Duration // how long to wait for the first one; 0 does not
	Invisible time.Duration // how long they are leased; 0 is the group's, by default DefaultInvisible
	MaxBytes  int           // of their bodies; 0 and above is MaxReceiveBytes. One message always fits

	// Tags selects messages by their tags: "a || b"; "" and "*" are all. What
	// does not match is finished for the group, so all its receivers of the topic
	// ask for the same tags.
	Tags string

	// Ordered has each queue in order: nothing of it is given while the group has
	// something of it that is not finished.
	Ordered bool
}

// A Delivery is one message, leased.
type Delivery struct {
	View

	Lease string
}

func (r *ReceiveRequest) check() error {
	if err := checkAnswer(&r.Max, &r.MaxBytes, r.Wait); err != nil {
		return err
	}
	if r.Invisible != 0 && (r.Invisible < time.Millisecond || r.Invisible > MaxInvisible) {
		return fmt.Errorf("%w: invisible %v, want 1ms to %v", ErrInvalid, r.Invisible, MaxInvisible)
	}
	return checkTopic(r.Topic)
}

// checkAnswer bounds how much is asked for at once, in messages and bytes, and
// how long to wait for it.
func checkAnswer(messages, size *int, wait time.Duration) error {
	if *messages == 0 {
		*messages = 1
	}
	if *size == 0 || *size > MaxReceiveBytes {
		*size = MaxReceiveBytes
	}
	switch {
	case *messages < 0 || *messages > MaxReceive:
		return fmt.Errorf("%w: max %d, want 1 to %d", ErrInvalid, *messages, MaxReceive)
	case *size < 0:
		return fmt.Errorf("%w: max %d bytes, want 1 or more", ErrInvalid, *size)
	case wait < 0 || wait > MaxWait:
		return fmt.Errorf("%w: wait %v, want 0 to %v", ErrInvalid, wait, MaxWait)
	}
	return nil
}

// Receive leases messages: those that came back first, then new ones, of the
// topic and of what is redelivered to this group alone. It returns with what
// there is, and waits only for the first one. No message within Wait is an empty
// answer and no error. That they were delivered once more is written down when
// Receive returns, as durable as an ack. A message whose attempts are used up
// becomes a dead letter of the group instead.
func (b *Broker) Receive(ctx context.Context, r ReceiveRequest) ([]Delivery, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	h, err := b.reception(ctx, &r)
	if err != nil {
		return nil, err
	}
	deadline := b.mono() + r.Wait.Milliseconds()
	for {
		bells := h.bells()
		more, err := h.pass(ctx)
		if err != nil || len(h.got) > 0 {
			return h.got, err
		}
		now := b.mono()
		if deadline <= now {
			return nil, nil
		}
		if more {
			err = b.goesOn(ctx)
		} else {
			err = b.awaitEither(ctx, bells, time.Duration(max(min(deadline, h.again)-now, 1))*time.Millisecond)
		}
		if err != nil {
			return nil, err
		}
	}
}

// mono is monotonic time in ms, for leases and waits. It is never zero, which
// ends a lease for good.
func (b *Broker) mono() int64 { return b.clock.Now().Mono/int64(time.Millisecond) + 1 }

// await waits for the bell, at most for d.
func (b *Broker) await(ctx context.Context, bell <-chan struct{}, d time.Duration) error {
	return b.awaitEither(ctx, bells{bell}, d)
}

// bells are what a receive listens to: that of its topic, and that of its
// group's retry topic, if there is one.
type bells [2]<-chan struct{}

func (b *Broker) awaitEither(ctx context.Context, on bells, d time.Duration) error {
	timer := b.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-on[0]:
		return nil
	case <-on[1]:
		return nil
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-b.e.Failed():
		return b.e.Err()
	case <-b.closing:
		return ErrDraining
	}
}

// goesOn says why a call that found nothing does not look again, nil if it does.
func (b *Broker) goesOn(ctx context.Context) error {
	select {
	case <-b.closing:
		return ErrDraining
	default:
		return errors.Join(ctx.Err(), b.e.Err())
	}
}
