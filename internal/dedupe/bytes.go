package dedupe

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// The index's spaces of this room; see docs/formats/index.md. The first says
// what each hash stands for, the second in which order to look for what does
// not count any more.
const (
	SpaceHashes index.Space = 'y'
	SpaceFiled  index.Space = 'z'
)

// A stored entry also knows under which time it is filed in [SpaceFiled], never
// before its Until. It is no part of the state: sweeping moves it.
type stored struct {
	entry Entry
	filed int64
}

func appendStored(dst []byte, s stored) []byte {
	e := &s.entry
	dst = binary.AppendUvarint(dst, uint64(e.ID))
	dst = binary.LittleEndian.AppendUint64(dst, e.Print)
	dst = binary.AppendUvarint(dst, uint64(e.Until))
	dst = binary.AppendUvarint(dst, uint64(s.filed-e.Until))
	dst = binary.AppendUvarint(dst, uint64(e.Ref.Due))
	dst = binary.AppendVarint(dst, int64(e.Ref.ID-e.ID))
	dst = binary.AppendUvarint(dst, uint64(e.Ref.Size))
	dst = binary.AppendUvarint(dst, uint64(e.Ref.Queue))
	dst = append(dst, byte(e.Ref.Kind), e.Ref.Level)
	if e.Ref.Tag != 0 {
		dst = binary.LittleEndian.AppendUint32(dst, e.Ref.Tag)
	}
	return dst
}

func decodeStored(src []byte) (stored, error) {
	r := record.ReadFields(src)
	var s stored
	e := &s.entry
	e.ID = record.ID(r.Uvarint())
	if b := r.Take(8); b != nil {
		e.Print = binary.LittleEndian.Uint64(b)
	}
	until, later, due := r.Uvarint(), r.Uvarint(), r.Uvarint()
	e.Ref.ID = e.ID + record.ID(r.Varint())
	size, queue := r.Uvarint(), r.Uvarint()
	if b := r.Take(2); b != nil {
		e.Ref.Kind, e.Ref.Level = record.Kind(b[0]), b[1]
	}
	if r.Left() > 0 {
		e.Ref.Tag = r.Uint32()
	}
	if until > math.MaxInt64 || later > math.MaxInt64-until || size > math.MaxUint32 || queue > math.MaxUint32 {
		r.Fail()
	}
	if !r.Done() {
		return stored{}, fmt.Errorf("%w: deduplication entry %x in the index", record.ErrCorrupt, src)
	}
	e.Until, s.filed = int64(until), int64(until+later)
	e.Ref.Due, e.Ref.Size, e.Ref.Queue = int64(due), uint32(size), record.QueueNumber(queue)
	return s, nil
}

// filedKey is the size of a key in [SpaceFiled]: a time and a hash.
const filedKey = 8 + len(record.Hash{})

func appendFiled(dst []byte, at int64, h record.Hash) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(at)), h[:]...)
}

func decodeFiled(key []byte) (at int64, h record.Hash, err error) {
	if len(key) != filedKey || key[0] > math.MaxInt8 {
		return 0, h, fmt.Errorf("%w: deduplication key %x in the index", record.ErrCorrupt, key)
	}
	return int64(binary.BigEndian.Uint64(key)), record.Hash(key[8:]), nil
}

func compareKey(h record.Hash, key []byte) int { return bytes.Compare(h[:], key) }
