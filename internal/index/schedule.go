package index

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// scheduler lets Pebble run one compaction at a time.
//
// It stands in for Pebble's own for two reasons. That one looks for work ten
// times a second, for ever, also when nothing happens; with a limit of one that
// never changes there is nothing to look for. And after a compaction that
// failed (a full disk, say) Pebble starts the next at once, which fails again, a
// core's worth; here none is started until a cut has been installed.
type scheduler struct {
	failure *failure
	db      pebble.DBForCompaction // set by Register, before all other calls

	mu       sync.Mutex
	running  bool // a compaction runs, or a grant is being offered
	paused   bool // the last one failed
	offering bool // an offer is under way, outside of the lock
	missed   bool // one was refused while an offer was under way
	stopped  bool
	settled  sync.Cond // no offer is under way
}

var _ pebble.CompactionScheduler = (*scheduler)(nil)

func newScheduler(f *failure) *scheduler {
	s := &scheduler{failure: f}
	s.settled.L = &s.mu
	return s
}

// Register is Pebble's call when it opens.
func (s *scheduler) Register(_ int, db pebble.DBForCompaction) { s.db = db }

// Unregister is Pebble's call when it closes. It returns when no offer is under
// way any more.
func (s *scheduler) Unregister() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for s.offering {
		s.settled.Wait()
	}
}

// TrySchedule is Pebble's question, with its locks held, whether a compaction
// may run now. After a refusal it waits to be offered one.
func (s *scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offering {
		s.missed = true
	}
	if !s.freeLocked() {
		return false, nil
	}
	s.running = true
	return true, s
}

// UpdateGetAllowedWithoutPermission says that the limit may have changed. Ours
// never does.
func (s *scheduler) UpdateGetAllowedWithoutPermission() {}

// Started is Pebble's call when a compaction begins.
func (s *scheduler) Started() {}

// MeasureCPU is not used.
func (s *scheduler) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats is not used.
func (s *scheduler) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done is Pebble's call when the compaction that was granted has ended.
func (s *scheduler) Done() {
	s.mu.Lock()
	s.running = false
	s.mu.Unlock()
	s.offer()
}

// pause holds compactions back until resume and says whether it was the first
// to do so.
func (s *scheduler) pause() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.paused
	s.paused = true
	return first
}

// resume lets compactions run again.
func (s *scheduler) resume() {
	s.mu.Lock()
	was := s.paused
	s.paused = false
	s.mu.Unlock()
	if was {
		s.offer()
	}
}

func (s *scheduler) freeLocked() bool {
	return !s.running && !s.paused && !s.stopped && s.failure.get() == nil
}

// offer grants a compaction to Pebble if it waits for one. Pebble takes its
// locks in these calls and asks TrySchedule while it holds them, so ours is let
// go; the slot stays taken meanwhile, and who was refused because of that gets
// another offer.
func (s *scheduler) offer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.offering {
		s.settled.Wait()
	}
	for again := true; again && s.freeLocked(); {
		s.offering, s.running, s.missed = true, true, false
		s.mu.Unlock()
		waiting, _ := s.db.GetWaitingCompaction()
		taken := waiting && s.db.Schedule(s)
		s.mu.Lock()
		s.offering = false
		if !taken {
			s.running = false
		}
		again = !taken && s.missed
		s.settled.Broadcast()
	}
}

// isPaused says whether compactions are held back because the last one failed.
func (s *scheduler) isPaused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paused
}
