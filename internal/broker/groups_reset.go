package broker

import (
	"context"
	"fmt"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/record"
)

// Reset has a group go on at another position of a topic, in all its queues.
// Attempts, back-offs and leases are forgotten; what waits in the group's retry
// topic stays there. The answer tells how each queue stood before and, in To,
// where the group goes on. A dry run changes nothing, else it is durable on
// return.
func (b *Broker) Reset(ctx context.Context, group, topic string, to Position, dryRun bool) ([]GroupQueue, error) {
	s, err := b.known(group)
	if err != nil {
		return nil, err
	}
	t := b.e.TopicNamed(topic)
	if t == nil {
		return nil, unknownTopic(topic)
	}
	first := t.First()
	queues := make([]GroupQueue, t.Queues)
	resets := make([]record.Reset, t.Queues)
	for i := range queues {
		n := first + record.QueueNumber(i)
		if queues[i], err = b.groupQueue(s, n); err != nil {
			return nil, err
		}
		queues[i].Queue = i
		if queues[i].To, err = b.place(n, to, engine.Bounds{Low: queues[i].Low, Next: queues[i].Next}); err != nil {
			return nil, err
		}
		resets[i] = record.Reset{Group: s.Number, Queue: n, Offset: queues[i].To}
	}
	if dryRun {
		return queues, nil
	}
	if err := b.e.Reset(ctx, resets); err != nil {
		return nil, err
	}
	for i := range resets {
		b.leasesOf(s.Number, resets[i].Queue).Reset()
	}
	t.Bell.Ring()
	return queues, nil
}

// place finds a position in a queue.
func (b *Broker) place(n record.QueueNumber, to Position, bounds engine.Bounds) (record.Offset, error) {
	switch to.Kind {
	case PositionEarliest:
		return bounds.Low, nil
	case PositionLatest:
		return bounds.Next, nil
	case PositionAt:
		return b.e.Search(n, to.Value)
	case PositionOffset:
		if to.Value < 0 {
			return 0, fmt.Errorf("%w: offset %d, want 0 or more", ErrInvalid, to.Value)
		}
		return min(max(record.Offset(to.Value), bounds.Low), bounds.Next), nil
	default:
		return 0, fmt.Errorf("%w: position of kind %d", ErrInvalid, to.Kind)
	}
}
