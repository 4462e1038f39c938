package engine

import (
	"context"
	"math"
	"slices"

	"github.com/duemq/duemq/internal/count"
	"github.com/duemq/duemq/internal/keys"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// A Standing says how a message waits.
type Standing struct {
	Ref     record.Ref // as it waits now, or waited last
	Verdict timeline.Verdict
	Held    bool // due, and held back by its topic
}

// Standing tells how a reference waits now, if it does. r is the reference as
// [Engine.Find] gives it.
func (e *Engine) Standing(r record.Ref) (Standing, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	s, err := e.m.locate(r)
	return Standing{s.ref, s.verdict, s.parked}, err
}

// A Listed message waits.
type Listed struct {
	record.Ref

	Held bool // due, and held back by its topic
}

// Page lists what waits, in the order of falling due: up to limit messages with
// keys above after and dues below before that keep accepts. next is where the
// following page begins; more is false at the end.
func (e *Engine) Page(after record.Key, before int64, limit int, keep func(*record.Ref) bool) (page []Listed, next record.Key, more bool, err error) {
	next, more = after, true
	for more && len(page) == 0 {
		if page, next, more, err = e.stretch(next, before, limit, keep); err != nil {
			return nil, after, false, err
		}
	}
	return page, next, more, nil
}

// stretch is a page that may be empty although there are more.
func (e *Engine) stretch(after record.Key, before int64, limit int, keep func(*record.Ref) bool) (page []Listed, next record.Key, more bool, err error) {
	found, more, err := e.candidates(after, before, limit, keep)
	if err != nil {
		return nil, after, false, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	if page, err = e.m.heldPage(&selection{after, before, limit, keep}); err != nil {
		return nil, after, false, err
	}
	more = more || len(page) == limit
	refs, err := e.m.line.Confirm(found)
	if err != nil {
		return nil, after, false, err
	}
	for i := range refs {
		page = append(page, Listed{Ref: refs[i]})
	}
	slices.SortFunc(page, func(a, b Listed) int { return a.Key().Compare(b.Key()) })
	next = after
	if len(found) > 0 {
		next = found[len(found)-1].Key() // what was found beyond it is not known yet
		if len(found) < limit {
			next = record.Key{Due: math.MaxInt64}
		}
		page = slices.DeleteFunc(page, func(l Listed) bool { return l.Key().Compare(next) > 0 })
	}
	if len(page) > limit {
		page = page[:limit]
		more = true
	}
	if len(page) > 0 {
		next = page[len(page)-1].Key()
	}
	return page, next, more, nil
}

// candidates reads a stretch of the timeline without holding anybody up.
func (e *Engine) candidates(after record.Key, before int64, limit int, keep func(*record.Ref) bool) ([]timeline.Candidate, bool, error) {
	e.mu.RLock()
	v, err := e.m.line.Take()
	e.mu.RUnlock()
	if err != nil {
		return nil, false, err
	}
	found, more, err := v.Page(after, before, limit, func(r *record.Ref) bool {
		return r.Kind == record.KindMessage && keep(r)
	})
	if cerr := v.Close(); err == nil {
		err = cerr
	}
	return found, more, err
}

// A selection is what a page asks for; see [Engine.Page].
type selection struct {
	after  record.Key
	before int64
	limit  int
	keep   func(*record.Ref) bool
}

// heldPage lists the first of what is held back.
func (m *machine) heldPage(s *selection) (page []Listed, err error) {
	for _, l := range m.parking.order {
		if l.last.Compare(s.after) <= 0 || l.first.Due >= s.before {
			continue
		}
		if page, err = m.heldIn(page, l, s); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(page, func(a, b Listed) int { return a.Key().Compare(b.Key()) })
	return page[:min(s.limit, len(page))], nil
}

// heldIn appends up to limit messages of one queue.
func (m *machine) heldIn(page []Listed, l *lot, s *selection) ([]Listed, error) {
	from, exact, err := m.parking.search(l, s.after)
	if err != nil {
		return page, err
	}
	if exact {
		from++
	}
	var buf []queue.Entry
	for n := 0; n < s.limit && from < l.q.Next(); from += record.Offset(len(buf)) {
		if buf, err = m.parking.read(buf, l, from, s.limit); err != nil {
			return page, err
		}
		for i := range buf {
			e := &buf[i]
			r := record.Ref{Due: e.Due, ID: e.ID, Size: e.Size, Tag: e.Tag, Queue: l.q.Number, Kind: record.KindMessage}
			if r.Due >= s.before || n == s.limit {
				return page, nil
			}
			if l.gone.Finished(from+record.Offset(i)) || !s.keep(&r) {
				continue
			}
			page = append(page, Listed{Ref: r, Held: true})
			n++
		}
	}
	return page, nil
}

// Counts of what waits, and where they are told.
type (
	// CountQuery asks how many messages wait in a range of minutes; its topics
	// are families, see [Topic.Family].
	CountQuery = count.Query
	// CountBucket is what waits in a stretch of minutes.
	CountBucket = count.Bucket
)

// WaitingBy counts what waits by minutes, without looking at each message; see
// [count.Counts.Range] for what the sums mean while things move. What is held
// back is not in them.
func (e *Engine) WaitingBy(ctx context.Context, q CountQuery) ([]CountBucket, error) {
	q.Live = e.liveFamily
	return e.m.count.Range(ctx, e.mu.RLocker(), q)
}

// Horizon is the first and the last minute for which something waits.
func (e *Engine) Horizon(ctx context.Context, q CountQuery) (first, last uint32, ok bool, err error) {
	q.Live = e.liveFamily
	first, ok, err = e.m.count.First(ctx, e.mu.RLocker(), q)
	if err != nil || !ok {
		return 0, 0, false, err
	}
	last, ok, err = e.m.count.Last(ctx, e.mu.RLocker(), q)
	return first, last, ok, err
}

func (e *Engine) liveFamily(n record.TopicNumber) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.m.queues.Get(record.QueueNumber(n)) != nil
}

// FamilyTopic finds the topic that is counted under a number.
func (e *Engine) FamilyTopic(n record.TopicNumber) *Topic {
	t, _ := e.TopicOf(record.QueueNumber(n))
	return t
}

// A KeyMatch is a message that may have a key; its record decides.
type KeyMatch = keys.Match

// ByKey finds messages that may have a key, newest first.
func (e *Engine) ByKey(key string, before record.ID, limit int) ([]KeyMatch, bool, error) {
	e.mu.RLock()
	v := e.m.keys.Take()
	e.mu.RUnlock()
	return v.Find(key, before, limit)
}

// ByHash finds the message that a hash stands for: a name or an idempotency key.
func (e *Engine) ByHash(h record.Hash) (id record.ID, counts bool, err error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	entry, counts, err := e.m.stands(h)
	return entry.ID, counts, err
}

// Operations gives the bulk operations that are remembered, oldest first.
func (e *Engine) Operations() []Operation {
	e.mu.RLock()
	defer e.mu.RUnlock()
	out := make([]Operation, 0, len(e.m.operations.all))
	for _, op := range e.m.operations.all {
		out = append(out, *op)
	}
	slices.SortFunc(out, func(a, b Operation) int { return int(int64(a.Number) - int64(b.Number)) })
	return out
}

// Operation gives one bulk operation.
func (e *Engine) Operation(n uint64) (Operation, bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	op := e.m.operations.all[n]
	if op == nil {
		return Operation{}, false
	}
	return *op, true
}
