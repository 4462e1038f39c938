package engine

import "time"

// lazySync is how long an acknowledgement of a consumer may ride unsynced under
// SyncAlways.
const lazySync = 10 * time.Millisecond

// write is the one goroutine that appends to the log and syncs it. What is
// answered under SyncAlways has been synced; all who came while one sync ran
// share the next.
func (e *Engine) write() {
	defer close(e.writerUp)
	defer close(e.written)
	timer := e.o.Clock.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	unsynced := false
	for {
		select {
		case f, ok := <-e.handoff:
			if !ok {
				_ = e.sync() // its failure is the engine's
				return
			}
			was := unsynced
			unsynced = e.append(f, unsynced)
			if unsynced && !was {
				timer.Reset(e.patience())
			}
			e.written <- f
		case <-timer.C():
			_ = e.sync()
			unsynced = false
		case position := <-e.removes:
			e.remove(position)
		case answer := <-e.syncs:
			answer <- e.sync()
			unsynced = false
		}
	}
}

// patience is how long what was written may stay unsynced.
func (e *Engine) patience() time.Duration {
	if e.o.Sync == SyncInterval {
		return e.o.SyncEvery
	}
	return lazySync
}

// append writes a flight, syncs it if somebody waits for the disk, and says
// whether anything is left unsynced.
func (e *Engine) append(f *flight, unsynced bool) bool {
	if f.used == 0 || e.Err() != nil {
		return unsynced
	}
	for _, d := range f.drafts[:f.used] {
		f.batches = append(f.batches, &d.Batch)
		f.positions = append(f.positions, 0)
	}
	if err := e.log.Append(f.batches, f.positions); err != nil {
		e.fail(err)
		return unsynced
	}
	if e.o.Sync != SyncAlways || !f.mustSync || (f.tick && e.o.Bugs.EarlyTick) {
		return true
	}
	_ = e.sync()
	return false
}

// sync makes the log durable; its failure is the engine's.
func (e *Engine) sync() error {
	if err := e.Err(); err != nil {
		return err
	}
	began := e.o.Clock.Now()
	if err := e.log.Sync(); err != nil {
		e.fail(err)
		return e.Err()
	}
	took := e.o.Clock.Now().Mono - began.Mono
	e.syncTook.Store(took)
	e.stats.syncs.Add(1)
	e.stats.syncNs.Add(took)
	return nil
}

// syncTo makes sure that the log is on disk up to a position, from any
// goroutine but the writer's.
func (e *Engine) syncTo(position uint64) error {
	if e.log.Synced() >= position {
		return nil
	}
	answer := make(chan error, 1)
	select {
	case e.syncs <- answer:
		return <-answer
	case <-e.writerUp: // it has synced at its end, and only the applier is left
		return e.sync()
	}
}
