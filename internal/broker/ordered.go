package broker

import (
	"fmt"
	"time"

	"github.com/duemq/duemq/internal/engine"
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
// needs none.
func (b *Broker) LockQueues(group, client, topic string, queues []int, ttl time.Duration) (held []int, err error) {
	if ttl == 0 {
		ttl = DefaultLock
	}
	if ttl < time.Millisecond || ttl > MaxLock {
		return nil, fmt.Errorf("%w: lock for %v, want 1ms to %v", ErrInvalid, ttl, MaxLock)
	}
	t, err := b.lockable(client, topic)
	if err != nil {
		return nil, err
	}
	s, err := b.known(group)
	if err != nil {
		return nil, err
	}
	numbers, err := b.queueNumbers(t, queues)
	if err != nil {
		return nil, err
	}
	now := b.mono()
	for i, q := range queues {
		if b.locks.Lock(s.Number, numbers[i], client, now, now+ttl.Milliseconds()) {
			held = append(held, q)
		}
	}
	return held, nil
}

// UnlockQueues ends locks that the client has. Others are passed over.
func (b *Broker) UnlockQueues(group, client, topic string, queues []int) error {
	t, err := b.lockable(client, topic)
	if err != nil {
		return err
	}
	s, err := b.known(group)
	if err != nil {
		return err
	}
	numbers, err := b.queueNumbers(t, queues)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		b.locks.Unlock(s.Number, n, client)
	}
	return nil
}

// lockable finds the topic that a client names.
func (b *Broker) lockable(client, topic string) (*engine.Topic, error) {
	if client == "" || len(client) > MaxClient {
		return nil, fmt.Errorf("%w: client's name of %d bytes, want 1 to %d", ErrInvalid, len(client), MaxClient)
	}
	t := b.e.TopicNamed(topic)
	if t == nil {
		return nil, unknownTopic(topic)
	}
	return t, nil
}

// queueNumbers finds queues of a topic, each of them.
func (b *Broker) queueNumbers(t *engine.Topic, queues []int) ([]record.QueueNumber, error) {
	numbers := make([]record.QueueNumber, 0, len(queues))
	for _, q := range queues {
		n, err := b.queueNumber(t, q)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
