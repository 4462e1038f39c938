package log

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/record"
)

const (
	segmentSuffix = ".seg"
	spareSuffix   = ".spare"

	// nameDigits is the width of a base position in a file name, as RocketMQ
	// names its commit log: names sort as positions do.
	nameDigits = 20
)

func fileName(base uint64, suffix string) string {
	return fmt.Sprintf("%0*d%s", nameDigits, base, suffix)
}

// parseName reads the base position out of a file name with that suffix.
func parseName(name, suffix string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok || len(digits) != nameDigits {
		return 0, false
	}
	var base uint64
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' || base > (1<<64-1-uint64(c-'0'))/10 {
			return 0, false
		}
		base = base*10 + uint64(c-'0')
	}
	return base, true
}

// A segment is one file of the log. Its header's fields never change while the
// log is open.
type segment struct {
	header

	path  string
	index index

	// mu is held for reading during each read of the file, so that the file
	// cannot be closed or get a new life under the read. It is the one lock here
	// that is held over a read from disk; only removing this segment waits for it.
	mu   sync.RWMutex
	file vfs.File // for reading; nil while closed, opened at the first read
	gone bool     // removed from the log
}

// end is where this segment's batches end: where the next one says, or for the
// last where the log ends.
func (v *view) end(i int) uint64 {
	if i+1 < len(v.segments) {
		return v.segments[i+1].prev.Position
	}
	return v.last.Position
}

// A view is the log at one moment: its segments, in order and without gaps, and
// its end. The slice is shared and never changed.
type view struct {
	segments []*segment
	last     Start
}

// at is the segment that holds pos, as its number in the view. ok is false if
// none does.
func (v *view) at(pos uint64) (int, bool) {
	if len(v.segments) == 0 || pos < v.segments[0].base {
		return 0, false
	}
	i := (pos - v.segments[0].base) / uint64(v.segments[0].segmentBytes)
	if i >= uint64(len(v.segments)) {
		return 0, false
	}
	return int(i), true
}

// maxHandles bounds the files that are open for reading. Opening one anew costs
// microseconds, running out of descriptors costs the service.
const maxHandles = 256

// handles keeps the number of open segments bounded: first opened, first closed.
type handles struct {
	mu   sync.Mutex
	open []*segment
}

// opened counts s in and closes another if there are too many. It is called
// without s.mu.
func (h *handles) opened(s *segment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = append(h.open, s)
	for tries := len(h.open); tries > 0 && len(h.open) > maxHandles; tries-- {
		oldest := h.open[0]
		h.open = h.open[1:]
		if !oldest.mu.TryLock() {
			h.open = append(h.open, oldest)
			continue
		}
		oldest.closeLocked()
		oldest.mu.Unlock()
		oldest.index.forget()
	}
}

// drop counts s out.
func (h *handles) drop(s *segment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, o := range h.open {
		if o == s {
			h.open = append(h.open[:i], h.open[i+1:]...)
			return
		}
	}
}

// closeLocked closes the file. A file that was only read has nothing to lose.
func (s *segment) closeLocked() {
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}

// acquire holds the segment's file open for a read; release ends that.
func (l *Log) acquire(s *segment) error {
	for {
		s.mu.RLock()
		if s.file != nil {
			return nil
		}
		s.mu.RUnlock()
		if err := l.openSegment(s); err != nil {
			return err
		}
	}
}

func (s *segment) release() { s.mu.RUnlock() }

func (l *Log) openSegment(s *segment) error {
	s.mu.Lock()
	if s.gone || s.file != nil {
		gone := s.gone
		s.mu.Unlock()
		if gone {
			return fmt.Errorf("segment %d: %w", s.base, ErrRemoved)
		}
		return nil
	}
	file, err := l.disk.fs.Open(s.path)
	if errors.Is(err, os.ErrNotExist) {
		err = &DamageError{File: s.path, Reason: "segment is missing"}
	}
	if err == nil {
		s.file = file
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	l.handles.opened(s)
	return nil
}

// A pinned segment reads like a file and stays safe while others remove
// segments.
type pinned struct {
	l *Log
	s *segment
}

// ReadAt reads len(p) bytes, or says why not. A file shorter than what the log
// put there is damage.
func (p pinned) ReadAt(b []byte, off int64) (int, error) {
	if err := p.l.acquire(p.s); err != nil {
		return 0, err
	}
	defer p.s.release()
	n, err := p.s.file.ReadAt(b, off)
	if n == len(b) {
		return n, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return n, io.EOF
	}
	return n, fmt.Errorf("%s: byte %d: %w", p.s.path, off, err)
}

// readHeader reads and checks the header of the segment file called name.
func readHeader(d *disk, name string, base uint64, o *Options) (header, error) {
	path := d.path(name)
	file, err := d.fs.Open(path)
	if err != nil {
		return header{}, err
	}
	defer file.Close()
	var raw [HeaderBytes]byte
	n, err := file.ReadAt(raw[:], 0)
	if n < len(raw) && err != nil && !errors.Is(err, io.EOF) {
		return header{}, fmt.Errorf("%s: %w", path, err)
	}
	h, err := decodeHeader(raw[:n])
	switch {
	case errors.Is(err, record.ErrCorrupt):
		return h, &DamageError{File: path, Reason: string(reason(err))}
	case err != nil:
		return h, fmt.Errorf("%s: %w", path, err)
	case h.id != o.StoreID:
		return h, &DamageError{File: path, Offset: 8, Reason: fmt.Sprintf("segment of store %x, this is store %x", h.id, o.StoreID)}
	case h.segmentBytes != o.SegmentBytes:
		return h, &DamageError{File: path, Offset: 24, Reason: fmt.Sprintf("segments of %d bytes, this store has %d", h.segmentBytes, o.SegmentBytes)}
	case h.base != base:
		return h, &DamageError{File: path, Offset: 32, Reason: fmt.Sprintf("header says position %d, so the file was written under another name", h.base)}
	}
	return h, nil
}
