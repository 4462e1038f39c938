package engine

import (
	"fmt"
	"log/slog"
)

// Marks of the disk that holds the store. Below a tenth free it is said; below a
// twentieth, or two segments, messages are refused. What is left is for ticks,
// acknowledgements, cancels and cuts, so that what waits is still delivered.
const (
	lowShare      = 10
	fullShare     = 20
	spareSegments = 2
)

// diskRoom is how the disk stood when it was looked at last.
type diskRoom struct {
	free, need, total uint64
	low               bool
}

func (r *diskRoom) full() bool { return r.free < r.need }

// lookAtDisk looks how much is free and says so when a mark is passed. A disk
// that does not tell has no marks.
func (e *Engine) lookAtDisk() {
	u, err := e.o.FS.GetDiskUsage(e.o.Dir)
	if err != nil || u.TotalBytes == 0 {
		return
	}
	now := diskRoom{
		free: u.AvailBytes, total: u.TotalBytes, low: u.AvailBytes < u.TotalBytes/lowShare,
		need: max(u.TotalBytes/fullShare, spareSegments*uint64(e.store.SegmentBytes)),
	}
	before := e.disk.Swap(&now)
	attrs := []any{slog.String("folder", e.o.Dir), slog.Uint64("free_bytes", now.free), slog.Uint64("needed_bytes", now.need)}
	switch {
	case now.full() && !before.full():
		e.o.Logger.Error("disk is full: messages are refused until there is room", attrs...)
	case !now.full() && before.full():
		e.o.Logger.Info("disk has room again: messages are taken", attrs...)
	case now.low && !before.low:
		e.o.Logger.Warn("disk is filling up", attrs...)
	}
}

// refuseFull refuses a message while the disk is full.
func (e *Engine) refuseFull() error {
	if r := e.disk.Load(); r.full() {
		return fmt.Errorf("%w: %d bytes free where %s lies, %d needed; make room, it is looked at once a second", ErrDiskFull, r.free, e.o.Dir, r.need)
	}
	return nil
}
