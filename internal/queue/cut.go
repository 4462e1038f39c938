package queue

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// A Source reads the index.
type Source interface {
	NewIter(s index.Space, lower, upper []byte) (*index.Iter, error)
}

// A Frozen is the queues' part of a cut. [Frozen.Write] may run beside the set.
type Frozen struct {
	epoch  uint32
	queues []frozenQueue
	state  []stateOf
}

type frozenQueue struct {
	q       *Queue
	queue   record.QueueNumber
	from    record.Offset
	entries segments
}

type stateOf struct {
	queue record.QueueNumber
	value []byte
}

// Freeze begins a cut with number epoch, which grows from cut to cut: the
// entries so far go into the Frozen.
func (s *Set) Freeze(epoch uint32) *Frozen {
	f := &Frozen{epoch: epoch, queues: make([]frozenQueue, 0, len(s.dirty))}
	slices.SortFunc(s.dirty, func(a, b *Queue) int { return cmp.Compare(a.Number, b.Number) })
	for _, q := range s.dirty {
		q.dirty = false
		f.state = append(f.state, stateOf{q.Number, q.appendState(nil)})
		if q.live.n == 0 {
			continue
		}
		f.queues = append(f.queues, frozenQueue{q: q, queue: q.Number, from: q.liveFrom, entries: q.live})
		q.frozen, q.frozenFrom = q.live, q.liveFrom
		q.live, q.liveFrom = segments{}, q.next
	}
	s.dirty = nil
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
// their numbers, for [Set.Restore].
func (f *Frozen) States() iter.Seq2[record.QueueNumber, []byte] {
	return func(yield func(record.QueueNumber, []byte) bool) {
		for _, s := range f.state {
			if !yield(s.queue, s.value) {
				return
			}
		}
	}
}

// Write adds the entries and their directory to the cut.
func (f *Frozen) Write(c *index.Cut) error {
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
				if err := c.Set(SpaceEntries, key, value); err != nil {
					return fmt.Errorf("cut queue %d: %w", fq.queue, err)
				}
				from += record.Offset(len(b))
			}
		}
	}
	key = binary.BigEndian.AppendUint32(key[:0], f.epoch)
	if err := c.Set(SpaceDirectory, key, appendDirectory(value[:0], f.queues)); err != nil {
		return fmt.Errorf("cut directory: %w", err)
	}
	return nil
}

// Install ends a cut that is durable: the index takes over.
func (s *Set) Install(f *Frozen) {
	for i := range f.queues {
		fq := &f.queues[i]
		fq.q.parts = append(fq.q.parts, part{f.epoch, fq.from})
		fq.q.frozen = segments{}
	}
}

// Abandon ends a cut that failed: the entries go back.
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
		s.Touch(s.queues[st.queue])
	}
}

// MaxNumber bounds the numbers that are believed from a cut; queues are kept by
// number, and numbers are handed out one by one.
const MaxNumber = 1 << 28

// queueState is the version of a queue's small state.
const queueState = 1

func (q *Queue) appendState(dst []byte) []byte {
	dst = append(dst, queueState)
	dst = binary.AppendUvarint(dst, uint64(q.Topic))
	dst = binary.AppendUvarint(dst, uint64(q.next))
	return binary.AppendUvarint(dst, uint64(q.lastVisible))
}

// Restore takes back one queue's small state from a cut.
func (s *Set) Restore(n record.QueueNumber, state []byte) error {
	if len(state) == 0 || state[0] != queueState {
		return fmt.Errorf("%w: state of queue %d", record.ErrVersion, n)
	}
	r := record.ReadFields(state[1:])
	topic, next, visible := r.Uvarint(), r.Uvarint(), r.Uvarint()
	if !r.Done() || topic > 1<<32-1 || n > MaxNumber {
		return fmt.Errorf("%w: state of queue %d", record.ErrCorrupt, n)
	}
	q := s.Add(n, record.TopicNumber(topic))
	q.next, q.liveFrom, q.lastVisible = record.Offset(next), record.Offset(next), int64(visible)
	return nil
}

// RestoreDirectory reads where the entries of older cuts lie. All queues have
// been restored before.
func (s *Set) RestoreDirectory() error {
	it, err := s.src.NewIter(SpaceDirectory, nil, nil)
	if err != nil {
		return fmt.Errorf("read directory: %w", err)
	}
	for it.First(); it.Valid() && err == nil; it.Next() {
		err = s.restoreEpoch(it.Key(), it.Value())
	}
	if err == nil {
		err = it.Error()
	}
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("read directory: %w", err)
	}
	return nil
}

func (s *Set) restoreEpoch(key, value []byte) error {
	if len(key) != 4 {
		return fmt.Errorf("%w: directory key %x", record.ErrCorrupt, key)
	}
	epoch := binary.BigEndian.Uint32(key)
	return decodeDirectory(value, func(n record.QueueNumber, from record.Offset) error {
		q := s.Get(n)
		if q == nil {
			return fmt.Errorf("%w: directory names queue %d, which is unknown", record.ErrCorrupt, n)
		}
		q.parts = append(q.parts, part{epoch, from})
		return nil
	})
}
