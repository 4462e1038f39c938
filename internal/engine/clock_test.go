package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// pass lets time go by a second at a time, as the engine's watch sees it.
func pass(t *testing.T, e *Engine, c *clock.Fake, seconds int) {
	t.Helper()
	for range seconds {
		c.Advance(time.Second)
		settle(t, e)
	}
}

func ms(t time.Time) int64 { return t.UnixMilli() }

// bodies is what is visible, in order, without how late it was: the time of
// becoming visible never falls within a queue, also when the clock was set back.
func bodies(t *testing.T, e *Engine, tp *Topic) string {
	t.Helper()
	var out []string
	for _, s := range visible(t, e, tp) {
		body, _, _ := strings.Cut(s, " +")
		out = append(out, body)
	}
	return strings.Join(out, ", ")
}

// shown is how many messages of the topic are visible.
func shown(t *testing.T, e *Engine, tp *Topic) int {
	t.Helper()
	return len(visible(t, e, tp))
}

func TestClockSetForward(t *testing.T) {
	c := clock.NewFake(testStart)
	e := open(t, options(fs.NewMem(), c))
	tp := topic(t, e, "t", 1)
	send(t, e, tp, "in an hour", Delay{DelayAfter, 3_600_000})
	send(t, e, tp, "in three", Delay{DelayAfter, 3 * 3_600_000})
	c.Step(2 * time.Hour)
	pass(t, e, c, 4)
	if n := shown(t, e, tp); n != 0 {
		t.Fatalf("%d messages went out 4 s after the step; it is to hold for 5 s first", n)
	}
	relative := send(t, e, tp, "relative", Delay{DelayAfter, 3_600_000})
	if want := ms(testStart.Add(time.Hour + 4*time.Second)); relative.Due != want {
		t.Errorf("a delay sent before the step is believed is due at %d, want %d", relative.Due, want)
	}
	pass(t, e, c, 4)
	if n := shown(t, e, tp); n != 2 {
		t.Fatalf("%d messages visible after the step is followed, want the 2 that it made due", n)
	}
	if s := e.Stats(); s.ClockSteps != 1 {
		t.Errorf("%d steps counted, want 1", s.ClockSteps)
	}
}

func TestClockStepThatVanishes(t *testing.T) {
	c := clock.NewFake(testStart)
	e := open(t, options(fs.NewMem(), c))
	tp := topic(t, e, "t", 1)
	send(t, e, tp, "in an hour", Delay{DelayAfter, 3_600_000})
	c.Step(2 * time.Hour)
	pass(t, e, c, 3)
	c.Step(-2 * time.Hour)
	pass(t, e, c, 60)
	if n := shown(t, e, tp); n != 0 {
		t.Fatalf("%d messages went out for a step that was taken back", n)
	}
}

func TestClockSetBack(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart=", restart), func(t *testing.T) {
			c := clock.NewFake(testStart)
			o := options(fs.NewMem(), c)
			e := open(t, o)
			tp := topic(t, e, "t", 1)
			send(t, e, tp, "delivered", Delay{DelayAfter, 1000})
			later := send(t, e, tp, "waits", Delay{DelayAfter, 30_000})
			pass(t, e, c, 10)
			delivered := send(t, e, tp, "delivered too", Delay{DelayAfter, 500})
			pass(t, e, c, 1)
			c.Step(-time.Hour)
			pass(t, e, c, 7)
			now := testStart.Add(18*time.Second - time.Hour)
			if got := e.Now(); got != ms(now) {
				t.Fatalf("believed time %d after a step back that has held, want %d", got, ms(now))
			}
			relative := send(t, e, tp, "after", Delay{DelayAfter, 2000})
			if want := ms(now) + 2000; relative.Due != want {
				t.Errorf("a delay after the step is due at %d, want %d", relative.Due, want)
			}
			if _, r, err := e.Find(delivered.ID); err != nil {
				t.Fatal(err)
			} else if out, err := e.Cancel(t.Context(), r); err != nil || out.Verdict == 1 {
				t.Errorf("cancel of a delivered message after the step: %+v, %v", out, err)
			}
			if restart {
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				e = open(t, o)
				tp = e.TopicNamed("t")
			}
			pass(t, e, c, 3)
			if got := bodies(t, e, tp); got != "delivered, delivered too, after" {
				t.Fatalf("visible %v", got)
			}
			c.Advance(time.Duration(later.Due-e.Now()) * time.Millisecond)
			settle(t, e)
			if got := bodies(t, e, tp); got != "delivered, delivered too, after, waits" {
				t.Fatalf("at the due of what waited: %v", got)
			}
		})
	}
}

func TestClockSuspectAtStart(t *testing.T) {
	for name, tc := range map[string]struct {
		step   time.Duration // the clock's, while the engine is down
		remedy func(t *testing.T, e *Engine, c *clock.Fake)
	}{
		"behind, holds a minute": {-2 * time.Hour, func(t *testing.T, e *Engine, c *clock.Fake) { pass(t, e, c, 62) }},
		"behind, accepted": {-2 * time.Hour, func(t *testing.T, e *Engine, c *clock.Fake) {
			if err := e.AcceptClock(); err != nil {
				t.Fatal(err)
			}
		}},
		"behind, set right": {-2 * time.Hour, func(t *testing.T, e *Engine, c *clock.Fake) {
			c.Step(2 * time.Hour)
			pass(t, e, c, 8)
		}},
		"1970, accepted": {-56 * 365 * 24 * time.Hour, func(t *testing.T, e *Engine, c *clock.Fake) {
			pass(t, e, c, 120)
			if !e.Suspect() {
				t.Fatal("a clock before 2020 was believed because it held")
			}
			if err := e.AcceptClock(); err != nil {
				t.Fatal(err)
			}
		}},
		"two years ahead, holds a minute": {2 * 365 * 24 * time.Hour, func(t *testing.T, e *Engine, c *clock.Fake) { pass(t, e, c, 62) }},
	} {
		t.Run(name, func(t *testing.T) {
			c := clock.NewFake(testStart)
			o := options(fs.NewMem(), c)
			e := open(t, o)
			tp := topic(t, e, "t", 1)
			send(t, e, tp, "waits", Delay{DelayAfter, 60_000})
			pass(t, e, c, 5)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			c.Step(tc.step)
			e = open(t, o)
			tp = e.TopicNamed("t")
			if !e.Suspect() {
				t.Fatal("the clock is not suspect")
			}
			s := []Send{{Topic: tp.Number, Turn: tp, Delay: Delay{DelayAfter, 10}}}
			if err := e.Send(t.Context(), s); err != nil || !errors.Is(s[0].Err, ErrClockSuspect) {
				t.Errorf("relative delay under a suspect clock: %v, %v", err, s[0].Err)
			}
			send(t, e, tp, "no delay", Delay{})
			if got := fmt.Sprint(visible(t, e, tp)); got != "[no delay +0]" {
				t.Errorf("visible under a suspect clock: %v", got)
			}
			tc.remedy(t, e, c)
			if e.Suspect() {
				t.Fatal("the clock is still suspect")
			}
			s = []Send{{Topic: tp.Number, Turn: tp, Delay: Delay{DelayAfter, 10}, Message: record.Message{Body: []byte("relative")}}}
			if err := e.Send(t.Context(), s); err != nil || s[0].Err != nil {
				t.Fatalf("relative delay after the remedy: %v, %v", err, s[0].Err)
			}
			if want := e.Now() + 10; s[0].Due != want {
				t.Errorf("due %d, want %d", s[0].Due, want)
			}
		})
	}
}

// TestLevelsTableChanges changes messageDelayLevel: what waits keeps its due,
// and a shortened level stays in order although its FIFO is not.
func TestLevelsTableChanges(t *testing.T) {
	c := clock.NewFake(testStart)
	o := options(fs.NewMem(), c)
	o.Levels = []time.Duration{10 * time.Second, time.Minute}
	e := open(t, o)
	tp := topic(t, e, "t", 1)
	old := send(t, e, tp, "level 2, a minute", Delay{DelayLevel, 2})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	o.Levels = []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}
	e = open(t, o)
	tp = e.TopicNamed("t")
	last := send(t, e, tp, "level 99 is the last", Delay{DelayLevel, 99})
	if want := ms(testStart) + 3000; last.Due != want || old.Due != ms(testStart)+60_000 {
		t.Errorf("dues %d and %d", last.Due, old.Due)
	}
	send(t, e, tp, "level 2, two seconds", Delay{DelayLevel, 2})
	pass(t, e, c, 60)
	want := "[level 2, two seconds +0 level 99 is the last +0 level 2, a minute +0]"
	if got := fmt.Sprint(visible(t, e, tp)); got != want {
		t.Errorf("visible %v, want %v", got, want)
	}
}

func TestDelayLimits(t *testing.T) {
	c := clock.NewFake(testStart.Add(300 * time.Microsecond))
	e := open(t, options(fs.NewMem(), c))
	tp := topic(t, e, "t", 1)
	year := (365 * 24 * time.Hour).Milliseconds()
	for _, tc := range []struct {
		d    Delay
		due  int64 // 0: at once
		fail error
	}{
		{Delay{}, 0, nil},
		{Delay{DelayLevel, 0}, 0, nil},
		{Delay{DelayLevel, -3}, 0, nil},
		{Delay{DelayLevel, 18}, ms(testStart) + 1 + 7_200_000, nil},
		{Delay{DelayLevel, 1<<63 - 1}, ms(testStart) + 1 + 7_200_000, nil},
		{Delay{DelayAfter, 0}, 0, nil},
		{Delay{DelayAfter, -5}, 0, nil},
		{Delay{DelayAfter, -1 << 63}, 0, nil},
		{Delay{DelayAfter, 1}, ms(testStart) + 2, nil},
		{Delay{DelayAfter, year}, ms(testStart) + 1 + year, nil},
		{Delay{DelayAfter, year + 1}, 0, ErrDelayTooLong},
		{Delay{DelayAfter, 1<<63 - 1}, 0, ErrDelayTooLong},
		{Delay{DelayAt, 0}, 0, nil},
		{Delay{DelayAt, -1}, 0, nil},
		{Delay{DelayAt, 1}, ms(testStart), nil},
		{Delay{DelayAt, ms(testStart) + 5}, ms(testStart) + 5, nil},
		{Delay{DelayAt, ms(testStart) + year}, ms(testStart) + year, nil},
		{Delay{DelayAt, ms(testStart) + year + 1}, 0, ErrDelayTooLong},
		{Delay{DelayAt, 1<<63 - 1}, 0, ErrDelayTooLong},
	} {
		s := []Send{{Topic: tp.Number, Turn: tp, Delay: tc.d}}
		if err := e.Send(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(s[0].Err, tc.fail) || (tc.fail == nil && s[0].Due != tc.due) {
			t.Errorf("%+v: due %d, %v; want %d, %v", tc.d, s[0].Due, s[0].Err, tc.due, tc.fail)
		}
		if atOnce := s[0].Due <= ms(testStart) && s[0].Err == nil; s[0].Ready != atOnce {
			t.Errorf("%+v: ready %v", tc.d, s[0].Ready)
		}
	}
}
