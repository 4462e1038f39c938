package log

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/duemq/duemq/internal/record"
)

// maxWrite is about how much one write takes. A longer run is written in
// several, so that the buffer does not grow with it.
const maxWrite = 4 << 20

// sealedIndexes is how many full segments keep the index that was made while
// they were written.
const sealedIndexes = 64

// Append writes a run of batches at the log's end and puts each one's position,
// that of its local part, into positions, which is at least as long. The bytes
// are readable when it returns but not durable before [Log.Sync]. Indexes must
// continue the log, else ErrGap; a batch that cannot be written at all is a
// [record.ErrTooLarge] or [record.ErrVersion]. Then nothing of the run was
// written and the log goes on.
//
// So it is too when a new segment is needed and cannot be made, as on a full
// disk, unless a part of the run is already written. Every other failure poisons
// the log.
//
// The batches are only read. Nothing is allocated once the buffer is warm, save
// for a new segment.
func (l *Log) Append(batches []*record.Batch, positions []uint64) error {
	if err := l.usable(); err != nil {
		return err
	}
	if len(positions) < len(batches) {
		return fmt.Errorf("append of %d batches: room for %d positions", len(batches), len(positions))
	}
	if err := l.admit(batches); err != nil {
		return err
	}
	r := run{l: l, last: l.view.last}
	for i, b := range batches {
		if err := r.put(b); err != nil {
			return err
		}
		positions[i] = r.at
	}
	return r.flush()
}

// admit proves that every batch of a run can be written, before one is.
func (l *Log) admit(batches []*record.Batch) error {
	next := l.view.last.Index + 1
	for _, b := range batches {
		if b.Index != next {
			return fmt.Errorf("%w: batch %d where %d must be", ErrGap, b.Index, next)
		}
		if err := l.encodable(b); err != nil {
			return err
		}
		next++
	}
	return nil
}

// encodable says why b can never be written.
func (l *Log) encodable(b *record.Batch) error {
	if size := b.Size(); size > record.MaxBatch || HeaderBytes+frameBytes(size) > l.options.SegmentBytes {
		return fmt.Errorf("%w: batch of %d bytes, limit %d in segments of %d", record.ErrTooLarge, size, record.MaxBatch, l.options.SegmentBytes)
	}
	if b.Type == record.EntryCommands && b.Flags == 0 {
		return nil
	}
	// Rare types and flags: the encoder itself knows which it takes.
	_, err := record.AppendBatch(nil, &record.Batch{Type: b.Type, Flags: b.Flags})
	return err
}

// A run is one Append under way. Its frames gather in the log's buffer; those
// before it are written.
type run struct {
	l       *Log
	last    Start  // the place after the last frame, written or not
	at      uint64 // position of the last frame
	begin   uint64 // position of the buffer's first byte
	pending bool   // the buffer holds frames
	wrote   bool   // something of this run is on its way to the disk
}

// put adds a batch to the buffer, after a new segment if that is its place.
func (r *run) put(b *record.Batch) error {
	l := r.l
	pos := place(r.last.Position, frameBytes(b.Size()), l.options.SegmentBytes)
	if pos-l.active().base >= uint64(l.options.SegmentBytes) {
		if err := r.roll(); err != nil {
			return err
		}
	} else if len(l.buffer) >= maxWrite && r.pending {
		if err := r.flush(); err != nil {
			return err
		}
	}
	if !r.pending {
		l.buffer, r.begin, r.pending = l.buffer[:0], pos, true
	}
	loc := local{epoch: l.epoch(), synced: l.synced.Load(), prev: r.last.Checksum}
	var err error
	if l.buffer, err = appendFrame(l.buffer, b, &loc, l.seed, pos); err != nil {
		return l.fail(err) // admit has said that it can be encoded
	}
	s := l.active()
	s.index.add(b.Index-s.prev.Index-1, int64(pos-s.base))
	r.at = pos
	r.last = Start{Position: r.begin + uint64(len(l.buffer)), Index: b.Index, Checksum: loc.checksum}
	return nil
}

// flush writes the buffer and shows what is in it.
func (r *run) flush() error {
	if !r.pending {
		return nil
	}
	r.pending, r.wrote = false, true
	s := r.l.active()
	if err := writeAt(r.l.file, r.l.buffer, int64(r.begin-s.base)); err != nil {
		return r.l.fail(fmt.Errorf("%s: write of %d bytes at %d: %w", s.path, len(r.l.buffer), r.begin-s.base, err))
	}
	r.l.publish(r.last, nil)
	return nil
}

// roll goes on in a new segment. Whatever can be refused is asked for first:
// until something of the run is written, a full disk changes nothing.
func (r *run) roll() error {
	l := r.l
	next := l.active().base + uint64(l.options.SegmentBytes)
	name, err := l.obtain(next)
	if err != nil {
		if r.wrote {
			return l.fail(err)
		}
		l.active().index.cut(int64(l.view.last.Position - l.active().base))
		return err
	}
	if err := r.flush(); err != nil {
		return err
	}
	// A segment's header vouches for everything before it.
	if err := l.Sync(); err != nil {
		return err
	}
	r.wrote = true
	if err := l.begin(name, next, r.last); err != nil {
		return l.fail(err)
	}
	return nil
}

// obtain gives the name of a file that can become the segment at base: a spare
// one or a new one, with its space reserved.
func (l *Log) obtain(base uint64) (string, error) {
	if n := len(l.spares); n > 0 {
		name := l.spares[n-1]
		l.spares = l.spares[:n-1]
		return name, nil
	}
	name := fileName(base, segmentSuffix+tempSuffix)
	path := l.disk.path(name)
	file, err := l.disk.fs.Create(path, category)
	if err != nil {
		return "", fmt.Errorf("new segment %s: %w", path, err)
	}
	if l.options.Preallocate {
		err = file.Preallocate(0, l.options.SegmentBytes)
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
			err = nil // a file system that cannot reserve
		}
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = l.disk.fs.Remove(path) // opening removes it if this does not
		return "", fmt.Errorf("new segment %s: %w", path, err)
	}
	return name, nil
}

// begin makes the file called name the segment at base, which continues last,
// and the one that is written. Header first, synced, then the name: a file that
// is called a segment always has its header.
func (l *Log) begin(name string, base uint64, last Start) error {
	s := &segment{
		header: header{id: l.options.StoreID, segmentBytes: l.options.SegmentBytes, base: base, epoch: l.epoch(), prev: last},
		path:   l.disk.path(fileName(base, segmentSuffix)),
	}
	path := l.disk.path(name)
	file, err := l.disk.fs.OpenReadWrite(path, category)
	if err != nil {
		return fmt.Errorf("new segment %s: %w", path, err)
	}
	if err := fill(file, encodeHeader(&s.header)); err != nil {
		return fmt.Errorf("header of %s: %w", path, err)
	}
	if err := l.disk.fs.Rename(path, s.path); err != nil {
		return fmt.Errorf("new segment %s: %w", s.path, err)
	}
	if err := l.disk.sync(); err != nil {
		return err
	}
	if err := l.write(s); err != nil {
		return err
	}
	l.keepIndexes()
	segments := make([]*segment, len(l.view.segments), len(l.view.segments)+1)
	copy(segments, l.view.segments)
	l.publish(last, append(segments, s))
	return nil
}

// write makes s the segment that is written.
func (l *Log) write(s *segment) error {
	file, err := l.disk.fs.OpenReadWrite(s.path, category)
	if err != nil {
		return fmt.Errorf("segment %s: %w", s.path, err)
	}
	if l.file != nil {
		err = l.file.Close() // synced before
	}
	l.file = file
	return err
}

// keepIndexes forgets the index of a segment that was sealed long ago.
func (l *Log) keepIndexes() {
	if len(l.view.segments) > 0 {
		l.sealed = append(l.sealed, l.active())
	}
	if len(l.sealed) > sealedIndexes {
		l.sealed[0].index.forget()
		l.sealed = l.sealed[1:]
	}
}

// Sync makes everything that was appended durable. It returns at once if there
// is nothing to do. A failure poisons the log and is never retried: what was not
// synced may be lost although it can still be read.
func (l *Log) Sync() error {
	if err := l.usable(); err != nil {
		return err
	}
	end := l.view.last.Position
	if l.synced.Load() >= end {
		return nil
	}
	if !l.options.Bugs.SkipSync {
		if err := l.syncFile(); err != nil {
			return l.fail(fmt.Errorf("%s: sync: %w", l.active().path, err))
		}
	}
	l.synced.Store(end)
	return nil
}

func (l *Log) syncFile() error {
	err := l.file.SyncData()
	if err != nil && l.options.Bugs.RetrySync {
		err = l.file.SyncData()
	}
	return err
}
