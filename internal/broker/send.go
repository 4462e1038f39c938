package broker

import (
	"context"
	"errors"
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
	where := make([]int, len(msgs))
	for i := range msgs {
		where[i] = i
	}
	for try := 0; len(where) > 0; try++ {
		var err error
		if where, err = b.send(ctx, msgs, receipts, where, try == maxTries); err != nil {
			return nil, err
		}
	}
	return receipts, nil
}

// maxTries is how often a message is sent again whose topic was purged or
// deleted just before it.
const maxTries = 10

// send sends the messages of where, and gives those whose topic had ended by
// then; with last those are refused too. where is used again.
func (b *Broker) send(ctx context.Context, msgs []Message, receipts []Receipt, where []int, last bool) ([]int, error) {
	sends := make([]engine.Send, 0, len(where))
	sent := where[:0]
	hand := handIn{b: b, now: b.e.Now()}
	for _, i := range where {
		m, r := &msgs[i], &receipts[i]
		r.Topic = m.Topic
		sends = append(sends, engine.Send{})
		s := &sends[len(sends)-1]
		err := hand.prepare(ctx, m, s)
		if err == nil && m.Idempotency != "" {
			var known bool
			if known, err = b.repeated(ctx, r, &s.Terms); known {
				sends = sends[:len(sends)-1]
				continue
			}
		}
		if err != nil {
			sends = sends[:len(sends)-1]
			if ctx.Err() != nil || b.e.Err() != nil {
				return nil, err
			}
			r.Err = err
			continue
		}
		sent = append(sent, i)
	}
	if err := b.e.Send(ctx, sends); err != nil {
		return nil, err
	}
	again := sent[:0]
	for k, i := range sent {
		if errors.Is(sends[k].Err, engine.ErrGone) && !last {
			again = append(again, i)
			continue
		}
		b.receipt(ctx, &receipts[i], &sends[k], &msgs[i])
	}
	return again, nil
}

// A handIn is one Send under way: what its messages share.
type handIn struct {
	b     *Broker
	now   int64         // Unix ms, for messages whose producer does not say when they were born
	topic *engine.Topic // of the last message
}

// prepare checks a message, finds its topic and fills in what is sent.
func (h *handIn) prepare(ctx context.Context, m *Message, s *engine.Send) error {
	s.Message = record.Message{Born: m.Born, Key: m.Key, Tag: m.Tag, Properties: m.Properties, Body: m.Body}
	s.Delay = m.Delay
	if m.Born == 0 {
		s.Message.Born = h.now
	}
	if strings.ContainsAny(m.Key+m.Tag, "\x00\x01\x02") {
		return fmt.Errorf("%w: key or tag holds a control character that RocketMQ uses as separator", ErrInvalid)
	}
	if strings.Contains(m.Tag, "||") {
		return fmt.Errorf("%w: tag %q holds ||, which joins tags in a subscription", ErrInvalid, m.Tag)
	}
	if err := checkProperties(m.Properties); err != nil {
		return err
	}
	if err := s.Message.Check(); err != nil {
		return err
	}
	t, err := h.find(ctx, m.Topic)
	if err != nil {
		return err
	}
	s.Topic, s.Turn = t.Number, t
	if m.HasQueue {
		if m.Queue < 0 || m.Queue >= int(t.Queues) {
			return fmt.Errorf("%w: queue %d of topic %q, which has queues 0 to %d", ErrInvalid, m.Queue, m.Topic, t.Queues-1)
		}
		s.To = t.First() + record.QueueNumber(m.Queue)
	}
	if m.Idempotency == "" && m.Name == "" && m.Half == "" {
		return nil
	}
	return h.b.underTerms(m, t, s)
}

// find finds a message's topic, or makes it.
func (h *handIn) find(ctx context.Context, name string) (*engine.Topic, error) {
	if h.topic != nil && h.topic.Name == name {
		return h.topic, nil
	}
	if isSystem(name) {
		return nil, checkTopic(name)
	}
	t, err := h.b.topic(ctx, name)
	h.topic = t
	return t, err
}

func (b *Broker) receipt(ctx context.Context, r *Receipt, s *engine.Send, m *Message) {
	r.Err = s.Err
	if s.Err != nil {
		return
	}
	if s.Repeat {
		r.Err = b.repeat(ctx, r, s.ID)
		return
	}
	r.ID, r.Due, r.Ready, r.Offset, r.Replaced = s.ID, s.Due, s.Ready, s.Offset, s.Took
	if r.Queue = m.Queue; !m.HasQueue {
		r.Queue = queueOf(s.Turn, s.Message.Queue)
	}
	switch {
	case s.Terms.Half:
		r.Due, r.State = 0, StateHalf
	case s.Ready:
		r.State = StateReady
	default:
		r.State, r.Handle = waitingState(s.Held), b.handle(r.Topic, s.Due, s.ID)
	}
}
