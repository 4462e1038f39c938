package queue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"github.com/duemq/duemq/internal/record"
)

// ErrTrimmed says that the entries of a [Stored] place were given up since it
// was found. Look again under the lock: [Queue.Place] does not give it any more.
// It is not [record.ErrCorrupt], which says that entries are missing.
var ErrTrimmed = errors.New("queue entries are not kept any more")

// A Stored place is where in the index an offset lies; [Set.Read] reads on from
// there without any lock.
type Stored struct {
	queue record.QueueNumber
	epoch uint32
	until record.Offset // first offset of the next part or of memory
}

// Place finds where in the index an offset lies. The caller holds at least a
// read lock on the state.
func (q *Queue) Place(from record.Offset) (Stored, bool) {
	i := sort.Search(len(q.parts), func(i int) bool { return q.parts[i].from > from }) - 1
	if i < 0 {
		return Stored{}, false
	}
	p := Stored{queue: q.Number, epoch: q.parts[i].epoch, until: q.liveFrom}
	if q.frozen.n > 0 {
		p.until = q.frozenFrom
	}
	if i+1 < len(q.parts) {
		p.until = q.parts[i+1].from
	}
	return p, from < p.until
}

// Read appends up to limit entries from offset on, as far as they lie in one
// part of the index. It needs no lock, so the entries may have been given up
// since the place was found; then the error is of class [ErrTrimmed].
func (s *Set) Read(dst []Entry, p Stored, from record.Offset, limit int) ([]Entry, error) {
	lower := appendBlockKey(nil, p.epoch, p.queue, 0)
	upper := appendBlockKey(nil, p.epoch, p.queue+1, 0)
	it, err := s.src.NewIter(s.spaces.Entries, lower, upper)
	if err != nil {
		return dst, fmt.Errorf("queue %d: %w", p.queue, err)
	}
	defer func() { _ = it.Close() }() // its error is asked for below
	start := len(dst)
	var block []Entry
	for ok := it.SeekLT(appendBlockKey(nil, p.epoch, p.queue, from+1)); ok && len(dst)-start < limit; ok = it.Next() {
		if len(it.Key()) != 16 {
			return dst, fmt.Errorf("%w: queue entry key %x", record.ErrCorrupt, it.Key())
		}
		first := record.Offset(binary.BigEndian.Uint64(it.Key()[8:]))
		if block, err = decodeBlock(block[:0], it.Value()); err != nil {
			return dst, fmt.Errorf("queue %d offset %d: %w", p.queue, first, err)
		}
		skip := int(min(from-min(from, first), record.Offset(len(block))))
		take := block[skip:]
		dst = append(dst, take[:min(len(take), limit-(len(dst)-start))]...)
		from = first + record.Offset(len(block))
	}
	if err := it.Error(); err != nil {
		return dst, fmt.Errorf("queue %d: %w", p.queue, err)
	}
	if len(dst) == start {
		return dst, s.missing(p.epoch, p.queue, from)
	}
	return dst, nil
}

// missing says why the index has no entry at an offset.
func (s *Set) missing(epoch uint32, q record.QueueNumber, o record.Offset) error {
	class := record.ErrCorrupt
	if epoch < s.below.Load() {
		class = ErrTrimmed
	}
	return fmt.Errorf("%w: queue %d has no entry at offset %d in the index", class, q, o)
}
