package index

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2"
)

// fakeDB plays Pebble's part: it has work, asks for a compaction when there is
// some, and takes offers, all under its own lock, which it also holds when it
// asks. The interface is Pebble's own, so its rules on locks apply.
type fakeDB struct {
	s *scheduler

	mu      sync.Mutex
	work    int // compactions to do
	waiting bool
	running int
	most    int // the most that ran at once
	done    int
	fails   bool   // compactions fail: the work stays
	after   func() // runs when an offer has been looked at
}

func (d *fakeDB) GetAllowedWithoutPermission() int { return 1 }

func (d *fakeDB) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	d.mu.Lock()
	d.waiting = d.waiting && d.work > 0
	waiting := d.waiting
	d.mu.Unlock()
	if d.after != nil {
		d.after()
	}
	return waiting, pebble.WaitingCompaction{}
}

func (d *fakeDB) Schedule(h pebble.CompactionGrantHandle) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.waiting || d.work == 0 {
		return false
	}
	d.startLocked(h)
	return true
}

func (d *fakeDB) startLocked(h pebble.CompactionGrantHandle) {
	d.work--
	d.running++
	d.most = max(d.most, d.running)
	go d.compact(h)
}

func (d *fakeDB) compact(h pebble.CompactionGrantHandle) {
	h.Started()
	d.mu.Lock()
	d.running--
	d.done++
	if d.fails {
		d.work++
		d.s.pause()
	}
	d.mu.Unlock()
	h.Done()
	d.maybeSchedule(0)
}

// maybeSchedule adds work and asks for as many compactions as there is work.
func (d *fakeDB) maybeSchedule(work int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.work += work
	for d.work > 0 && !d.waiting {
		ok, h := d.s.TrySchedule()
		if !ok {
			d.waiting = true
			return
		}
		d.startLocked(h)
	}
}

func newFakeDB() *fakeDB {
	d := &fakeDB{s: newScheduler(&failure{logger: slog.New(slog.DiscardHandler)})}
	d.s.Register(1, d)
	return d
}

// All work gets done, one piece at a time, whoever asks when.
func TestSchedulerDoesAllWorkOneAtATime(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			d := newFakeDB()
			want := 0
			var wg sync.WaitGroup
			for range 8 {
				n := rng.IntN(20)
				want += n
				wg.Go(func() {
					for range n {
						d.maybeSchedule(1)
					}
					d.s.resume()
					d.s.UpdateGetAllowedWithoutPermission()
				})
			}
			wg.Wait()
			synctest.Wait()
			if d.done != want || d.most > 1 || d.work != 0 {
				t.Errorf("seed %d: %d of %d done, %d at once, %d left", seed, d.done, want, d.most, d.work)
			}
			d.s.Unregister()
		})
	}
}

// A compaction that fails is tried once for each resume, and not at all after a
// final error.
func TestSchedulerPausesAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDB()
		d.fails = true
		for cut := 1; cut <= 5; cut++ {
			d.maybeSchedule(cut % 2)
			synctest.Wait()
			if d.done != cut || !d.s.isPaused() {
				t.Errorf("%d tries after %d cuts, paused %v", d.done, cut, d.s.isPaused())
			}
			if d.s.pause() {
				t.Error("pause says that it was the first")
			}
			d.s.resume()
			synctest.Wait()
		}
		d.fails = false
		d.s.resume()
		synctest.Wait()
		if d.work != 0 || d.s.isPaused() {
			t.Errorf("%d left when all is well, paused %v", d.work, d.s.isPaused())
		}
		done := d.done
		d.s.failure.set(errors.New("the end"))
		d.maybeSchedule(1)
		d.s.resume()
		synctest.Wait()
		if d.done != done {
			t.Error("a compaction after a final error")
		}
	})
}

// Work that turns up while an offer is under way, too late to be offered and
// too early to be granted, must not be forgotten.
func TestSchedulerOffersAgainWhoeverItRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDB()
		d.after = func() {
			d.after = nil
			d.maybeSchedule(1)
			if !d.waiting {
				t.Error("granted while an offer was under way")
			}
		}
		d.s.pause()
		d.s.resume()
		synctest.Wait()
		if d.done != 1 {
			t.Errorf("%d done, want 1", d.done)
		}
	})
}

func TestSchedulerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDB()
		d.s.Unregister()
		d.maybeSchedule(1)
		d.s.Done() // of one that was running
		synctest.Wait()
		if d.done != 0 {
			t.Error("a compaction after the end")
		}
	})
}
