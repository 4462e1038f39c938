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

// testSegment is the size of a segment in histories: a few batches.
const testSegment = 4096

// noSegments is a log of which nothing is ever carried.
type noSegments struct{}

func (noSegments) Salvage(uint64, uint64, func(uint64, *record.Batch, error) error) error { return nil }

func (noSegments) ReadAt([]byte, uint64, int) ([]byte, error) { return nil, log.ErrRemoved }

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

// Salvage and ReadAt have the history stand for the log.
func (h *history) Salvage(from, to uint64, fn func(uint64, *record.Batch, error) error) error {
	for i := range h.batches {
		if p := &h.batches[i]; p.pos >= from && p.pos < to {
			if err := fn(p.pos, &p.b, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *history) ReadAt(dst []byte, pos uint64, n int) ([]byte, error) {
	for i := range h.batches {
		p := &h.batches[i]
		data := p.pos + log.LocalBytes + record.BatchHeader
		if pos >= data && pos+uint64(n) <= data+uint64(len(p.b.Data)) {
			return append(dst, p.b.Data[pos-data:pos-data+uint64(n)]...), nil
		}
	}
	return dst, log.ErrRange
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
	none := openIndex(t, fs.NewMem())
	var err error
	if h.ref, _, err = restore(none, testSegment); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.release()
		_ = h.ref.line.Close()
		_ = none.Close()
	})
	return h
}

func (h *history) restore() *machine {
	m, _, err := restore(h.x, testSegment)
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
	if h.rng.IntN(50) == 0 {
		b.Stamp += int64(h.rng.IntN(2 * hourMs)) // what is carried is given up by the hour
	}
	var want []Outcome
	switch {
	case len(h.batches) == 0:
		b.Stamp = 1_000_000
		for i := range 2 {
			t := record.Topic{Number: record.TopicNumber(1 + i), FirstQueue: record.QueueNumber(1 + 3*i), Queues: 3, Name: fmt.Sprint("t", i)}
			b.Data = record.AppendTopic(b.Data, &t)
		}
		b.Data = record.AppendGroup(b.Data, &record.Group{Name: "g", Start: record.StartEarliest})
		want = append(want, Outcome{}, Outcome{}, Outcome{})
	case h.rng.IntN(60) == 0:
		b.Stamp, b.Flags = h.s.stamp-int64(h.rng.IntN(100)), record.FlagRebase
	}
	if h.pos/testSegment != (h.pos+1024)/testSegment {
		h.pos = (h.pos/testSegment + 1) * testSegment // a segment is full
		h.pos += 128
	}
	h.s.advance(b.Stamp, int(b.Limit), b.Flags != 0, b.Index, h.pos)
	base := record.ID(h.pos + log.LocalBytes + record.BatchHeader)
	commands := h.rng.IntN(5)
	if len(h.batches) == 0 {
		commands = 0
	}
	for range commands {
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
	if got, want := h.m.nextDue(), h.s.nextDue(); got != want {
		h.fatalf("next due %d, want %d", got, want)
	}
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
		same := got.Verdict == w.Verdict && got.Ready == w.Ready && got.Offset == w.Offset && got.Fresh == w.Fresh &&
			got.Gone == w.Gone && got.Repeat == w.Repeat && got.Mismatch == w.Mismatch && got.First == w.First
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
			h.pendingCut = len(h.batches)
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

func (h *history) install() {
	if err := h.frozen.write(h.x, h, h.m.waits); err != nil {
		h.fatalf("write cut: %v", err)
	}
	for _, err := range h.frozen.carrier.report {
		h.fatalf("carry: %v", err)
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
		h.checkBytes()
	}
	if got, want := pageAll(h.t, h.m), h.s.pending(); !slices.EqualFunc(got, want, sameRef) {
		h.fatalf("waiting\n %v\nwant\n %v", got, want)
	}
	for _, t := range h.s.topics {
		var want Counts
		for _, r := range h.s.waiting {
			if t.owns(r.Queue) && r.Kind == record.KindMessage {
				want.Waiting++
			}
		}
		for _, p := range h.s.parked {
			if t.owns(p.Queue) {
				want.Waiting++
				want.Held++
			}
		}
		var got Counts
		h.m.topics.get(t.number).count(&got)
		if got.Waiting != want.Waiting || got.Held != want.Held {
			h.fatalf("topic %d: %d wait, %d held, want %d and %d", t.number, got.Waiting, got.Held, want.Waiting, want.Held)
		}
	}
	h.checkQueues()
	h.checkMinutes()
}

// checkBytes looks whether the bytes of everything that waits, and of what was
// sent before the part of the log that is kept, are where they are looked for.
func (h *history) checkBytes() {
	h.t.Helper()
	if len(h.m.carries) > 0 {
		return // the next cut carries them
	}
	for _, r := range h.s.pending() {
		if r.ID >= h.m.keep.carried {
			continue
		}
		due := h.checkBody(r.ID, r.Size)
		if _, moving := h.m.rekeyed[r.ID]; due != r.Due && !moving {
			h.fatalf("message %v waits for %d, its bytes lie under %d", r.ID, r.Due, due)
		}
	}
	for n, all := range h.s.queues {
		for _, e := range all[h.s.low(n):] {
			if uint64(e.ID) < h.m.keep.from() {
				h.checkBody(e.ID, e.Size)
			}
		}
	}
}

// checkBody demands the bytes of a carried message and says under which due they
// lie.
func (h *history) checkBody(id record.ID, size uint32) int64 {
	h.t.Helper()
	p, ok, err := bodyDue(h.x, id)
	if err != nil || !ok {
		h.fatalf("message %v was carried and is nowhere (%v)", id, err)
	}
	var m record.Message
	v, ok, err := h.x.Get(nil, SpaceBodies, appendBodyKey(nil, p.due, id))
	if err != nil || !ok || record.DecodeMessageAt(v, &m) != nil || uint32(len(v)) != size {
		h.fatalf("message %v: bytes %x (%v, %v)", id, v, ok, err)
	}
	return p.due
}

func (h *history) checkQueues() {
	h.t.Helper()
	for n, all := range h.s.queues {
		if h.m.queues.Get(n) == nil {
			h.fatalf("queue %d has ended", n)
		}
		low := h.s.low(n)
		if got, want := entriesOf(h.t, h.m, n), all[low:]; !slices.Equal(got, want) {
			h.fatalf("queue %d from %d\n %v\nwant\n %v", n, low, got, want)
		}
		p := h.m.groups.Named("g").Progress(n)
		if p == nil {
			continue
		}
		for o := low; o < record.Offset(len(all)); o++ {
			if p.Finished(o) != h.s.acked[n][o] {
				h.fatalf("queue %d offset %d finished: %v", n, o, p.Finished(o))
			}
		}
	}
}

// checkMinutes compares what is counted by minutes with what waits.
func (h *history) checkMinutes() {
	h.t.Helper()
	want := make(map[uint32]int64)
	for _, r := range h.s.waiting {
		if r.Kind == record.KindMessage {
			want[uint32(r.Due/60_000)]++
		}
	}
	e := &Engine{m: h.m}
	got, err := e.WaitingBy(h.t.Context(), CountQuery{From: 0, To: 60 * 100, Step: 1})
	if err != nil {
		h.fatalf("counts: %v", err)
	}
	for _, b := range got {
		if b.Count != want[b.From] {
			h.fatalf("minute %d: %d wait, want %d", b.From, b.Count, want[b.From])
		}
		delete(want, b.From)
	}
	if len(want) > 0 {
		h.fatalf("minutes not counted: %v", want)
	}
}

func sameRef(a, b record.Ref) bool {
	a.Level, b.Level = 0, 0 // of what is held back the level is not known
	return a == b
}

// pageAll lists what waits, page by page.
func pageAll(t *testing.T, m *machine) (refs []record.Ref) {
	t.Helper()
	e := &Engine{m: m}
	after, more := record.Key{Due: math.MinInt64}, true
	for more {
		var page []Listed
		var err error
		page, after, more, err = e.Page(after, math.MaxInt64, 7, func(*record.Ref) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		for i := range page {
			refs = append(refs, page[i].Ref)
		}
	}
	return refs
}

func entriesOf(t *testing.T, m *machine, n record.QueueNumber) (all []queue.Entry) {
	t.Helper()
	q := m.queues.Get(n)
	low, err := m.queues.Min(q, m.keep.trim)
	if err != nil {
		t.Fatal(err)
	}
	for o := low; o < q.Next(); o = low + record.Offset(len(all)) {
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

// TestMachineAgainstSimple runs random histories of sends, posts, transactions,
// cancels, reschedules, bulk operations, pauses, rates, purges, leases, trims,
// carries, time, a clock set back, cuts at any moment, and crashes, and demands
// that the machine with cuts, the one without and the simple one agree.
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
			for range 200 {
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
