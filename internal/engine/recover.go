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
	m, from, err := restore(e.index)
	if err != nil {
		return e.remedy(err)
	}
	e.m, e.cutEnd = m, from.Position
	e.log, err = log.Open(log.Options{
		FS: disk, Dir: disk.PathJoin(dir, "log"), StoreID: e.store.ID, SegmentBytes: e.store.SegmentBytes,
		Preallocate: true, Spares: 2, Logger: e.o.Logger, Bugs: e.o.Bugs.Log,
	}, from)
	if err != nil {
		return err
	}
	if first := e.log.FirstIndex(); first != 1 && e.log.LastIndex() > 0 {
		return fmt.Errorf("%w: the log begins at batch %d (position %d), what came before is missing from %s; restore the older segments",
			record.ErrCorrupt, first, e.log.FirstPosition(), disk.PathJoin(dir, "log"))
	}
	if end := e.log.End(); end.Index < from.Index {
		return fmt.Errorf("%w: it holds batch %d, the log ends at %d (position %d); restore the log, or delete %s to rebuild it from what the log holds",
			ErrAhead, from.Index, end.Index, end.Position, disk.PathJoin(dir, "index"))
	}
	return e.replay(ctx, from)
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
	if err := f.write(e.index); err != nil {
		e.m.abandon(f)
		e.o.Logger.Warn("cut postponed", slog.Any("error", err))
		return e.index.Err()
	}
	it, err := f.line.Open(e.index)
	if err != nil {
		return err
	}
	if old := e.m.install(f, it); old != nil {
		return old.Close()
	}
	return nil
}
