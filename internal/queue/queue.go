// Package queue holds what is visible: for each queue of a topic the entries
// that point at messages in the log, in the order of becoming visible (the
// counterpart of RocketMQ's ConsumeQueue). Entries since the last cut are in
// memory, older ones in the index, by epochs: one for each cut. Cuts give up the
// oldest epochs once all in them became visible before the trim. It knows
// nothing of bodies.
//
// The engine's applier is the only writer. Readers hold at least a read lock on
// the engine's state for the part in memory; what is in the index does not
// change until it is given up ([ErrTrimmed]) and is read without it.
package queue

import (
	"sync/atomic"

	"github.com/duemq/duemq/internal/record"
)

// An Entry is one visible message.
type Entry struct {
	ID        record.ID
	Due       int64  // the due it waited for, Unix ms; 0 if it did not wait
	VisibleAt int64  // stamp at which it became visible; never falls within a queue
	Size      uint32 // bytes of its send command in the log
	Tag       uint32 // hash of its tag, 0 without one
}

// A Queue is one queue of one topic.
type Queue struct {
	Number record.QueueNumber
	Topic  record.TopicNumber

	next        record.Offset // the next entry's offset
	lastVisible int64
	parts       []part   // in the index, oldest first
	frozen      segments // being written to the index
	live        segments // since the last freeze
	liveFrom    record.Offset
	frozenFrom  record.Offset
	dirty       bool
	ended       bool
	min         atomic.Pointer[minimum] // see [Set.Min]
}

// A part says that a cut (its epoch) holds entries from an offset on.
type part struct {
	epoch uint32
	from  record.Offset
}

// Next is the offset that the next entry will get.
func (q *Queue) Next() record.Offset { return q.next }

// First is the smallest offset that is still kept, [Queue.Next] if none is. What
// is not visible any more is given up by later cuts, so it depends on when they
// happened: what decides asks [Set.Min].
func (q *Queue) First() record.Offset {
	if len(q.parts) > 0 {
		return q.parts[0].from
	}
	if q.frozen.n > 0 {
		return q.frozenFrom
	}
	return q.liveFrom
}

// Set is all queues, by number. Numbers are dense and never used again.
type Set struct {
	src    Source
	spaces Spaces

	queues []*Queue
	dirty  []*Queue
	ended  []record.QueueNumber // since the last freeze
	epochs []epoch              // in the index, oldest first

	below   atomic.Uint32 // epochs below it are given up: nothing is kept of them but garbage
	excised atomic.Uint32 // epochs below it have left no garbage
}

// NewSet makes an empty set over those spaces of the index. Sets over different
// spaces may use the same numbers.
func NewSet(src Source, spaces Spaces) *Set { return &Set{src: src, spaces: spaces} }

// Add makes a queue.
func (s *Set) Add(n record.QueueNumber, topic record.TopicNumber) *Queue {
	if int(n) >= len(s.queues) {
		s.queues = append(s.queues, make([]*Queue, int(n)+1-len(s.queues))...)
	}
	q := &Queue{Number: n, Topic: topic}
	s.queues[n] = q
	return q
}

// Get finds a queue; nil if there is none of that number.
func (s *Set) Get(n record.QueueNumber) *Queue {
	if int64(n) >= int64(len(s.queues)) {
		return nil
	}
	return s.queues[n]
}

// End ends a queue for ever: [Set.Get] does not find it any more, the next cut
// deletes its small state, and its entries go with the epochs that hold them.
// Without a queue of that number it does nothing.
func (s *Set) End(n record.QueueNumber) {
	q := s.Get(n)
	if q == nil {
		return
	}
	q.ended = true
	s.queues[n] = nil
	s.ended = append(s.ended, n)
}

// Append makes an entry visible at stamp (Unix ms) and answers with its offset.
func (s *Set) Append(q *Queue, e Entry, stamp int64) record.Offset {
	q.lastVisible = max(q.lastVisible, stamp)
	e.VisibleAt = q.lastVisible
	q.live.append(e)
	if !q.dirty {
		q.dirty = true
		s.dirty = append(s.dirty, q)
	}
	q.next++
	return q.next - 1
}

// segments is an append-only sequence of entries in pieces that double up to a
// bound, so that a hundred thousand quiet queues cost little and a busy one
// copies nothing.
type segments struct {
	full [][]Entry
	tail []Entry
	n    int
}

const (
	firstPiece = 8
	largePiece = 1024
)

func (s *segments) append(e Entry) {
	if len(s.tail) == cap(s.tail) {
		if s.tail != nil {
			s.full = append(s.full, s.tail)
		}
		s.tail = make([]Entry, 0, min(max(firstPiece, 2*cap(s.tail)), largePiece))
	}
	s.tail = append(s.tail, e)
	s.n++
}

// copy appends up to limit entries from the i-th on to dst.
func (s *segments) copy(dst []Entry, i, limit int) []Entry {
	for _, piece := range s.full {
		if limit == 0 {
			return dst
		}
		if i >= len(piece) {
			i -= len(piece)
			continue
		}
		n := min(limit, len(piece)-i)
		dst = append(dst, piece[i:i+n]...)
		limit -= n
		i = 0
	}
	if i < len(s.tail) && limit > 0 {
		dst = append(dst, s.tail[i:i+min(limit, len(s.tail)-i)]...)
	}
	return dst
}

// pieces gives the entries in order, piece by piece.
func (s *segments) pieces(yield func([]Entry) bool) {
	for _, p := range s.full {
		if !yield(p) {
			return
		}
	}
	if len(s.tail) > 0 {
		yield(s.tail)
	}
}

// Memory copies up to limit entries from offset on that are in memory. ok is
// false if the first of them is in the index ([Set.Read] finds it) or is not
// kept any more.
func (q *Queue) Memory(dst []Entry, from record.Offset, limit int) (_ []Entry, ok bool) {
	if from >= q.liveFrom {
		return q.live.copy(dst, int(from-q.liveFrom), limit), true
	}
	if q.frozen.n == 0 || from < q.frozenFrom {
		return dst, false
	}
	had := len(dst)
	dst = q.frozen.copy(dst, int(from-q.frozenFrom), limit)
	return q.live.copy(dst, 0, limit-(len(dst)-had)), true
}
