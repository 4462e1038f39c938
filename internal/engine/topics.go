package engine

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// A Topic is a named set of queues. Its fields are read under the engine's
// lock; its number, name and count of queues never change, and [Topic.Bell],
// [Topic.First], [Topic.Turn] and [Topic.Family] are safe without.
type Topic struct {
	record.Topic

	Bell queue.Bell    // rings when something becomes visible
	turn atomic.Uint32 // the queue that gets the next message that names none
	from atomic.Uint32 // FirstQueue, for who has no lock

	waiting int64 // messages that wait, those held back too
	parked  int64 // of these, due and held back
	halves  int64
	levels  [timeline.Levels + 1]int64 // of these, in the timeline by level
	visible uint64
	paused  bool

	rate   int64 // messages a second that may become visible, 0 for any
	tokens int64 // thousandths of a message that may become visible at once
	filled int64 // stamp at which tokens were counted

	rung  bool // already in this batch's effects
	dirty bool
}

// RateAttribute is the attribute of a topic that says how many of its messages
// may become visible in a second: a decimal number, nothing or 0 for any.
const RateAttribute = "max_rate"

// MaxRate is the highest rate that a topic may have; above it there is none.
const MaxRate = 100_000_000

// ParseRate reads the value of [RateAttribute].
func ParseRate(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > MaxRate {
		return 0, fmt.Errorf("%s %q: want a number of messages a second from 0 (any) to %d", RateAttribute, s, MaxRate)
	}
	return n, nil
}

// Family is the number under which the topic's waiting messages are counted by
// minute: a topic that was purged begins a new one.
func (t *Topic) Family() record.TopicNumber { return record.TopicNumber(t.First()) }

func (t *Topic) family() record.TopicNumber { return record.TopicNumber(t.FirstQueue) }

// Waiting is how many of the topic's messages wait.
func (t *Topic) Waiting() int64 { return t.waiting }

// Visible is how many of its messages ever became visible.
func (t *Topic) Visible() uint64 { return t.visible }

// First is FirstQueue as of now, without the lock: a purge gives the topic other
// queues.
func (t *Topic) First() record.QueueNumber { return record.QueueNumber(t.from.Load()) }

func (t *Topic) begin(first record.QueueNumber) {
	t.FirstQueue = first
	t.from.Store(uint32(first))
}

// Turn gives the topic's queues in rotation.
func (t *Topic) Turn() record.QueueNumber {
	return t.First() + record.QueueNumber((t.turn.Add(1)-1)%t.Queues)
}

// configure takes over what the attributes say.
func (t *Topic) configure() {
	t.rate = 0
	for _, a := range t.Attributes {
		if a.Name == RateAttribute {
			t.rate, _ = ParseRate(a.Value) // what cannot be read sets no rate; the proposer refused it
		}
	}
}

// burst is how many thousandths of a message may be saved up: those of a tenth
// of a second, one message at least.
func (t *Topic) burst() int64 { return max(t.rate*100, 1000) }

// fill counts what may become visible at stamp.
func (t *Topic) fill(stamp int64) {
	if stamp <= t.filled {
		t.filled = stamp // a clock that was set back begins to count again
		return
	}
	since := min(stamp-t.filled, math.MaxInt64/(MaxRate+1))
	t.tokens = min(t.tokens+since*t.rate, t.burst())
	t.filled = stamp
}

// take takes one message's share of the rate, if there is one.
func (t *Topic) take(stamp int64) bool {
	t.fill(stamp)
	if t.tokens < 1000 {
		return false
	}
	t.tokens -= 1000
	return true
}

// ready is the stamp at which the next message of the topic may become visible.
func (t *Topic) ready(stamp int64) int64 {
	if t.rate == 0 || t.tokens >= 1000 {
		return stamp
	}
	return t.filled + (1000-t.tokens+t.rate-1)/t.rate
}

// topics is all topics, by number and by name.
type topics struct {
	all   []*Topic // by number, from 1; nil where there is none
	names map[string]*Topic
	dirty []*Topic
	ended []record.TopicNumber // since the last cut
}

// maxTopicNumber bounds the numbers that are believed from a cut; topics are
// kept by number, and numbers are handed out one by one.
const maxTopicNumber = 1 << 24

func newTopics() *topics { return &topics{names: make(map[string]*Topic), all: make([]*Topic, 1)} }

func (s *topics) get(n record.TopicNumber) *Topic { return s.all[n] }

// find is get for a number that somebody else said.
func (s *topics) find(n record.TopicNumber) *Topic {
	if int64(n) >= int64(len(s.all)) {
		return nil
	}
	return s.all[n]
}

func (s *topics) next() record.TopicNumber { return record.TopicNumber(len(s.all)) }

// make makes a topic, or gives the one of that number other attributes. Two
// proposers may ask for one name at once; the first number stays.
func (s *topics) make(t record.Topic) (made *Topic, fresh bool) {
	if old := s.names[t.Name]; old != nil {
		if old.Number == t.Number {
			old.Attributes = t.Attributes
			old.configure()
			s.touch(old)
		}
		s.reserve(t.Number)
		return old, false
	}
	s.reserve(t.Number)
	made = &Topic{Topic: t}
	made.begin(t.FirstQueue)
	made.configure()
	s.all[t.Number], s.names[t.Name] = made, made
	s.touch(made)
	return made, true
}

// end forgets a topic. Its number is never given to another.
func (s *topics) end(t *Topic) {
	s.all[t.Number] = nil
	delete(s.names, t.Name)
	s.ended = append(s.ended, t.Number)
	t.Bell.Ring()
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

// A frozenTopics is what of the topics changed between two cuts.
type frozenTopics struct {
	states []keyValue // an empty value is a topic that ended
	topics []*Topic
	ended  []record.TopicNumber
}

// freeze encodes the topics that changed since the last freeze.
func (s *topics) freeze() frozenTopics {
	f := frozenTopics{topics: s.dirty, ended: s.ended}
	s.dirty, s.ended = nil, nil
	slices.SortFunc(f.topics, func(a, b *Topic) int { return cmp.Compare(a.Number, b.Number) })
	for _, t := range f.topics {
		t.dirty = false
		if s.all[t.Number] == t {
			f.states = append(f.states, keyValue{number32(stateTopic, uint32(t.Number)), t.append(nil)})
		}
	}
	for _, n := range f.ended {
		f.states = append(f.states, keyValue{number32(stateTopic, uint32(n)), nil})
	}
	return f
}

// abandon takes a freeze back.
func (s *topics) abandon(f *frozenTopics) {
	for _, t := range f.topics {
		s.touch(t)
	}
	s.ended = append(s.ended, f.ended...)
}

func (t *Topic) append(dst []byte) []byte {
	dst = binary.AppendVarint(dst, t.waiting)
	dst = binary.AppendUvarint(dst, t.visible)
	dst = record.AppendTopic(dst, &t.Topic)
	dst = append(dst, bit(t.paused))
	for _, v := range []int64{t.parked, t.halves, t.tokens, t.filled} {
		dst = binary.AppendUvarint(dst, uint64(v))
	}
	for _, v := range t.levels {
		dst = binary.AppendUvarint(dst, uint64(v))
	}
	return dst
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// restore takes back a topic from a cut.
func (s *topics) restore(value []byte) error {
	r := record.ReadFields(value)
	waiting, visible := r.Varint(), r.Uvarint()
	rest := r.Take(r.Left())
	if r.Bad() {
		return fmt.Errorf("%w: topic %x", record.ErrCorrupt, value)
	}
	c, err := record.NextCommand(rest, 0)
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
	return made.restoreMore(rest[c.Size:])
}

func (t *Topic) restoreMore(value []byte) error {
	r := record.ReadFields(value)
	if b := r.Take(1); b != nil {
		t.paused = b[0] == 1
	}
	for _, v := range []*int64{&t.parked, &t.halves, &t.tokens, &t.filled} {
		*v = int64(r.Uvarint())
	}
	for i := range t.levels {
		t.levels[i] = int64(r.Uvarint())
	}
	if !r.Done() {
		return fmt.Errorf("%w: topic %q: %x", record.ErrCorrupt, t.Name, value)
	}
	return nil
}

func number32(prefix byte, n uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{prefix}, n)
}
