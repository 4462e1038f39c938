package clock

import (
	"slices"
	"sync"
	"time"
)

// Fake is a Clock that stands still until it is told to move. It is safe for
// concurrent use.
type Fake struct {
	mu     sync.Mutex
	now    Reading
	timers []*fakeTimer // pending ones, soonest first, those set earlier before their equals
}

var _ Clock = (*Fake)(nil)

// NewFake gives a clock that shows wall, with its monotonic clock at zero.
func NewFake(wall time.Time) *Fake { return &Fake{now: Reading{Wall: wall.UnixNano()}} }

// Now reads both clocks.
func (f *Fake) Now() Reading {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// NewTimer gives a timer that fires when Advance reaches its instant, or now if
// d is not positive.
func (f *Fake) NewTimer(d time.Duration) Timer {
	t := &fakeTimer{f: f, c: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

// Advance moves both clocks forward by d. Timers in between fire in order of
// their instants, each while both clocks show its own instant; a timer that is
// set meanwhile and falls into d fires too. Advance does not wait for whoever
// receives. It panics when d is negative.
func (f *Fake) Advance(d time.Duration) {
	if d < 0 {
		panic("clock: Advance by a negative duration")
	}
	f.mu.Lock()
	end := f.now.Mono + int64(d)
	f.mu.Unlock()
	for f.fireNext(end) {
		// The lock is let go between two timers, so that others may set theirs.
	}
}

// fireNext fires the soonest timer up to end, or moves to end when there is
// none, and says whether there may be more.
func (f *Fake) fireNext(end int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.timers) == 0 || f.timers[0].at > end {
		f.moveLocked(end)
		return false
	}
	t := f.timers[0]
	f.timers = slices.Delete(f.timers, 0, 1)
	f.moveLocked(t.at)
	t.fireLocked()
	return true
}

// moveLocked moves both clocks to an instant of the monotonic one. Another
// Advance may have been there already.
func (f *Fake) moveLocked(mono int64) {
	if d := mono - f.now.Mono; d > 0 {
		f.now.Mono += d
		f.now.Wall += d
	}
}

// Step moves only the wall clock, either way, as somebody who sets it does, or,
// forward, as a suspended machine does. No timer notices.
func (f *Fake) Step(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now.Wall += int64(d)
}

// Timers counts the timers that are pending.
func (f *Fake) Timers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.timers)
}

// NextTimer says how long until the next pending timer fires; ok is false when
// none is pending.
func (f *Fake) NextTimer() (d time.Duration, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.timers) == 0 {
		return 0, false
	}
	return time.Duration(f.timers[0].at - f.now.Mono), true
}

// fakeTimer is pending exactly while it is in f.timers.
type fakeTimer struct {
	f  *Fake
	c  chan time.Time
	at int64 // instant of the monotonic clock
}

func (t *fakeTimer) C() <-chan time.Time { return t.c }

func (t *fakeTimer) Stop() bool {
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	return t.stopLocked()
}

func (t *fakeTimer) Reset(d time.Duration) bool {
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	was := t.stopLocked()
	t.at = t.f.now.Mono + int64(max(d, 0))
	if d <= 0 {
		t.fireLocked()
		return was
	}
	i, _ := slices.BinarySearchFunc(t.f.timers, t.at+1, func(o *fakeTimer, at int64) int {
		if o.at < at {
			return -1
		}
		return 1
	})
	t.f.timers = slices.Insert(t.f.timers, i, t)
	return was
}

// stopLocked also takes back a value that nobody has received, and counts that
// as pending, as the standard library does.
func (t *fakeTimer) stopLocked() bool {
	select {
	case <-t.c:
		return true
	default:
	}
	i := slices.Index(t.f.timers, t)
	if i < 0 {
		return false
	}
	t.f.timers = slices.Delete(t.f.timers, i, i+1)
	return true
}

func (t *fakeTimer) fireLocked() { t.c <- t.f.now.Time() }
