package log

import (
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/duemq/duemq/internal/record"
)

// The marks file; docs/formats/marks.md draws it.
const (
	marksName    = "MARKS"
	marksMagic   = 0x314d7144 // "DqM1"
	marksVersion = 1
	marksHead    = 32
	markBytes    = 16
)

// A mark says that an epoch began at a place. Everything before the place was
// synced when the mark was written; batches of an older epoch at or above it
// are stale.
type mark struct {
	epoch uint64
	start uint64
}

// marks are the marks of one log. Invariant: epochs and starts both rise
// strictly, because a mark makes those above its own start pointless.
type marks []mark

// newest is the mark of the running epoch, zero if there is none.
func (m marks) newest() mark {
	if len(m) == 0 {
		return mark{}
	}
	return m[len(m)-1]
}

// add gives the marks with one more, of the next epoch, at start. It shares
// nothing with m.
func (m marks) add(start uint64) marks {
	next := mark{epoch: m.newest().epoch + 1, start: start}
	kept := make(marks, 0, len(m)+1)
	for _, old := range m {
		if old.start < start {
			kept = append(kept, old)
		}
	}
	return append(kept, next)
}

// prune drops the marks that decide nothing at or above first.
func (m marks) prune(first uint64) marks {
	for len(m) > 1 && m[1].start <= first {
		m = m[1:]
	}
	return m
}

// epochAt is the epoch that a batch at pos must have: a lower one is stale, a
// higher one cannot be.
func (m marks) epochAt(pos uint64) uint64 {
	after := sort.Search(len(m), func(i int) bool { return m[i].start > pos })
	return m[:after].newest().epoch
}

// encodeMarks gives the marks file's bytes.
func encodeMarks(id [16]byte, m marks) []byte {
	dst := make([]byte, 0, marksHead+markBytes*len(m))
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, marksMagic)
	dst = le.AppendUint32(dst, marksVersion)
	dst = append(dst, id[:]...)
	dst = le.AppendUint32(dst, uint32(len(m)))
	dst = le.AppendUint32(dst, 0) // checksum, below
	for _, k := range m {
		dst = le.AppendUint64(dst, k.epoch)
		dst = le.AppendUint64(dst, k.start)
	}
	le.PutUint32(dst[28:], marksChecksum(dst))
	return dst
}

// marksChecksum covers everything but the checksum's own four bytes.
func marksChecksum(b []byte) uint32 {
	return record.Checksum(record.Checksum(0, b[:28]), b[marksHead:])
}

// decodeMarks reads a whole marks file. Bytes that cannot be one are an
// ErrCorrupt; a good checksum over another version is an ErrVersion.
func decodeMarks(src []byte) (id [16]byte, m marks, err error) {
	le := binary.LittleEndian
	if len(src) < marksHead || le.Uint32(src) != marksMagic {
		return id, nil, fmt.Errorf("%w: no marks file", record.ErrCorrupt)
	}
	if le.Uint32(src[28:]) != marksChecksum(src) {
		return id, nil, fmt.Errorf("%w: checksum of the marks differs", record.ErrCorrupt)
	}
	if v := le.Uint32(src[4:]); v != marksVersion {
		return id, nil, fmt.Errorf("%w: marks version %d, this binary reads %d", record.ErrVersion, v, marksVersion)
	}
	if n := int64(le.Uint32(src[24:])); n == 0 || n*markBytes != int64(len(src)-marksHead) {
		return id, nil, fmt.Errorf("%w: %d marks in %d bytes", record.ErrCorrupt, n, len(src))
	}
	copy(id[:], src[8:])
	for rest := src[marksHead:]; len(rest) > 0; rest = rest[markBytes:] {
		k := mark{epoch: le.Uint64(rest), start: le.Uint64(rest[8:])}
		if last := m.newest(); k.epoch <= last.epoch || len(m) > 0 && k.start <= last.start {
			return id, nil, fmt.Errorf("%w: marks out of order", record.ErrCorrupt)
		}
		m = append(m, k)
	}
	return id, m, nil
}
