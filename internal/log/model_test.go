package log

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// A history is what a log may hold: a prefix of list, at least durable batches
// of it.
type history struct {
	list    []*record.Batch // list[i] has index i+1
	durable int
}

// A model is the dumb twin of a log: it keeps every batch in a slice and knows
// what was promised.
type model struct {
	// may are the histories that a crash now may leave: one, or two while the
	// log is being truncated.
	may []history
	// cut is a place from which the log may be opened; what is before it was
	// synced and is never truncated.
	cut Start
	// first is the highest index that a reopened log may begin with.
	first uint64
}

func newModel() *model { return &model{may: []history{{}}, first: 1} }

func (m *model) now() *history { return &m.may[0] }

// positions are where the batches of list stand, by the rule in the document,
// written down a second time.
func positions(list []*record.Batch, segment uint64) []uint64 {
	pos := make([]uint64, len(list))
	seq, off := uint64(0), uint64(HeaderBytes)
	for i, b := range list {
		size := (uint64(LocalBytes+b.Size()) + 15) / 16 * 16
		if off+size > segment {
			seq, off = seq+1, HeaderBytes
		}
		pos[i] = seq*segment + off
		off += size
	}
	return pos
}

// check compares what a reopened log holds with what it may hold, and makes the
// model believe it.
func (m *model) check(l *Log) error {
	got, err := replay(l, Start{})
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	for i := range m.may {
		if err = m.may[i].holds(l, got, m.first); err == nil {
			list := m.may[i].list[:l.LastIndex()]
			m.may = []history{{list: slices.Clip(list), durable: len(list)}}
			m.first = max(m.first, l.FirstIndex())
			return nil
		}
	}
	return err
}

func (h *history) holds(l *Log, got []kept, first uint64) error {
	n := int(l.LastIndex())
	if n < h.durable {
		return fmt.Errorf("log ends with batch %d but batch %d was synced", n, h.durable)
	}
	if n > len(h.list) {
		return fmt.Errorf("log ends with batch %d but only %d were appended", n, len(h.list))
	}
	if l.FirstIndex() > first {
		return fmt.Errorf("log begins with batch %d but batch %d was not removed", l.FirstIndex(), first)
	}
	if len(got) != n+1-int(l.FirstIndex()) {
		return fmt.Errorf("%d batches from %d to %d", len(got), l.FirstIndex(), n)
	}
	pos := positions(h.list[:n], uint64(l.options.SegmentBytes))
	for i := range got {
		at := int(l.FirstIndex()) - 1 + i
		if err := same(&got[i].batch, h.list[at]); err != nil {
			return err
		}
		if got[i].pos != pos[at] {
			return fmt.Errorf("batch %d at position %d, want %d", at+1, got[i].pos, pos[at])
		}
	}
	return nil
}

// A workload drives a log and its model through random steps. The same seed
// gives the same steps.
type workload struct {
	options   Options
	model     *model
	rng       *rand.Rand
	salt      uint64
	syncEvery int // appends between syncs, about; 1 is the policy always
	steps     int

	log *Log
}

func newWorkload(o Options, seed uint64, syncEvery, steps int) *workload {
	return &workload{
		options: o, model: newModel(), rng: rand.New(rand.NewPCG(seed, 7)), salt: seed, syncEvery: syncEvery, steps: steps,
	}
}

// open opens the log and checks it.
func (w *workload) open() error {
	from := w.model.cut
	if w.rng.IntN(2) == 0 {
		from = Start{}
	}
	l, err := Open(w.options, from)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	w.log = l
	return w.model.check(l)
}

// run opens the log, takes all steps and closes it.
func (w *workload) run() error {
	if err := w.open(); err != nil {
		return err
	}
	for range w.steps {
		if err := w.step(); err != nil {
			return err
		}
	}
	return w.close()
}

func (w *workload) close() error {
	if err := w.log.Close(); err != nil {
		return err
	}
	w.model.now().durable = len(w.model.now().list)
	return nil
}

func (w *workload) step() error {
	switch n := w.rng.IntN(40); {
	case n < 32:
		if err := w.append(); err != nil {
			return err
		}
		if w.rng.IntN(w.syncEvery) == 0 {
			return w.sync()
		}
		return nil
	case n < 35:
		return w.truncate()
	case n < 37:
		return w.remove()
	case n < 38:
		if err := w.sync(); err != nil {
			return err
		}
		w.model.cut = w.log.End()
		return nil
	default:
		if err := w.close(); err != nil {
			return err
		}
		return w.open()
	}
}

// size draws how large a batch is: mostly small, some span blocks of the disk,
// a few fill a segment to the last byte.
func (w *workload) size() int {
	switch n := w.rng.IntN(30); {
	case n < 15:
		return 120 + w.rng.IntN(500)
	case n < 28:
		return 120 + w.rng.IntN(12000)
	case n < 29:
		return MinSegmentBytes - HeaderBytes
	}
	return 30000 + w.rng.IntN(30000)
}

func (w *workload) append() error {
	h := w.model.now()
	w.salt++
	var group []*record.Batch
	for range 1 + w.rng.IntN(4) {
		group = append(group, testBatch(uint64(len(h.list)+len(group)+1), w.size(), w.salt))
	}
	// From the first write on any of them may survive.
	before := h.list
	h.list = append(slices.Clip(h.list), group...)
	pos := make([]uint64, len(group))
	if err := w.log.Append(group, pos); err != nil {
		if !errors.Is(err, ErrPoisoned) {
			h.list = before // refused as a whole
		}
		return err
	}
	want := positions(h.list, uint64(w.options.SegmentBytes))[len(before):]
	for i := range pos {
		if pos[i] != want[i] {
			return fmt.Errorf("batch %d appended at %d, want %d", group[i].Index, pos[i], want[i])
		}
	}
	return nil
}

func (w *workload) sync() error {
	if err := w.log.Sync(); err != nil {
		return err
	}
	w.model.now().durable = len(w.model.now().list)
	return nil
}

func (w *workload) truncate() error {
	h := *w.model.now()
	keep := max(len(h.list)-1-w.rng.IntN(8), int(w.model.cut.Index))
	if keep >= len(h.list) {
		return nil
	}
	from := uint64(keep + 1)
	if from <= w.log.FirstIndex() && w.log.FirstPosition() > 0 {
		return nil // an applied batch is never truncated
	}
	cut := history{list: h.list[:keep:keep], durable: min(h.durable, keep)}
	w.model.may = []history{h, cut}
	if err := w.log.TruncateSuffix(from); err != nil {
		return err
	}
	cut.durable = keep
	w.model.may = []history{cut}
	return nil
}

func (w *workload) remove() error {
	// A crash may undo a removal or leave half of it: the first index only rises.
	for _, s := range w.log.Segments() {
		if s.Base <= w.model.cut.Position {
			w.model.first = max(w.model.first, s.First)
		}
	}
	return w.log.RemoveBefore(w.model.cut.Position)
}

// reopen opens what a crash left, checks it, goes on with other batches and
// crashes once more, with nothing of what was not synced: neither what was
// synced before nor after may be missing, and nothing may come back.
func reopen(disk *vfs.MemFS, o Options, m *model, seed uint64) error {
	cp := &model{may: append([]history(nil), m.may...), cut: m.cut, first: m.first}
	w := newWorkload(o, seed, 1, 0)
	w.model = cp
	w.options.FS = disk
	if err := w.open(); err != nil {
		return err
	}
	w.salt += 1 << 32
	if err := errors.Join(w.append(), w.sync()); err != nil {
		return err
	}
	w.options.FS = disk.CrashClone(vfs.CrashCloneCfg{})
	report, err := Verify(w.options, nil)
	if err != nil {
		return err
	}
	if len(report.Damage) > 0 {
		return fmt.Errorf("verify: %w", report.Damage[0])
	}
	return w.open()
}

// crashSweep runs a workload and crashes it before each operation on the disk,
// with none, some, most and all of what was not synced.
func crashSweep(bugs Bugs, seed uint64, syncEvery, steps int) error {
	mem := fs.NewMem()
	faulty := fs.NewFaulty(mem)
	o := testOptions(faulty)
	o.Bugs = bugs
	w := newWorkload(o, seed, syncEvery, steps)
	var failed error
	look := func(at string) {
		for _, percent := range []int{0, 30, 70, 100} {
			if failed != nil {
				return
			}
			n := uint64(faulty.Ops())
			disk := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(n, seed))})
			if err := reopen(disk, o, w.model, n); err != nil {
				failed = fmt.Errorf("seed %d, crash with %d %% of what was not synced before operation %d, %s: %w", seed, percent, n, at, err)
			}
		}
	}
	faulty.Hooks(func(op fs.Op) { look(op.String()) }, nil)
	err := w.run()
	faulty.Hooks(nil, nil)
	look("the end")
	return errors.Join(failed, err)
}

// generations runs a workload over many crashes, each at a random operation and
// with a random part of what was not synced.
func generations(bugs Bugs, seed uint64, syncEvery, crashes int) error {
	rng := rand.New(rand.NewPCG(seed, 3))
	disk := fs.NewMem()
	o := testOptions(nil)
	o.Bugs = bugs
	w := newWorkload(o, seed, syncEvery, 0)
	for g := range crashes {
		faulty := fs.NewFaulty(disk)
		w.options.FS = faulty
		at := 1 + rng.IntN(60)
		var next *vfs.MemFS
		var then model
		faulty.Hooks(func(op fs.Op) {
			if op.Number == at {
				next = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
				then = model{may: append([]history(nil), w.model.may...), cut: w.model.cut, first: w.model.first}
			}
		}, nil)
		err := w.open()
		for err == nil && next == nil {
			err = w.step()
		}
		if err != nil {
			return fmt.Errorf("seed %d, after %d crashes: %w", seed, g, err)
		}
		disk, w.model = next, &then
	}
	return nil
}
