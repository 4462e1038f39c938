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
	SpaceEntries   index.Space = 'q'
	SpaceDirectory index.Space = 'd'
)

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

// appendDirectory appends one epoch's directory: queue and first offset.
func appendDirectory(dst []byte, frozen []frozenQueue) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(frozen)))
	for _, f := range frozen {
		dst = binary.AppendUvarint(dst, uint64(f.queue))
		dst = binary.AppendUvarint(dst, uint64(f.from))
	}
	return dst
}

func decodeDirectory(src []byte, fn func(q record.QueueNumber, from record.Offset) error) error {
	r := record.ReadFields(src)
	for range min(r.Uvarint(), uint64(len(src))) {
		q, from := r.Uvarint(), r.Uvarint()
		if r.Bad() || q > 1<<32-1 {
			break
		}
		if err := fn(record.QueueNumber(q), record.Offset(from)); err != nil {
			return err
		}
	}
	if !r.Done() {
		return fmt.Errorf("%w: directory of queue entries", record.ErrCorrupt)
	}
	return nil
}
