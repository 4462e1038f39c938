package record

import (
	"encoding/binary"
	"fmt"
)

// EntryType says what a batch is to the engine. Append, never renumber.
type EntryType uint8

// The types of log entries. Only EntryCommands carries a stamp.
const (
	EntryCommands      EntryType = 1 // stamp and commands
	EntryNoop          EntryType = 2 // a new leader's first entry
	EntryConfiguration EntryType = 3 // raft membership
	EntryBarrier       EntryType = 4 // raft barrier
)

// BatchFlags qualify a batch. Append, never renumber.
type BatchFlags uint16

// The flags of a batch.
const (
	// FlagRebase lets the stamp stand below its predecessor: the wall clock was
	// set back and that was accepted.
	FlagRebase BatchFlags = 1 << 0
)

// A Batch is one log entry: a stamp and the commands committed together.
//
// The fields below are its replicated part, equal on every replica; what only
// this machine's log knows (epoch, chain, what was synced) is package log's.
type Batch struct {
	Type       EntryType
	Flags      BatchFlags
	Index      uint64 // log index, from 1
	Term       uint64 // raft term, 1 on a single node
	Stamp      int64  // log time, Unix ms
	Limit      uint32 // how many due references this batch may move
	AppendedAt int64  // leader's wall clock, Unix ns, 0 if not known; for raft's metrics only
	Extensions []byte // raft's extensions field
	Data       []byte // commands, or raft's own bytes for the other types
}

// The frame of a batch's replicated part, little-endian:
//
//	 0       4   5   6       8       12       16
//	+-------+---+---+-------+-------+--------+-------+-------+
//	| magic | v | t | flags | length| crc32c | index | term  |
//	+-------+---+---+-------+-------+--------+-------+-------+
//	 32      40              48      52       56      64
//	+-------+---------------+-------+--------+-------+- - - -+
//	| stamp | appended-at   | limit | extlen | zero  | ext, data
//	+-------+---------------+-------+--------+-------+- - - -+
//
// Magic, version, length and checksum keep place and meaning in every version,
// so that a binary can tell an unknown version from damage; see
// docs/formats/record.md.
const (
	BatchMagic   = 0x31514d44 // "DMQ1"
	BatchVersion = 1
	BatchHeader  = 64
)

// Size is the bytes that AppendBatch will append.
func (b *Batch) Size() int { return BatchHeader + len(b.Extensions) + len(b.Data) }

// DataOffset is where Data begins within the encoded batch.
func (b *Batch) DataOffset() int { return BatchHeader + len(b.Extensions) }

// known reports whether this binary may write or read a batch of this type
// with these flags. What it does not know, it must not skip: a later flag may
// change what the bytes mean.
func known(t EntryType, f BatchFlags) bool {
	return t >= EntryCommands && t <= EntryBarrier && f&^FlagRebase == 0
}

// AppendBatch appends the replicated part of b. A batch above MaxBatch is an
// ErrTooLarge and an unknown type or flag an ErrVersion; both append nothing.
func AppendBatch(dst []byte, b *Batch) ([]byte, error) {
	if !known(b.Type, b.Flags) {
		return dst, fmt.Errorf("%w: batch of type %d with flags %#04x", ErrVersion, b.Type, uint16(b.Flags))
	}
	size := b.Size()
	if size > MaxBatch {
		return dst, fmt.Errorf("%w: batch of %d bytes, limit %d", ErrTooLarge, size, MaxBatch)
	}
	at := len(dst)
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, BatchMagic)
	dst = append(dst, BatchVersion, byte(b.Type))
	dst = le.AppendUint16(dst, uint16(b.Flags))
	dst = le.AppendUint32(dst, uint32(size))
	dst = le.AppendUint32(dst, 0) // checksum, below
	dst = le.AppendUint64(dst, b.Index)
	dst = le.AppendUint64(dst, b.Term)
	dst = le.AppendUint64(dst, uint64(b.Stamp))
	dst = le.AppendUint64(dst, uint64(b.AppendedAt))
	dst = le.AppendUint32(dst, b.Limit)
	dst = le.AppendUint32(dst, uint32(len(b.Extensions)))
	dst = le.AppendUint64(dst, 0) // reserved
	dst = append(dst, b.Extensions...)
	dst = append(dst, b.Data...)
	le.PutUint32(dst[at+12:], batchChecksum(dst[at:]))
	return dst, nil
}

// batchChecksum covers everything but the checksum's own four bytes.
func batchChecksum(b []byte) uint32 { return Checksum(Checksum(0, b[:12]), b[16:]) }

// BatchLength reads the length of the batch whose header begins src, checking
// only what a reader needs before it fetches the rest. Fewer than BatchHeader
// bytes, another magic or an impossible length are an ErrCorrupt.
func BatchLength(src []byte) (int, error) {
	if len(src) < BatchHeader {
		return 0, corrupt("batch header cut short")
	}
	if binary.LittleEndian.Uint32(src) != BatchMagic {
		return 0, corrupt("no batch begins here")
	}
	n := binary.LittleEndian.Uint32(src[8:])
	if n < BatchHeader || n > MaxBatch {
		return 0, corrupt("batch length %d", n)
	}
	return int(n), nil
}

// BatchChecksum reads the checksum out of an encoded batch's header, of which
// src holds at least the first 16 bytes.
func BatchChecksum(src []byte) uint32 { return binary.LittleEndian.Uint32(src[12:]) }

// DecodeBatch reads the batch that begins src and says how many bytes it took.
// Extensions and Data share src. The checksum is verified before anything else
// is believed. What fails it is an ErrCorrupt; a good checksum over a version,
// type, flag or header that this binary does not know is an ErrVersion, never
// damage: recovery may cut off a torn tail, but not what a newer binary wrote.
func DecodeBatch(src []byte) (b Batch, n int, err error) {
	n, err = BatchLength(src)
	if err != nil {
		return b, 0, err
	}
	if n > len(src) {
		return b, 0, corrupt("batch of %d bytes, %d there", n, len(src))
	}
	src = src[:n:n]
	if err := checkHeader(src); err != nil {
		return b, 0, err
	}
	le := binary.LittleEndian
	data := BatchHeader + int(le.Uint32(src[52:]))
	b = Batch{
		Type:       EntryType(src[5]),
		Flags:      BatchFlags(le.Uint16(src[6:])),
		Index:      le.Uint64(src[16:]),
		Term:       le.Uint64(src[24:]),
		Stamp:      int64(le.Uint64(src[32:])),
		AppendedAt: int64(le.Uint64(src[40:])),
		Limit:      le.Uint32(src[48:]),
		Extensions: src[BatchHeader:data:data],
		Data:       src[data:],
	}
	return b, n, nil
}

// checkHeader proves a whole batch: checksum first, then whether this binary
// knows what the header says.
func checkHeader(src []byte) error {
	le := binary.LittleEndian
	if le.Uint32(src[12:]) != batchChecksum(src) {
		return corrupt("batch checksum differs")
	}
	if src[4] != BatchVersion {
		return fmt.Errorf("%w: batch version %d, this binary reads %d", ErrVersion, src[4], BatchVersion)
	}
	if t, f := EntryType(src[5]), le.Uint16(src[6:]); !known(t, BatchFlags(f)) {
		return fmt.Errorf("%w: batch of type %d with flags %#04x", ErrVersion, t, f)
	}
	ext, reserved := le.Uint32(src[52:]), le.Uint64(src[56:])
	if uint64(ext) > uint64(len(src)-BatchHeader) || reserved != 0 {
		return fmt.Errorf("%w: batch with %d bytes of extensions and reserved field %#x", ErrVersion, ext, reserved)
	}
	return nil
}

// RawBatch reads a batch without proving its checksum, which salvage cannot and
// a search for one message need not: its bytes are as they stand there. It
// believes no length beyond src.
func RawBatch(src []byte) (Batch, error) {
	n, err := BatchLength(src)
	if err != nil {
		return Batch{}, err
	}
	n = min(n, len(src))
	le := binary.LittleEndian
	data := BatchHeader + int64(le.Uint32(src[52:]))
	if data > int64(n) {
		return Batch{}, corrupt("extensions of %d bytes in a batch of %d", data-BatchHeader, n)
	}
	return Batch{
		Type: EntryType(src[5]), Index: le.Uint64(src[16:]), Term: le.Uint64(src[24:]), Stamp: int64(le.Uint64(src[32:])),
		Extensions: src[BatchHeader:data:data], Data: src[data:n:n],
	}, nil
}
