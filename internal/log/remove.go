package log

import "fmt"

// RemoveBefore removes the segments that lie entirely before pos, oldest first,
// never the one that is written. Each becomes a spare or is deleted, and the
// folder is synced before the next, so that a crash leaves no gap. What the
// caller removes must not be needed to open the log again: it is behind the
// place from which it will be opened.
//
// A file that cannot be moved or deleted stays in the log and the log goes on;
// a folder that cannot be synced poisons it.
func (l *Log) RemoveBefore(pos uint64) error {
	if err := l.usable(); err != nil {
		return err
	}
	for len(l.view.segments) > 1 && l.view.segments[1].base <= pos {
		if err := l.retire(l.view.segments[0]); err != nil {
			return err
		}
		l.publish(l.view.last, l.view.segments[1:])
		if err := l.disk.sync(); err != nil {
			return l.fail(err)
		}
	}
	return nil
}

// TruncateSuffix removes the batches with index from and above. It is durable
// when it returns; a crash on the way leaves the log as it was or truncated.
// Nothing is overwritten: a mark makes the batches stale. from beyond the end is
// nothing to do, from below what is kept an ErrRemoved. Before the mark is
// written, a failure to read leaves the log as it was; afterwards every failure
// poisons it.
func (l *Log) TruncateSuffix(from uint64) error {
	if err := l.usable(); err != nil {
		return err
	}
	if from > l.view.last.Index {
		return nil
	}
	first := l.view.segments[0]
	// What replaces a segment's first batch may be smaller and have its place in
	// the segment before, unless that is full or the log never had one.
	if from <= first.prev.Index || from == first.prev.Index+1 && first.prev.Position < first.base {
		return fmt.Errorf("truncate from batch %d: %w", from, ErrRemoved)
	}
	last, err := l.before(from)
	if err != nil {
		return err
	}
	// A mark says that everything before it is synced.
	if err := l.Sync(); err != nil {
		return err
	}
	if !l.options.Bugs.SkipMark {
		if err := l.mark(last.Position); err != nil {
			return err
		}
	}
	return l.cut(last)
}

// before is the place between the batch with that index and the one before it.
func (l *Log) before(index uint64) (Start, error) {
	v := l.view
	i := len(v.segments) - 1
	for v.segments[i].prev.Index >= index {
		i--
	}
	s := v.segments[i]
	if index == s.prev.Index+1 {
		return s.prev, nil
	}
	number := uint32(index - s.prev.Index - 1)
	f, err := l.seek(&v, i, func(w waypoint) bool { return w.number <= number },
		func(f *frame) bool { return f.batch.Index >= index })
	if err != nil {
		return Start{}, err
	}
	return Start{Position: s.base + uint64(f.offset), Index: index - 1, Checksum: f.prev}, nil
}

// cut makes last the log's end, which is marked already, and takes away the
// segments behind it.
func (l *Log) cut(last Start) error {
	l.synced.Store(last.Position)
	v := view{segments: l.view.segments, last: last}
	keep := v.filled()
	dropped := v.segments[keep:]
	l.publish(last, v.segments[:keep:keep])
	l.active().index.cut(int64(last.Position) - int64(l.active().base))
	if len(dropped) == 0 {
		return nil
	}
	if err := l.write(l.active()); err != nil {
		return l.fail(err)
	}
	for _, s := range dropped {
		if err := l.retire(s); err != nil {
			return l.fail(err)
		}
	}
	if err := l.disk.sync(); err != nil {
		return l.fail(err)
	}
	return nil
}
