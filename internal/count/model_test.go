package count_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/count"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// base is the minute at which the tests begin.
const base = 29_000_000

// everything is the widest query that fits one bucket.
func everything() count.Query { return count.Query{To: 1<<32 - 1, Step: 1<<32 - 1} }

func openIndex(t testing.TB, fs vfs.FS, dir string) *index.Index {
	t.Helper()
	x, err := index.Open(index.Options{FS: fs, Dir: dir})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return x
}

type pair struct {
	minute uint32
	topic  record.TopicNumber
}

// model is what waits, message by message in all simplicity, beside the counts
// that are told of it as the engine tells them.
type model struct {
	t       *testing.T
	rng     *rand.Rand
	x       *index.Index
	c       *count.Counts
	mu      sync.RWMutex
	waiting map[int64]map[record.TopicNumber]int64 // by due
	now     int64                                  // all due below it are delivered, some due at it
	frozen  *count.Frozen
	cut     *index.Cut
	durable bool
	cuts    int
}

func (m *model) topic() record.TopicNumber {
	// A few numbers in a row and a few far apart, so that one topic's keys are
	// sometimes neighbours and sometimes behind many others.
	return record.TopicNumber(1 + m.rng.IntN(40)*m.rng.IntN(40))
}

func (m *model) change(topic record.TopicNumber, due, n int64) {
	if m.waiting[due] == nil {
		m.waiting[due] = make(map[record.TopicNumber]int64)
	}
	m.waiting[due][topic] += n
	if m.waiting[due][topic] == 0 {
		delete(m.waiting[due], topic)
	}
	if len(m.waiting[due]) == 0 {
		delete(m.waiting, due)
	}
	m.c.Add(topic, due, n)
}

func (m *model) add() {
	due := m.now + 1 + m.rng.Int64N(60_000)
	if m.rng.IntN(2) == 0 {
		due += m.rng.Int64N(200 * 60_000)
	}
	topic := m.topic()
	for range 1 + m.rng.IntN(3) {
		m.change(topic, due, 1)
	}
}

// cancel takes one message away, wherever it stands.
func (m *model) cancel() {
	if dues := slices.Sorted(maps.Keys(m.waiting)); len(dues) > 0 {
		due := dues[m.rng.IntN(len(dues))]
		m.change(slices.Sorted(maps.Keys(m.waiting[due]))[0], due, -1)
	}
}

// deliver lets time pass: all that was due before goes, and of what is due at
// the last moment only a part.
func (m *model) deliver() {
	m.now += m.rng.Int64N(5 * 60_000)
	for _, due := range slices.Sorted(maps.Keys(m.waiting)) {
		for _, topic := range slices.Sorted(maps.Keys(m.waiting[due])) {
			if due < m.now || due == m.now && m.rng.IntN(2) == 0 {
				for range m.waiting[due][topic] {
					m.change(topic, due, -1)
				}
			}
		}
	}
}

// rebase sets the clock back.
func (m *model) rebase() { m.now -= m.rng.Int64N(20 * 60_000) }

func (m *model) freeze() {
	m.frozen, m.cut, m.durable = m.c.Freeze(m.now), m.x.NewCut(), false
	m.cuts++
}

// write makes the cut durable, while the counts go on.
func (m *model) write() {
	if err := m.frozen.Write(m.cut); err != nil {
		m.t.Fatalf("Write: %v", err)
	}
	if err := m.cut.Install(); err != nil {
		m.t.Fatalf("Install: %v", err)
	}
	m.durable = true
	if m.cuts%3 == 0 {
		if err := m.frozen.Excise(m.x); err != nil {
			m.t.Fatalf("Excise: %v", err)
		}
	}
}

func (m *model) abandon() {
	if m.rng.IntN(2) == 0 {
		if err := m.frozen.Write(m.cut); err != nil {
			m.t.Fatalf("Write: %v", err)
		}
	}
	m.cut.Abort()
	m.c.Abandon(m.frozen)
	m.frozen = nil
}

// restore makes new counts from the index and tells them what happened since,
// which here is the difference.
func (m *model) restore() {
	if m.frozen != nil {
		m.cut.Abort()
		m.frozen = nil
	}
	c, known, err := count.Restore(m.x)
	if err != nil {
		m.t.Fatalf("Restore: %v", err)
	}
	m.c = c
	q := everything()
	q.Step, q.From, q.To, q.Split = 1, base-1000, base+10_000, true
	kept, err := c.Range(m.t.Context(), m.mu.RLocker(), q)
	if err != nil {
		m.t.Fatalf("Range: %v", err)
	}
	if len(kept) > 0 && !known {
		m.t.Fatal("Restore knows nothing, Range does")
	}
	since := m.truth()
	for _, b := range kept {
		for topic, n := range b.Topics {
			since[pair{b.From, topic}] -= n
		}
	}
	for p, n := range since {
		c.Add(p.topic, int64(p.minute)*60_000, n)
	}
}

func (m *model) truth() map[pair]int64 {
	truth := make(map[pair]int64)
	for due, topics := range m.waiting {
		for topic, n := range topics {
			truth[pair{count.MinuteOf(due), topic}] += n
		}
	}
	return truth
}

func (m *model) step() {
	switch n := m.rng.IntN(100); {
	case n < 50:
		m.add()
	case n < 60:
		m.cancel()
	case n < 70:
		m.deliver()
	case n < 72:
		m.rebase()
	case n < 95:
		m.cutStep(n)
	case n < 96:
		m.restore()
	default:
		m.check()
	}
}

func (m *model) cutStep(n int) {
	switch {
	case m.frozen == nil:
		m.freeze()
	case !m.durable && n%5 == 0:
		m.abandon()
	case !m.durable:
		m.write()
	default:
		m.c.Install(m.frozen)
		m.frozen = nil
	}
}

// query makes a random question about the minutes around now.
func (m *model) query() count.Query {
	now := count.MinuteOf(m.now)
	q := count.Query{From: now - 30 + m.rng.Uint32N(60), Step: 1 + m.rng.Uint32N(30), Split: m.rng.IntN(2) == 0}
	q.To = q.From + m.rng.Uint32N(300)
	if m.rng.IntN(4) == 0 {
		q.From, q.To, q.Step = 0, 1<<32-1, 1<<31
	}
	if m.rng.IntN(2) == 0 {
		q.Topic = m.topic()
	}
	if m.rng.IntN(3) == 0 {
		q.Live = func(t record.TopicNumber) bool { return t%2 == 0 }
	}
	return q
}

// answer is what a query should give.
func (m *model) answer(q count.Query) (all []count.Bucket, first, last uint32) {
	found := make(map[uint32]*count.Bucket)
	for p, n := range m.truth() {
		if p.minute < q.From || p.minute >= q.To || q.Topic != 0 && q.Topic != p.topic || q.Live != nil && !q.Live(p.topic) {
			continue
		}
		if first == 0 || p.minute < first {
			first = p.minute
		}
		last = max(last, p.minute)
		from := q.From + (p.minute-q.From)/q.Step*q.Step
		if found[from] == nil {
			found[from] = &count.Bucket{From: from}
			if q.Split {
				found[from].Topics = make(map[record.TopicNumber]int64)
			}
		}
		found[from].Count += n
		if q.Split {
			found[from].Topics[p.topic] += n
		}
	}
	for _, from := range slices.Sorted(maps.Keys(found)) {
		all = append(all, *found[from])
	}
	return all, first, last
}

func (m *model) check() {
	q := m.query()
	want, wantFirst, wantLast := m.answer(q)
	got, err := m.c.Range(m.t.Context(), m.mu.RLocker(), q)
	if err != nil {
		m.t.Fatalf("Range(%+v): %v", q, err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		m.t.Fatalf("Range(%+v)\n got %v\nwant %v", q, got, want)
	}
	first, ok, err := m.c.First(m.t.Context(), m.mu.RLocker(), q)
	if first != wantFirst || ok != (wantFirst != 0) || err != nil {
		m.t.Fatalf("First(%+v) = %d, %v, %v; want %d", q, first, ok, err, wantFirst)
	}
	last, ok, err := m.c.Last(m.t.Context(), m.mu.RLocker(), q)
	if last != wantLast || ok != (wantLast != 0) || err != nil {
		m.t.Fatalf("Last(%+v) = %d, %v, %v; want %d", q, last, ok, err, wantLast)
	}
}

// Whatever happens, at whatever point of a cut, also after the clock was set
// back, the counts are those of a simple map.
func TestCountsAgainstSimple(t *testing.T) {
	seeds, steps := 20, 3000
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			m := &model{t: t, rng: rand.New(rand.NewPCG(uint64(seed), 1)), now: base * 60_000}
			m.waiting = make(map[int64]map[record.TopicNumber]int64)
			m.x = openIndex(t, vfs.NewMem(), "idx")
			m.c = count.New(m.x)
			for range steps {
				m.step()
			}
			m.check()
		})
	}
}
