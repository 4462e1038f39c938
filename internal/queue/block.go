package queue

import (
	"encoding/binary"
	"fmt"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// The index's spaces of this room; see docs/formats/index.md. Entries lie in
// blocks under (epoch, queue, first offset); the epoch, the cut's number, comes
// first so that a cut's table overlaps no other and is never compacted. The
// directory says for each epoch where each queue begins in it.
const (
	SpaceEntries         index.Space = 'q'
	SpaceDirectory       index.Space = 'd'
	SpaceParked          index.Space = 'p'
	SpaceParkedDirectory index.Space = 'e'
)

// Spaces are where one [Set] keeps its entries and their directory.
type Spaces struct{ Entries, Directory index.Space }

// Visible are the spaces of what consumers see.
func Visible() Spaces { return Spaces{SpaceEntries, SpaceDirectory} }

// Parked are the spaces of what is kept back from consumers, in sequences of
// its own under the same queue numbers.
func Parked() Spaces { return Spaces{SpaceParked, SpaceParkedDirectory} }

// blockEntries is how many entries a block holds at most.
const blockEntries = 128

func appendBlockKey(dst []byte, epoch uint32, q record.QueueNumber, first record.Offset) []byte {
	be := binary.BigEndian
	dst = be.AppendUint32(dst, epoch)
	dst = be.AppendUint32(dst, uint32(q))
	return be.AppendUint64(dst, uint64(first))
}

// appendBlock appends entries as differences to their predecessors: about ten
// bytes each.
func appendBlock(dst []byte, entries []Entry) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(entries)))
	var id, visible int64
	for i := range entries {
		e := &entries[i]
		dst = binary.AppendVarint(dst, int64(e.ID)-id)
		dst = binary.AppendUvarint(dst, uint64(e.VisibleAt-visible))
		id, visible = int64(e.ID), e.VisibleAt
		head := uint64(e.Size) << 2
		if e.Tag != 0 {
			head |= 1
		}
		if e.Due != 0 {
			head |= 2
		}
		dst = binary.AppendUvarint(dst, head)
		if e.Tag != 0 {
			dst = binary.LittleEndian.AppendUint32(dst, e.Tag)
		}
		if e.Due != 0 {
			dst = binary.AppendVarint(dst, e.VisibleAt-e.Due)
		}
	}
	return dst
}

// decodeBlock appends a block's entries to dst.
func decodeBlock(dst []Entry, src []byte) ([]Entry, error) {
	r := record.ReadFields(src)
	n := r.Uvarint()
	if n > blockEntries {
		r.Fail()
		n = 0
	}
	var id, visible int64
	for range n {
		var e Entry
		id += r.Varint()
		visible += int64(r.Uvarint())
		e.ID, e.VisibleAt = record.ID(id), visible
		head := r.Uvarint()
		if head>>2 > record.MaxBatch {
			r.Fail()
		}
		e.Size = uint32(head >> 2)
		if head&1 != 0 {
			e.Tag = r.Uint32()
		}
		if head&2 != 0 {
			e.Due = visible - r.Varint()
		}
		dst = append(dst, e)
	}
	if !r.Done() {
		return dst, fmt.Errorf("%w: block of queue entries, %d bytes", record.ErrCorrupt, len(src))
	}
	return dst, nil
}

// appendDirectory appends one epoch's directory: queue and first offset, then
// the greatest VisibleAt among the epoch's entries.
func appendDirectory(dst []byte, frozen []frozenQueue, last int64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(frozen)))
	for _, f := range frozen {
		dst = binary.AppendUvarint(dst, uint64(f.queue))
		dst = binary.AppendUvarint(dst, uint64(f.from))
	}
	return binary.AppendUvarint(dst, uint64(last))
}

// unknown stands for the greatest VisibleAt of an epoch whose directory does
// not tell, as the first stores had it.
const unknown = -1

// decodeDirectory calls fn for each queue of an epoch's directory and gives the
// greatest VisibleAt in the epoch, or unknown.
func decodeDirectory(src []byte, fn func(q record.QueueNumber, from record.Offset)) (last int64, err error) {
	r := record.ReadFields(src)
	n := r.Uvarint()
	for range min(n, uint64(len(src))) {
		q, from := r.Uvarint(), r.Uvarint()
		if r.Bad() || q > 1<<32-1 {
			r.Fail()
			break
		}
		fn(record.QueueNumber(q), record.Offset(from))
	}
	last = unknown
	if r.Left() > 0 {
		if last = int64(r.Uvarint()); last < 0 {
			r.Fail()
		}
	}
	if !r.Done() {
		return unknown, fmt.Errorf("%w: directory of queue entries", record.ErrCorrupt)
	}
	return last, nil
}
