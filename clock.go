package duemq

import (
	"time"

	"github.com/duemq/duemq/internal/clock"
)

// A Clock is where a Queue gets the time from, for tests: [WithClock]. It is
// safe for concurrent use.
type Clock interface {
	// Now reads two clocks at once: the wall clock, which somebody may set, and
	// the time that has passed since some moment, which never goes back. The
	// difference is how a Queue notices that the wall clock was set.
	Now() (wall time.Time, elapsed time.Duration)
	// NewTimer gives a timer that fires once, when d has passed on the clock that
	// nobody sets. Not positive fires at once.
	NewTimer(d time.Duration) Timer
}

// A Timer fires once, as a [time.Timer] does: when Stop or Reset returns,
// nothing of an earlier setting is received any more.
type Timer interface {
	// C is the channel on which it fires.
	C() <-chan time.Time
	// Stop keeps it from firing and says whether it was pending.
	Stop() bool
	// Reset sets it anew and says whether it was pending.
	Reset(d time.Duration) bool
}

// givenClock is a Clock as the rooms below want it.
type givenClock struct{ c Clock }

func (g givenClock) Now() clock.Reading {
	wall, elapsed := g.c.Now()
	return clock.Reading{Wall: wall.UnixNano(), Mono: int64(elapsed)}
}

func (g givenClock) NewTimer(d time.Duration) clock.Timer { return g.c.NewTimer(d) }

// ceilMs is a duration in milliseconds, rounded up.
func ceilMs(d time.Duration) int64 { return clock.CeilMs(int64(d)) }

// unixMs is an instant in Unix milliseconds, rounded up. What lies millions of
// years away is as far as that.
func unixMs(t time.Time) int64 {
	const far = 1 << 47 // seconds
	if s := t.Unix(); s < -far || s > far {
		t = time.Unix(min(max(s, -far), far), 0)
	}
	ms := t.UnixMilli()
	if t.After(time.UnixMilli(ms)) {
		ms++
	}
	return ms
}

// instant is what unixMs stands for, in UTC; 0 is the zero time.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
