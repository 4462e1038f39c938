package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
)

// ErrInUse says that another process holds the data folder.
var ErrInUse = errors.New("data folder is in use")

// ErrAhead says that the index holds what the log does not.
var ErrAhead = errors.New("index is ahead of the log")

// recover opens the parts of the store and brings the machine to the log's end.
func (e *Engine) recover(ctx context.Context) error {
	disk, dir := e.o.FS, e.o.Dir
	if err := disk.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	var err error
	if e.lock, err = disk.Lock(disk.PathJoin(dir, "LOCK")); err != nil {
		return cannotLock(dir, err)
	}
	e.store, err = log.OpenStore(disk, dir, log.StoreOptions{
		SegmentBytes: e.o.SegmentBytes, Rand: e.o.Rand, Log: disk.PathJoin(dir, "log"),
	})
	if err != nil {
		return err
	}
	e.index, err = index.Open(index.Options{
		FS: disk, Dir: disk.PathJoin(dir, "index"), CacheBytes: e.o.CacheBytes, Logger: e.o.Logger, Bugs: e.o.Bugs.Index,
	})
	if err != nil {
		return e.remedy(err)
	}
	m, from, err := restore(e.index, e.store.SegmentBytes)
	if errors.Is(err, errOldIndex) {
		m, from, err = e.refillIndex()
	}
	if err != nil {
		return e.remedy(err)
	}
	m.bugs = e.o.Bugs
	e.m, e.cutEnd = m, from.Position
	e.carriedTo.Store(uint64(m.keep.carried))
	e.log, err = log.Open(log.Options{
		FS: disk, Dir: disk.PathJoin(dir, "log"), StoreID: e.store.ID, SegmentBytes: e.store.SegmentBytes,
		Preallocate: true, Spares: 2, Logger: e.o.Logger, Bugs: e.o.Bugs.Log,
	}, from)
	if err != nil {
		return err
	}
	if err := e.whole(from); err != nil {
		return err
	}
	if end := e.log.End(); end.Index < from.Index {
		return fmt.Errorf("%w: it holds batch %d, the log ends at %d (position %d); restore the log, or delete %s to rebuild it from what the log holds",
			ErrAhead, from.Index, end.Index, end.Position, disk.PathJoin(dir, "index"))
	}
	return e.replay(ctx, from)
}

// whole says what is missing at the log's beginning. It may begin later than it
// was kept from only if nothing was ever given up, and an index that knows
// nothing needs all of it.
func (e *Engine) whole(from log.Start) error {
	first, position := e.log.FirstIndex(), e.log.FirstPosition()
	folder := e.o.FS.PathJoin(e.o.Dir, "log")
	switch {
	case e.log.LastIndex() == 0:
		return nil
	case from.Index == 0 && first != 1:
		return fmt.Errorf("%w: the log begins at batch %d (position %d) and the index, which knew what came before, is gone; restore a backup, or the older segments to %s",
			record.ErrCorrupt, first, position, folder)
	case position > e.m.keep.from():
		return fmt.Errorf("%w: the log begins at position %d and is needed from %d on: segments are missing from %s; restore them, or a backup",
			record.ErrCorrupt, position, e.m.keep.from(), folder)
	}
	return nil
}

// refillIndex throws away an index that an older version wrote.
func (e *Engine) refillIndex() (*machine, log.Start, error) {
	e.o.Logger.Info("the index was written by an older version; filling it again from the log")
	dir := e.o.FS.PathJoin(e.o.Dir, "index")
	err := e.index.Close()
	e.index = nil
	if err == nil {
		err = e.o.FS.RemoveAll(dir)
	}
	if err != nil {
		return nil, log.Start{}, fmt.Errorf("remove %s: %w", dir, err)
	}
	e.index, err = index.Open(index.Options{FS: e.o.FS, Dir: dir, CacheBytes: e.o.CacheBytes, Logger: e.o.Logger, Bugs: e.o.Bugs.Index})
	if err != nil {
		return nil, log.Start{}, err
	}
	return restore(e.index, e.store.SegmentBytes)
}

// remedy says of a damaged index that it need not be mourned.
func (e *Engine) remedy(err error) error {
	if errors.Is(err, index.ErrCorrupt) {
		return fmt.Errorf("%w; delete %s to rebuild it from the log", err, e.o.FS.PathJoin(e.o.Dir, "index"))
	}
	return err
}

// cannotLock tells a folder that somebody has from one that cannot be written.
func cannotLock(dir string, err error) error {
	if fs.Locked(err) {
		return fmt.Errorf("%w: %s: %w", ErrInUse, dir, err)
	}
	return fmt.Errorf("data folder: %w", err)
}

// replay applies what the index does not hold, cutting as it goes so that
// memory stays bounded.
func (e *Engine) replay(ctx context.Context, from log.Start) error {
	e.found.New, e.found.Log = e.store.Created, e.log.Recovered()
	a := &applier{e: e}
	a.since()
	var eff effects
	err := e.log.Replay(from, func(pos uint64, b *record.Batch) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		eff.reset()
		if err := e.m.apply(pos, b, &eff); err != nil {
			return err
		}
		for _, t := range eff.rung {
			t.rung = false
		}
		e.found.Replayed++
		if a.due() {
			return e.cutInPlace(a) //nolint:contextcheck // a cut is finished, not left half way
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	e.found.Waiting = e.m.line.Waiting()
	now := clock.FloorMs(e.o.Clock.Now().Wall)
	if due, ok := e.m.line.Next(); !ok || due > now {
		return nil
	}
	e.found.Overdue = true
	missed, _, _, err := e.Page(record.Key{}, now+1, MaxMissed, func(*record.Ref) bool { return true })
	e.found.Missed = len(missed)
	return err
}

// cutInPlace writes a cut while nothing else runs.
func (e *Engine) cutInPlace(a *applier) error {
	end, err := e.end()
	if err != nil {
		return err
	}
	f := e.m.freeze(end)
	a.since()
	if err := f.write(e.index, e.log, e.m.waits); err != nil {
		e.m.abandon(f)
		e.o.Logger.Warn("cut postponed", slog.Any("error", err))
		return e.index.Err()
	}
	e.clean(f)
	it, err := f.line.Open(e.index)
	if err != nil {
		return err
	}
	old := e.m.install(f, it)
	e.kept(f)
	if old != nil {
		return old.Close()
	}
	return nil
}
