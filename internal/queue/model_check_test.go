package queue

import (
	"errors"
	"slices"
	"testing"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// check compares everything that can be asked with the slices.
func (m *model) check() {
	for _, s := range m.sets {
		for n, q := range s.queues {
			m.checkQueue(s, n, q)
		}
		for i, h := range s.held {
			if !m.checkHeld(s, h) {
				s.held = slices.Delete(s.held, i, i+1)
				break
			}
		}
	}
}

func (m *model) checkQueue(s *simple, n record.QueueNumber, want *simpleQueue) {
	q := s.set.Get(n)
	if want.ended != (q == nil) {
		m.t.Fatalf("queue %d: %v, ended: %v", n, q, want.ended)
	}
	if q == nil {
		return
	}
	next := record.Offset(len(want.entries))
	first := s.first(n)
	if q.First() != first || q.Next() != next {
		m.t.Fatalf("queue %d: %d to %d, want %d to %d", n, q.First(), q.Next(), first, next)
	}
	low, err := s.set.Min(q, m.trim)
	m.must(err)
	if w := searchSimple(want.entries, 0, m.trim); low != w {
		m.t.Fatalf("queue %d: Min(%d) is %d, want %d", n, m.trim, low, w)
	}
	at := max(0, m.stamp-int64(m.rng.IntN(200)-20))
	got, err := s.set.Search(q, at)
	m.must(err)
	if w := searchSimple(want.entries, first, at); got != w {
		m.t.Fatalf("queue %d: Search(%d) is %d, want %d", n, at, got, w)
	}
	if low < next {
		m.checkRead(s, q, low+record.Offset(m.rng.IntN(int(next-low))), want.entries)
	}
}

// first is the first offset that an epoch still there or memory holds.
func (s *simple) first(n record.QueueNumber) record.Offset {
	for _, e := range s.epochs {
		if from, ok := e.from[n]; ok {
			return from
		}
	}
	return record.Offset(s.queues[n].cut)
}

func searchSimple(entries []Entry, from record.Offset, at int64) record.Offset {
	for o := from; o < record.Offset(len(entries)); o++ {
		if entries[o].VisibleAt >= at {
			return o
		}
	}
	return record.Offset(len(entries))
}

func (m *model) checkRead(s *simple, q *Queue, from record.Offset, entries []Entry) {
	limit := 1 + m.rng.IntN(300)
	got, ok := q.Memory(nil, from, limit)
	if !ok {
		p, stored := q.Place(from)
		if !stored {
			m.t.Fatalf("queue %d offset %d is nowhere", q.Number, from)
		}
		var err error
		got, err = s.set.Read(nil, p, from, limit)
		m.must(err)
	}
	if len(got) == 0 || len(got) > limit || !slices.Equal(got, entries[from:][:len(got)]) {
		m.t.Fatalf("queue %d from %d: %d entries, not those", q.Number, from, len(got))
	}
}

// checkHeld reads from a place that was found earlier; false if it was too late.
func (m *model) checkHeld(s *simple, h heldPlace) bool {
	got, err := s.set.Read(nil, h.place, h.from, 100)
	if err == nil {
		if !slices.Equal(got, s.queues[h.queue].entries[h.from:][:len(got)]) {
			m.t.Fatalf("queue %d from %d: not those entries", h.queue, h.from)
		}
		return true
	}
	if !errors.Is(err, ErrTrimmed) || errors.Is(err, record.ErrCorrupt) {
		m.t.Fatal(err)
	}
	if q := s.set.Get(h.queue); q != nil {
		if p, ok := q.Place(h.from); ok {
			m.t.Fatalf("queue %d offset %d: %v, but it is still placed at %+v", h.queue, h.from, err, p)
		}
	}
	m.gone++
	return false
}

// checkIndex looks at what the index holds: a directory key for each epoch, and
// entries below them only until they are excised.
func (m *model) checkIndex() {
	for i, s := range m.sets {
		var want []uint32
		for _, e := range s.epochs {
			want = append(want, e.number)
		}
		if got := epochsIn(m.t, m.x, spacesOf(i).Directory); !slices.Equal(got, want) {
			m.t.Fatalf("directory of epochs %v, want %v", got, want)
		}
		excised := s.set.excised.Load()
		left := epochsIn(m.t, m.x, spacesOf(i).Entries)
		if !slices.Equal(left[max(0, len(left)-len(want)):], want) {
			m.t.Fatalf("entries of epochs %v, want %v", left, want)
		}
		if garbage := left[:len(left)-len(want)]; len(garbage) > 0 && (garbage[0] < excised || s.set.below.Load() == excised) {
			m.t.Fatalf("entries of epochs %v were left below %d", garbage, excised)
		}
	}
}

// epochsIn lists the epochs of which a space has keys.
func epochsIn(t testing.TB, x *index.Index, s index.Space) []uint32 {
	t.Helper()
	it, err := x.NewIter(s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []uint32
	for it.First(); it.Valid(); it.Next() {
		k := it.Key()
		all = append(all, uint32(k[0])<<24|uint32(k[1])<<16|uint32(k[2])<<8|uint32(k[3]))
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return slices.Compact(all)
}
