package backup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/duemq/duemq/internal/record"
)

// An Entry is one pair of the index or, with a Position, one batch of the log.
// No batch stands at position 0, where a segment's header is.
type Entry struct {
	Space      byte
	Key, Value []byte

	Position uint64
	Batch    record.Batch
}

// A Reader reads one stream and believes none of it: every frame is checked
// before anything in it is given out, and the order of all entries is. Whoever
// acts on entries must be ready to take it back until Next has said io.EOF,
// because only the tail proves that nothing is missing. It is for one goroutine
// at a time.
type Reader struct {
	r      io.Reader
	head   Head
	frame  bytes.Buffer // the frame being read, its head included
	kind   frameType
	rest   []byte // of its payload
	chain  uint32
	bytes  int64 // read
	totals Totals
	last   []byte
	place  Place
	err    error // for good
}

// NewReader reads the head of a stream. What does not begin like a backup is a
// [record.ErrCorrupt], a newer format a [record.ErrVersion].
func NewReader(r io.Reader) (*Reader, error) {
	b := &Reader{r: r}
	if err := b.next(); err != nil {
		return nil, err
	}
	if b.kind != typeHead {
		return nil, corrupt("begins with its %s", b.kind)
	}
	var err error
	if b.head, err = decodeHead(b.rest); err != nil {
		return nil, err
	}
	b.rest, b.place = nil, b.head.First
	return b, nil
}

// Head is what the first frame says.
func (r *Reader) Head() Head { return r.head }

// Totals is what was read so far; Bytes only after io.EOF, what the tail says.
func (r *Reader) Totals() Totals { return r.totals }

// Bytes is how much of the stream was read.
func (r *Reader) Bytes() int64 { return r.bytes }

// Next gives the next entry. Its slices are good until Next is called while
// [Reader.More] says no. io.EOF says that the tail came, that it counts what was
// read, and that nothing follows. A stream that ends before is an
// [ErrIncomplete], and changed bytes are a [record.ErrCorrupt]. Errors stay.
func (r *Reader) Next() (e Entry, err error) {
	if r.err != nil {
		return e, r.err
	}
	if e, err = r.entry(); err != nil {
		r.err, r.rest = err, nil
	}
	return e, err
}

// More says that the next entry is in the frame of the last one.
func (r *Reader) More() bool { return len(r.rest) > 0 }

func (r *Reader) entry() (e Entry, err error) {
	for len(r.rest) == 0 {
		if err := r.next(); err != nil {
			return e, err
		}
		switch {
		case r.kind == typeTail:
			return e, r.tail()
		case r.kind != typePairs && r.kind != typeLog:
			return e, corrupt("a second head")
		case len(r.rest) == 0:
			return e, corrupt("an empty frame of the %s", r.kind)
		case r.kind == typePairs && r.totals.Batches > 0:
			return e, corrupt("a frame of the index after the log")
		}
	}
	if r.kind == typePairs {
		return r.pair()
	}
	return r.batch()
}

func (r *Reader) pair() (e Entry, err error) {
	src := r.rest
	e.Space = src[0]
	keyLen, n := binary.Uvarint(src[1:])
	if n <= 0 {
		return e, corrupt("length of a key in the index")
	}
	src = src[1+n:]
	valueLen, n := binary.Uvarint(src)
	if n <= 0 {
		return e, corrupt("length of a value in the index")
	}
	src = src[n:]
	if left := uint64(len(src)); keyLen > left || valueLen > left-keyLen {
		return e, corrupt("key of %d bytes and value of %d bytes in the %d that are left of a frame", keyLen, valueLen, left)
	}
	e.Key, e.Value = src[:keyLen:keyLen], src[keyLen:keyLen+valueLen:keyLen+valueLen]
	r.rest = src[keyLen+valueLen:]
	if r.last != nil && !follows(r.last, e.Space, e.Key) {
		return e, corrupt("key %x of space %#02x after %x", e.Key, e.Space, r.last)
	}
	r.last = append(append(r.last[:0], e.Space), e.Key...)
	r.totals.Pairs++
	return e, nil
}

func (r *Reader) batch() (e Entry, err error) {
	if len(r.rest) < 8 {
		return e, corrupt("%d bytes where a batch of the log must be", len(r.rest))
	}
	e.Position = binary.LittleEndian.Uint64(r.rest)
	var n int
	if e.Batch, n, err = record.DecodeBatch(r.rest[8:]); err != nil {
		return e, fmt.Errorf("backup: batch behind batch %d: %w", r.place.Index, err)
	}
	r.rest = r.rest[8+n:]
	if e.Batch.Index != r.place.Index+1 || e.Position <= r.place.Position {
		return e, corrupt("batch %d at position %d after batch %d at %d", e.Batch.Index, e.Position, r.place.Index, r.place.Position)
	}
	r.place = Place{Index: e.Batch.Index, Position: e.Position}
	r.totals.Batches++
	return e, nil
}

// tail proves that what was read is all there is.
func (r *Reader) tail() error {
	said, err := decodeTail(r.rest)
	if err != nil {
		return err
	}
	read := Totals{r.totals.Pairs, r.totals.Batches, r.bytes - frameHead - tailBytes}
	r.rest = nil
	switch {
	case said != read:
		return corrupt("holds %d pairs and %d batches in %d bytes, its tail says %d, %d and %d",
			read.Pairs, read.Batches, read.Bytes, said.Pairs, said.Batches, said.Bytes)
	case r.place.Index != r.head.End.Index:
		return corrupt("log ends with batch %d, its head says %d", r.place.Index, r.head.End.Index)
	}
	r.totals = said
	var one [1]byte
	switch _, err := io.ReadFull(r.r, one[:]); {
	case err == nil:
		return corrupt("bytes follow its tail")
	case !errors.Is(err, io.EOF):
		return err
	}
	return io.EOF
}

// next reads the next frame and proves it.
func (r *Reader) next() error {
	r.frame.Reset()
	if err := r.read(frameHead); err != nil {
		return err
	}
	head := r.frame.Bytes()
	r.kind = frameType(binary.LittleEndian.Uint32(head))
	if r.bytes == frameHead && r.kind != typeHead {
		return corrupt("does not begin like a backup")
	}
	n := binary.LittleEndian.Uint32(head[4:])
	if n > maxPayload {
		return corrupt("frame of %d bytes at byte %d, limit %d", n, r.bytes-frameHead, maxPayload)
	}
	if err := r.read(int64(n)); err != nil {
		return err
	}
	frame := r.frame.Bytes()
	r.chain = checksum(r.chain, frame)
	if r.chain != binary.LittleEndian.Uint32(frame[8:]) {
		return corrupt("checksum of the frame at byte %d differs", r.bytes-int64(len(frame)))
	}
	if !slices.Contains([]frameType{typeHead, typePairs, typeLog, typeTail}, r.kind) {
		return fmt.Errorf("%w: backup with a %s", record.ErrVersion, r.kind)
	}
	r.rest = frame[frameHead:]
	return nil
}

// read adds n bytes to the frame. The buffer grows with what comes, not with
// what a length promises.
func (r *Reader) read(n int64) error {
	got, err := io.CopyN(&r.frame, r.r, n)
	r.bytes += got
	if errors.Is(err, io.EOF) {
		return r.missing()
	}
	return err
}

// missing says what a stream lacks that ends here.
func (r *Reader) missing() error {
	read := r.totals
	switch end := r.head.End.Index; {
	case r.bytes < frameHead+headBytes:
		return fmt.Errorf("%w: it ends after %d bytes, within its head", ErrIncomplete, r.bytes)
	case r.place.Index == end && end > r.head.First.Index:
		return fmt.Errorf("%w: it ends after %d bytes, behind the last batch; its tail is missing", ErrIncomplete, r.bytes)
	case read.Batches > 0:
		return fmt.Errorf("%w: it ends after %d bytes, within the log: batches %d to %d and its tail are missing", ErrIncomplete, r.bytes, r.place.Index+1, end)
	case end == r.head.First.Index:
		return fmt.Errorf("%w: it ends after %d bytes, within the index or behind it; its tail is missing", ErrIncomplete, r.bytes)
	default:
		return fmt.Errorf("%w: it ends after %d bytes, within the index (%d keys) or behind it; batches %d to %d of the log and its tail are missing",
			ErrIncomplete, r.bytes, read.Pairs, r.place.Index+1, end)
	}
}
