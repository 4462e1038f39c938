package broker

import (
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
	topic  *engine.Topic      // nil: all
	first  record.QueueNumber // of the topic
	from   int64
	before int64 // Unix ms, MaxInt64 without an end
	tag    uint32
	ids    []record.ID
	ended  *atomic.Bool // who waits for the pages has gone

	listed bool // by key or ids: then this is all
	list   []engine.Listed
}

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
		if s.topic = b.e.TopicNamed(f.Topic); s.topic == nil {
			return nil, unknownTopic(f.Topic)
		}
		s.first = s.topic.First()
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

// family is the number by which the topic is counted, 0 for all.
func (s *selection) family() record.TopicNumber { return record.TopicNumber(s.first) }

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
	if s.topic != nil && (r.Queue < s.first || r.Queue-s.first >= record.QueueNumber(s.topic.Queues)) {
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
	q := engine.CountQuery{From: uint32(first), To: uint32(end), Step: uint32(end - first), Topic: s.family()}
	whole, err := s.b.e.WaitingBy(ctx, q)
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
