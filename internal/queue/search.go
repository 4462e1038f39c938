package queue

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// A minimum is what [Set.Min] found last.
type minimum struct {
	trim   int64
	offset record.Offset
}

// Min is the queue's smallest offset in the eyes of everybody: the first entry
// that became visible at trim (Unix ms) or later, [Queue.Next] if there is none.
// It depends on what was appended and on trim, not on cuts, as long as trim is
// not below that of a cut. The answer is kept, so asking again with the same
// trim costs next to nothing. The caller holds at least a read lock on the
// state. An error is one of reading the index.
func (s *Set) Min(q *Queue, trim int64) (record.Offset, error) {
	if q.lastVisible < trim {
		return q.next, nil
	}
	if trim <= 0 {
		return q.First(), nil
	}
	// An entry at or after trim is there, so the first one stays the first.
	if m := q.min.Load(); m != nil && m.trim == trim {
		return max(m.offset, q.First()), nil
	}
	o, err := s.Search(q, trim)
	if err == nil {
		q.min.Store(&minimum{trim, o})
	}
	return o, err
}

// Search finds the first entry still kept that became visible at that time
// (Unix ms) or later, [Queue.Next] if there is none. The caller holds at least a
// read lock on the state. For what is in the index it costs a few reads of
// blocks, more the longer the queue is, with its logarithm.
func (s *Set) Search(q *Queue, at int64) (record.Offset, error) {
	switch {
	case at <= 0:
		return q.First(), nil
	case q.lastVisible < at:
		return q.next, nil
	case q.live.before(at):
		return q.liveFrom + record.Offset(q.live.search(at)), nil
	case q.frozen.before(at):
		return q.frozenFrom + record.Offset(q.frozen.search(at)), nil
	}
	// Most parts are passed over by what is known of their epochs.
	i := sort.Search(len(q.parts), func(i int) bool { return s.lastOf(q.parts[i].epoch) >= at })
	if i == len(q.parts) {
		return q.stored(), nil
	}
	o, err := s.searchParts(q, i, at)
	if err != nil {
		return o, fmt.Errorf("search queue %d: %w", q.Number, err)
	}
	return o, nil
}

// before says that the first entry became visible before that time.
func (s *segments) before(at int64) bool {
	if len(s.full) > 0 {
		return s.full[0][0].VisibleAt < at
	}
	return len(s.tail) > 0 && s.tail[0].VisibleAt < at
}

// search counts the entries that became visible before that time.
func (s *segments) search(at int64) int {
	i := sort.Search(len(s.full), func(i int) bool { return s.full[i][len(s.full[i])-1].VisibleAt >= at })
	n := 0
	for _, piece := range s.full[:i] {
		n += len(piece)
	}
	if i < len(s.full) {
		return n + earlier(s.full[i], at)
	}
	return n + earlier(s.tail, at)
}

// earlier counts the entries that became visible before that time.
func earlier(entries []Entry, at int64) int {
	return sort.Search(len(entries), func(i int) bool { return entries[i].VisibleAt >= at })
}

// stored is the first offset that is in memory.
func (q *Queue) stored() record.Offset {
	if q.frozen.n > 0 {
		return q.frozenFrom
	}
	return q.liveFrom
}

// lastOf tells what no entry of an epoch became visible after. It holds for a
// queue's part too, but need not be near.
func (s *Set) lastOf(number uint32) int64 {
	i := sort.Search(len(s.epochs), func(i int) bool { return s.epochs[i].number >= number })
	return s.epochs[i].last
}

// searchParts searches in the index from the queue's i-th part on: by doubling
// steps, since the first part is nearly always the one, then by halving.
func (s *Set) searchParts(q *Queue, i int, at int64) (_ record.Offset, err error) {
	lower := appendBlockKey(nil, q.parts[i].epoch, q.Number, 0)
	upper := appendBlockKey(nil, q.parts[len(q.parts)-1].epoch, q.Number+1, 0)
	it, err := s.src.NewIter(s.spaces.Entries, lower, upper)
	if err != nil {
		return 0, err
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = cerr
		}
	}()
	b := blocks{s: s, q: q, it: it}
	lo, hi := q.parts[i].from, q.stored()
	for end, step := lo, 1; end < hi; step *= 2 {
		if end = q.stored(); i+step < len(q.parts) {
			end = q.parts[i+step].from
		}
		if err := b.read(end - 1); err != nil {
			return 0, err
		}
		if b.entries[end-1-b.first].VisibleAt >= at {
			hi = end
		} else {
			lo = end
		}
	}
	for lo < hi {
		if err := b.read(lo + (hi-lo)/2); err != nil {
			return 0, err
		}
		switch n := earlier(b.entries, at); n {
		case 0:
			hi = b.first
		case len(b.entries):
			lo = b.first + record.Offset(n)
		default:
			return b.first + record.Offset(n), nil
		}
	}
	return lo, nil
}

// blocks reads single blocks of one queue.
type blocks struct {
	s       *Set
	q       *Queue
	it      *index.Iter
	key     []byte
	first   record.Offset // of entries
	entries []Entry
}

// read reads the block that holds an offset.
func (b *blocks) read(o record.Offset) error {
	p, ok := b.q.Place(o)
	if !ok {
		return b.s.missing(p.epoch, b.q.Number, o)
	}
	b.key = appendBlockKey(b.key[:0], p.epoch, p.queue, o+1)
	if !b.it.SeekLT(b.key) || len(b.it.Key()) != 16 || !bytes.Equal(b.it.Key()[:8], b.key[:8]) {
		if err := b.it.Error(); err != nil {
			return err
		}
		return b.s.missing(p.epoch, p.queue, o)
	}
	var err error
	b.first = record.Offset(binary.BigEndian.Uint64(b.it.Key()[8:]))
	if b.entries, err = decodeBlock(b.entries[:0], b.it.Value()); err != nil {
		return fmt.Errorf("offset %d: %w", b.first, err)
	}
	if o-b.first >= record.Offset(len(b.entries)) {
		return b.s.missing(p.epoch, p.queue, o)
	}
	return nil
}
