package broker

import (
	"errors"
	"time"
)

// DefaultLock is how long a queue's lock holds unless told, RocketMQ's
// rebalanceLockMaxLiveTime.
const DefaultLock = 60 * time.Second

// LockQueues gives a client of a group queues of a topic, to consume them in
// order, and tells which of them it has: those that another client has are left
// out. Locks are memory and end after ttl, 0 for DefaultLock; who has one renews
// it by asking again.
func (b *Broker) LockQueues(group, client, topic string, queues []int, ttl time.Duration) (held []int, err error) {
	return nil, errors.ErrUnsupported
}

// UnlockQueues ends locks that the client has. Others are passed over.
func (b *Broker) UnlockQueues(group, client, topic string, queues []int) error {
	return errors.ErrUnsupported
}
