package timeline

import (
	"encoding/binary"
	"fmt"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// SpaceRefs is the index's space of references: key (due, id, kind, queue) in
// big-endian order, value size, level and tag. See docs/formats/index.md.
const SpaceRefs index.Space = 'r'

const refKeyBytes = 21

func appendRefKey(dst []byte, k record.Key) []byte {
	be := binary.BigEndian
	dst = be.AppendUint64(dst, uint64(k.Due))
	dst = be.AppendUint64(dst, uint64(k.ID))
	dst = append(dst, byte(k.Kind))
	return be.AppendUint32(dst, uint32(k.Queue))
}

func appendRefValue(dst []byte, r *record.Ref) []byte {
	dst = append(dst, r.Level)
	dst = binary.AppendUvarint(dst, uint64(r.Size))
	if r.Tag != 0 {
		dst = binary.LittleEndian.AppendUint32(dst, r.Tag)
	}
	return dst
}

func decodeRef(key, value []byte) (record.Ref, error) {
	if len(key) != refKeyBytes || len(value) < 2 {
		return record.Ref{}, badRef(key, value)
	}
	be := binary.BigEndian
	r := record.Ref{
		Due:   int64(be.Uint64(key)),
		ID:    record.ID(be.Uint64(key[8:])),
		Kind:  record.Kind(key[16]),
		Queue: record.QueueNumber(be.Uint32(key[17:])),
		Level: value[0],
	}
	size, n := binary.Uvarint(value[1:])
	rest := value[1+max(n, 0):]
	if n <= 0 || size > record.MaxBatch || r.Level > Levels || (len(rest) != 0 && len(rest) != 4) {
		return record.Ref{}, badRef(key, value)
	}
	r.Size = uint32(size)
	if len(rest) == 4 {
		r.Tag = binary.LittleEndian.Uint32(rest)
	}
	return r, nil
}

func badRef(key, value []byte) error {
	return fmt.Errorf("%w: waiting reference %x = %x in the index", record.ErrCorrupt, key, value)
}

// stored reads the references of installed cuts in key order. Its iterator
// pins the view of the cut that installed it; the next cut swaps it.
type stored struct {
	it    *index.Iter
	owner *generation // the oldest generation whose marks hold for the index
	ref   record.Ref
	valid bool
	err   error
}

// openStored positions a new iterator behind both the popped key and the floor.
func openStored(src Source, after record.Key) (*index.Iter, error) {
	it, err := src.NewIter(SpaceRefs, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("read waiting references: %w", err)
	}
	seekAfter(it, after)
	return it, nil
}

// seekAfter goes to the first reference behind k. Dues are positive, so that a
// negative one stands before everything.
func seekAfter(it *index.Iter, k record.Key) {
	if k.Due < 0 {
		it.First()
		return
	}
	var buf [refKeyBytes + 1]byte
	it.SeekGE(append(appendRefKey(buf[:0], k), 0))
}

// swap takes a new iterator, positions it behind what was delivered since it
// was opened, and returns the old one for the caller to close elsewhere.
func (s *stored) swap(it *index.Iter, after record.Key, owner *generation) *index.Iter {
	old := s.it
	s.it, s.owner, s.valid = it, owner, false
	for range 64 { // most often few were popped since; a seek costs more than a step
		s.load()
		if !s.valid || s.ref.Key().Compare(after) > 0 {
			return old
		}
		s.it.Next()
	}
	seekAfter(it, after)
	s.load()
	return old
}

func (s *stored) load() {
	s.valid = false
	if s.it == nil || s.err != nil {
		return
	}
	if !s.it.Valid() {
		s.err = s.it.Error()
		return
	}
	s.ref, s.err = decodeRef(s.it.Key(), s.it.Value())
	s.valid = s.err == nil
}

func (s *stored) head(t *Timeline) *record.Ref {
	for s.valid {
		if k := s.ref.Key(); k.Compare(t.floor) > 0 && s.owner.alive(t, k) {
			return &s.ref
		}
		s.advance()
	}
	return nil
}

func (s *stored) advance() {
	s.it.Next()
	s.load()
}
