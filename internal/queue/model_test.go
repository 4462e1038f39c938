package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// A simple is what a set should be: slices that forget nothing.
type simple struct {
	set     *Set
	frozen  *Frozen
	queues  map[record.QueueNumber]*simpleQueue
	epochs  []simpleEpoch                 // in the index, oldest first
	states  map[record.QueueNumber][]byte // small state of the newest cut
	begun   simpleEpoch                   // the cut that is being built
	dropped int                           // epochs that it drops
	held    []heldPlace
}

type simpleQueue struct {
	entries []Entry
	ended   bool
	endedIn uint32 // number of the newest cut begun before it ended
	live    int    // entries before it are in a cut, or in the one being built
	cut     int    // entries before it are in the newest cut
}

// A simpleEpoch knows where each of its queues begins and ends.
type simpleEpoch struct {
	number      uint32
	last        int64
	from, until map[record.QueueNumber]record.Offset
}

// A heldPlace is what a slow reader found, and reads later.
type heldPlace struct {
	queue record.QueueNumber
	from  record.Offset
	place Stored
}

// A model runs two sets over one index, as the engine does.
type model struct {
	t      *testing.T
	rng    *rand.Rand
	x      *index.Index
	sets   [2]*simple
	next   record.QueueNumber
	id     record.ID
	number uint32
	stamp  int64
	trim   int64
	gone   int // reads that came too late
	drops  int
}

func spacesOf(i int) Spaces { return []Spaces{Visible(), Parked()}[i] }

func newModel(t *testing.T, seed uint64) *model {
	t.Helper()
	m := &model{t: t, rng: rand.New(rand.NewPCG(seed, 1)), x: openIndex(t), stamp: 1000, next: 1}
	for i := range m.sets {
		m.sets[i] = &simple{set: NewSet(m.x, spacesOf(i)), queues: map[record.QueueNumber]*simpleQueue{}, states: map[record.QueueNumber][]byte{}}
	}
	return m
}

func openIndex(t testing.TB) *index.Index {
	t.Helper()
	x, err := index.Open(index.Options{FS: fs.NewMem(), Dir: "index"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func (m *model) step() {
	switch m.rng.IntN(20) {
	case 0:
		for _, s := range m.sets {
			s.queues[m.next] = &simpleQueue{}
			s.set.Touch(s.set.Add(m.next, 1))
		}
		m.next++
	case 1:
		if m.rng.IntN(3) == 0 {
			m.end()
		}
	case 2, 3, 4, 5, 6:
		m.append()
	case 7, 8, 9:
		m.freeze()
	case 10, 11, 12:
		m.install()
	case 13:
		m.abandon()
	case 14:
		if m.rng.IntN(4) == 0 {
			m.restore()
		}
	case 15, 16:
		m.trim = max(m.trim, m.stamp-int64(m.rng.IntN(60)))
	case 17:
		m.hold()
	default:
		m.stamp += int64(m.rng.IntN(20))
		if m.rng.IntN(20) == 0 {
			m.stamp = max(1, m.stamp-int64(m.rng.IntN(80))) // the clock is set back
		}
	}
}

// pick gives a queue that has not ended, if there is one.
func (m *model) pick(s *simple) (record.QueueNumber, *simpleQueue) {
	n := 1 + record.QueueNumber(m.rng.IntN(int(m.next)))
	if q := s.queues[n]; q != nil && !q.ended {
		return n, q
	}
	return 0, nil
}

func (m *model) end() {
	s := m.sets[m.rng.IntN(2)]
	if n, q := m.pick(s); q != nil {
		q.ended, q.endedIn = true, m.number
		s.set.End(n)
		s.set.End(n) // again is nothing
	}
}

func (m *model) append() {
	s := m.sets[m.rng.IntN(2)]
	n, q := m.pick(s)
	if q == nil {
		return
	}
	count := 1 + m.rng.IntN(4)
	if m.rng.IntN(5) == 0 {
		count = m.rng.IntN(700)
	}
	for range count {
		if m.rng.IntN(50) == 0 {
			m.stamp++
		}
		m.id++
		e := Entry{ID: m.id, Due: m.stamp - 3, Size: 100, Tag: uint32(m.id % 3), VisibleAt: m.stamp}
		if len(q.entries) > 0 {
			e.VisibleAt = max(e.VisibleAt, q.entries[len(q.entries)-1].VisibleAt)
		}
		if o := s.set.Append(s.set.Get(n), e, m.stamp); o != record.Offset(len(q.entries)) {
			m.t.Fatalf("queue %d: offset %d, want %d", n, o, len(q.entries))
		}
		q.entries = append(q.entries, e)
	}
}

func (m *model) freeze() {
	if m.sets[0].frozen != nil {
		return
	}
	m.number++
	for _, s := range m.sets {
		s.frozen = s.set.Freeze(m.number, m.trim)
		s.begun = simpleEpoch{m.number, 0, map[record.QueueNumber]record.Offset{}, map[record.QueueNumber]record.Offset{}}
		for n, q := range s.queues {
			if !q.ended && q.live < len(q.entries) {
				s.begun.last = max(s.begun.last, q.entries[len(q.entries)-1].VisibleAt)
				s.begun.from[n], s.begun.until[n] = record.Offset(q.live), record.Offset(len(q.entries))
			}
			q.live = len(q.entries)
		}
		for s.dropped = 0; s.dropped < len(s.epochs) && s.epochs[s.dropped].last < m.trim; {
			s.dropped++
		}
	}
}

func (m *model) install() {
	if m.sets[0].frozen == nil {
		return
	}
	c := m.x.NewCut()
	for _, s := range m.sets {
		m.must(s.frozen.Write(c))
	}
	if m.rng.IntN(6) == 0 { // the disk is full
		c.Abort()
		m.abandon()
		return
	}
	m.must(c.Install())
	m.excise() // too early for what this cut drops
	m.append() // the applier goes on between
	m.end()
	for _, s := range m.sets {
		s.set.Install(s.frozen)
		for n, value := range s.frozen.States() {
			s.states[n] = value
			if value == nil {
				delete(s.states, n)
			}
		}
		for n := range s.states {
			if q := s.queues[n]; q.ended && q.endedIn < m.number {
				m.t.Fatalf("queue %d has ended and its state stays", n)
			}
		}
		for n, o := range s.begun.until {
			s.queues[n].cut = int(o)
		}
		m.drops += s.dropped
		s.epochs = s.epochs[s.dropped:]
		if len(s.begun.until) > 0 {
			s.epochs = append(s.epochs, s.begun)
		}
	}
	m.excise()
	for _, s := range m.sets {
		s.frozen = nil
	}
	m.checkIndex()
}

// excise does so for some of the sets.
func (m *model) excise() {
	for _, s := range m.sets {
		if m.rng.IntN(2) == 0 {
			m.must(s.frozen.Excise(m.x))
			if e, b := s.set.excised.Load(), s.set.below.Load(); e != b {
				m.t.Fatalf("excised below %d, want %d", e, b)
			}
		}
	}
}

func (m *model) abandon() {
	for _, s := range m.sets {
		if s.frozen == nil {
			continue
		}
		s.set.Abandon(s.frozen)
		s.frozen = nil
		for _, q := range s.queues {
			q.live = q.cut
		}
	}
}

// restore forgets memory, takes the newest cut back and replays what came after.
func (m *model) restore() {
	for i, s := range m.sets {
		s.set, s.frozen, s.held = NewSet(m.x, spacesOf(i)), nil, nil
		for n, value := range s.states {
			m.must(s.set.Restore(n, value))
		}
		m.must(s.set.RestoreDirectory())
		for n, q := range s.queues {
			q.live = q.cut
			if s.set.Get(n) == nil && !q.ended {
				s.set.Touch(s.set.Add(n, 1))
			}
			if s.set.Get(n) == nil {
				continue
			}
			for _, e := range q.entries[q.cut:] {
				s.set.Append(s.set.Get(n), e, e.VisibleAt)
			}
			if q.ended {
				s.set.End(n)
			}
		}
	}
}

func (m *model) hold() {
	s := m.sets[m.rng.IntN(2)]
	n, q := m.pick(s)
	if q == nil || len(q.entries) == 0 {
		return
	}
	from := record.Offset(m.rng.IntN(len(q.entries)))
	if p, ok := s.set.Get(n).Place(from); ok {
		s.held = append(s.held, heldPlace{n, from, p})
	}
}

func (m *model) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// TestSetAgainstSimple runs random histories of entries, a clock that is set
// back, cuts that are installed or fail, crashes, trims and ends, of two sets
// over one index, and compares each answer with slices.
func TestSetAgainstSimple(t *testing.T) {
	seeds, steps := uint64(20), 400
	if testing.Short() {
		seeds = 5
	}
	gone, drops := 0, 0
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			m := newModel(t, seed)
			for range steps {
				m.step()
				m.check()
			}
			gone, drops = gone+m.gone, drops+m.drops
		})
	}
	if gone == 0 || drops == 0 {
		t.Errorf("%d epochs dropped, %d reads too late: too tame", drops, gone)
	}
}
