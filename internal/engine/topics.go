package engine

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
)

// A Topic is a named set of queues. Its fields are read under the engine's
// lock; [Topic.Bell] and [Topic.Turn] are safe without.
type Topic struct {
	record.Topic

	Bell queue.Bell    // rings when something becomes visible
	turn atomic.Uint32 // the queue that gets the next message that names none

	waiting int64
	visible uint64
	rung    bool // already in this batch's effects
	dirty   bool
}

// Waiting is how many of the topic's messages wait.
func (t *Topic) Waiting() int64 { return t.waiting }

// Visible is how many of its messages ever became visible.
func (t *Topic) Visible() uint64 { return t.visible }

// Turn gives the topic's queues in rotation.
func (t *Topic) Turn() record.QueueNumber {
	return t.FirstQueue + record.QueueNumber((t.turn.Add(1)-1)%t.Queues)
}

// topics is all topics, by number and by name.
type topics struct {
	all   []*Topic // by number, from 1; nil where there is none
	names map[string]*Topic
	dirty []*Topic
}

// maxTopicNumber bounds the numbers that are believed from a cut; topics are
// kept by number, and numbers are handed out one by one.
const maxTopicNumber = 1 << 24

func newTopics() *topics { return &topics{names: make(map[string]*Topic), all: make([]*Topic, 1)} }

func (s *topics) get(n record.TopicNumber) *Topic { return s.all[n] }

func (s *topics) next() record.TopicNumber { return record.TopicNumber(len(s.all)) }

// make makes a topic, or gives the one of that number other attributes. Two
// proposers may ask for one name at once; the first number stays.
func (s *topics) make(t record.Topic) (made *Topic, fresh bool) {
	if old := s.names[t.Name]; old != nil {
		if old.Number == t.Number {
			old.Attributes = t.Attributes
			s.touch(old)
		}
		s.reserve(t.Number)
		return old, false
	}
	s.reserve(t.Number)
	made = &Topic{Topic: t}
	s.all[t.Number], s.names[t.Name] = made, made
	s.touch(made)
	return made, true
}

// reserve makes sure that the number is never given to another topic.
func (s *topics) reserve(n record.TopicNumber) {
	if int(n) >= len(s.all) {
		s.all = append(s.all, make([]*Topic, int(n)+1-len(s.all))...)
	}
}

func (s *topics) touch(t *Topic) {
	if !t.dirty {
		t.dirty = true
		s.dirty = append(s.dirty, t)
	}
}

// each calls fn for the topics in the order of their numbers.
func (s *topics) each(fn func(*Topic)) {
	for _, t := range s.all {
		if t != nil {
			fn(t)
		}
	}
}

// freeze encodes the topics that changed since the last freeze.
func (s *topics) freeze() (states []keyValue, frozen []*Topic) {
	frozen, s.dirty = s.dirty, nil
	slices.SortFunc(frozen, func(a, b *Topic) int { return cmp.Compare(a.Number, b.Number) })
	for _, t := range frozen {
		t.dirty = false
		states = append(states, keyValue{number32('t', uint32(t.Number)), t.append(nil)})
	}
	return states, frozen
}

func (t *Topic) append(dst []byte) []byte {
	dst = binary.AppendVarint(dst, t.waiting)
	dst = binary.AppendUvarint(dst, t.visible)
	return record.AppendTopic(dst, &t.Topic)
}

// restore takes back a topic from a cut.
func (s *topics) restore(value []byte) error {
	waiting, n := binary.Varint(value)
	if n <= 0 {
		return fmt.Errorf("%w: topic %x", record.ErrCorrupt, value)
	}
	visible, k := binary.Uvarint(value[n:])
	if k <= 0 {
		return fmt.Errorf("%w: topic %x", record.ErrCorrupt, value)
	}
	c, err := record.NextCommand(value, n+k)
	if err != nil {
		return fmt.Errorf("topic: %w", err)
	}
	t, err := record.DecodeTopic(c.Payload)
	if err != nil {
		return fmt.Errorf("topic: %w", err)
	}
	if t.Number > maxTopicNumber {
		return fmt.Errorf("%w: topic number %d", record.ErrCorrupt, t.Number)
	}
	made, _ := s.make(t)
	made.waiting, made.visible = waiting, visible
	return nil
}

func number32(prefix byte, n uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{prefix}, n)
}
