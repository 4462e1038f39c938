package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/duemq/duemq/internal/backup"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
)

// BackupInfo says what a backup holds.
type BackupInfo struct {
	Store    [16]byte // id of the store that was copied
	Restored [16]byte // id of the store that was made of it; zero from Backup
	Created  int64    // Unix ms by the clock of who made the backup; not before the last stamp in it
	First    uint64   // index of the log's first batch in it, or of the next one if it has none
	Applied  uint64   // batch up to which its index holds the log
	End      uint64   // batch with which it ends
	Position uint64   // where that batch ends
	Pairs    uint64   // keys of the index
	Batches  uint64   // of the log
	Bytes    int64    // of the stream
}

// infoOf is what a stream's head says of a backup.
func infoOf(h *backup.Head) BackupInfo {
	return BackupInfo{
		Store: h.Store, Created: h.Created, First: h.First.Index + 1,
		Applied: h.Applied.Index, End: h.End.Index, Position: h.End.Position,
	}
}

// Backup writes a copy of the store to w while the engine goes on: everything
// acknowledged before the call, and nothing that was not on the disk here. The
// state that [RestoreBackup] makes of it is that at batch End of the result. The
// form is that of internal/backup: w may be a pipe, and a copy that ends early
// is told from a whole one by its reader. progress, if not nil, hears of the
// bytes written and of an estimate of all.
//
// Every checksum of what is copied is verified, so a store that has damage in
// what it keeps cannot be backed up; the error names file and byte. As long as
// it takes, no segment of the log is removed and the disk space of replaced
// index tables is not given back. It ends with ctx, and with the engine: Close
// waits until w.Write returns, then for no more than that. Memory is bounded by
// a few mebibytes.
func (e *Engine) Backup(ctx context.Context, w io.Writer, progress func(done, total int64)) (BackupInfo, error) {
	if err := e.pin(); err != nil {
		return BackupInfo{}, err
	}
	defer e.unpin()
	// The writer removes segments; when it has answered it knows that it must not.
	if err := e.syncForBackup(); err != nil {
		return BackupInfo{}, err
	}
	if err := e.cutForBackup(); err != nil {
		return BackupInfo{}, err
	}
	v, err := e.index.View()
	if err != nil {
		return BackupInfo{}, fmt.Errorf("backup: %w", err)
	}
	info, err := e.copyTo(&copyTarget{w: w, stop: func() error { return e.stopped(ctx) }, progress: progress}, v)
	if cerr := v.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return info, fmt.Errorf("backup: %w", err)
	}
	return info, nil
}

// pin keeps the log as it is until unpin: no segment is removed, and Close waits.
func (e *Engine) pin() error {
	e.pending.mu.Lock()
	defer e.pending.mu.Unlock()
	if e.pending.closed {
		return ErrClosed // whose Close may be past its waiting
	}
	if err := e.Err(); err != nil {
		return err
	}
	e.wg.Add(1)
	e.pinned.Add(1)
	return nil
}

func (e *Engine) unpin() {
	e.pinned.Add(-1)
	e.wg.Done()
}

// stopped says why a backup must not go on.
func (e *Engine) stopped(ctx context.Context) error {
	select {
	case <-e.closing:
		return ErrClosed
	default:
		return ctx.Err()
	}
}

// cutForBackup takes a cut, so that a restored store has little to replay. It can
// do without: the log holds everything behind any cut.
func (e *Engine) cutForBackup() error {
	err := e.Cut()
	if err == nil || errors.Is(err, ErrClosed) {
		return err
	}
	if failed := e.Err(); failed != nil {
		return failed
	}
	e.o.Logger.Warn("backup goes on with an older cut", slog.Any("error", err))
	return nil
}

// copyTo writes index and log. The view is older than what was applied when it
// is asked for below, so the log reaches at least to where the index ends.
func (e *Engine) copyTo(to *copyTarget, v *index.View) (BackupInfo, error) {
	head, err := e.backupHead(v)
	if err != nil {
		return BackupInfo{}, err
	}
	info := infoOf(&head)
	to.total = head.Estimate
	w, err := backup.NewWriter(to, head)
	if err != nil {
		return info, err
	}
	err = v.Each(func(s index.Space, key, value []byte) error { return w.Pair(byte(s), key, value) })
	if err == nil {
		err = e.copyLog(w, head.End.Index)
	}
	if err != nil {
		return info, err
	}
	totals, err := w.Close()
	info.Pairs, info.Batches, info.Bytes = totals.Pairs, totals.Batches, w.Bytes()
	return info, err
}

// backupHead finds out from where to where the copy goes. It is on the disk that
// far when it returns.
func (e *Engine) backupHead(v *index.View) (backup.Head, error) {
	first := e.log.Segments()[0]
	h := backup.Head{
		Store: e.store.ID, SegmentBytes: e.store.SegmentBytes, Created: e.Now(),
		First: backup.Place{Index: first.First - 1, Position: first.Base},
	}
	value, ok, err := v.Get(nil, SpaceState, []byte{stateApplied})
	if err != nil {
		return h, err
	}
	h.Applied = h.First
	if ok {
		at, _, err := splitApplied(value)
		if err != nil {
			return h, err
		}
		h.Applied = backup.Place{Index: at.Index, Position: at.Position}
	}
	if h.End, err = e.backupEnd(h.First); err != nil {
		return h, err
	}
	h.Estimate = e.index.Metrics().LiveBytes + int64(h.End.Position-h.First.Position)
	return h, nil
}

// backupEnd is the place after the last batch that was applied, synced. Who was
// answered before was answered after its batch was applied.
func (e *Engine) backupEnd(first backup.Place) (backup.Place, error) {
	e.mu.RLock()
	last, at := e.m.last, e.m.index
	e.mu.RUnlock()
	if at == first.Index {
		return first, nil
	}
	end, err := e.log.After(last)
	if err != nil {
		return first, err
	}
	if e.log.Synced() < end.Position {
		err = e.syncForBackup()
	}
	return backup.Place{Index: end.Index, Position: end.Position}, err
}

// syncForBackup has the writer sync the log.
func (e *Engine) syncForBackup() error {
	answer := make(chan error, 1)
	select {
	case e.syncs <- answer:
		return <-answer
	case <-e.closing:
		return ErrClosed
	}
}

// copyLog writes the log from its first batch to the one with index end.
func (e *Engine) copyLog(w *backup.Writer, end uint64) error {
	if e.log.FirstIndex() > end {
		return nil
	}
	enough := errors.New("the walk ends where the backup does")
	err := e.log.Replay(log.Start{}, func(pos uint64, b *record.Batch) error {
		if err := w.Batch(pos, b); err != nil {
			return err
		}
		if b.Index == end {
			return enough
		}
		return nil
	})
	if errors.Is(err, enough) {
		return nil
	}
	return err
}

// A copyTarget is where a backup goes: between two frames it looks whether it
// must stop, and tells how far it is.
type copyTarget struct {
	w           io.Writer
	stop        func() error
	progress    func(done, total int64)
	done, total int64
}

// Write writes one frame.
func (c *copyTarget) Write(p []byte) (int, error) {
	if err := c.stop(); err != nil {
		return 0, err
	}
	n, err := c.w.Write(p)
	c.done += int64(n)
	if c.progress != nil {
		c.progress(c.done, max(c.total, c.done))
	}
	return n, err
}
