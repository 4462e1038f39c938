package engine

import (
	"errors"
	"fmt"
	"sort"

	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/log"
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
	Waiting int64
	Visible uint64 // ever became visible
	Overdue bool   // something due has not been moved yet, in any topic
}

// Count gives the figures of one topic, or of all for nil.
func (e *Engine) Count(t *Topic) Counts {
	e.mu.RLock()
	defer e.mu.RUnlock()
	c := Counts{Overdue: e.stats.backlog.Load()}
	if t != nil {
		c.Waiting, c.Visible = t.waiting, t.visible
		return c
	}
	c.Waiting = e.m.line.Waiting()
	e.m.topics.each(func(t *Topic) { c.Visible += t.visible })
	return c
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
	return q.First(), q.Next(), nil
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

// Sizes of a read of bodies: neighbours in the log come in one span.
const (
	spanBytes = 256 << 10
	spanGap   = 4 << 10
)

// Messages reads the messages of entries and calls fn for each, in order. The
// message is fn's until it returns; a damaged one comes with its error and does
// not stop the others.
func (e *Engine) Messages(entries []queue.Entry, fn func(i int, m *record.Message, err error)) {
	var buf []byte
	var m record.Message
	for i := 0; i < len(entries); {
		n, size := span(entries[i:], uint64(e.store.SegmentBytes))
		base := entries[i].ID
		var err error
		buf, err = e.log.ReadAt(buf[:0], uint64(base), size)
		for k := range n {
			at := &entries[i+k]
			merr := err
			if merr == nil {
				from := int(at.ID - base)
				merr = record.DecodeMessageAt(buf[from:from+int(at.Size)], &m)
			}
			if merr != nil {
				merr = fmt.Errorf("message %v: %w", at.ID, merr)
			}
			fn(i+k, &m, merr)
		}
		i += n
	}
}

// span says how many entries lie close together in one segment, and how many
// bytes from the first one on hold them.
func span(entries []queue.Entry, segment uint64) (n, size int) {
	first := uint64(entries[0].ID)
	end := first + uint64(entries[0].Size)
	for n = 1; n < len(entries); n++ {
		e := &entries[n]
		id := uint64(e.ID)
		to := id + uint64(e.Size)
		if id < end || id > end+spanGap || to-first > spanBytes || id/segment != first/segment {
			break
		}
		end = to
	}
	return n, int(end - first)
}

// Find reads the message with that id and gives the reference as it was sent,
// for Cancel and Reschedule: its due is 0 if it was due by its own stamp. An id
// that is not exactly where a message begins is ErrNotFound, whatever bytes are
// there.
func (e *Engine) Find(id record.ID) (record.Message, record.Ref, error) {
	var m record.Message
	pos, b, err := e.log.Locate(uint64(id))
	if errors.Is(err, log.ErrRange) || errors.Is(err, log.ErrRemoved) {
		return m, record.Ref{}, fmt.Errorf("message %v: %w", id, ErrNotFound)
	}
	if err != nil {
		return m, record.Ref{}, fmt.Errorf("message %v: %w", id, err)
	}
	data := pos + log.LocalBytes + uint64(b.DataOffset())
	for at := 0; at < len(b.Data) && data+uint64(at) <= uint64(id); {
		c, err := record.NextCommand(b.Data, at)
		if err != nil {
			return m, record.Ref{}, fmt.Errorf("message %v: %w", id, err)
		}
		if data+uint64(at) == uint64(id) && c.Type == record.CommandSend {
			if err := record.DecodeSend(c.Payload, &m); err != nil {
				return m, record.Ref{}, fmt.Errorf("message %v: %w", id, err)
			}
			p, err := record.PeekSend(&c, id)
			r := p.Ref
			if r.Due <= m.Stored {
				r.Due = 0
			}
			return m, r, err
		}
		at += c.Size
	}
	return m, record.Ref{}, fmt.Errorf("message %v: %w", id, ErrNotFound)
}

// Waiting tells how a reference waits now, if it does.
func (e *Engine) Waiting(r record.Ref) (record.Ref, timeline.Verdict, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.m.line.Locate(r)
}

// Page lists what waits, in the order of falling due: up to limit references
// with keys above after and dues below before that keep accepts. next is where
// the following page begins; more is false at the end.
func (e *Engine) Page(after record.Key, before int64, limit int, keep func(*record.Ref) bool) (page []record.Ref, next record.Key, more bool, err error) {
	next = after
	for {
		e.mu.RLock()
		v, err := e.m.line.Take()
		e.mu.RUnlock()
		if err != nil {
			return nil, next, false, err
		}
		found, more, err := v.Page(next, before, limit, keep)
		if cerr := v.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return nil, next, false, err
		}
		if len(found) > 0 {
			next = found[len(found)-1].Key()
		}
		e.mu.RLock()
		page, err = e.m.line.Confirm(found)
		e.mu.RUnlock()
		if err != nil || len(page) > 0 || !more {
			return page, next, more, err
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

// Progress tells how far a group has come in a queue, counted from where it
// would begin if it never did. fn runs under the lock and must be quick.
func (e *Engine) Progress(g *group.Group, n record.QueueNumber, fn func(p *group.Progress, next record.Offset)) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	q := e.m.queues.Get(n)
	if q == nil {
		return fmt.Errorf("queue %d: %w", n, ErrNotFound)
	}
	p := g.Progress(n)
	if p == nil {
		start := e.m.start(g, q)
		p = &group.Progress{Base: start, Pulled: start}
	}
	fn(p, q.Next())
	return nil
}
