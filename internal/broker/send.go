package broker

import (
	"context"
	"fmt"
	"strings"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/record"
)

// A Message is one message to be sent.
type Message struct {
	Topic      string
	Queue      int  // only read with HasQueue
	HasQueue   bool // false: the topic's queues in turn
	Key        string
	Tag        string
	Properties []record.Property
	Body       []byte
	Born       int64 // the producer's clock, Unix ms; 0 if it is not known
	Delay      engine.Delay

	Idempotency string // key, 1 to MaxName bytes: who sends it again adds nothing; empty for none
	Name        string // client's name within the topic, 1 to MaxName bytes: it replaces who waits under it
	Half        string // producer group: nobody sees the message before its transaction is committed
}

// MaxName is how long an idempotency key or a name of a message may be, in bytes.
const MaxName = 256

// A Receipt says what became of a message that was sent.
type Receipt struct {
	ID     record.ID
	Topic  string
	Queue  int
	Due    int64 // Unix ms; 0 if it was not delayed
	Ready  bool  // visible already, at Offset
	Offset record.Offset
	Handle string // recall handle; empty unless it waits
	State  State

	Repeat   bool      // its idempotency key was used before: all of this describes the first message
	Replaced record.ID // the message whose name it took, which was cancelled

	Err error // refused, alone; the others are not affected
}

// Send sends messages, each on its own: a refused one has its error in its
// receipt. When the error is nil, every other one is as durable as the sync
// policy says. If ctx ends first the outcome is unknown.
func (b *Broker) Send(ctx context.Context, msgs []Message) ([]Receipt, error) {
	if len(msgs) > MaxBatch {
		return nil, fmt.Errorf("%w: %d messages in one batch, limit %d; send several", ErrInvalid, len(msgs), MaxBatch)
	}
	receipts := make([]Receipt, len(msgs))
	sends := make([]engine.Send, 0, len(msgs))
	where := make([]int, 0, len(msgs))
	for i := range msgs {
		m := &msgs[i]
		receipts[i].Topic = m.Topic
		s, err := b.prepare(ctx, m)
		if err != nil {
			if ctx.Err() != nil || b.e.Err() != nil {
				return nil, err
			}
			receipts[i].Err = err
			continue
		}
		sends = append(sends, s)
		where = append(where, i)
	}
	if err := b.e.Send(ctx, sends); err != nil {
		return nil, err
	}
	for k := range sends {
		b.receipt(&receipts[where[k]], &sends[k])
	}
	return receipts, nil
}

// prepare checks a message and finds its topic.
func (b *Broker) prepare(ctx context.Context, m *Message) (engine.Send, error) {
	s := engine.Send{
		Message: record.Message{
			Born: m.Born, Key: m.Key, Tag: m.Tag, Properties: m.Properties, Body: m.Body,
		},
		Delay: m.Delay,
	}
	if m.Born == 0 {
		s.Message.Born = b.e.Now()
	}
	if strings.ContainsAny(m.Key+m.Tag, "\x00\x01\x02") {
		return s, fmt.Errorf("%w: key or tag holds a control character that RocketMQ uses as separator", ErrInvalid)
	}
	if strings.Contains(m.Tag, "||") {
		return s, fmt.Errorf("%w: tag %q holds ||, which joins tags in a subscription", ErrInvalid, m.Tag)
	}
	if err := checkProperties(m.Properties); err != nil {
		return s, err
	}
	if err := s.Message.Check(); err != nil {
		return s, err
	}
	t, err := b.topic(ctx, m.Topic)
	if err != nil {
		return s, err
	}
	s.Topic, s.Turn = t.Number, t
	if m.HasQueue {
		if m.Queue < 0 || m.Queue >= int(t.Queues) {
			return s, fmt.Errorf("%w: queue %d of topic %q, which has queues 0 to %d", ErrInvalid, m.Queue, m.Topic, t.Queues-1)
		}
		s.To = t.FirstQueue + record.QueueNumber(m.Queue)
	}
	return s, nil
}

func (b *Broker) receipt(r *Receipt, s *engine.Send) {
	r.Err = s.Err
	if s.Err != nil {
		return
	}
	r.ID, r.Due, r.Ready, r.Offset = s.ID, s.Due, s.Ready, s.Offset
	r.Queue = int(s.Message.Queue - s.Turn.FirstQueue)
	if !s.Ready {
		r.Handle = b.handle(r.Topic, s.Due, s.ID)
	}
}
