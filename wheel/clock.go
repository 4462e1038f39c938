package wheel

import "time"

// A Clock is how a [Runner] reads the time and sleeps. Package time is one, and
// the default. Its Now should carry a monotonic reading, as time.Now does: while
// a clock that stepped back catches up, no callback starts. Its methods are
// called by several goroutines.
type Clock interface {
	// Now returns the current time.
	Now() time.Time

	// NewTimer returns a timer that fires once, after d.
	NewTimer(d time.Duration) Timer
}

// A Timer is one that a [Clock] made. It is as a time.Timer since Go 1.23: after
// Reset or Stop has returned, its channel gives nothing that was due before.
// Reset and Stop may be called while another goroutine receives.
type Timer interface {
	// C returns the channel that gives the time when the timer fires. It is
	// always the same one.
	C() <-chan time.Time

	// Reset makes the timer fire after d from now, and only then.
	Reset(d time.Duration) bool

	// Stop keeps the timer from firing.
	Stop() bool
}

// realClock is package time.
type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) NewTimer(d time.Duration) Timer { return realTimer{time.NewTimer(d)} }

type realTimer struct{ *time.Timer }

func (t realTimer) C() <-chan time.Time { return t.Timer.C }
