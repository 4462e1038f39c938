package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// MaxCandidates is how many messages with one key are looked at for those that
// wait.
const MaxCandidates = 10_000

// ErrTooMany says that more would have to be looked at than is allowed.
var ErrTooMany = errors.New("too many")

const (
	minuteMs = 60_000
	heldPage = 4096 // messages that are held back, looked at under one lock
)

// A selection is a filter whose names were looked up.
type selection struct {
	b      *Broker
	f      *Filter
	topics []span // by their queues; none: all
	from   int64
	before int64 // Unix ms, MaxInt64 without an end
	tag    uint32
	ids    []record.ID
	ended  *atomic.Bool // who waits for the pages has gone

	listed bool // by key or ids: then this is all
	list   []engine.Listed
}

// A span is a topic and the queues that it had when it was looked up.
type span struct {
	topic *engine.Topic
	first record.QueueNumber
}

// family is the number by which the topic is counted.
func (s *span) family() record.TopicNumber { return record.TopicNumber(s.first) }

// selects looks the names of a filter up.
func (b *Broker) selects(ctx context.Context, f Filter) (*selection, error) {
	s := &selection{b: b, f: &f, from: f.From, before: f.To, tag: record.TagHash(f.Tag)}
	if s.before == 0 {
		s.before = math.MaxInt64
	}
	if f.Overdue {
		s.before = min(s.before, b.e.Now()+1)
	}
	switch f.State {
	case "", StateWaiting, StatePaused:
	default:
		return nil, fmt.Errorf("%w: state %q of what waits, want %s or %s", ErrInvalid, f.State, StateWaiting, StatePaused)
	}
	if f.Topic != "" {
		if s.topics = b.spans(f.Topic); s.topics == nil {
			return nil, unknownTopic(f.Topic)
		}
	}
	if len(f.IDs) > MaxPage {
		return nil, fmt.Errorf("%w: %d ids, limit %d; ask several times", ErrInvalid, len(f.IDs), MaxPage)
	}
	for _, text := range f.IDs {
		id, err := ParseReference(text)
		if err != nil {
			return nil, err
		}
		s.ids = append(s.ids, id)
	}
	if s.listed = len(s.ids) > 0 || f.Key != ""; !s.listed {
		return s, nil
	}
	slices.Sort(s.ids)
	s.ids = slices.Compact(s.ids)
	err := s.look(ctx)
	return s, err
}

// spans finds a topic and those in which groups get its messages again: what
// waits there is shown with the topic's name, and is found by it. It is nil if
// there is no such topic.
func (b *Broker) spans(name string) []span {
	main := b.e.TopicNamed(name)
	if main == nil {
		return nil
	}
	all := []span{{main, main.First()}}
	for _, c := range b.e.Topics() {
		if _, topic, ok := parseRetry(c.Name); !ok || topic != name {
			continue
		}
		if t := b.e.TopicNamed(c.Name); t != nil {
			all = append(all, span{t, t.First()})
		}
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	return all
}

// ofTopic says whether a queue is of what is selected.
func (s *selection) ofTopic(q record.QueueNumber) bool {
	if len(s.topics) == 0 {
		return true
	}
	i, found := slices.BinarySearchFunc(s.topics, q, func(s span, q record.QueueNumber) int { return cmp.Compare(s.first, q) })
	return found || i > 0 && q-s.topics[i-1].first < record.QueueNumber(s.topics[i-1].topic.Queues)
}

// counts gives the figures of what is selected.
func (s *selection) counts() (waiting, held int64) {
	if len(s.topics) == 0 {
		c := s.b.e.Count(nil)
		return c.Waiting, c.Held
	}
	for i := range s.topics {
		c := s.b.e.Count(s.topics[i].topic)
		waiting, held = waiting+c.Waiting, held+c.Held
	}
	return waiting, held
}

// families are the numbers by which what is selected is counted, 0 for all.
func (s *selection) families() []record.TopicNumber {
	if len(s.topics) == 0 {
		return []record.TopicNumber{0}
	}
	out := make([]record.TopicNumber, len(s.topics))
	for i := range s.topics {
		out[i] = s.topics[i].family()
	}
	return out
}

// horizon is the first and the last minute for which something waits.
func (s *selection) horizon(ctx context.Context, q engine.CountQuery) (first, last uint32, ok bool, err error) {
	for _, q.Topic = range s.families() {
		from, to, some, err := s.b.e.Horizon(ctx, q)
		if err != nil {
			return 0, 0, false, err
		}
		if !some {
			continue
		}
		if !ok {
			first, last, ok = from, to, true
		}
		first, last = min(first, from), max(last, to)
	}
	return first, last, ok, nil
}

// waitingBy counts by steps, in their order; with several topics a step may come
// once for each.
func (s *selection) waitingBy(ctx context.Context, q engine.CountQuery) ([]engine.CountBucket, error) {
	var all []engine.CountBucket
	for _, q.Topic = range s.families() {
		some, err := s.b.e.WaitingBy(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	if len(s.topics) > 1 {
		slices.SortStableFunc(all, func(a, b engine.CountBucket) int { return cmp.Compare(a.From, b.From) })
	}
	return all, nil
}

// start is the key after which the selection begins.
func (s *selection) start() record.Key {
	return record.Key{Due: s.from - 1, ID: math.MaxUint64, Kind: math.MaxUint8, Queue: math.MaxUint32}
}

// until has pages come back soon after ended: what is then on them was not
// selected.
func (s *selection) until(ended *atomic.Bool) { s.ended = ended }

// keep says whether a reference is of the topic and of the tag.
func (s *selection) keep(r *record.Ref) bool {
	if s.ended != nil && s.ended.Load() {
		return true
	}
	if !s.ofTopic(r.Queue) {
		return false
	}
	return s.tag == 0 || r.Tag == s.tag
}

// inState says whether how a message waits is what is asked for.
func (s *selection) inState(l *engine.Listed) bool {
	return s.f.State == "" || l.Held == (s.f.State == StatePaused)
}

// next gives the following page, which may be empty although there are more.
func (s *selection) next(after record.Key, limit int) (page []engine.Listed, next record.Key, more bool, err error) {
	if s.listed {
		i, found := slices.BinarySearchFunc(s.list, after, func(l engine.Listed, k record.Key) int { return l.Key().Compare(k) })
		if found {
			i++
		}
		page = slices.Clone(s.list[i:min(i+limit, len(s.list))])
		if len(page) > 0 {
			after = page[len(page)-1].Key()
		}
		return page, after, i+len(page) < len(s.list), nil
	}
	if s.f.State == StatePaused {
		limit = min(limit, heldPage)
		page, err = s.b.e.Held(after, s.before, limit, s.keep)
		if len(page) > 0 {
			after = page[len(page)-1].Key()
		}
		return page, after, len(page) == limit, err
	}
	page, next, more, err = s.b.e.Page(after, s.before, limit, s.keep)
	return slices.DeleteFunc(page, func(l engine.Listed) bool { return !s.inState(&l) }), next, more, err
}

// look finds what waits by key or ids.
func (s *selection) look(ctx context.Context) error {
	ids := s.ids
	if len(ids) == 0 {
		var err error
		if ids, err = s.candidates(ctx); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		l, ok, err := s.waiting(id)
		if err != nil {
			return err
		}
		if ok {
			s.list = append(s.list, l)
		}
	}
	slices.SortFunc(s.list, func(a, b engine.Listed) int { return a.Key().Compare(b.Key()) })
	return nil
}

// candidates finds the messages that may have the key.
func (s *selection) candidates(ctx context.Context) (ids []record.ID, err error) {
	var before record.ID
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var found []engine.KeyMatch
		if found, more, err = s.b.e.ByKey(s.f.Key, before, MaxCandidates+1-len(ids)); err != nil {
			return nil, err
		}
		for _, m := range found {
			ids = append(ids, m.ID)
			before = m.ID
		}
		if len(ids) > MaxCandidates {
			return nil, fmt.Errorf("%w: more than %d messages have key %q; select by topic, tag or due instead, or by ids",
				ErrTooMany, MaxCandidates, short(s.f.Key))
		}
	}
	return ids, nil
}

// waiting looks whether a message waits and is selected.
func (s *selection) waiting(id record.ID) (engine.Listed, bool, error) {
	m, r, err := s.b.e.Find(id)
	if errors.Is(err, engine.ErrNotFound) || errors.Is(err, record.ErrCorrupt) {
		return engine.Listed{}, false, nil // its record would decide
	}
	if err != nil {
		return engine.Listed{}, false, err
	}
	if s.f.Key != "" && !hasKey(m.Key, s.f.Key) || s.f.Tag != "" && m.Tag != s.f.Tag || !s.keep(&r) {
		return engine.Listed{}, false, nil
	}
	now, err := s.b.e.Standing(r)
	if err != nil || now.Verdict != timeline.Done {
		return engine.Listed{}, false, err
	}
	l := engine.Listed{Ref: now.Ref, Held: now.Held}
	return l, l.Due >= s.from && l.Due < s.before && s.inState(&l), nil
}

// hasKey says whether a key is one of keys, which are separated by blanks.
func hasKey(keys, key string) bool {
	for k := range strings.SplitSeq(keys, " ") {
		if k == key {
			return true
		}
	}
	return false
}

// count looks at what falls due from one instant and before another.
func (s *selection) count(ctx context.Context, from, before int64) (int64, error) {
	part := *s
	part.from, part.before = from, before
	after := part.start()
	var n int64
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		var page []engine.Listed
		var err error
		if page, after, more, err = part.next(after, countPage); err != nil {
			return 0, err
		}
		n += int64(len(page))
	}
	return n, nil
}

// countHeld counts what is held back.
func (s *selection) countHeld(ctx context.Context) (int64, error) {
	f := *s.f
	f.State = StatePaused
	part := *s
	part.f = &f
	return part.count(ctx, s.from, s.before)
}

// countMinutes counts what waits and is not held back: whole minutes without
// looking, the rest of the range one by one.
func (s *selection) countMinutes(ctx context.Context) (int64, error) {
	f := *s.f
	f.State = StateWaiting
	part := *s
	part.f = &f
	from := max(s.from, 0)
	first, end := from/minuteMs, min(s.before/minuteMs, math.MaxUint32)
	if from > first*minuteMs {
		first++
	}
	if first >= end {
		return part.count(ctx, from, s.before)
	}
	q := engine.CountQuery{From: uint32(first), To: uint32(end), Step: uint32(end - first)}
	whole, err := s.waitingBy(ctx, q)
	if err != nil {
		return 0, err
	}
	var n int64
	for _, w := range whole {
		n += w.Count
	}
	for _, edge := range [][2]int64{{from, first * minuteMs}, {end * minuteMs, s.before}} {
		if edge[0] < edge[1] {
			more, err := part.count(ctx, edge[0], edge[1])
			if err != nil {
				return 0, err
			}
			n += more
		}
	}
	return n, nil
}
