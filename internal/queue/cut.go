package queue

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"sort"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// A Source reads the index.
type Source interface {
	NewIter(s index.Space, lower, upper []byte) (*index.Iter, error)
}

// An epoch is what one cut wrote of all queues.
type epoch struct {
	number uint32
	last   int64 // no entry in it became visible later
}

// A Frozen is the queues' part of a cut. [Frozen.Write] and [Frozen.Excise] may
// run beside the set.
type Frozen struct {
	set     *Set
	epoch   uint32
	last    int64 // the greatest VisibleAt of queues
	queues  []frozenQueue
	state   []stateOf
	dropped []epoch              // whose entries all became visible before the trim
	forget  []record.QueueNumber // with entries in one of those
}

type frozenQueue struct {
	q       *Queue
	queue   record.QueueNumber
	from    record.Offset
	entries segments
}

type stateOf struct {
	queue record.QueueNumber
	value []byte // nil: delete
}

// Freeze begins the cut of that number, which grows from cut to cut: the entries
// so far go into the Frozen. Entries that became visible before trim
// (Unix ms) are given up; the cut drops epochs that hold nothing else, from the
// oldest to the first that does.
func (s *Set) Freeze(number uint32, trim int64) *Frozen {
	f := &Frozen{set: s, epoch: number, queues: make([]frozenQueue, 0, len(s.dirty))}
	slices.SortFunc(s.dirty, func(a, b *Queue) int { return cmp.Compare(a.Number, b.Number) })
	for _, q := range s.dirty {
		q.dirty = false
		if q.ended {
			continue
		}
		f.state = append(f.state, stateOf{q.Number, q.appendState()})
		if q.live.n == 0 {
			continue
		}
		f.last = max(f.last, q.lastVisible)
		f.queues = append(f.queues, frozenQueue{q: q, queue: q.Number, from: q.liveFrom, entries: q.live})
		q.frozen, q.frozenFrom = q.live, q.liveFrom
		q.live, q.liveFrom = segments{}, q.next
	}
	for _, n := range s.ended {
		f.state = append(f.state, stateOf{queue: n})
	}
	slices.SortFunc(f.state, func(a, b stateOf) int { return cmp.Compare(a.queue, b.queue) })
	s.dirty, s.ended = nil, nil
	kept := slices.IndexFunc(s.epochs, func(e epoch) bool { return e.last >= trim })
	if kept < 0 {
		kept = len(s.epochs)
	}
	f.dropped = s.epochs[:kept:kept]
	return f
}

// Touch has the queue's small state written at the next cut.
func (s *Set) Touch(q *Queue) {
	if !q.dirty {
		q.dirty = true
		s.dirty = append(s.dirty, q)
	}
}

// States gives the small state of every queue that changed, in the order of
// their numbers, for [Set.Restore]. A nil value says that the queue has ended
// and its state is to be deleted.
func (f *Frozen) States() iter.Seq2[record.QueueNumber, []byte] {
	return func(yield func(record.QueueNumber, []byte) bool) {
		for _, s := range f.state {
			if !yield(s.queue, s.value) {
				return
			}
		}
	}
}

// Write adds the entries and their directory to the cut, and takes dropped
// epochs out of the directory.
func (f *Frozen) Write(c *index.Cut) error {
	if err := f.writeDropped(c); err != nil {
		return fmt.Errorf("cut directory: %w", err)
	}
	if len(f.queues) == 0 {
		return nil
	}
	var key, value []byte
	for i := range f.queues {
		fq := &f.queues[i]
		from := fq.from
		for piece := range fq.entries.pieces {
			for b := range slices.Chunk(piece, blockEntries) {
				key = appendBlockKey(key[:0], f.epoch, fq.queue, from)
				value = appendBlock(value[:0], b)
				if err := c.Set(f.set.spaces.Entries, key, value); err != nil {
					return fmt.Errorf("cut queue %d: %w", fq.queue, err)
				}
				from += record.Offset(len(b))
			}
		}
	}
	if err := c.Set(f.set.spaces.Directory, epochKey(f.epoch), appendDirectory(value[:0], f.queues, f.last)); err != nil {
		return fmt.Errorf("cut directory: %w", err)
	}
	return nil
}

func epochKey(epoch uint32) []byte { return binary.BigEndian.AppendUint32(nil, epoch) }

// writeDropped deletes the directory keys of dropped epochs, and collects the
// queues that [Set.Install] has to look at: it holds a lock, and most queues
// have nothing in them.
func (f *Frozen) writeDropped(c *index.Cut) error {
	f.forget = f.forget[:0]
	if len(f.dropped) == 0 {
		return nil
	}
	first, last := f.dropped[0].number, f.dropped[len(f.dropped)-1].number
	it, err := f.set.src.NewIter(f.set.spaces.Directory, epochKey(first), epochKey(last+1))
	if err != nil {
		return err
	}
	found := 0
	for it.First(); it.Valid() && err == nil; it.Next() {
		found++
		_, err = decodeDirectory(it.Value(), func(n record.QueueNumber, _ record.Offset) { f.forget = append(f.forget, n) })
		if err == nil {
			err = c.Delete(f.set.spaces.Directory, it.Key())
		}
	}
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	if err == nil && found < len(f.dropped) {
		err = fmt.Errorf("%w: %d of %d epochs from %d to %d", record.ErrCorrupt, found, len(f.dropped), first, last)
	}
	slices.Sort(f.forget)
	f.forget = slices.Compact(f.forget)
	return err
}

// Install ends a cut that is durable: the index takes over, and dropped epochs
// are forgotten.
func (s *Set) Install(f *Frozen) {
	if n := len(f.dropped); n > 0 {
		below := f.dropped[n-1].number + 1
		for _, n := range f.forget {
			if q := s.Get(n); q != nil {
				q.forget(below)
			}
		}
		s.epochs = s.epochs[n:]
		s.below.Store(below)
	}
	for i := range f.queues {
		fq := &f.queues[i]
		fq.q.parts = append(fq.q.parts, part{f.epoch, fq.from})
		fq.q.frozen = segments{}
	}
	if len(f.queues) > 0 {
		s.epochs = append(s.epochs, epoch{f.epoch, f.last})
	}
}

// forget lets go of the parts in epochs below that one.
func (q *Queue) forget(below uint32) {
	q.parts = q.parts[sort.Search(len(q.parts), func(i int) bool { return q.parts[i].epoch >= below }):]
}

// Abandon ends a cut that failed: the entries go back, and nothing is dropped.
func (s *Set) Abandon(f *Frozen) {
	for i := range f.queues {
		fq := &f.queues[i]
		q := fq.q
		var back segments
		for _, s := range []*segments{&q.frozen, &q.live} {
			for piece := range s.pieces {
				for _, e := range piece {
					back.append(e)
				}
			}
		}
		q.live, q.liveFrom, q.frozen = back, fq.from, segments{}
	}
	for _, st := range f.state {
		if st.value == nil {
			s.ended = append(s.ended, st.queue)
		} else if q := s.Get(st.queue); q != nil { // it may have ended since
			s.Touch(q)
		}
	}
}

// Excise frees the space of dropped epochs: of the cut's own if it has been
// installed, else of those before it. It is only garbage, which nobody finds
// any more and which stays over a crash, so now and then is enough. Without any
// it does nothing. Who has a [Stored] place in there gets [ErrTrimmed].
func (f *Frozen) Excise(x *index.Index) error {
	s := f.set
	below := s.below.Load()
	if below <= s.excised.Load() {
		return nil
	}
	if err := x.Excise(s.spaces.Entries, nil, epochKey(below)); err != nil {
		return fmt.Errorf("excise queue entries below epoch %d: %w", below, err)
	}
	s.excised.Store(below)
	return nil
}
