package log

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/duemq/duemq/internal/record"
)

// windowBytes is how much a scanner reads at a time: large enough for a disk to
// stream, small enough to be forgotten.
const windowBytes = 1 << 20

// A scanner reads the batches of one segment file, from the front, through a
// window. It believes no length that the file cannot hold.
type scanner struct {
	file  io.ReaderAt
	seed  seed
	base  uint64 // position of the file's first byte
	limit int64  // nothing at or beyond this offset is read
	size  int    // bytes of a window, at least

	window []byte
	offset int64 // of the window within the file
}

// A frame is a batch as it stands in a segment.
type frame struct {
	local
	offset int64
	length int64 // with the local part and the zeros after the batch
	batch  record.Batch
}

// view gives the n bytes at off, or fewer where the file ends. They are good
// until the next call.
func (s *scanner) view(off int64, n int) ([]byte, error) {
	if at := off - s.offset; at >= 0 && at+int64(n) <= int64(len(s.window)) {
		return s.window[at : at+int64(n)], nil
	}
	want := max(min(int64(max(n, s.size)), s.limit-off), 0)
	if int64(cap(s.window)) < want {
		s.window = make([]byte, want)
	}
	s.window = s.window[:want]
	got, err := s.file.ReadAt(s.window, off)
	s.window, s.offset = s.window[:got], off
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return s.window[:min(n, got)], nil
}

// head reads the local part at off and the length of the whole frame, and
// proves both. The batch itself is not read. A flaw says what is not there.
func (s *scanner) head(off int64) (frame, error) {
	f := frame{offset: off}
	src, err := s.view(off, LocalBytes+record.BatchHeader)
	if err != nil {
		return f, err
	}
	if len(src) < LocalBytes+record.BatchHeader {
		return f, flaw("the file ends here")
	}
	if f.local, err = readLocal(src, s.seed, s.base+uint64(off)); err != nil {
		return f, err
	}
	n, err := record.BatchLength(src[LocalBytes:])
	if err != nil {
		return f, reason(err)
	}
	f.length = frameBytes(n)
	f.batch.Index = binary.LittleEndian.Uint64(src[LocalBytes+16:])
	if off+LocalBytes+int64(n) > s.limit {
		return f, flawf("batch of %d bytes does not fit in what follows", n)
	}
	return f, nil
}

// next reads the whole frame at off and verifies it. The batch shares the
// window and is good until the next call.
func (s *scanner) next(off int64) (frame, error) {
	f, err := s.head(off)
	if err != nil {
		return f, err
	}
	// What the head says may be more than there is: the file may have holes but
	// is never longer than its limit.
	src, err := s.view(off, int(min(f.length, s.limit-off)))
	if err != nil {
		return f, err
	}
	f.batch, _, err = record.DecodeBatch(src[LocalBytes:])
	if errors.Is(err, record.ErrCorrupt) {
		return f, reason(err)
	}
	return f, err
}

// follows says why a batch that was read does not continue last, or nothing.
func (f *frame) follows(last Start) error {
	if f.prev != last.Checksum {
		return flawf("batch with index %d does not link to the one before", f.batch.Index)
	}
	if f.batch.Index != last.Index+1 {
		return flawf("batch has index %d where %d must be", f.batch.Index, last.Index+1)
	}
	return nil
}

// after is the place behind the frame, in a segment at base.
func (f *frame) after(base uint64) Start {
	return Start{Position: base + uint64(f.offset+f.length), Index: f.batch.Index, Checksum: f.checksum}
}

// damaged turns what went wrong at off of the file called path into an error that
// says so: a flaw is damage where a batch must be.
func damaged(path string, off int64, err error) error {
	if f, ok := asFlaw(err); ok {
		return &DamageError{File: path, Offset: off, Reason: string(f)}
	}
	if errors.Is(err, record.ErrVersion) {
		return fmt.Errorf("%s: byte %d: %w", path, off, err)
	}
	return err
}

// search looks for local parts at off and behind it, at every place where a
// batch may begin, and calls fn for each until it returns false. What a torn
// batch or a hole leaves behind is found so.
func (s *scanner) search(off int64, fn func(f frame) bool) error {
	for off = alignUp(off); off+checkedBytes <= s.limit; {
		src, err := s.view(off, int(min(int64(s.size), s.limit-off)))
		if err != nil {
			return err
		}
		if len(src) < checkedBytes {
			return nil
		}
		last := len(src) - checkedBytes
		for i := 0; i <= last; i += Align {
			if binary.LittleEndian.Uint32(src[i:]) != localMagic {
				continue
			}
			loc, err := readLocal(src[i:], s.seed, s.base+uint64(off)+uint64(i))
			if _, bad := asFlaw(err); bad {
				continue
			}
			length := frameBytes(int(binary.LittleEndian.Uint32(src[i+LocalBytes+8:])))
			if !fn(frame{local: loc, offset: off + int64(i), length: length}) {
				return nil
			}
		}
		off += int64(last/Align+1) * Align
	}
	return nil
}
