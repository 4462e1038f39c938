package duemq

import "github.com/duemq/duemq/internal/broker"

// Broker is the broker of a queue that was opened, to put a door in front of it.
func (q *Queue) Broker() *broker.Broker {
	return q.b.(local).b //nolint:forcetypeassert // a dialled queue has no broker, and the test that asks is wrong
}
