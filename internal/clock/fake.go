package clock

import (
	"sync"
	"time"
)

// Fake is a Clock that stands still until it is told to move. It is safe for
// concurrent use.
type Fake struct {
	mu     sync.Mutex
	now    Reading
	timers []*fakeTimer
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

// NewTimer gives a timer that fires when Advance passes its instant.
func (f *Fake) NewTimer(d time.Duration) Timer {
	t := &fakeTimer{f: f, c: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

// Advance moves both clocks forward by d and fires the timers in between in
// order of their instants, with both clocks showing each timer's own instant
// while it fires.
func (f *Fake) Advance(d time.Duration) {}

// Step moves only the wall clock, either way, as somebody who sets it does.
// No timer notices.
func (f *Fake) Step(d time.Duration) {}

// Timers counts the timers that are pending.
func (f *Fake) Timers() int { return 0 }

// NextTimer says how long until the next pending timer fires; ok is false when
// none is pending.
func (f *Fake) NextTimer() (d time.Duration, ok bool) { return 0, false }

type fakeTimer struct {
	f  *Fake
	c  chan time.Time
	at int64
}

func (t *fakeTimer) C() <-chan time.Time        { return t.c }
func (t *fakeTimer) Stop() bool                 { return false }
func (t *fakeTimer) Reset(d time.Duration) bool { return false }
