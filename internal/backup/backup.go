// Package backup is the form in which a whole store travels: one stream that is
// written and read from front to back, to a file, a pipe or a connection.
//
// The stream is frames. The first says of which store and of which part of its
// log it is, then comes the index as pairs of keys and values in order, then the
// log as batches in order, and the last counts what came before. Each frame's
// checksum goes on from the one before, so that a frame that is missing, doubled
// or out of place is seen like one whose bytes changed. docs/formats/backup.md
// draws the bytes.
//
// The package knows of spaces, batches and positions what stands in their bytes
// and nothing else; it does no I/O of its own.
package backup

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/duemq/duemq/internal/record"
)

// ErrIncomplete is the class of a stream that ends before its last frame. The
// text says where it ends and what is missing.
var ErrIncomplete = errors.New("backup is incomplete")

// A Place is a place between two batches of a log.
type Place struct {
	Index    uint64 // of the batch before, 0 if there was none
	Position uint64 // where the batch before ends
}

// A Head is what the first frame says. It is known before anything else is
// written, so that a reader can prepare its disk.
type Head struct {
	Store        [16]byte // id of the store that was copied; a restored one has its own
	SegmentBytes int64    // of its log: positions depend on it
	Created      int64    // Unix ms, by the clock of who wrote
	First        Place    // behind which the log in the stream begins; Position is that of a segment
	Applied      Place    // up to which the index in the stream holds the log
	End          Place    // where the log in the stream ends
	Estimate     int64    // about how many bytes the stream has, for progress only
}

// check says what cannot be in a head, as an ErrCorrupt.
func (h *Head) check() error {
	switch {
	case h.SegmentBytes <= 0 || h.First.Position%uint64(h.SegmentBytes) != 0:
		return corrupt("log begins at position %d, within a segment of %d bytes", h.First.Position, h.SegmentBytes)
	case h.Applied.Index < h.First.Index || h.End.Index < h.Applied.Index:
		return corrupt("index holds batch %d, but the log begins behind batch %d and ends with batch %d", h.Applied.Index, h.First.Index, h.End.Index)
	case h.End.Position < h.First.Position:
		return corrupt("log begins at position %d and ends at %d", h.First.Position, h.End.Position)
	case h.Estimate < 0:
		return corrupt("stream of about %d bytes", h.Estimate)
	}
	return nil
}

// Totals is what the last frame says of all before it.
type Totals struct {
	Pairs   uint64 // of the index
	Batches uint64 // of the log
	Bytes   int64  // of the stream, without the last frame
}

// A frame type is the first four bytes of a frame. Append, never change.
type frameType uint32

const (
	typeHead  frameType = 0x31427144 // "DqB1"
	typePairs frameType = 0x69427144 // "DqBi"
	typeLog   frameType = 0x6c427144 // "DqBl"
	typeTail  frameType = 0x65427144 // "DqBe"

	version = 1

	frameHead = 12 // bytes before a frame's payload
	headBytes = 92 // payload of the first frame in this version
	tailBytes = 24 // payload of the last frame

	// target is how large a payload grows before it is written; one entry that is
	// larger has a frame of its own.
	target = 1 << 20
	// maxPayload bounds a frame for readers too: raising it is a new version.
	maxPayload = 16 << 20
)

// String names what a frame holds, for errors.
func (t frameType) String() string {
	switch t {
	case typeHead:
		return "head"
	case typePairs:
		return "index"
	case typeLog:
		return "log"
	case typeTail:
		return "tail"
	}
	return fmt.Sprintf("frame type %#08x", uint32(t))
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: backup: %s", record.ErrCorrupt, fmt.Sprintf(format, args...))
}

func appendPlace(dst []byte, p Place) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, p.Index)
	return binary.LittleEndian.AppendUint64(dst, p.Position)
}

func readPlace(src []byte) Place {
	return Place{Index: binary.LittleEndian.Uint64(src), Position: binary.LittleEndian.Uint64(src[8:])}
}

func appendHead(dst []byte, h *Head) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, version)
	dst = le.AppendUint64(dst, uint64(h.SegmentBytes))
	dst = append(dst, h.Store[:]...)
	dst = le.AppendUint64(dst, uint64(h.Created))
	dst = appendPlace(dst, h.First)
	dst = appendPlace(dst, h.Applied)
	dst = appendPlace(dst, h.End)
	return le.AppendUint64(dst, uint64(h.Estimate))
}

// decodeHead reads the payload of the first frame, whose checksum was good.
func decodeHead(src []byte) (h Head, err error) {
	le := binary.LittleEndian
	if len(src) < 4 {
		return h, corrupt("head of %d bytes", len(src))
	}
	if v := le.Uint32(src); v != version {
		return h, fmt.Errorf("%w: this backup has format %d, this duemq reads format %d; restore it with the duemq that wrote it", record.ErrVersion, v, version)
	}
	if len(src) != headBytes {
		return h, corrupt("head of %d bytes, want %d", len(src), headBytes)
	}
	h.SegmentBytes = int64(le.Uint64(src[4:]))
	copy(h.Store[:], src[12:])
	h.Created = int64(le.Uint64(src[28:]))
	h.First, h.Applied, h.End = readPlace(src[36:]), readPlace(src[52:]), readPlace(src[68:])
	h.Estimate = int64(le.Uint64(src[84:]))
	err = h.check()
	return h, err
}

func appendTail(dst []byte, t *Totals) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, t.Pairs)
	dst = binary.LittleEndian.AppendUint64(dst, t.Batches)
	return binary.LittleEndian.AppendUint64(dst, uint64(t.Bytes))
}

func decodeTail(src []byte) (t Totals, err error) {
	if len(src) != tailBytes {
		return t, corrupt("tail of %d bytes, want %d", len(src), tailBytes)
	}
	le := binary.LittleEndian
	return Totals{Pairs: le.Uint64(src), Batches: le.Uint64(src[8:]), Bytes: int64(le.Uint64(src[16:]))}, nil
}
