// Package clock is the only place of DueMQ that looks at the machine's clocks.
//
// It holds the seam ([Clock], [Timer]) with a real and a fake filling, and the
// rules by which readings become the time that the broker believes ([Guard]).
// The rules are pure: they are told the time and read nothing.
package clock

import "time"

// A Reading is the wall clock and the monotonic clock, read together.
type Reading struct {
	// Wall is the time of day in Unix nanoseconds. Somebody may set it, so it
	// may jump, either way.
	Wall int64
	// Mono counts nanoseconds from an arbitrary start that is the same for all
	// readings of one Clock. It never goes back. It may stand still while the
	// machine is suspended.
	Mono int64
}

// Time gives the wall clock of the reading, in UTC, without a monotonic part.
func (r Reading) Time() time.Time { return time.Unix(0, r.Wall).UTC() }

// A Clock reads the time and wakes its callers. It is safe for concurrent use.
type Clock interface {
	// Now reads both clocks.
	Now() Reading
	// NewTimer gives a timer that fires once, when d has passed on the monotonic
	// clock. Not positive fires at once.
	NewTimer(d time.Duration) Timer
}

// A Timer fires once, as a [time.Timer] does since Go 1.23: when Stop or Reset
// returns, no value of an earlier setting will be received.
type Timer interface {
	// C is the channel on which the instant of firing is delivered.
	C() <-chan time.Time
	// Stop keeps the timer from firing and says whether it was still pending.
	Stop() bool
	// Reset sets the timer anew, to fire after d, and says whether it was still
	// pending.
	Reset(d time.Duration) bool
}

// CeilMs turns nanoseconds into milliseconds, rounded up (towards the future),
// so that a due time made from it is never early.
func CeilMs(ns int64) int64 {
	ms := ns / int64(time.Millisecond)
	if ns%int64(time.Millisecond) > 0 {
		ms++
	}
	return ms
}

// FloorMs turns nanoseconds into milliseconds, rounded down (towards the past),
// so that a stamp made from it never claims time that has not passed yet.
func FloorMs(ns int64) int64 {
	ms := ns / int64(time.Millisecond)
	if ns%int64(time.Millisecond) < 0 {
		ms--
	}
	return ms
}
