package log

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/duemq/duemq/internal/record"
)

// probeBytes is how much a search for one batch reads at a time.
const probeBytes = spacing + 4<<10

// ReadAt appends the n bytes at pos to dst and gives it, reusing its room. They
// are as they stand in the file and not verified: a message has a checksum of
// its own. All of them are within one segment and before [Log.End], else it is
// an ErrRange; what was removed is an ErrRemoved.
//
// Bytes that a truncation removes during the call may come mixed with what is
// written in their place.
func (l *Log) ReadAt(dst []byte, pos uint64, n int) ([]byte, error) {
	v := l.now()
	i, err := v.find(pos)
	if err != nil {
		return dst, err
	}
	s := v.segments[i]
	off := pos - s.base
	if end := v.end(i); n < 0 || off < HeaderBytes || pos > end || uint64(n) > end-pos {
		return dst, fmt.Errorf("%d bytes at position %d: %w", n, pos, ErrRange)
	}
	at := len(dst)
	dst = slices.Grow(dst, n)[:at+n]
	if _, err := (pinned{l, s}).ReadAt(dst[at:], int64(off)); err != nil {
		return dst[:at], short(s, int64(off), err)
	}
	return dst, nil
}

// short makes damage of a file that ends before the log does.
func short(s *segment, off int64, err error) error {
	if errors.Is(err, io.EOF) {
		return &DamageError{File: s.path, Offset: off, Reason: "file ends before the log does"}
	}
	return err
}

// find is the number of the segment that holds pos.
func (v *view) find(pos uint64) (int, error) {
	i, ok := v.at(pos)
	switch {
	case ok:
		return i, nil
	case pos < v.segments[0].base:
		return 0, fmt.Errorf("position %d: %w", pos, ErrRemoved)
	}
	return 0, fmt.Errorf("position %d: %w", pos, ErrRange)
}

// scan is a scanner over what a view holds of its i-th segment.
func (l *Log) scan(v *view, i, size int) *scanner {
	s := v.segments[i]
	limit := min(int64(v.end(i)-s.base), l.options.SegmentBytes)
	return &scanner{file: pinned{l, s}, seed: l.seed, base: s.base, limit: limit, size: size}
}

// Get gives the batch with that index and where it stands, verified whole, in
// memory of its own. It is an ErrRemoved if the index is no longer kept, an
// ErrRange if it is beyond the end.
func (l *Log) Get(index uint64) (pos uint64, b record.Batch, err error) {
	v := l.now()
	if index > v.last.Index || index == 0 {
		return 0, b, fmt.Errorf("batch %d: %w", index, ErrRange)
	}
	i := len(v.segments) - 1
	for i >= 0 && v.segments[i].prev.Index >= index {
		i--
	}
	if i < 0 {
		return 0, b, fmt.Errorf("batch %d: %w", index, ErrRemoved)
	}
	number := uint32(index - v.segments[i].prev.Index - 1)
	f, err := l.seek(&v, i, func(w waypoint) bool { return w.number <= number },
		func(f *frame) bool { return f.batch.Index >= index })
	if err != nil {
		return 0, b, err
	}
	if f.batch.Index != index {
		return 0, b, &DamageError{File: v.segments[i].path, Offset: f.offset, Reason: fmt.Sprintf("batch %d where batch %d must be", f.batch.Index, index)}
	}
	return v.segments[i].base + uint64(f.offset), f.batch, nil
}

// Locate gives the batch whose frame holds pos and where it stands, verified
// whole, in memory of its own. Whether pos is the beginning of anything inside
// the batch is for the caller to see; no position in the log is not within some
// batch, except those between a segment's last batch and the next segment, which
// are an ErrRange.
func (l *Log) Locate(pos uint64) (batchPos uint64, b record.Batch, err error) {
	v := l.now()
	i, err := v.find(pos)
	if err != nil {
		return 0, b, err
	}
	s := v.segments[i]
	off := int64(pos - s.base)
	if off < HeaderBytes || pos >= v.end(i) {
		return 0, b, fmt.Errorf("position %d: %w", pos, ErrRange)
	}
	f, err := l.seek(&v, i, func(w waypoint) bool { return int64(w.offset) <= off },
		func(f *frame) bool { return f.offset+f.length > off })
	if err != nil {
		return 0, b, err
	}
	return s.base + uint64(f.offset), f.batch, nil
}

// Enclosing finds the batch whose frame holds pos without reading it: its bytes,
// as [record.RawBatch] takes them, are the n at batchPos + [LocalBytes]. Only the
// local parts on the way are proved. Otherwise it is as [Log.Locate].
func (l *Log) Enclosing(pos uint64) (batchPos uint64, n int, err error) {
	v := l.now()
	i, err := v.find(pos)
	if err != nil {
		return 0, 0, err
	}
	s := v.segments[i]
	off := int64(pos - s.base)
	if off < HeaderBytes || pos >= v.end(i) {
		return 0, 0, fmt.Errorf("position %d: %w", pos, ErrRange)
	}
	at, err := l.waypoint(&v, i, func(w waypoint) bool { return int64(w.offset) <= off })
	if err != nil {
		return 0, 0, err
	}
	f, err := hop(l.scan(&v, i, probeBytes), s, at, func(f *frame) bool { return f.offset+f.length > off })
	if err != nil {
		return 0, 0, damaged(s.path, f.offset, err)
	}
	end := int64(v.end(i) - s.base)
	return s.base + uint64(f.offset), int(min(f.length, end-f.offset)) - LocalBytes, nil
}

// waypoint is where a search in the i-th segment begins: at the last waypoint
// that notAfter takes.
func (l *Log) waypoint(v *view, i int, notAfter func(waypoint) bool) (int64, error) {
	s := v.segments[i]
	look := s.index.find(notAfter)
	if look.missing {
		if err := l.build(v, i, look); err != nil {
			return 0, err
		}
		look = s.index.find(notAfter)
	}
	return max(int64(look.from.offset), HeaderBytes), nil
}

// seek finds the first frame of the i-th segment at which reached says yes,
// beginning at the last waypoint that notAfter takes, and reads it whole.
func (l *Log) seek(v *view, i int, notAfter func(waypoint) bool, reached func(*frame) bool) (frame, error) {
	s := v.segments[i]
	at, err := l.waypoint(v, i, notAfter)
	if err != nil {
		return frame{}, err
	}
	sc := l.scan(v, i, probeBytes)
	f, err := hop(sc, s, at, reached)
	if err == nil {
		f, err = sc.next(f.offset)
	}
	if err != nil {
		return f, damaged(s.path, f.offset, err)
	}
	f.batch.Extensions, f.batch.Data = slices.Clone(f.batch.Extensions), slices.Clone(f.batch.Data)
	return f, nil
}

// hop walks from local part to local part, without the batches between them,
// until reached says yes. That every one of them links to the one before is
// proved on the way.
func hop(sc *scanner, s *segment, off int64, reached func(*frame) bool) (frame, error) {
	last := s.prev
	known := off == HeaderBytes
	for {
		f, err := sc.head(off)
		if err == nil && known {
			err = f.follows(last)
		}
		if err != nil || reached(&f) {
			return f, err
		}
		last, known = f.after(s.base), true
		off += f.length
	}
}

// build makes the waypoints that a lookup missed.
func (l *Log) build(v *view, i int, look lookup) error {
	s := v.segments[i]
	until := look.until
	if until == 0 {
		until = int64(v.end(i) - s.base)
	}
	if until <= HeaderBytes+spacing {
		return nil // near enough to walk each time
	}
	var built []waypoint
	f, err := hop(l.scan(v, i, probeBytes), s, HeaderBytes, func(f *frame) bool {
		built = extend(built, f.batch.Index-s.prev.Index-1, f.offset)
		return f.offset+f.length >= until
	})
	if err != nil {
		return damaged(s.path, f.offset, err)
	}
	s.index.install(look, built)
	return nil
}

// Replay calls fn for every batch after from, in order, up to where the log
// ended when it was called, and stops at fn's first error. Every batch is
// verified, and that it continues the one before: a place that is not in this
// log is damage. The batch and its Data are good only during the call. Reads
// are long and sequential.
func (l *Log) Replay(from Start, fn func(pos uint64, b *record.Batch) error) error {
	v := l.now()
	c, err := v.cursor(from)
	if err != nil {
		return err
	}
	if c.last.Position > v.last.Position {
		return fmt.Errorf("replay from position %d: %w", from.Position, ErrRange)
	}
	for c.last != v.last {
		if err := l.replaySegment(&v, &c, fn); err != nil {
			return err
		}
		if c.i, c.off = c.i+1, HeaderBytes; c.i == len(v.segments) {
			break
		}
		if v.segments[c.i].prev != c.last {
			return &DamageError{File: v.segments[c.i].path, Offset: 48, Reason: "segment does not continue the one before"}
		}
	}
	if c.last != v.last {
		s := v.segments[len(v.segments)-1]
		return &DamageError{File: s.path, Offset: int64(v.last.Position - s.base), Reason: "place is not where the log ends"}
	}
	return nil
}

// replaySegment reads one segment from the cursor to its end.
func (l *Log) replaySegment(v *view, c *cursor, fn func(pos uint64, b *record.Batch) error) error {
	s := v.segments[c.i]
	end := int64(v.end(c.i) - s.base)
	sc := l.scan(v, c.i, windowBytes)
	var b record.Batch // once, though its address goes to fn
	for c.off < end {
		f, err := sc.next(c.off)
		if err == nil {
			err = f.follows(c.last)
		}
		if err != nil {
			return damaged(s.path, c.off, err)
		}
		c.last = f.after(s.base)
		b = f.batch
		if err := fn(s.base+uint64(c.off), &b); err != nil {
			return err
		}
		c.off += f.length
	}
	return nil
}

// A cursor is a place in a view at which reading goes on.
type cursor struct {
	i    int   // number of the segment
	off  int64 // in it
	last Start // what the next batch must continue
}

// cursor is where reading begins after from.
func (v *view) cursor(from Start) (cursor, error) {
	first := v.segments[0]
	if from == (Start{}) || from == first.prev {
		return cursor{off: HeaderBytes, last: first.prev}, nil
	}
	size := uint64(first.segmentBytes)
	i, ok := v.at(from.Position)
	off := int64(from.Position % size)
	if off == 0 && from.Position > first.base {
		// It filled its segment to the last byte.
		i, ok = v.at(from.Position - 1)
		off = int64(size)
	}
	switch {
	case ok && off >= HeaderBytes:
		return cursor{i: i, off: off, last: from}, nil
	case from.Position < first.base:
		return cursor{}, fmt.Errorf("position %d: %w", from.Position, ErrRemoved)
	}
	return cursor{}, fmt.Errorf("position %d: %w", from.Position, ErrRange)
}
