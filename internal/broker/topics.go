package broker

import (
	"context"
	"errors"

	"github.com/duemq/duemq/internal/record"
)

// A TopicInfo is a topic with its figures.
type TopicInfo struct {
	Name       string
	Queues     int
	Attributes []record.Property // in the order of their names
	MaxRate    int64             // messages a second that may become visible, 0 for any; attribute max_rate
	Counts     Counts
	System     bool           // the broker's own: nobody may send to it or subscribe
	Offsets    []QueueOffsets // by queue; not in a list
}

// QueueOffsets are the offsets of a queue that can be read: from Low below Next.
type QueueOffsets struct{ Low, Next record.Offset }

// CreateTopic makes a topic; 0 queues are the broker's default. One that is
// there and is the same is the answer too; with other queues or attributes it is
// ErrExists. It is durable on return.
func (b *Broker) CreateTopic(ctx context.Context, name string, queues int, attributes []record.Property) (TopicInfo, error) {
	return TopicInfo{}, errors.ErrUnsupported
}

// UpdateTopic sets attributes of a topic, and removes those that are given empty;
// the others stay. The known one is max_rate. It is durable on return.
func (b *Broker) UpdateTopic(ctx context.Context, name string, attributes map[string]string) (TopicInfo, error) {
	return TopicInfo{}, errors.ErrUnsupported
}

// Topic tells how a topic stands; ErrTopicUnknown if there is none.
func (b *Broker) Topic(name string) (TopicInfo, error) {
	return TopicInfo{}, errors.ErrUnsupported
}

// TopicList gives all topics in the order in which they were made, without
// their offsets; those of the broker itself only with system.
func (b *Broker) TopicList(system bool) []TopicInfo { return nil }

// PauseTopic stops a topic from delivering: what falls due is held back, what is
// visible can be received. It is durable on return.
func (b *Broker) PauseTopic(ctx context.Context, name string) error {
	return errors.ErrUnsupported
}

// ResumeTopic lets a topic go on; what was held back comes first, in its order.
func (b *Broker) ResumeTopic(ctx context.Context, name string) error {
	return errors.ErrUnsupported
}

// DeleteTopic deletes a topic with everything in it and everything that waits
// for it, and says how much waited and could be received. A topic that is made
// under its name afterwards gets none of it. It is durable on return.
func (b *Broker) DeleteTopic(ctx context.Context, name string) (waiting, visible int64, err error) {
	return 0, 0, errors.ErrUnsupported
}

// PurgeTopic is DeleteTopic of everything but the topic itself.
func (b *Broker) PurgeTopic(ctx context.Context, name string) (waiting, visible int64, err error) {
	return 0, 0, errors.ErrUnsupported
}
