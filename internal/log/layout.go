package log

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/duemq/duemq/internal/record"
)

// A segment file is a header and batches; docs/formats/log.md draws all bytes.
const (
	// HeaderBytes is the size of a segment's header; its first batch follows.
	HeaderBytes = 128
	// LocalBytes is the size of the local part that stands before each batch's
	// replicated part.
	LocalBytes = 32
	// Align is what every batch's position is a multiple of; zeros fill the gap.
	Align = 16

	localMagic     = 0x314c7144 // "DqL1"
	segmentMagic   = 0x31537144 // "DqS1"
	segmentVersion = 1

	// checkedBytes is how much of a batch's frame the local checksum needs: the
	// local part and the first 16 bytes of the replicated part, which keep their
	// place in every version: magic, version, length and checksum.
	checkedBytes = LocalBytes + 16
)

// alignUp rounds n up to the next place where a batch may begin.
func alignUp(n int64) int64 { return (n + Align - 1) &^ (Align - 1) }

// frameBytes is what a batch of size replicated bytes takes in a segment.
func frameBytes(size int) int64 { return alignUp(LocalBytes + int64(size)) }

// A Start is a place between two batches. The zero Start is the beginning of
// the log as it is kept.
type Start struct {
	Position uint64 // where the batch before ends; the next one begins here, or in the next segment if it does not fit
	Index    uint64 // index of the batch before
	Checksum uint32 // local checksum of the batch before
}

// place says where a batch of framed bytes goes that follows a batch ending at
// end, in segments of segmentBytes. It is a pure function of the entries, so
// that the same entries have the same positions on every replica.
func place(end uint64, framed, segmentBytes int64) uint64 {
	off := int64(end % uint64(segmentBytes))
	base := end - uint64(off)
	off = max(off, HeaderBytes)
	if off+framed > segmentBytes {
		base += uint64(segmentBytes)
		off = HeaderBytes
	}
	return base + uint64(off)
}

// castagnoli is the CRC-32C table, here for seed.at.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A seed begins every local checksum of one store, so that bytes of another
// store never pass for ours.
type seed uint32

func newSeed(id [16]byte) seed { return seed(record.Checksum(0, id[:])) }

// at continues the seed with a position, as CRC-32C over its eight bytes, so
// that what a recycled file still holds fails the checksum where it stands now.
// It is written out because the library's function lets its argument escape.
func (s seed) at(pos uint64) uint32 {
	c := ^uint32(s)
	for range 8 {
		c = castagnoli[byte(c)^byte(pos)] ^ c>>8
		pos >>= 8
	}
	return ^c
}

// A local is the part of a batch's frame that only this machine's log knows.
type local struct {
	epoch    uint64 // which opening or truncation of this log wrote it
	synced   uint64 // the position known to be on disk when it was written
	prev     uint32 // checksum of the local part of the batch before, 0 for the first
	checksum uint32 // over all this, the head of the batch, the store and the position
}

// appendFrame appends b with its local part and the zeros after it, as it
// stands at pos. It sets l.checksum. Errors are those of record.AppendBatch.
func appendFrame(dst []byte, b *record.Batch, l *local, s seed, pos uint64) ([]byte, error) {
	at := len(dst)
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, localMagic)
	dst = le.AppendUint32(dst, 0) // checksum, below
	dst = le.AppendUint64(dst, l.epoch)
	dst = le.AppendUint64(dst, l.synced)
	dst = le.AppendUint32(dst, l.prev)
	dst = le.AppendUint32(dst, 0)
	dst, err := record.AppendBatch(dst, b)
	if err != nil {
		return dst[:at], err
	}
	l.checksum = record.Checksum(s.at(pos), dst[at+8:at+checkedBytes])
	le.PutUint32(dst[at+4:], l.checksum)
	for int64(len(dst)-at)%Align != 0 {
		dst = append(dst, 0)
	}
	return dst, nil
}

// readLocal reads the local part that begins src, of which at least
// checkedBytes are there, as it must stand at pos. A flaw says why it cannot; a
// good checksum over something unknown is an ErrVersion, with what is known.
func readLocal(src []byte, s seed, pos uint64) (local, error) {
	le := binary.LittleEndian
	if le.Uint32(src) != localMagic {
		return local{}, flaw("no batch begins here")
	}
	l := local{
		checksum: le.Uint32(src[4:]),
		epoch:    le.Uint64(src[8:]),
		synced:   le.Uint64(src[16:]),
		prev:     le.Uint32(src[24:]),
	}
	if l.checksum != record.Checksum(s.at(pos), src[8:checkedBytes]) {
		return local{}, flaw("checksum of the batch's local part differs")
	}
	if le.Uint32(src[28:]) != 0 {
		return l, fmt.Errorf("%w: local part with reserved bits", record.ErrVersion)
	}
	return l, nil
}

// A header begins each segment file. What it says of the batch before its first
// one is synced before the file has its name, and the batches before were
// synced before that: so a header vouches for everything up to prev.Position.
type header struct {
	id           [16]byte
	segmentBytes int64
	base         uint64 // position of the file's first byte
	epoch        uint64 // which opening or truncation made the segment
	prev         Start  // the place that the segment continues
}

// encodeHeader gives h's bytes.
func encodeHeader(h *header) []byte {
	dst := make([]byte, 0, HeaderBytes)
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, segmentMagic)
	dst = le.AppendUint32(dst, segmentVersion)
	dst = append(dst, h.id[:]...)
	dst = le.AppendUint64(dst, uint64(h.segmentBytes))
	dst = le.AppendUint64(dst, h.base)
	dst = le.AppendUint64(dst, h.epoch)
	dst = le.AppendUint64(dst, h.prev.Position)
	dst = le.AppendUint64(dst, h.prev.Index)
	dst = le.AppendUint32(dst, h.prev.Checksum)
	dst = dst[:HeaderBytes-4] // the reserved bytes are zero
	return le.AppendUint32(dst, record.Checksum(0, dst))
}

// decodeHeader reads a segment's header. Bytes that cannot be one are an
// ErrCorrupt; a good checksum over another version is an ErrVersion.
func decodeHeader(src []byte) (h header, err error) {
	le := binary.LittleEndian
	if len(src) < HeaderBytes {
		return h, fmt.Errorf("%w: segment header cut short", record.ErrCorrupt)
	}
	src = src[:HeaderBytes]
	if le.Uint32(src) != segmentMagic {
		return h, fmt.Errorf("%w: no segment header", record.ErrCorrupt)
	}
	if le.Uint32(src[HeaderBytes-4:]) != record.Checksum(0, src[:HeaderBytes-4]) {
		return h, fmt.Errorf("%w: checksum of the segment header differs", record.ErrCorrupt)
	}
	if v := le.Uint32(src[4:]); v != segmentVersion {
		return h, fmt.Errorf("%w: segment version %d, this binary reads %d", record.ErrVersion, v, segmentVersion)
	}
	copy(h.id[:], src[8:])
	h.segmentBytes = int64(le.Uint64(src[24:]))
	h.base = le.Uint64(src[32:])
	h.epoch = le.Uint64(src[40:])
	h.prev = Start{Position: le.Uint64(src[48:]), Index: le.Uint64(src[56:]), Checksum: le.Uint32(src[64:])}
	for _, b := range src[68 : HeaderBytes-4] {
		if b != 0 {
			return h, fmt.Errorf("%w: segment header with reserved bits", record.ErrVersion)
		}
	}
	return h, nil
}
