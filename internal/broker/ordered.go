package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/duemq/duemq/internal/record"
)

// Limits of queue locks.
const (
	// DefaultLock is how long a queue's lock holds unless told, RocketMQ's
	// rebalanceLockMaxLiveTime.
	DefaultLock = 60 * time.Second
	MaxLock     = MaxInvisible
	MaxClient   = 256 // bytes of a client's name
)

// LockQueues gives a client of a group queues of a topic, to consume them in
// order, and tells which of them it has: those that another client has are left
// out. Locks are memory and end after ttl, 0 for DefaultLock; who has one renews
// it by asking again. They bind nobody who does not ask: a receive in order
// needs none. The group is made if there is none.
func (b *Broker) LockQueues(group, client, topic string, queues []int, ttl time.Duration) (held []int, err error) {
	if ttl == 0 {
		ttl = DefaultLock
	}
	if ttl < time.Millisecond || ttl > MaxLock {
		return nil, fmt.Errorf("%w: lock for %v, want 1ms to %v", ErrInvalid, ttl, MaxLock)
	}
	s, err := b.subscriber(context.Background(), group)
	if err != nil {
		return nil, err
	}
	numbers, err := b.lockable(client, topic, queues)
	if err != nil {
		return nil, err
	}
	now := b.mono()
	for i, n := range numbers {
		if b.locks.Lock(s.Number, n, client, now, now+ttl.Milliseconds()) {
			held = append(held, queues[i])
		}
	}
	return held, nil
}

// UnlockQueues ends locks that the client has. Others are passed over.
func (b *Broker) UnlockQueues(group, client, topic string, queues []int) error {
	s, err := b.known(group)
	if err != nil {
		return err
	}
	numbers, err := b.lockable(client, topic, queues)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		b.locks.Unlock(s.Number, n, client)
	}
	return nil
}

// lockable finds the queues that a client names.
func (b *Broker) lockable(client, topic string, queues []int) ([]record.QueueNumber, error) {
	if client == "" || len(client) > MaxClient {
		return nil, fmt.Errorf("%w: client's name of %d bytes, want 1 to %d", ErrInvalid, len(client), MaxClient)
	}
	t := b.e.TopicNamed(topic)
	if t == nil {
		return nil, unknownTopic(topic)
	}
	numbers := make([]record.QueueNumber, len(queues))
	for i, q := range queues {
		var err error
		if numbers[i], err = b.queueNumber(t, q); err != nil {
			return nil, err
		}
	}
	return numbers, nil
}
