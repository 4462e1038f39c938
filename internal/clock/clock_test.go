package clock_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duemq/duemq/internal/clock"
)

func TestRoundingIsInTheSafeDirection(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, c := range []struct{ ns, ceil, floor int64 }{
		{0, 0, 0},
		{1, 1, 0},
		{ms - 1, 1, 0},
		{ms, 1, 1},
		{ms + 1, 2, 1},
		{-1, 0, -1},
		{-ms, -1, -1},
		{-ms - 1, -1, -2},
		{math.MaxInt64, 9223372036855, 9223372036854},
		{math.MinInt64, -9223372036854, -9223372036855},
	} {
		if got := clock.CeilMs(c.ns); got != c.ceil {
			t.Errorf("CeilMs(%d) = %d, want %d", c.ns, got, c.ceil)
		}
		if got := clock.FloorMs(c.ns); got != c.floor {
			t.Errorf("FloorMs(%d) = %d, want %d", c.ns, got, c.floor)
		}
	}
}

// In a bubble an hour costs nothing, and the real clock is exact.
func TestRealFollowsABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.Real()
		before := c.Now()
		timer := c.NewTimer(time.Hour)
		at := <-timer.C()
		after := c.Now()
		if d := after.Mono - before.Mono; d != int64(time.Hour) {
			t.Errorf("the monotonic clock moved by %v in an hour", time.Duration(d))
		}
		if d := after.Wall - before.Wall; d != int64(time.Hour) {
			t.Errorf("the wall clock moved by %v in an hour", time.Duration(d))
		}
		if !at.Equal(after.Time()) {
			t.Errorf("the timer says %v, the clock %v", at, after.Time())
		}
		if timer.Stop() {
			t.Error("Stop of a timer that has fired says that it was pending")
		}
		timer.Reset(time.Hour)
		if !timer.Stop() {
			t.Error("Stop of a pending timer says that it was not")
		}
	})
}

// The two clocks must implement the same contract. The real one runs in a
// bubble, where passing time is sleeping.
func TestTimerContract(t *testing.T) {
	run := func(t *testing.T, c clock.Clock, pass func(time.Duration)) {
		fired := func(timer clock.Timer) bool {
			select {
			case <-timer.C():
				return true
			default:
				return false
			}
		}
		a := c.NewTimer(10 * time.Millisecond)
		pass(9 * time.Millisecond)
		if fired(a) {
			t.Error("fired early")
		}
		if !a.Reset(10 * time.Millisecond) {
			t.Error("Reset of a pending timer says that it was not")
		}
		pass(9 * time.Millisecond)
		if fired(a) {
			t.Error("fired at its first setting although it was reset")
		}
		pass(time.Millisecond)
		if !fired(a) {
			t.Error("did not fire after Reset")
		}
		if a.Stop() {
			t.Error("Stop of a timer that was received says that it was pending")
		}
		a.Reset(time.Millisecond)
		pass(time.Second)
		if !a.Stop() {
			t.Error("Stop of a timer that fired unreceived says that it was not pending")
		}
		if fired(a) {
			t.Error("a stale value after Stop")
		}
		now := c.NewTimer(-time.Second)
		pass(0)
		if !fired(now) {
			t.Error("a negative timer does not fire at once")
		}
	}
	t.Run("fake", func(t *testing.T) {
		f := clock.NewFake(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
		run(t, f, f.Advance)
	})
	t.Run("real", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			run(t, clock.Real(), func(d time.Duration) {
				time.Sleep(d)
				synctest.Wait()
			})
		})
	})
}
