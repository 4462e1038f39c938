package duemq

import (
	"context"
	"fmt"
	"maps"
	"strconv"
)

// A TopicOption says how a topic is.
type TopicOption interface{ topic(t *topicTerms) }

// topicTerms are what the options say.
type topicTerms struct {
	queues     int
	queuesSet  bool
	attributes map[string]string
	err        error
}

type topicFunc func(*topicTerms)

func (f topicFunc) topic(t *topicTerms) { f(t) }

// Queues says how many queues the topic has, 1 to 1024; default what [WithQueues]
// says. It cannot be changed.
func Queues(n int) TopicOption {
	return topicFunc(func(t *topicTerms) {
		if n < 1 {
			t.err = fmt.Errorf("%w: %d queues, want 1 or more", ErrInvalid, n)
		}
		t.queues, t.queuesSet = n, true
	})
}

// maxRate is the attribute of [MaxRate].
const maxRate = "max_rate"

// MaxRate bounds how many messages of the topic become visible in a second, so
// that a herd that falls due at once does not come at once; 0 is any number.
// What is held back is late, keeps its order and comes as soon as it may.
func MaxRate(n int64) TopicOption {
	return topicFunc(func(t *topicTerms) {
		switch {
		case n < 0:
			t.err = fmt.Errorf("%w: max rate %d, want none below zero", ErrInvalid, n)
		case n == 0:
			t.set(maxRate, "")
		default:
			t.set(maxRate, strconv.FormatInt(n, 10))
		}
	})
}

// Attribute notes something about the topic; an empty value removes it.
func Attribute(name, value string) TopicOption {
	return topicFunc(func(t *topicTerms) { t.set(name, value) })
}

func (t *topicTerms) set(name, value string) {
	if t.attributes == nil {
		t.attributes = make(map[string]string)
	}
	t.attributes[name] = value
}

func topicTermsOf(opts []TopicOption) (topicTerms, error) {
	var t topicTerms
	for _, o := range opts {
		o.topic(&t)
	}
	return t, t.err
}

// A TopicInfo is a topic.
type TopicInfo struct {
	Name       string
	Queues     int
	MaxRate    int64             // see [MaxRate]; 0 is any
	Attributes map[string]string // see [Attribute]; max_rate is one of them
	Paused     bool
	Waiting    int64          // for their dues; those held back included
	Held       int64          // of these, due and held back: the topic is paused, or has used up its rate
	Halves     int64          // half messages, whose transactions have not ended
	Visible    uint64         // that ever became visible
	Offsets    []QueueOffsets // by queue; only of [Queue.TopicInfo]
}

// QueueOffsets are the offsets of a queue that can be read: from Low below Next.
type QueueOffsets struct{ Low, Next int64 }

// A Purged says what went with a topic.
type Purged struct {
	Waiting int64 // messages that will never be delivered
	Visible int64 // messages that can no longer be received
}

// CreateTopic makes a topic. The first message does that too; this is for a topic
// of other queues or attributes. One that is there and is the same is no error,
// another one is [ErrExists]. It is durable as the [SyncPolicy] says.
func (q *Queue) CreateTopic(ctx context.Context, name string, opts ...TopicOption) (t TopicInfo, err error) {
	terms, err := topicTermsOf(opts)
	if err != nil {
		return t, err
	}
	maps.DeleteFunc(terms.attributes, func(_, value string) bool { return value == "" })
	err = q.during(ctx, func() (err error) {
		t, err = q.b.createTopic(ctx, name, terms)
		return err
	})
	return t, err
}

// UpdateTopic gives a topic the rate and the attributes that the options name;
// the others stay.
func (q *Queue) UpdateTopic(ctx context.Context, name string, opts ...TopicOption) (t TopicInfo, err error) {
	terms, err := topicTermsOf(opts)
	if err == nil && terms.queuesSet {
		err = fmt.Errorf("%w: the queues of topic %q cannot be changed", ErrInvalid, name)
	}
	if err != nil {
		return t, err
	}
	if len(terms.attributes) == 0 {
		return q.TopicInfo(ctx, name)
	}
	err = q.during(ctx, func() (err error) {
		t, err = q.b.updateTopic(ctx, name, terms.attributes)
		return err
	})
	return t, err
}

// Topics gives all topics by name, without their offsets.
func (q *Queue) Topics(ctx context.Context) (all []TopicInfo, err error) {
	err = q.during(ctx, func() (err error) {
		all, err = q.b.topicList(ctx)
		return err
	})
	return all, err
}

// TopicInfo tells how a topic stands; [ErrUnknownTopic] if there is none.
func (q *Queue) TopicInfo(ctx context.Context, name string) (t TopicInfo, err error) {
	err = q.during(ctx, func() (err error) {
		t, err = q.b.topicInfo(ctx, name)
		return err
	})
	return t, err
}

// Pause stops a topic from delivering: what falls due is held back until
// [Queue.Resume], also over restarts. What is visible can be received.
func (q *Queue) Pause(ctx context.Context, topic string) error {
	return q.during(ctx, func() error { return q.b.pauseTopic(ctx, topic) })
}

// Resume lets a topic go on. What was held back comes first, in its order.
func (q *Queue) Resume(ctx context.Context, topic string) error {
	return q.during(ctx, func() error { return q.b.resumeTopic(ctx, topic) })
}

// Purge empties a topic, what waits for it included, and says how much went.
// That cannot be undone.
func (q *Queue) Purge(ctx context.Context, topic string) (p Purged, err error) {
	err = q.during(ctx, func() (err error) {
		p, err = q.b.purgeTopic(ctx, topic)
		return err
	})
	return p, err
}

// DeleteTopic deletes a topic with all that is in it and all that waits for it,
// and says how much went. That cannot be undone; a topic of that name that is
// made afterwards gets none of it.
func (q *Queue) DeleteTopic(ctx context.Context, topic string) (p Purged, err error) {
	err = q.during(ctx, func() (err error) {
		p, err = q.b.deleteTopic(ctx, topic)
		return err
	})
	return p, err
}
