package engine

import (
	"context"
	"errors"
	"log/slog"
)

// keepLoop proposes what retention asks for: trims, and carries of what waits
// in segments that have grown old. It looks once a second and seldom finds
// anything.
func (e *Engine) keepLoop() {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // the engine's own, ended by Close
	defer cancel()
	for {
		select {
		case <-e.closing:
			return
		case <-e.keeper:
		}
		if e.Err() != nil || e.Suspect() {
			continue
		}
		err := e.trimAndCarry(ctx, e.plan())
		if err != nil && !errors.Is(err, ErrClosed) {
			e.o.Logger.Warn("retention postponed", slog.Any("error", err))
		}
	}
}

// askKeeper has the keeper look.
func (e *Engine) askKeeper() {
	select {
	case e.keeper <- struct{}{}:
	default:
	}
}

// plan says what is to be given up or carried now. All waits for the carry before:
// each cut carries one segment, and until it has the log is where its messages
// are found.
func (e *Engine) plan() plan {
	now := e.Now()
	e.mu.RLock()
	defer e.mu.RUnlock()
	if uint64(e.m.keep.carried) > e.carriedTo.Load() {
		return plan{}
	}
	return e.m.keep.plan(now, e.o.Retention, e.m.halves.oldest())
}

// kept follows a durable cut: what it carried is safe in the index, and segments
// that nobody needs any more may go.
func (e *Engine) kept(f *frozenCut) {
	for _, err := range f.carrier.report {
		e.stats.damaged.Add(1)
		e.o.Logger.Error("waiting message is damaged; its segment is kept", slog.Any("error", err))
	}
	e.stats.carried.Add(int64(f.carrier.moves))
	e.carriedTo.Store(uint64(f.carrier.carried))
	upTo := f.carrier.pinned(f.carrier.from)
	if e.pinned.Load() > 0 || upTo <= e.log.FirstPosition() {
		return
	}
	select {
	case e.removes <- upTo:
	default: // after the next cut
	}
}

// remove removes the segments before a position. It is the writer's.
func (e *Engine) remove(position uint64) {
	if e.Err() != nil || e.pinned.Load() > 0 {
		return
	}
	if err := e.log.RemoveBefore(position); err != nil {
		e.fail(err)
	}
}
