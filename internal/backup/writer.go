package backup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/duemq/duemq/internal/record"
)

// errOrder is a caller's mistake: the stream would not be read back.
var errOrder = errors.New("backup: entries out of order")

// A Writer writes one stream: pairs, then batches, then Close. It gathers about
// a mebibyte before it writes. It is for one goroutine at a time; after an error
// it is good for nothing more.
type Writer struct {
	w      io.Writer
	frame  []byte // the frame under construction, its head included
	kind   frameType
	chain  uint32 // checksum of the frame before
	totals Totals
	last   []byte // space and key of the last pair
	place  Place  // of the last batch
	end    uint64 // index of the batch with which the log must end
}

// NewWriter writes the head of a stream to w.
func NewWriter(w io.Writer, h Head) (*Writer, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	b := &Writer{w: w, place: h.First, end: h.End.Index}
	b.begin(typeHead)
	b.frame = appendHead(b.frame, &h)
	err := b.flush()
	return b, err
}

// Pair adds a key of the index and its value. Spaces come in increasing order,
// and so do the keys of a space. The slices may be used again at once.
func (w *Writer) Pair(space byte, key, value []byte) error {
	if w.totals.Batches > 0 {
		return fmt.Errorf("%w: a pair after the log", errOrder)
	}
	if w.last != nil && !follows(w.last, space, key) {
		return fmt.Errorf("%w: key %x of space %#02x after %x", errOrder, key, space, w.last)
	}
	w.last = append(append(w.last[:0], space), key...)
	if err := w.room(typePairs, 1+2*binary.MaxVarintLen32+len(key)+len(value)); err != nil {
		return fmt.Errorf("key %x of space %#02x: %w", key, space, err)
	}
	w.frame = append(w.frame, space)
	w.frame = binary.AppendUvarint(w.frame, uint64(len(key)))
	w.frame = binary.AppendUvarint(w.frame, uint64(len(value)))
	w.frame = append(append(w.frame, key...), value...)
	w.totals.Pairs++
	return nil
}

// follows says that a key comes after the last one, which has its space in front.
func follows(last []byte, space byte, key []byte) bool {
	return space > last[0] || space == last[0] && string(key) > string(last[1:])
}

// Batch adds the batch that stands at position in the log. Indexes continue the
// head's First without a gap, and positions rise. The batch is only read.
func (w *Writer) Batch(position uint64, b *record.Batch) error {
	if b.Index != w.place.Index+1 || position <= w.place.Position {
		return fmt.Errorf("%w: batch %d at position %d after batch %d at %d", errOrder, b.Index, position, w.place.Index, w.place.Position)
	}
	if err := w.room(typeLog, 8+b.Size()); err != nil {
		return fmt.Errorf("batch %d: %w", b.Index, err)
	}
	w.frame = binary.LittleEndian.AppendUint64(w.frame, position)
	var err error
	if w.frame, err = record.AppendBatch(w.frame, b); err != nil {
		return err
	}
	w.place = Place{Index: b.Index, Position: position}
	w.totals.Batches++
	return nil
}

// Close writes what is left and the tail. A stream whose Close was not called or
// failed is refused by every reader. The log must be there up to the head's End.
func (w *Writer) Close() (Totals, error) {
	if w.place.Index != w.end {
		return w.totals, fmt.Errorf("%w: the log ends with batch %d and was to end with %d", errOrder, w.place.Index, w.end)
	}
	if err := w.flush(); err != nil {
		return w.totals, err
	}
	totals := w.totals
	w.begin(typeTail)
	w.frame = appendTail(w.frame, &totals)
	return totals, w.flush()
}

// Bytes is how much was written so far.
func (w *Writer) Bytes() int64 { return w.totals.Bytes }

// room sees to it that n more bytes of that kind fit into the frame.
func (w *Writer) room(kind frameType, n int) error {
	if n > maxPayload {
		return fmt.Errorf("%w: %d bytes, limit %d in a backup", record.ErrTooLarge, n, maxPayload)
	}
	if len(w.frame) > 0 && w.kind == kind && len(w.frame)-frameHead+n <= target {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.begin(kind)
	return nil
}

func (w *Writer) begin(kind frameType) {
	w.kind = kind
	w.frame = binary.LittleEndian.AppendUint32(w.frame[:0], uint32(kind))
	w.frame = append(w.frame, 0, 0, 0, 0, 0, 0, 0, 0) // length and checksum, in flush
}

// flush writes the frame under construction, if there is one.
func (w *Writer) flush() error {
	if len(w.frame) == 0 {
		return nil
	}
	binary.LittleEndian.PutUint32(w.frame[4:], uint32(len(w.frame)-frameHead))
	w.chain = checksum(w.chain, w.frame)
	binary.LittleEndian.PutUint32(w.frame[8:], w.chain)
	n, err := w.w.Write(w.frame)
	w.totals.Bytes += int64(n)
	if err == nil && n < len(w.frame) {
		err = io.ErrShortWrite
	}
	w.frame = w.frame[:0]
	return err
}

// checksum goes on from the frame before over a whole frame but the checksum.
func checksum(chain uint32, frame []byte) uint32 {
	return record.Checksum(record.Checksum(chain, frame[:8]), frame[frameHead:])
}
