package log

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// An ending is the search for the log's last batch.
type ending struct {
	l    *Log
	kept *holding

	last    Start  // the place after the last good batch
	i       int    // number of the segment where reading stopped
	off     int64  // in it
	claim   uint64 // the highest position that something good says is synced
	batches uint64
	bytes   int64
	torn    int64
	reason  string
}

// find reads from the place from on to the last batch that is whole, of its
// epoch and chained to all before it, and judges what lies behind.
func (e *ending) find(from Start) error {
	v := view{segments: e.kept.segments}
	c, err := v.cursor(from)
	if err != nil {
		return e.ahead(from, err)
	}
	e.last, e.i, e.off, e.claim = c.last, c.i, c.off, c.last.Position
	var why flaw
	for {
		if why, err = e.segment(); err != nil {
			return err
		}
		// The next segment may continue here; else this is the end.
		if e.i+1 == len(v.segments) || v.segments[e.i+1].prev != e.last {
			break
		}
		e.i, e.off = e.i+1, HeaderBytes
	}
	if e.batches == 0 && e.i == c.i {
		if err := e.confirm(&v, c); err != nil {
			return err
		}
	}
	damage, err := e.judge(why)
	if err != nil {
		return err
	}
	if damage != nil && !e.l.options.Bugs.CutBadMiddle {
		return damage
	}
	if e.torn > 0 || damage != nil {
		e.reason = string(why)
		e.l.options.Logger.Warn("log ends in a torn tail", slog.String("file", e.segmentAt().path),
			slog.Int64("byte", e.off), slog.String("reason", e.reason), slog.Int64("dropped_bytes", e.torn))
	}
	return nil
}

func (e *ending) segmentAt() *segment { return e.kept.segments[e.i] }

// ahead says that what was applied is not in the log.
func (e *ending) ahead(from Start, err error) error {
	first, last := e.kept.segments[0], e.kept.segments[len(e.kept.segments)-1]
	if from.Position < first.base {
		return err
	}
	return &DamageError{File: last.path, Reason: fmt.Sprintf("batch %d up to position %d was applied, but the log does not reach there", from.Index, from.Position)}
}

// segment reads on in one segment and gives the flaw at which that ended.
func (e *ending) segment() (flaw, error) {
	s := e.segmentAt()
	file, sc, err := e.l.scanFile(s, windowBytes)
	if err != nil {
		return "", err
	}
	defer file.Close()
	for {
		f, err := sc.next(e.off)
		if err == nil {
			err = f.follows(e.last)
		}
		if err == nil {
			err = e.current(s, &f)
		}
		if why, ok := asFlaw(err); ok {
			return why, nil
		}
		if err != nil {
			return "", damaged(s.path, e.off, err)
		}
		s.index.add(f.batch.Index-s.prev.Index-1, f.offset)
		e.last = f.after(s.base)
		e.claim = max(e.claim, f.synced)
		e.batches++
		e.bytes += f.length
		e.off += f.length
	}
}

// current tells a batch of the epoch that its place must have from a stale one.
func (e *ending) current(s *segment, f *frame) error {
	want := e.kept.marks.epochAt(s.base + uint64(f.offset))
	if f.epoch < want {
		return flawf("batch of epoch %d is stale since epoch %d", f.epoch, want)
	}
	if f.epoch > want {
		return e.fromLater(s, f)
	}
	return nil
}

func (e *ending) fromLater(s *segment, f *frame) error {
	return &DamageError{File: s.path, Offset: f.offset, Reason: fmt.Sprintf(
		"batch of epoch %d where the marks know %d, so they are older than the log", f.epoch, e.kept.marks.epochAt(s.base+uint64(f.offset)))}
}

// scanFile opens a segment's file for one pass. Its length bounds what is read.
func (l *Log) scanFile(s *segment, size int) (vfs.File, *scanner, error) {
	file, err := l.disk.fs.Open(s.path, vfs.SequentialReadsOption)
	if err != nil {
		return nil, nil, fmt.Errorf("segment %s: %w", s.path, err)
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, nil, fmt.Errorf("segment %s: %w", s.path, err)
	}
	return file, &scanner{file: file, seed: l.seed, base: s.base, limit: min(info.Size(), l.options.SegmentBytes), size: size}, nil
}

// confirm proves that a batch ends where reading began, if none continued it:
// that the log does not end before.
func (e *ending) confirm(v *view, c cursor) error {
	s := v.segments[c.i]
	if c.last == s.prev {
		return nil
	}
	file, sc, err := e.l.scanFile(s, probeBytes)
	if err != nil {
		return err
	}
	defer file.Close()
	f, err := hop(sc, s, HeaderBytes, func(f *frame) bool { return f.offset+f.length >= c.off })
	if err == nil && f.after(s.base) == c.last {
		return nil
	}
	if _, bad := asFlaw(err); err == nil || bad {
		return &DamageError{File: s.path, Offset: f.offset, Reason: fmt.Sprintf("no batch %d ends at position %d, but it was applied", c.last.Index, c.last.Position)}
	}
	return damaged(s.path, f.offset, err)
}

// judge says whether what follows the last good batch is damage. It is when
// anything whole vouches for bytes beyond that place: a mark, a later segment's
// header, a later batch of the running epoch. Otherwise nobody was ever told
// that they are on the disk.
func (e *ending) judge(why flaw) (*DamageError, error) {
	s, m, end := e.segmentAt(), e.kept.marks.newest(), max(e.last.Position, HeaderBytes)
	damage := func(format string, args ...any) *DamageError {
		return &DamageError{File: s.path, Offset: e.off, Reason: string(why) + "; " + fmt.Sprintf(format, args...)}
	}
	if end < m.start {
		return damage("everything before position %d was synced when epoch %d began", m.start, m.epoch), nil
	}
	if e.i+1 < len(e.kept.segments) {
		next := e.kept.segments[e.i+1]
		return damage("%s was made when everything before position %d was synced", next.path, next.prev.Position), nil
	}
	file, sc, err := e.l.scanFile(s, windowBytes)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	e.torn = 0
	var found *DamageError
	err = sc.search(e.off, func(f frame) bool {
		switch {
		case f.epoch > m.epoch:
			found = damage("behind it, at byte %d, is a batch of epoch %d, later than all marks", f.offset, f.epoch)
		case f.epoch == m.epoch && f.synced > end:
			found = damage("a later batch at byte %d was written when everything before position %d was synced", f.offset, f.synced)
		case f.epoch == m.epoch:
			e.torn = max(e.torn, f.offset+f.length-e.off)
		}
		return found == nil
	})
	return found, err
}

// rewrite writes the bytes that nothing vouches for once more, as they are. If a
// sync of them has failed before, they may be in memory only, and no sync would
// bring them to the disk.
func (e *ending) rewrite() error {
	s := e.l.active()
	from := max(e.claim, s.base+HeaderBytes)
	if from >= e.last.Position || e.l.options.Bugs.SkipRewrite {
		return nil
	}
	buffer := make([]byte, min(windowBytes, e.last.Position-from))
	for from < e.last.Position {
		part := buffer[:min(uint64(len(buffer)), e.last.Position-from)]
		off := int64(from - s.base)
		n, err := e.l.file.ReadAt(part, off)
		if n < len(part) && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: byte %d: %w", s.path, off, err)
		}
		clear(part[n:]) // the zeros after the last batch may be missing
		if err := writeAt(e.l.file, part, off); err != nil {
			return fmt.Errorf("%s: write of %d bytes at %d: %w", s.path, len(part), off, err)
		}
		from += uint64(len(part))
	}
	return nil
}
