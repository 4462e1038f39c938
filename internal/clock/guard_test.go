package clock_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
)

const day = 24 * time.Hour

// sim is a broker's loop around a guard: it looks when the guard wants it to and
// writes down what happens, in seconds since the start of the loop.
type sim struct {
	f     *clock.Fake
	g     *clock.Guard
	began int64
	obs   clock.Observation
	diary []string
}

// boot starts a guard on the fake clock, as a process does.
func boot(f *clock.Fake, o clock.GuardOptions, lastStamp int64) *sim {
	s := &sim{f: f, g: clock.NewGuard(o, lastStamp, f.Now()), began: f.Now().Mono}
	s.note(s.g.Observe(f.Now()))
	return s
}

func (s *sim) note(o clock.Observation) {
	if o.Suspect != s.obs.Suspect || o.Doubt != s.obs.Doubt || o.Event != clock.EventNone {
		text := o.Event.String()
		if o.Suspect {
			text = "suspect: " + o.Doubt.String()
		}
		if o.Step != 0 {
			text += " " + o.Step.Round(time.Millisecond).String()
		}
		s.diary = append(s.diary, fmt.Sprintf("%v %s", time.Duration(s.f.Now().Mono-s.began), text))
	}
	s.obs = o
}

// run lets d pass.
func (s *sim) run(d time.Duration) {
	for d > 0 {
		n := min(d, s.g.NextLook(s.f.Now()))
		s.f.Advance(n)
		d -= n
		s.note(s.g.Observe(s.f.Now()))
	}
}

// step lets somebody set the wall clock and the loop look.
func (s *sim) step(d time.Duration) {
	s.f.Step(d)
	s.note(s.g.Observe(s.f.Now()))
}

// ahead is how far the believed time is before the wall clock.
func (s *sim) ahead() time.Duration { return time.Duration(s.obs.NowNs - s.f.Now().Wall) }

func (s *sim) want(t *testing.T, diary ...string) {
	t.Helper()
	if !slices.Equal(s.diary, diary) {
		t.Errorf("diary:\n  %s\nwant:\n  %s", strings.Join(s.diary, "\n  "), strings.Join(diary, "\n  "))
	}
	s.diary = nil
}

func (s *sim) wantAhead(t *testing.T, want time.Duration) {
	t.Helper()
	if got := s.ahead(); got != want {
		t.Errorf("believed time is %v before the wall clock, want %v", got, want)
	}
}

func TestGuardFollowsAQuietClock(t *testing.T) {
	s := boot(clock.NewFake(start), clock.GuardOptions{}, 0)
	s.run(time.Hour)
	s.want(t)
	s.wantAhead(t, 0)
}

func TestGuardFollowsStepsThatHold(t *testing.T) {
	for _, step := range []time.Duration{
		time.Second, -time.Second, time.Hour, -time.Hour, 8 * day, -8 * day, 400 * day, -400 * day,
	} {
		t.Run(step.String(), func(t *testing.T) {
			s := boot(clock.NewFake(start), clock.GuardOptions{}, 0)
			s.run(time.Minute)
			s.step(step)
			s.wantAhead(t, -step)
			s.run(5*time.Second - time.Millisecond)
			s.wantAhead(t, -step) // time went on by the monotonic clock
			s.run(time.Millisecond)
			s.wantAhead(t, 0)
			followed := "step followed"
			if step < 0 {
				followed = "rebase"
			}
			s.want(t, fmt.Sprintf("1m0s step seen %v", step), fmt.Sprintf("1m5s %s %v", followed, step))
			s.run(time.Hour)
			s.want(t)
			s.wantAhead(t, 0)
		})
	}
}

// The mistake of an hour that is mended within five seconds leaves no trace in
// believed time.
func TestGuardIgnoresStepsThatVanish(t *testing.T) {
	for _, step := range []time.Duration{time.Second, -time.Second, time.Hour, -time.Hour, 400 * day, -400 * day} {
		t.Run(step.String(), func(t *testing.T) {
			s := boot(clock.NewFake(start), clock.GuardOptions{}, 0)
			s.step(step)
			s.run(4999 * time.Millisecond)
			s.step(-step)
			s.want(t, fmt.Sprintf("0s step seen %v", step), "4.999s step vanished")
			s.wantAhead(t, 0)
		})
	}
}

// A clock that jumps again must hold again from there.
func TestGuardWaitsForTheLastOfSeveralSteps(t *testing.T) {
	s := boot(clock.NewFake(start), clock.GuardOptions{}, 0)
	s.step(time.Hour)
	s.run(4 * time.Second)
	s.step(time.Hour)
	s.run(4 * time.Second)
	s.step(-4 * time.Hour)
	s.run(5 * time.Second)
	s.want(t, "0s step seen 1h0m0s", "4s step seen 2h0m0s", "8s step seen -2h0m0s", "13s rebase -2h0m0s")
	s.wantAhead(t, 0)
}

func TestGuardSmallStepsAreFollowedButNeverBack(t *testing.T) {
	s := boot(clock.NewFake(start), clock.GuardOptions{}, 0)
	s.step(999 * time.Millisecond)
	s.wantAhead(t, 0)
	s.step(-999 * time.Millisecond)
	s.wantAhead(t, 999*time.Millisecond) // stands still
	s.run(500 * time.Millisecond)
	s.wantAhead(t, 499*time.Millisecond)
	s.run(time.Second)
	s.wantAhead(t, 0)
	s.want(t)
}

// Two small steps back make one that is not small: they are measured from the
// believed time, or a clock could be walked back a second at a time while time
// stands still for ever.
func TestGuardSmallStepsAddUp(t *testing.T) {
	s := boot(clock.NewFake(start), clock.GuardOptions{}, 0)
	s.step(-600 * time.Millisecond)
	s.step(-600 * time.Millisecond)
	s.run(5 * time.Second)
	s.want(t, "0s step seen -1.2s", "5s rebase -1.2s")
	s.wantAhead(t, 0)
}

// Slewing by 500 ppm, the most that NTP does, is no step, however far it leads.
func TestGuardFollowsSlewing(t *testing.T) {
	for _, aSecond := range []time.Duration{500 * time.Microsecond, -500 * time.Microsecond} {
		s := boot(clock.NewFake(start), clock.GuardOptions{}, 0)
		for range 3 * 3600 {
			s.f.Step(aSecond)
			s.run(time.Second)
		}
		s.want(t)
		s.wantAhead(t, 0)
	}
}

// While the machine sleeps the monotonic clock stands still; waking up looks
// like a step forward.
func TestGuardSuspend(t *testing.T) {
	s := boot(clock.NewFake(start), clock.GuardOptions{}, 0)
	s.run(time.Minute)
	s.step(9 * time.Hour)
	s.run(5 * time.Second)
	s.want(t, "1m0s step seen 9h0m0s", "1m5s step followed 9h0m0s")
	s.wantAhead(t, 0)
}

// A leap second that the kernel repeats is a step of exactly one second back:
// time goes on, is a second ahead for as long as a step takes to be confirmed,
// and is rebased. Smeared leap seconds are slewing.
func TestGuardLeapSecond(t *testing.T) {
	s := boot(clock.NewFake(start), clock.GuardOptions{}, 0)
	s.run(time.Minute)
	s.step(-time.Second)
	s.run(time.Minute)
	s.want(t, "1m0s step seen -1s", "1m5s rebase -1s")
	s.wantAhead(t, 0)
}

func TestGuardAfterRestart(t *testing.T) {
	stamp := func(d time.Duration) int64 { return start.Add(d).UnixMilli() }
	for _, c := range []struct {
		name  string
		stamp int64
		run   time.Duration
		diary []string
		ahead time.Duration
	}{
		{"clock where it was", stamp(0), time.Hour, nil, 0},
		{"down for eight days", stamp(-8 * day), time.Hour, nil, 0},
		{"down for as long as a delay may be", stamp(-366 * day), time.Hour, nil, 0},
		{"a little behind: wait", stamp(999 * time.Millisecond), 0, nil, 999 * time.Millisecond},
		{"a little behind: caught up", stamp(999 * time.Millisecond), time.Second, nil, 0},
		{
			"a second behind: suspect for a moment", stamp(time.Second), 0,
			[]string{"0s suspect: behind the last stamp -1s"},
			time.Second,
		},
		{
			"30 s behind: until it passes", stamp(30 * time.Second), time.Minute,
			[]string{"0s suspect: behind the last stamp -30s", "29.001s trusted -999ms"},
			0,
		},
		{
			"an hour behind, not yet held", stamp(time.Hour), 59 * time.Second,
			[]string{"0s suspect: behind the last stamp -1h0m0s"},
			time.Hour - 59*time.Second,
		},
		{
			"an hour behind, held", stamp(time.Hour), time.Minute,
			[]string{"0s suspect: behind the last stamp -1h0m0s", "1m0s rebase -59m0s"},
			0,
		},
		{
			"400 days behind, held", stamp(400 * day), time.Minute,
			[]string{"0s suspect: behind the last stamp -9600h0m0s", "1m0s rebase -9599h59m0s"},
			0,
		},
		{
			"400 days ahead, held", stamp(-400 * day), time.Minute,
			[]string{"0s suspect: too far beyond the last stamp 9600h0m0s", "1m0s trusted 9600h1m0s"},
			0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := boot(clock.NewFake(start), clock.GuardOptions{}, c.stamp)
			s.run(c.run)
			s.want(t, c.diary...)
			s.wantAhead(t, c.ahead)
		})
	}
}

func TestGuardSuspectClockGivesNoTime(t *testing.T) {
	last := start.Add(time.Hour).UnixMilli()
	s := boot(clock.NewFake(start), clock.GuardOptions{}, last)
	for range 59 {
		s.run(time.Second)
		if !s.obs.Suspect || s.obs.NowNs != last*int64(time.Millisecond) {
			t.Fatalf("after %v: %+v, want suspect and to stand at the last stamp", s.f.Now().Mono, s.obs)
		}
	}
}

func TestGuardNeverBelievesAClockThatWasNeverSet(t *testing.T) {
	for _, last := range []int64{0, start.UnixMilli()} {
		s := boot(clock.NewFake(time.Unix(0, 0)), clock.GuardOptions{}, last)
		s.run(day)
		if !s.obs.Suspect || s.obs.Doubt != clock.DoubtBefore2020 || s.obs.NowNs != last*int64(time.Millisecond) {
			t.Errorf("last stamp %d: %+v after a day in 1970", last, s.obs)
		}
		// NTP comes up and sets it. That has to hold like any other step.
		s.diary = nil
		s.step(start.Sub(s.f.Now().Time()))
		s.run(5 * time.Second)
		if s.obs.Suspect || s.ahead() != 0 {
			t.Errorf("last stamp %d: %+v, %v ahead, 5 s after it was set", last, s.obs, s.ahead())
		}
		if got := strings.Join(s.diary, ";"); !strings.HasPrefix(got, "24h0m0s suspect: has just been set") ||
			!strings.Contains(got, "24h0m5s trusted") {
			t.Errorf("last stamp %d: %s", last, got)
		}
	}
}

// NextLook must not make the caller look more often than something can change.
func TestGuardLooksOnceASecondUnlessSomethingIsNear(t *testing.T) {
	looks := func(s *sim, d time.Duration) (n int) {
		for end := s.f.Now().Mono + int64(d); s.f.Now().Mono < end; n++ {
			s.run(s.g.NextLook(s.f.Now()))
		}
		return n
	}
	for _, c := range []struct {
		name  string
		at    time.Time
		stamp time.Time
		want  int
	}{
		{"quiet", start, start, 3600},
		{"never set", time.Unix(0, 0), start, 3600},
		{"behind by 1.5 s", start, start.Add(1500 * time.Millisecond), 3601},
		{"behind by an hour", start, start.Add(time.Hour), 3600},
	} {
		s := boot(clock.NewFake(c.at), clock.GuardOptions{}, c.stamp.UnixMilli())
		if got := looks(s, time.Hour); got != c.want {
			t.Errorf("%s: %d looks in an hour, want %d", c.name, got, c.want)
		}
	}
	s := boot(clock.NewFake(start), clock.GuardOptions{}, 0)
	s.run(300 * time.Millisecond)
	s.step(time.Hour)
	if got := looks(s, 5*time.Second); got != 5 || s.ahead() != 0 {
		t.Errorf("%d looks at a step, %v ahead, want 5 and 0", got, s.ahead())
	}
}

// While suspect, a jump begins the wait anew, and a jump into the believable
// range that is taken back is not believed.
func TestGuardSuspectStepsMustHold(t *testing.T) {
	s := boot(clock.NewFake(start), clock.GuardOptions{}, start.Add(time.Hour).UnixMilli())
	s.run(50 * time.Second)
	s.step(time.Hour)
	s.run(4 * time.Second)
	s.step(-time.Hour)
	s.run(59 * time.Second)
	s.want(t, "0s suspect: behind the last stamp -1h0m0s",
		"50s suspect: has just been set 50s",
		"54s suspect: behind the last stamp -59m6s")
	s.run(time.Second)
	s.want(t, "1m54s rebase -58m6s")
}

func TestGuardAccept(t *testing.T) {
	t.Run("behind", func(t *testing.T) {
		s := boot(clock.NewFake(start), clock.GuardOptions{}, start.Add(time.Hour).UnixMilli())
		s.note(s.g.Accept(s.f.Now()))
		s.want(t, "0s suspect: behind the last stamp -1h0m0s", "0s rebase -1h0m0s")
		s.wantAhead(t, 0)
	})
	t.Run("ahead", func(t *testing.T) {
		s := boot(clock.NewFake(start), clock.GuardOptions{}, start.Add(-400*day).UnixMilli())
		s.note(s.g.Accept(s.f.Now()))
		s.want(t, "0s suspect: too far beyond the last stamp 9600h0m0s", "0s trusted 9600h0m0s")
		s.wantAhead(t, 0)
	})
	t.Run("in 1970", func(t *testing.T) {
		s := boot(clock.NewFake(time.Unix(1, 0)), clock.GuardOptions{}, 0)
		s.note(s.g.Accept(s.f.Now()))
		s.want(t, "0s suspect: before 2020", "0s trusted")
		s.run(time.Hour)
		s.wantAhead(t, 0)
	})
	t.Run("a step forward", func(t *testing.T) {
		s := boot(clock.NewFake(start), clock.GuardOptions{}, 0)
		s.step(time.Hour)
		s.note(s.g.Accept(s.f.Now()))
		s.want(t, "0s step seen 1h0m0s", "0s step followed 1h0m0s")
		s.wantAhead(t, 0)
	})
	t.Run("a step back", func(t *testing.T) {
		s := boot(clock.NewFake(start), clock.GuardOptions{}, 0)
		s.step(-time.Hour)
		s.note(s.g.Accept(s.f.Now()))
		s.want(t, "0s step seen -1h0m0s", "0s rebase -1h0m0s")
	})
	t.Run("a step that is gone", func(t *testing.T) {
		s := boot(clock.NewFake(start), clock.GuardOptions{}, 0)
		s.step(time.Hour)
		s.f.Step(-time.Hour)
		s.note(s.g.Accept(s.f.Now()))
		s.want(t, "0s step seen 1h0m0s", "0s step vanished")
	})
	t.Run("nothing", func(t *testing.T) {
		s := boot(clock.NewFake(start), clock.GuardOptions{}, 0)
		s.note(s.g.Accept(s.f.Now()))
		s.want(t)
	})
}

// Time may have been read by two goroutines and arrive in the wrong order.
func TestGuardIgnoresOldReadings(t *testing.T) {
	s := boot(clock.NewFake(start), clock.GuardOptions{}, 0)
	old := s.f.Now()
	s.run(time.Hour)
	old.Wall -= int64(time.Hour)
	for _, o := range []clock.Observation{s.g.Observe(old), s.g.Accept(old)} {
		if o.NowNs != s.f.Now().Wall || o.Event != clock.EventNone {
			t.Errorf("an old reading gives %+v", o)
		}
	}
}

func TestGuardOptions(t *testing.T) {
	o := clock.GuardOptions{
		StepThreshold: 10 * time.Second,
		StepConfirm:   time.Minute,
		SuspectHold:   time.Hour,
		MaxDelay:      day,
	}
	s := boot(clock.NewFake(start), o, start.Add(-2*day).UnixMilli())
	s.run(time.Hour)
	s.step(9 * time.Second)
	s.step(-10 * time.Second)
	s.run(time.Minute)
	s.want(t, "0s suspect: too far beyond the last stamp 48h0m0s", "1h0m0s trusted 49h0m0s",
		"1h0m0s step seen -10s", "1h1m0s rebase -10s")
}

func TestNamesOfEventsAndDoubts(t *testing.T) {
	if got := fmt.Sprint(clock.EventRebase, clock.DoubtAhead, clock.Event(99), clock.Doubt(99)); got !=
		"rebase too far beyond the last stamp event 99 doubt 99" {
		t.Errorf("got %q", got)
	}
}
