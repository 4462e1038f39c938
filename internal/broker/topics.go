package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/record"
)

// Limits of a topic's attributes.
const (
	MaxAttributes     = 32
	MaxAttributeName  = 64   // bytes
	MaxAttributeValue = 1024 // bytes
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
	if err := checkTopic(name); err != nil {
		return TopicInfo{}, err
	}
	if queues == 0 {
		queues = int(b.o.Queues)
	}
	if queues < 1 || queues > MaxQueues {
		return TopicInfo{}, fmt.Errorf("%w: %d queues for topic %q, want 1 to %d", ErrInvalid, queues, name, MaxQueues)
	}
	attributes = slices.SortedFunc(slices.Values(attributes), byName)
	if err := checkAttributes(name, attributes); err != nil {
		return TopicInfo{}, err
	}
	t := b.e.TopicNamed(name)
	if t == nil {
		if err := b.roomForTopic(name); err != nil {
			return TopicInfo{}, err
		}
		var err error
		if t, err = b.e.MakeTopic(ctx, name, uint32(queues), attributes); err != nil {
			return TopicInfo{}, err
		}
	}
	info, err := b.topicInfo(t, true)
	if err != nil {
		return TopicInfo{}, err
	}
	if info.Queues != queues {
		return info, fmt.Errorf("%w: topic %q, with %d queues and not %d, which never changes; delete it first or take another name",
			ErrExists, name, info.Queues, queues)
	}
	if !slices.Equal(info.Attributes, attributes) {
		return info, fmt.Errorf("%w: topic %q, with other attributes", ErrExists, name)
	}
	return info, nil
}

func byName(a, b record.Property) int { return cmp.Compare(a.Name, b.Name) }

// checkAttributes looks at attributes in the order of their names.
func checkAttributes(topic string, attributes []record.Property) error {
	if len(attributes) > MaxAttributes {
		return fmt.Errorf("%w: topic %q with %d attributes, limit %d", ErrInvalid, topic, len(attributes), MaxAttributes)
	}
	for i, a := range attributes {
		switch {
		case a.Name == "" || len(a.Name) > MaxAttributeName:
			return fmt.Errorf("%w: name of an attribute of topic %q has %d bytes, want 1 to %d", ErrInvalid, topic, len(a.Name), MaxAttributeName)
		case a.Value == "" || len(a.Value) > MaxAttributeValue:
			return fmt.Errorf("%w: attribute %q of topic %q has %d bytes, want 1 to %d", ErrInvalid, a.Name, topic, len(a.Value), MaxAttributeValue)
		case i > 0 && attributes[i-1].Name == a.Name:
			return fmt.Errorf("%w: attribute %q of topic %q is there twice", ErrInvalid, a.Name, topic)
		case a.Name == engine.RateAttribute:
			if _, err := engine.ParseRate(a.Value); err != nil {
				return fmt.Errorf("%w: topic %q: %w", ErrInvalid, topic, err)
			}
		}
	}
	return nil
}

// UpdateTopic sets attributes of a topic, and removes those that are given empty;
// the others stay. The known one is max_rate. It is durable on return.
func (b *Broker) UpdateTopic(ctx context.Context, name string, attributes map[string]string) (TopicInfo, error) {
	b.administering.Lock() // so that no two updates take the same old attributes
	defer b.administering.Unlock()
	t, err := b.ownTopic(name)
	if err != nil {
		return TopicInfo{}, err
	}
	var next []record.Property
	for _, a := range b.e.Attributes(t) {
		if _, ok := attributes[a.Name]; !ok {
			next = append(next, a)
		}
	}
	for n, v := range attributes {
		if v != "" {
			next = append(next, record.Property{Name: n, Value: v})
		}
	}
	slices.SortFunc(next, byName)
	if err := checkAttributes(name, next); err != nil {
		return TopicInfo{}, err
	}
	if err := b.e.Configure(ctx, t, next); err != nil {
		return TopicInfo{}, err
	}
	return b.topicInfo(t, true)
}

// Topic tells how a topic stands; ErrTopicUnknown if there is none.
func (b *Broker) Topic(name string) (TopicInfo, error) {
	t := b.e.TopicNamed(name)
	if t == nil {
		return TopicInfo{}, unknownTopic(name)
	}
	return b.topicInfo(t, true)
}

// TopicList gives all topics in the order in which they were made, without
// their offsets; those of the broker itself only with system.
func (b *Broker) TopicList(system bool) []TopicInfo {
	all := b.e.Topics()
	list := make([]TopicInfo, 0, len(all))
	for _, c := range all {
		t := b.e.TopicNamed(c.Name)
		if t == nil || (isSystem(c.Name) && !system) {
			continue
		}
		info, _ := b.topicInfo(t, false) // fails for offsets only
		list = append(list, info)
	}
	return list
}

func (b *Broker) topicInfo(t *engine.Topic, offsets bool) (TopicInfo, error) {
	info := TopicInfo{Name: t.Name, Queues: int(t.Queues), Attributes: b.e.Attributes(t), Counts: b.e.Count(t), System: isSystem(t.Name)}
	slices.SortFunc(info.Attributes, byName)
	for _, a := range info.Attributes {
		if a.Name == engine.RateAttribute {
			info.MaxRate, _ = engine.ParseRate(a.Value) // what cannot be read sets no rate
		}
	}
	if !offsets {
		return info, nil
	}
	var err error
	info.Offsets, err = b.offsets(t)
	return info, err
}

// offsets reads the offsets of a topic's queues.
func (b *Broker) offsets(t *engine.Topic) ([]QueueOffsets, error) {
	first := t.First()
	all := make([]QueueOffsets, t.Queues)
	for i := range all {
		low, next, err := b.e.Bounds(first + record.QueueNumber(i))
		if errors.Is(err, engine.ErrNotFound) && b.e.TopicNamed(t.Name) != t {
			return nil, unknownTopic(t.Name)
		}
		if errors.Is(err, engine.ErrNotFound) {
			continue // purged in this moment
		}
		if err != nil {
			return nil, err
		}
		all[i] = QueueOffsets{low, next}
	}
	return all, nil
}

// ownTopic finds a topic that users may change.
func (b *Broker) ownTopic(name string) (*engine.Topic, error) {
	if err := checkTopic(name); err != nil {
		return nil, err
	}
	t := b.e.TopicNamed(name)
	if t == nil {
		return nil, unknownTopic(name)
	}
	return t, nil
}

// PauseTopic stops a topic from delivering: what falls due is held back, what is
// visible can be received. It is durable on return.
func (b *Broker) PauseTopic(ctx context.Context, name string) error { return b.pause(ctx, name, true) }

// ResumeTopic lets a topic go on; what was held back comes first, in its order.
func (b *Broker) ResumeTopic(ctx context.Context, name string) error {
	return b.pause(ctx, name, false)
}

func (b *Broker) pause(ctx context.Context, name string, paused bool) error {
	t, err := b.ownTopic(name)
	if err != nil {
		return err
	}
	return gone(name, b.e.Pause(ctx, t, paused))
}

// gone says of a topic that ended meanwhile that there is none.
func gone(name string, err error) error {
	if errors.Is(err, engine.ErrGone) {
		return unknownTopic(name)
	}
	return err
}

// DeleteTopic deletes a topic with everything in it and everything that waits
// for it, and says how much waited and could be received. A topic that is made
// under its name afterwards gets none of it. It is durable on return.
func (b *Broker) DeleteTopic(ctx context.Context, name string) (waiting, visible int64, err error) {
	return b.end(ctx, name, false)
}

// PurgeTopic is DeleteTopic of everything but the topic itself.
func (b *Broker) PurgeTopic(ctx context.Context, name string) (waiting, visible int64, err error) {
	return b.end(ctx, name, true)
}

// end counts before it ends: what arrives in between goes uncounted.
func (b *Broker) end(ctx context.Context, name string, purge bool) (waiting, visible int64, err error) {
	t, err := b.ownTopic(name)
	if err != nil {
		return 0, 0, err
	}
	first := t.First()
	waiting = b.e.Count(t).Waiting
	offsets, err := b.offsets(t)
	if err != nil {
		return 0, 0, err
	}
	for _, q := range offsets {
		visible += int64(q.Next - q.Low)
	}
	if err := gone(name, b.e.EndTopic(ctx, t, purge)); err != nil {
		return 0, 0, err
	}
	b.forget(func(k leaseKey) bool { return k.queue >= first && k.queue-first < record.QueueNumber(t.Queues) })
	t.Bell.Ring() // who waits looks for the topic again
	return waiting, visible, b.endTopics(ctx, func(retry string) bool {
		_, topic, ok := parseRetry(retry)
		return ok && topic == name
	})
}
