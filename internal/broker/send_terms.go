package broker

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/record"
)

// MaxName is how long an idempotency key or a name of a message may be, in bytes.
const MaxName = 256

// What a hash of the engine's stands for. They are in stores for good.
const (
	hashOnce = 'k' // an idempotency key
	hashName = 'n'
)

// underTerms adds what a message is sent under. Its queue is chosen here, so
// that it is of the family which the hashes are of.
func (b *Broker) underTerms(m *Message, t *engine.Topic, s *engine.Send) error {
	first := t.First()
	if m.HasQueue {
		s.To = first + record.QueueNumber(m.Queue)
	}
	for s.To < first || s.To-first >= record.QueueNumber(t.Queues) {
		first, s.To = t.First(), t.Turn() // a purge may come in between
	}
	if m.Idempotency != "" {
		if len(m.Idempotency) > MaxName {
			return fmt.Errorf("%w: idempotency key of %d bytes, limit %d", ErrInvalid, len(m.Idempotency), MaxName)
		}
		s.Terms.Once, s.Terms.Print = hashOf(first, hashOnce, m.Idempotency), m.print()
	}
	if m.Name != "" {
		if len(m.Name) > MaxName {
			return fmt.Errorf("%w: name of a message of %d bytes, limit %d", ErrInvalid, len(m.Name), MaxName)
		}
		s.Terms.Name = hashOf(first, hashName, m.Name)
	}
	if m.Half == "" {
		return nil
	}
	if err := checkGroup(m.Half); err != nil {
		return err
	}
	if n := b.e.HalfCount(); n >= MaxHalves {
		return fmt.Errorf("%w: %d half messages; commit or roll back some, or wait until those are rolled back that nobody answers for", ErrFull, n)
	}
	s.Terms.Half, s.Terms.Producer = true, m.Half
	return nil
}

// hashOf is what the engine knows a key or name of a topic by: a topic that was
// deleted or purged has another family, and so none of the old ones.
func hashOf(family record.QueueNumber, kind byte, key string) record.Hash {
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(family)))
	h.Write([]byte{kind})
	h.Write([]byte(key))
	return record.Hash(h.Sum(nil))
}

// print is a fingerprint of what a message says, and of when.
func (m *Message) print() uint64 {
	h := sha256.New()
	addPart(h, []byte(m.Tag))
	addPart(h, []byte(m.Key))
	addNumber(h, int64(len(m.Properties)))
	for _, p := range m.Properties {
		addPart(h, []byte(p.Name))
		addPart(h, []byte(p.Value))
	}
	addPart(h, m.Body)
	addNumber(h, int64(m.Delay.Kind))
	addNumber(h, m.Delay.Value)
	return binary.BigEndian.Uint64(h.Sum(nil))
}

func addPart(h hash.Hash, bytes []byte) {
	addNumber(h, int64(len(bytes)))
	h.Write(bytes)
}

func addNumber(h hash.Hash, n int64) { h.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) }

// repeated answers a message without sending it whose idempotency key is known
// already. Two that are sent at once are told apart when they are applied.
func (b *Broker) repeated(ctx context.Context, r *Receipt, terms *record.Terms) (known bool, err error) {
	id, sent, counts, err := b.e.Once(terms.Once)
	if err != nil || !counts {
		return false, err
	}
	if sent != terms.Print {
		return false, fmt.Errorf("%w: message %v was sent under this key and says something else", ErrMismatch, id)
	}
	return true, b.repeat(ctx, r, id)
}

// repeat describes the first message that was sent under a key. Its record may
// be gone while its key still counts.
func (b *Broker) repeat(ctx context.Context, r *Receipt, id record.ID) error {
	*r = Receipt{ID: id, Topic: r.Topic, Repeat: true, State: StateUnknown}
	v, err := b.Message(ctx, id.String())
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	r.Queue, r.Due, r.Ready, r.Offset, r.Handle, r.State = v.Queue, v.Due, v.HasOffset, v.Offset, v.Handle, v.State
	return nil
}

// MessageByName looks at the message that waits under a name in a topic, or
// waited last and is remembered. ErrUnknown: there is none.
func (b *Broker) MessageByName(ctx context.Context, topic, name string) (View, error) {
	if name == "" || len(name) > MaxName {
		return View{}, fmt.Errorf("%w: name of a message of %d bytes, want 1 to %d", ErrInvalid, len(name), MaxName)
	}
	t := b.e.TopicNamed(topic)
	if t == nil {
		return View{}, unknownTopic(topic)
	}
	id, counts, err := b.e.ByHash(hashOf(t.First(), hashName, name))
	if err != nil {
		return View{}, err
	}
	if !counts {
		return View{}, fmt.Errorf("%w: none waits under name %q in topic %q", ErrUnknown, short(name), topic)
	}
	return b.Message(ctx, id.String())
}
