package engine

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// ErrNotFound says that nothing of that name, number or id is kept.
var ErrNotFound = errors.New("not found")

// TopicNamed finds a topic; nil if there is none of that name.
func (e *Engine) TopicNamed(name string) *Topic {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.m.topics.names[name]
}

// TopicOf finds the topic that a queue belongs to, and the queue's number
// within it.
func (e *Engine) TopicOf(n record.QueueNumber) (*Topic, int) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	q := e.m.queues.Get(n)
	if q == nil {
		return nil, 0
	}
	t := e.m.topics.get(q.Topic)
	return t, int(n - t.FirstQueue)
}

// GroupNamed finds a group; nil if there is none of that name.
func (e *Engine) GroupNamed(name string) *group.Group {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.m.groups.Named(name)
}

// Groups gives all groups, in the order in which they were made.
func (e *Engine) Groups() []*group.Group {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.m.groups.All()
}

// Counts are a topic's figures.
type Counts struct {
	Waiting int64  // those held back included
	Held    int64  // of these, due and held back: the topic is paused or has used up its rate
	Halves  int64  // half messages
	Visible uint64 // ever became visible
	Paused  bool
	Overdue bool // something due has not been moved yet, in any topic
}

// Count gives the figures of one topic, or of all for nil.
func (e *Engine) Count(t *Topic) Counts {
	e.mu.RLock()
	defer e.mu.RUnlock()
	c := Counts{Overdue: e.stats.backlog.Load()}
	if t != nil {
		t.count(&c)
		return c
	}
	e.m.topics.each(func(t *Topic) { t.count(&c) })
	c.Paused = false
	return c
}

// count adds the topic's figures.
func (t *Topic) count(c *Counts) {
	c.Waiting += t.waiting
	c.Held += t.parked
	c.Halves += t.halves
	c.Visible += t.visible
	c.Paused = t.paused
}

// Attributes gives a topic's attributes as they are now.
func (e *Engine) Attributes(t *Topic) []record.Property {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return slices.Clone(t.Attributes)
}

// Levels tells how the delay levels stand, 1..18; index 0 is any other time.
func (e *Engine) Levels() [timeline.Levels + 1]timeline.LevelCount {
	e.mu.RLock()
	defer e.mu.RUnlock()
	var out [timeline.Levels + 1]timeline.LevelCount
	for i := range out {
		out[i] = e.m.line.Level(i)
	}
	return out
}

// NextDue is the due of the first message that waits, Unix ms; ok is false if
// none does.
func (e *Engine) NextDue() (due int64, ok bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.m.line.Peek()
}

// Bounds are the offsets that can be read of a queue: from Min below Next.
func (e *Engine) Bounds(n record.QueueNumber) (from, next record.Offset, err error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	q := e.m.queues.Get(n)
	if q == nil {
		return 0, 0, fmt.Errorf("queue %d: %w", n, ErrNotFound)
	}
	low, err := e.m.queues.Min(q, e.m.keep.trim)
	return low, q.Next(), err
}

// Search finds the first offset of a queue that became visible at a time (Unix
// ms) or later; the next one to come if none did.
func (e *Engine) Search(n record.QueueNumber, at int64) (record.Offset, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	q := e.m.queues.Get(n)
	if q == nil {
		return 0, fmt.Errorf("queue %d: %w", n, ErrNotFound)
	}
	return e.m.queues.Search(q, max(at, e.m.keep.trim))
}

// Entries appends up to limit entries of a queue from an offset on. Fewer than
// limit does not mean that there are no more; none does.
func (e *Engine) Entries(dst []queue.Entry, n record.QueueNumber, from record.Offset, limit int) ([]queue.Entry, error) {
	for {
		e.mu.RLock()
		q := e.m.queues.Get(n)
		if q == nil {
			e.mu.RUnlock()
			return dst, fmt.Errorf("queue %d: %w", n, ErrNotFound)
		}
		got, ok := q.Memory(dst, from, limit)
		place, stored := q.Place(from)
		e.mu.RUnlock()
		switch {
		case ok:
			return got, nil
		case stored:
			got, err := e.m.queues.Read(dst, place, from, limit)
			if errors.Is(err, queue.ErrTrimmed) {
				continue // given up meanwhile; the next look says so
			}
			return got, err
		default:
			return dst, fmt.Errorf("queue %d offset %d: %w", n, from, ErrNotFound)
		}
	}
}

// lookBack bounds how far Delivered looks beyond where an entry should be.
const lookBack = 4096

// Delivered finds the entry of a message that waited for due and is visible
// now. It is a binary search on the time of becoming visible, then on the order
// in which the timeline delivers, and bounded; not found does not prove that
// the message was not delivered once.
func (e *Engine) Delivered(n record.QueueNumber, due int64, id record.ID) (queue.Entry, record.Offset, bool, error) {
	from, next, err := e.Bounds(n)
	if err != nil {
		return queue.Entry{}, 0, false, err
	}
	var scratch []queue.Entry
	at := func(o record.Offset) (queue.Entry, bool) {
		if err != nil || o >= next {
			return queue.Entry{}, false
		}
		scratch, err = e.Entries(scratch[:0], n, o, 1)
		if err != nil || len(scratch) == 0 {
			return queue.Entry{}, false
		}
		return scratch[0], true
	}
	lo := from + record.Offset(sort.Search(int(next-from), func(i int) bool {
		x, ok := at(from + record.Offset(i))
		return !ok || x.VisibleAt >= due
	}))
	key := record.Key{Due: due, ID: id}
	first := lo + record.Offset(sort.Search(int(next-lo), func(i int) bool {
		for o := lo + record.Offset(i); o < min(next, lo+record.Offset(i)+lookBack); o++ {
			if x, ok := at(o); ok && x.Due != 0 {
				return record.Key{Due: x.Due, ID: x.ID}.Compare(key) >= 0
			}
		}
		return true
	}))
	for _, start := range []record.Offset{first, lo} {
		for o := start; o < min(next, start+lookBack); o++ {
			if x, ok := at(o); ok && x.ID == id {
				return x, o, true, err
			}
		}
	}
	return queue.Entry{}, 0, false, err
}
