package engine

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

var (
	seeds = flag.Int("seeds", 60, "how many random histories of the state machine")
	seed  = flag.Uint64("seed", 0, "replay the history of this seed")
)

// simple is the state machine as a child would write it: lists that are
// sorted and searched, no cuts, no wheel, no marks.
type simple struct {
	stamp   int64
	popped  record.Key
	waiting []record.Ref
	msgs    map[record.ID]*simpleMessage
	queues  map[record.QueueNumber][]queue.Entry
	acked   map[record.QueueNumber]map[record.Offset]bool // of the one group
}

type simpleMessage struct {
	sent      record.Ref // due 0 if it was due by its own stamp
	cancelled bool
}

func newSimple() *simple {
	s := &simple{
		msgs: make(map[record.ID]*simpleMessage), queues: make(map[record.QueueNumber][]queue.Entry),
		acked: make(map[record.QueueNumber]map[record.Offset]bool),
	}
	for q := record.QueueNumber(1); q <= 3; q++ {
		s.acked[q] = make(map[record.Offset]bool)
	}
	return s
}

func (s *simple) find(id record.ID) int {
	return slices.IndexFunc(s.waiting, func(r record.Ref) bool { return r.ID == id })
}

func (s *simple) next() int64 {
	due := int64(math.MaxInt64)
	for _, r := range s.waiting {
		due = min(due, r.Due)
	}
	return due
}

func (s *simple) show(r record.Ref) record.Offset {
	q := s.queues[r.Queue]
	visible := s.stamp
	if len(q) > 0 {
		visible = max(visible, q[len(q)-1].VisibleAt)
	}
	s.queues[r.Queue] = append(q, queue.Entry{ID: r.ID, Due: r.Due, VisibleAt: visible, Size: r.Size, Tag: r.Tag})
	return record.Offset(len(q))
}

func (s *simple) lift(r record.Ref) record.Ref {
	if r.Key().Compare(s.popped) <= 0 {
		r.Due = max(r.Due, s.stamp)
	}
	if r.Key().Compare(s.popped) <= 0 {
		r.Due = s.popped.Due + 1
	}
	return r
}

func (s *simple) advance(stamp int64, limit int, rebase bool) {
	if rebase && s.popped.Due > stamp {
		s.popped = record.Key{Due: stamp}
	}
	s.stamp = stamp
	slices.SortFunc(s.waiting, func(a, b record.Ref) int { return a.Key().Compare(b.Key()) })
	for limit > 0 && len(s.waiting) > 0 && s.waiting[0].Due <= stamp {
		r := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.popped = r.Key()
		s.show(r)
		limit--
	}
}

func (s *simple) send(r record.Ref) Outcome {
	sent := r
	if r.Due <= s.stamp {
		sent.Due = 0
	}
	s.msgs[r.ID] = &simpleMessage{sent: sent}
	if r.Due > s.stamp || (r.Due != 0 && s.next() <= s.stamp) {
		r = s.lift(r)
		s.waiting = append(s.waiting, r)
		return Outcome{Due: r.Due}
	}
	return Outcome{Due: r.Due, Ready: true, Offset: s.show(r)}
}

func (s *simple) ack(a record.Ack) (fresh uint64) {
	for _, r := range a.Ranges {
		for o := r.From; o < min(r.To, record.Offset(len(s.queues[a.Queue]))); o++ {
			if !s.acked[a.Queue][o] {
				s.acked[a.Queue][o] = true
				fresh++
			}
		}
	}
	return fresh
}

func (s *simple) verdict(id record.ID) (int, timeline.Verdict) {
	i := s.find(id)
	switch {
	case s.msgs[id].cancelled:
		return i, timeline.AlreadyCancelled
	case i < 0:
		return i, timeline.NotWaiting
	}
	return i, timeline.Done
}

func (s *simple) cancel(id record.ID) timeline.Verdict {
	i, v := s.verdict(id)
	if v == timeline.Done {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.msgs[id].cancelled = true
	}
	return v
}

func (s *simple) reschedule(id record.ID, due int64) (timeline.Verdict, int64) {
	i, v := s.verdict(id)
	if v != timeline.Done {
		return v, 0
	}
	r := s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	r.Due = due
	r = s.lift(r)
	s.waiting = append(s.waiting, r)
	return v, r.Due
}

// A history drives a machine with cuts and crashes, one without, and the
// simple one through the same random batches.
type history struct {
	t    *testing.T
	rng  *rand.Rand
	disk vfs.FS
	x    *index.Index
	m    *machine
	ref  *machine // never cut
	s    *simple
	ids  []record.ID

	pos        uint64
	batches    []placed
	frozen     *frozenCut
	cutAt      int // batches in the newest installed cut
	pendingCut int // of the one being built
}

type placed struct {
	pos uint64
	b   record.Batch
}

func (h *history) fatalf(format string, args ...any) {
	h.t.Helper()
	h.t.Fatalf("batch %d: %s", len(h.batches), fmt.Sprintf(format, args...))
}

func openIndex(t *testing.T, disk vfs.FS) *index.Index {
	t.Helper()
	x, err := index.Open(index.Options{FS: disk, Dir: "index", CacheBytes: 1 << 20})
	if err != nil {
		t.Fatalf("index.Open: %v", err)
	}
	return x
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{t: t, rng: rand.New(rand.NewPCG(seed, 1)), disk: fs.NewMem(), s: newSimple(), pos: 128}
	h.x = openIndex(t, h.disk)
	h.m = h.restore()
	empty := openIndex(t, fs.NewMem())
	var err error
	if h.ref, _, err = restore(empty); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.release()
		_ = h.ref.line.Close()
		_ = empty.Close()
	})
	return h
}

func (h *history) restore() *machine {
	m, _, err := restore(h.x)
	if err != nil {
		h.fatalf("restore: %v", err)
	}
	return m
}

func (h *history) release() {
	if err := h.m.line.Close(); err != nil {
		h.t.Errorf("close: %v", err)
	}
	if err := h.x.Close(); err != nil {
		h.t.Errorf("close index: %v", err)
	}
}

// step applies one random batch to all three and compares what they say.
func (h *history) step() {
	b := record.Batch{Type: record.EntryCommands, Index: uint64(len(h.batches)) + 1, Term: 1, Limit: uint32(h.rng.IntN(6))}
	if h.rng.IntN(4) == 0 {
		b.Limit = 1000
	}
	b.Stamp = h.s.stamp + int64(h.rng.IntN(20))
	if len(h.batches) == 0 {
		b.Stamp = 1_000_000
		t := record.Topic{Number: 1, FirstQueue: 1, Queues: 3, Name: "t"}
		b.Data = record.AppendTopic(b.Data, &t)
		b.Data = record.AppendGroup(b.Data, &record.Group{Name: "g", Start: record.StartEarliest})
	} else if h.rng.IntN(60) == 0 {
		b.Stamp, b.Flags = h.s.stamp-int64(h.rng.IntN(100)), record.FlagRebase
	}
	h.s.advance(b.Stamp, int(b.Limit), b.Flags != 0)
	var want []Outcome
	if len(h.batches) == 0 {
		want = append(want, Outcome{}, Outcome{})
	}
	base := record.ID(h.pos + log.LocalBytes + record.BatchHeader)
	for range h.rng.IntN(5) {
		at := base + record.ID(len(b.Data))
		data, out := h.command(b.Data, b.Stamp, at)
		b.Data = data
		want = append(want, out)
	}
	h.batches = append(h.batches, placed{h.pos, b})
	h.apply(h.m, h.pos, &b, want)
	h.apply(h.ref, h.pos, &b, want)
	h.pos += uint64(log.LocalBytes + b.Size() + 15)
	h.pos &^= 15
	if got, want := h.m.nextDue(), h.s.next(); got != want {
		h.fatalf("next due %d, want %d", got, want)
	}
}

// command appends a random command and says what must come of it.
func (h *history) command(data []byte, stamp int64, at record.ID) ([]byte, Outcome) {
	kind := h.rng.IntN(12)
	if kind >= 10 {
		a := h.randomAck()
		return record.AppendAck(data, &a), Outcome{Fresh: h.s.ack(a)}
	}
	if len(h.ids) == 0 || kind < 5 {
		m := record.Message{Queue: record.QueueNumber(1 + h.rng.IntN(3)), Stored: stamp, Born: stamp, Body: []byte("x")}
		switch h.rng.IntN(5) {
		case 0: // at once
		case 1:
			m.Due = max(1, stamp-int64(h.rng.IntN(30)))
		case 2:
			m.Level = uint8(1 + h.rng.IntN(3))
			m.Due = stamp + int64(m.Level)*10
		default:
			m.Due = stamp + int64(h.rng.IntN(100))
		}
		if h.rng.IntN(3) == 0 {
			m.Tag = "blue"
		}
		before := len(data)
		data = record.AppendSend(data, &m)
		h.ids = append(h.ids, at)
		return data, h.s.send(record.Ref{
			Due: m.Due, ID: at, Size: uint32(len(data) - before), Queue: m.Queue,
			Tag: record.TagHash(m.Tag), Kind: record.KindMessage, Level: m.Level,
		})
	}
	id := h.ids[len(h.ids)-1-h.rng.IntN(min(len(h.ids), 40))]
	sent := h.s.msgs[id].sent
	if kind < 7 {
		v := h.s.cancel(id)
		return record.AppendCancel(data, &record.Cancel{Key: sent.Key(), Level: sent.Level}), Outcome{Verdict: v}
	}
	due := max(1, stamp+int64(h.rng.IntN(60))-20)
	if h.rng.IntN(4) == 0 && sent.Due != 0 {
		due = sent.Due // there and back
	}
	v, got := h.s.reschedule(id, due)
	return record.AppendReschedule(data, &record.Reschedule{Ref: sent, Due: due}), Outcome{Verdict: v, Due: got}
}

// randomAck finishes some offsets of a queue, most of them there, some not yet.
func (h *history) randomAck() record.Ack {
	a := record.Ack{Queue: record.QueueNumber(1 + h.rng.IntN(3))}
	at := record.Offset(0)
	if n := len(h.s.queues[a.Queue]); n > 12 {
		at = record.Offset(n - 12)
	}
	for range 1 + h.rng.IntN(3) {
		at += record.Offset(h.rng.IntN(5))
		to := at + record.Offset(1+h.rng.IntN(4))
		a.Ranges = append(a.Ranges, record.OffsetRange{From: at, To: to})
		at = to + 1
	}
	return a
}

func (h *history) apply(m *machine, pos uint64, b *record.Batch, want []Outcome) {
	h.t.Helper()
	var eff effects
	if err := m.apply(pos, b, &eff); err != nil {
		h.fatalf("apply: %v", err)
	}
	for _, t := range eff.rung {
		t.rung = false
	}
	if want == nil {
		return
	}
	for i, got := range eff.outcomes {
		w := want[i]
		same := got.Verdict == w.Verdict && got.Ready == w.Ready && got.Offset == w.Offset && got.Fresh == w.Fresh
		if w.Verdict == 0 || (w.Verdict == timeline.Done && w.Due != 0) {
			same = same && got.Due == w.Due
		}
		if !same {
			h.fatalf("command %d: %+v, want %+v", i, got, w)
		}
	}
}

// cut begins, ends, abandons a cut, or crashes and recovers from the newest.
func (h *history) cut() {
	switch h.rng.IntN(12) {
	case 0, 1, 2:
		if h.frozen == nil {
			h.frozen = h.m.freeze(log.Start{Index: h.m.index, Position: h.pos})
			h.cutAtFrozen()
		}
	case 3, 4, 5:
		if h.frozen != nil {
			h.install()
		}
	case 6:
		if h.frozen != nil {
			h.m.abandon(h.frozen)
			h.frozen = nil
		}
	case 7:
		if h.rng.IntN(3) == 0 {
			h.crash()
		}
	}
}

func (h *history) cutAtFrozen() { h.pendingCut = len(h.batches) }

func (h *history) install() {
	if err := h.frozen.write(h.x); err != nil {
		h.fatalf("write cut: %v", err)
	}
	it, err := h.frozen.line.Open(h.x)
	if err != nil {
		h.fatalf("open: %v", err)
	}
	for range h.rng.IntN(3) { // the applier goes on between
		h.step()
	}
	if old := h.m.install(h.frozen, it); old != nil {
		if err := old.Close(); err != nil {
			h.fatalf("close: %v", err)
		}
	}
	h.frozen, h.cutAt = nil, h.pendingCut
}

// crash forgets memory, recovers the newest cut and replays what came after.
func (h *history) crash() {
	h.release()
	h.frozen = nil
	h.x = openIndex(h.t, h.disk)
	h.m = h.restore()
	if int(h.m.index) != h.cutAt {
		h.fatalf("recovered cut of batch %d, want %d", h.m.index, h.cutAt)
	}
	for _, p := range h.batches[h.cutAt:] {
		h.apply(h.m, p.pos, &p.b, nil)
	}
}

// check compares the three whole states.
func (h *history) check() {
	h.t.Helper()
	if h.frozen == nil { // a hash while a cut is written is tested by the engine
		if got, want := hashOf(h.t, h.m), hashOf(h.t, h.ref); got != want {
			h.fatalf("state with cuts differs from the state without")
		}
	}
	slices.SortFunc(h.s.waiting, func(a, b record.Ref) int { return a.Key().Compare(b.Key()) })
	if got := pageAll(h.t, h.m.line); !slices.EqualFunc(got, h.s.waiting, sameRef) {
		h.fatalf("waiting\n %v\nwant\n %v", got, h.s.waiting)
	}
	if got, want := h.m.line.Waiting(), int64(len(h.s.waiting)); got != want {
		h.fatalf("%d wait, want %d", got, want)
	}
	for n, want := range h.s.queues {
		if got := entriesOf(h.t, h.m, n); !slices.Equal(got, want) {
			h.fatalf("queue %d\n %v\nwant\n %v", n, got, want)
		}
		p := h.m.groups.Named("g").Progress(n)
		for o := range record.Offset(len(want)) {
			if p != nil && p.Finished(o) != h.s.acked[n][o] {
				h.fatalf("queue %d offset %d finished: %v", n, o, p.Finished(o))
			}
		}
	}
}

func sameRef(a, b record.Ref) bool { return a == b }

func pageAll(t *testing.T, line *timeline.Timeline) (refs []record.Ref) {
	t.Helper()
	after, more := record.Key{Due: math.MinInt64}, true
	for more {
		v, err := line.Take()
		if err != nil {
			t.Fatal(err)
		}
		var page []timeline.Candidate
		page, more, err = v.Page(after, math.MaxInt64, 7, func(*record.Ref) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := line.Confirm(page)
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, got...)
		if len(page) > 0 {
			after = page[len(page)-1].Key()
		}
	}
	return refs
}

func entriesOf(t *testing.T, m *machine, n record.QueueNumber) (all []queue.Entry) {
	t.Helper()
	q := m.queues.Get(n)
	for o := q.First(); o < q.Next(); o = record.Offset(len(all)) {
		got, ok := q.Memory(all, o, 5)
		if !ok {
			p, stored := q.Place(o)
			if !stored {
				t.Fatalf("queue %d offset %d is nowhere", n, o)
			}
			var err error
			if got, err = m.queues.Read(all, p, o, 5); err != nil {
				t.Fatal(err)
			}
		}
		all = got
	}
	return all
}

func hashOf(t *testing.T, m *machine) string {
	t.Helper()
	e := &Engine{m: m}
	s, err := e.Hash()
	if err != nil {
		t.Fatalf("Hash: %v", err)
	}
	return s
}

// TestMachineAgainstSimple runs random histories of sends, cancels,
// reschedules, time, clock set back, cuts at any moment, and crashes, and
// demands that the machine with cuts, the one without and the simple one agree.
func TestMachineAgainstSimple(t *testing.T) {
	first, n := uint64(1), *seeds
	if testing.Short() {
		n = min(n, 50)
	}
	if *seed != 0 {
		first, n = *seed, 1
	}
	for s := first; s < first+uint64(n); s++ {
		ok := t.Run(fmt.Sprint("seed=", s), func(t *testing.T) {
			h := newHistory(t, s)
			for range 150 {
				h.step()
				h.cut()
				if h.rng.IntN(10) == 0 {
					h.check()
				}
			}
			h.check()
		})
		if !ok {
			t.Fatalf("replay: go test ./internal/engine -run TestMachineAgainstSimple -seed=%d", s)
		}
	}
}
