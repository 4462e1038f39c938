package clock_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/duemq/duemq/internal/clock"
)

// jumps are what happens to a wall clock between two looks.
func jumps() *rapid.Generator[time.Duration] {
	return rapid.OneOf(
		rapid.Just(time.Duration(0)),
		rapid.Just(time.Duration(0)),
		rapid.SampledFrom([]time.Duration{
			time.Second, -time.Second, time.Second - 1, 1 - time.Second,
			time.Hour, -time.Hour, 8 * day, -8 * day, 400 * day, -400 * day,
		}),
		rapid.Map(rapid.Int64Range(-2000, 2000), func(ms int64) time.Duration {
			return time.Duration(ms) * time.Millisecond
		}),
	)
}

// gaps are the times between two looks.
func gaps() *rapid.Generator[time.Duration] {
	return rapid.SampledFrom([]time.Duration{
		0, 1, time.Millisecond, 100 * time.Millisecond, time.Second, time.Second, 3 * time.Second, time.Hour,
	})
}

// ceiling restates the guard's promise from its answers alone: nothing beyond
// the last stamp, nor beyond the furthest believed reading carried on.
type ceiling struct {
	at   int64
	last clock.Observation
	mono int64
}

func (c *ceiling) check(t *rapid.T, r clock.Reading, o clock.Observation) {
	if o.Suspect {
		if o.NowNs != c.last.NowNs {
			t.Fatalf("a suspect clock moved time from %d to %d", c.last.NowNs, o.NowNs)
		}
		c.last, c.mono = o, r.Mono
		return
	}
	if o.NowNs < c.last.NowNs && o.Event != clock.EventRebase {
		t.Fatalf("time went back from %d to %d with %v", c.last.NowNs, o.NowNs, o.Event)
	}
	passed := r.Mono - c.mono
	if c.last.Suspect {
		passed = 0 // the last stamp is not carried on
	}
	c.at += passed
	off := r.Wall - c.last.NowNs - passed
	drift := off > -int64(time.Second) && off < int64(time.Second)
	switch {
	case o.Event == clock.EventRebase:
		c.at = r.Wall
	case o.Event == clock.EventStepFollowed, o.Event == clock.EventTrusted, drift && !c.last.Suspect:
		c.at = max(c.at, r.Wall)
	}
	if o.NowNs > c.at {
		t.Fatalf("%v: time is %v early", o.Event, time.Duration(o.NowNs-c.at))
	}
	c.last, c.mono = o, r.Mono
}

// Whatever the clocks do, believed time keeps below the ceiling, goes back only
// with a rebase, stands still while the clock is suspect, and comes to agree
// with a wall clock that keeps still for long enough.
func TestGuardProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := clock.NewFake(start)
		last := int64(0)
		if rapid.Bool().Draw(t, "old store") {
			last = start.Add(jumps().Draw(t, "stamp")).UnixMilli()
		}
		g := clock.NewGuard(clock.GuardOptions{}, last, f.Now())
		c := &ceiling{at: last * int64(time.Millisecond)}
		c.last.NowNs = c.at
		o := g.Observe(f.Now())
		if last == 0 || !o.Suspect {
			c.at = max(c.at, f.Now().Wall)
		}
		c.check(t, f.Now(), o)
		for range rapid.IntRange(0, 60).Draw(t, "looks") {
			f.Advance(gaps().Draw(t, "gap"))
			f.Step(jumps().Draw(t, "jump"))
			if rapid.IntRange(0, 30).Draw(t, "accept") == 0 {
				o = g.Accept(f.Now())
			} else {
				o = g.Observe(f.Now())
			}
			c.check(t, f.Now(), o)
		}
		if f.Now().Time().Year() < 2021 {
			f.Step(start.Sub(f.Now().Time()))
		}
		for range 63 {
			f.Advance(time.Second)
			o = g.Observe(f.Now())
			c.check(t, f.Now(), o)
		}
		if o.Suspect || o.NowNs != f.Now().Wall {
			t.Fatalf("after a minute of peace: %+v, wall clock %d", o, f.Now().Wall)
		}
	})
}

// The promise as a user would put it: with a clock that is right but for
// mistakes of less than five seconds each, nothing is early and nothing late.
func TestGuardNeverEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := clock.NewFake(start)
		g := clock.NewGuard(clock.GuardOptions{}, 0, f.Now())
		wrong := time.Duration(0) // how wrong the wall clock is now
		left := time.Duration(0)  // for how much longer
		for range rapid.IntRange(1, 200).Draw(t, "looks") {
			if left <= 0 && wrong != 0 {
				f.Step(-wrong)
				wrong = 0
			} else if wrong == 0 && rapid.IntRange(0, 4).Draw(t, "mistake") == 0 {
				wrong = rapid.SampledFrom([]time.Duration{
					time.Second, -time.Second, time.Hour, -time.Hour, 400 * day, -400 * day,
				}).Draw(t, "wrong")
				left = rapid.SampledFrom([]time.Duration{1, time.Second, 4999 * time.Millisecond}).Draw(t, "for")
				f.Step(wrong)
			}
			o := g.Observe(f.Now())
			if truth := f.Now().Wall - int64(wrong); o.NowNs != truth {
				t.Fatalf("believed time is wrong by %v", time.Duration(o.NowNs-truth))
			}
			d := time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "gap"))
			if wrong != 0 {
				d = min(d, left)
			}
			left -= d
			f.Advance(d)
		}
	})
}

// A step is followed only after every look of the last five seconds has shown
// it.
func TestGuardConfirmsOnlyWhatHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := clock.NewFake(start)
		g := clock.NewGuard(clock.GuardOptions{}, 0, f.Now())
		var seen []clock.Reading
		for range rapid.IntRange(1, 100).Draw(t, "looks") {
			f.Advance(time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "gap")))
			f.Step(jumps().Draw(t, "jump"))
			r := f.Now()
			seen = append(seen, r)
			o := g.Observe(r)
			if o.Event != clock.EventStepFollowed && o.Event != clock.EventRebase {
				continue
			}
			for _, s := range seen {
				moved := time.Duration((r.Wall - r.Mono) - (s.Wall - s.Mono)).Abs()
				if age := time.Duration(r.Mono - s.Mono); age < 5*time.Second && moved >= 2*time.Second {
					t.Fatalf("%v although the clock moved by %v only %v ago", o.Event, moved, age)
				}
			}
		}
	})
}
