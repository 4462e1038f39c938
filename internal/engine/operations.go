package engine

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/duemq/duemq/internal/record"
)

// MaxOperations is how many bulk operations that have ended are remembered.
const MaxOperations = 100

// An Operation is a bulk operation: a cancel or a move of everything that a
// filter selects, done in chunks. What it has done is counted in the state, so
// that the counts are exact whatever stops it in between.
type Operation struct {
	record.Operation

	Cursor record.Key // everything up to it has been looked at
	Done   uint64     // cancelled or moved
	Missed uint64     // did not wait any more when their turn came
	Began  int64      // stamp, Unix ms
	Ended  int64      // stamp, 0 while it runs
}

// operations is all bulk operations, by number.
type operations struct {
	all   map[uint64]*Operation
	dirty map[uint64]struct{}
	next  uint64
}

func newOperations() *operations {
	return &operations{all: make(map[uint64]*Operation), dirty: make(map[uint64]struct{}), next: 1}
}

// put begins an operation, or ends the one with that number.
func (s *operations) put(o record.Operation, stamp int64) {
	op := s.all[o.Number]
	if op == nil {
		if o.State != record.OperationRunning || o.Number < s.next {
			return
		}
		op = &Operation{Operation: o, Began: stamp}
		s.all[o.Number] = op
		s.next = o.Number + 1
		s.limit()
	} else if op.State == record.OperationRunning && o.State != record.OperationRunning {
		op.State, op.Ended = o.State, stamp
	}
	s.dirty[o.Number] = struct{}{}
}

// limit forgets the oldest that have ended.
func (s *operations) limit() {
	for _, n := range slices.Sorted(maps.Keys(s.all)) {
		if len(s.all) <= MaxOperations {
			return
		}
		if s.all[n].State != record.OperationRunning {
			delete(s.all, n)
			s.dirty[n] = struct{}{}
		}
	}
}

// running is the operation of that number, nil unless it runs.
func (s *operations) running(n uint64) *Operation {
	if op := s.all[n]; op != nil && op.State == record.OperationRunning {
		return op
	}
	return nil
}

func (o *Operation) append(dst []byte) []byte {
	dst = binary.AppendVarint(dst, o.Cursor.Due)
	for _, v := range []uint64{uint64(o.Cursor.ID), uint64(o.Cursor.Kind), uint64(o.Cursor.Queue), o.Done, o.Missed, uint64(o.Began), uint64(o.Ended)} {
		dst = binary.AppendUvarint(dst, v)
	}
	return record.AppendOperation(dst, &o.Operation)
}

func (s *operations) freeze() (states []keyValue, dirty map[uint64]struct{}) {
	for n := range s.dirty {
		key := binary.BigEndian.AppendUint64([]byte{stateOperation}, n)
		var value []byte
		if op := s.all[n]; op != nil {
			value = op.append(nil)
		}
		states = append(states, keyValue{key, value})
	}
	dirty, s.dirty = s.dirty, make(map[uint64]struct{})
	return states, dirty
}

func (s *operations) restore(value []byte) error {
	r := record.ReadFields(value)
	var op Operation
	op.Cursor.Due = r.Varint()
	op.Cursor.ID, op.Cursor.Kind, op.Cursor.Queue = record.ID(r.Uvarint()), record.Kind(r.Uvarint()), record.QueueNumber(r.Uvarint())
	op.Done, op.Missed, op.Began, op.Ended = r.Uvarint(), r.Uvarint(), int64(r.Uvarint()), int64(r.Uvarint())
	rest := r.Take(r.Left())
	c, err := record.NextCommand(rest, 0)
	if err == nil {
		op.Operation, err = record.DecodeOperation(c.Payload)
	}
	if err != nil {
		return fmt.Errorf("bulk operation: %w", err)
	}
	s.all[op.Number] = &op
	s.next = max(s.next, op.Number+1)
	return nil
}

func (s *operations) hash(w io.Writer) {
	for _, n := range slices.Sorted(maps.Keys(s.all)) {
		fmt.Fprintf(w, "operation %x\n", s.all[n].append(nil))
	}
}
