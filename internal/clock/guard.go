package clock

import (
	"fmt"
	"time"
)

// An Event is what an observation has found out about the wall clock.
type Event uint8

// The events. At most one comes with an observation.
const (
	EventNone         Event = iota // nothing happened
	EventStepSeen                  // the wall clock has jumped; it is not followed yet
	EventStepFollowed              // a jump forward has held and is believed now
	EventRebase                    // the believed time has gone back: a jump back has held, or a suspect clock behind the last stamp has, or was accepted
	EventStepVanished              // a jump was taken back before it was believed
	EventTrusted                   // a clock that was suspect is believed now; time did not go back
)

var eventNames = [...]string{"none", "step seen", "step followed", "rebase", "step vanished", "trusted"}

// String gives the event's name for log lines.
func (e Event) String() string {
	if int(e) < len(eventNames) {
		return eventNames[e]
	}
	return fmt.Sprintf("event %d", e)
}

// A Doubt says why a clock is suspect at the start.
type Doubt uint8

// The doubts.
const (
	DoubtNone       Doubt = iota // the clock is believed
	DoubtBehind                  // it is below the last stamp by StepThreshold or more
	DoubtBefore2020              // it was never set: a machine without a clock battery
	DoubtAhead                   // it is beyond the last stamp by more than MaxDelay
	DoubtStep                    // it has just jumped into the believable range
)

var doubtNames = [...]string{
	"none", "behind the last stamp", "before 2020", "too far beyond the last stamp", "has just been set",
}

// String gives the doubt as the end of the sentence "the clock is suspect: ...".
func (d Doubt) String() string {
	if int(d) < len(doubtNames) {
		return doubtNames[d]
	}
	return fmt.Sprintf("doubt %d", d)
}

// GuardOptions are the limits of a Guard. Zero means the default.
type GuardOptions struct {
	StepThreshold time.Duration // default 1 s: a smaller difference is drift, not a step
	StepConfirm   time.Duration // default 5 s: how long a step must hold to be followed
	SuspectHold   time.Duration // default 60 s: how long a suspect clock must hold to be believed
	MaxDelay      time.Duration // default 366 days: how far a start may lie beyond the last stamp
}

func (o *GuardOptions) setDefaults() {
	for _, d := range []struct {
		v     *time.Duration
		value time.Duration
	}{
		{&o.StepThreshold, time.Second},
		{&o.StepConfirm, 5 * time.Second},
		{&o.SuspectHold, time.Minute},
		{&o.MaxDelay, 366 * 24 * time.Hour},
	} {
		if *d.v <= 0 {
			*d.v = d.value
		}
	}
}

// lookEvery is how often the wall clock is to be looked at when nothing is
// wrong, so that a step is seen before it has done much.
const lookEvery = time.Second

// earliest is the first instant that a clock may show. Machines without a
// battery start in 1970 or at the date of their firmware.
var earliest = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()

// An Observation is what a Guard makes of one reading.
type Observation struct {
	NowNs   int64         // the believed time, Unix nanoseconds
	Suspect bool          // the clock is not believed: nothing may fall due, relative sends are refused
	Doubt   Doubt         // why it is suspect
	Event   Event         // what was found out with this reading
	Step    time.Duration // how far the wall clock was from the time believed until then, negative is behind; set with an Event or a Doubt
}

// Guard turns readings into the time that the broker believes, by these rules:
//
// The wall clock is right, as long as it moves like the monotonic clock. A
// difference below StepThreshold to where the monotonic clock says it should be
// is drift, slewing or jitter and is followed, but never backward: believed
// time stands still until the wall clock has caught up. Differences add up, for
// they are measured from the believed time and not from the last reading.
//
// A difference of StepThreshold or more is a step. It may be a mistake (a wrong
// date typed, a virtual machine restored, a bad time server) and what becomes
// due by mistake cannot be called back. So it is followed only when it has held
// for StepConfirm, and until then believed time goes on by the monotonic clock
// from where it was. A step forward is then simply followed: what became due
// goes out. A step backward is a rebase, the only way in which believed time
// goes back. A machine that was suspended looks like a step forward, because
// the monotonic clock may stand still meanwhile.
//
// At the start there is no monotonic clock to compare with, only the last stamp
// of the log. A clock below it by StepThreshold or more, before 2020, or beyond
// it by more than MaxDelay is suspect. A suspect clock gives no time at all:
// believed time stands at the last stamp, for any progress could be wrong. It is
// believed when it has come into the believable range by itself (has passed
// the last stamp); when it was set into that range and that has held for
// StepConfirm; when it has held for SuspectHold where it is, because a clock
// that stays is more likely right than the log's past, but never before 2020;
// or by Accept.
//
// The promise, never early: let the believed readings be those whose wall clock
// the guard has followed. Then NowNs is never beyond the last stamp, nor beyond
// the furthest of the believed readings (since the last rebase) carried on by
// the monotonic clock. So a wall clock that is ahead for less than StepConfirm
// never shows. What cannot be detected: a clock that is wrong by less than the
// limits at the start, one that is slewed wrongly, and one that was wrong
// between two observations.
//
// A Guard is told the time and reads none. It is for one goroutine at a time.
type Guard struct {
	o    GuardOptions
	last int64 // the believed time at the last observation
	mono int64 // the monotonic clock then

	suspect bool
	doubt   Doubt
	stepped bool // while suspect: the wall clock has jumped since the start

	pending bool  // something must hold before it is believed: a step, or a suspect clock
	offset  int64 // what must hold: wall minus monotonic clock
	since   int64 // monotonic instant since which it has
}

// NewGuard starts a guard with the first reading. lastStamp is the last stamp of
// the log in Unix milliseconds, 0 for a new store, which believes any clock of
// 2020 or later. Observe the same reading to learn what the guard makes of it.
func NewGuard(o GuardOptions, lastStamp int64, first Reading) *Guard {
	o.setDefaults()
	g := &Guard{o: o, last: lastStamp * int64(time.Millisecond), mono: first.Mono}
	if lastStamp == 0 && first.Wall >= earliest {
		g.last = first.Wall
	}
	if g.doubt = g.judge(first); g.doubt != DoubtNone {
		g.suspect = true
		g.hold(first)
		return g
	}
	g.last = max(g.last, first.Wall)
	return g
}

// judge says what speaks against a clock that has no history yet.
func (g *Guard) judge(r Reading) Doubt {
	switch {
	case r.Wall < earliest:
		return DoubtBefore2020
	case g.last == 0:
		return DoubtNone
	case g.last-r.Wall >= int64(g.o.StepThreshold):
		return DoubtBehind
	case r.Wall-g.last > int64(g.o.MaxDelay):
		return DoubtAhead
	}
	return DoubtNone
}

// hold begins to wait whether the wall clock keeps its distance to the monotonic
// one.
func (g *Guard) hold(r Reading) {
	g.pending, g.offset, g.since = true, r.Wall-r.Mono, r.Mono
}

// held says whether the offset that must hold is still there. It is compared
// with where it began, so that a clock that wanders does not hold.
func (g *Guard) held(r Reading) bool {
	d := r.Wall - r.Mono - g.offset
	return g.pending && abs(d) < int64(g.o.StepThreshold)
}

// Observe takes a reading. A reading that is older than one observed before
// changes nothing.
func (g *Guard) Observe(r Reading) Observation {
	if r.Mono < g.mono {
		return Observation{NowNs: g.last, Suspect: g.suspect, Doubt: g.doubt}
	}
	if g.suspect {
		return g.observeSuspect(r)
	}
	expected := g.last + r.Mono - g.mono
	step := r.Wall - expected
	switch {
	case abs(step) < int64(g.o.StepThreshold):
		return g.follow(r, step)
	case !g.held(r):
		g.hold(r)
		return g.tell(r, expected, EventStepSeen, step)
	case r.Mono-g.since < int64(g.o.StepConfirm):
		return g.tell(r, expected, EventNone, 0)
	case step > 0:
		return g.believe(r, EventStepFollowed, step)
	}
	return g.believe(r, EventRebase, step)
}

// follow believes a wall clock that is where it should be, but for drift.
func (g *Guard) follow(r Reading, step int64) Observation {
	event := EventNone
	if g.pending {
		g.pending, event = false, EventStepVanished
	} else {
		step = 0
	}
	return g.tell(r, max(g.last, r.Wall), event, step)
}

// observeSuspect looks at a clock that is not believed.
func (g *Guard) observeSuspect(r Reading) Observation {
	if !g.held(r) {
		g.stepped = true
		g.hold(r)
	}
	step := g.distance(r)
	heldFor := time.Duration(r.Mono - g.since)
	g.doubt = g.judge(r)
	switch {
	case g.doubt == DoubtBefore2020:
		// However long it holds: such a clock was never set.
	case g.doubt == DoubtNone && (!g.stepped || heldFor >= g.o.StepConfirm):
		return g.trust(r, step)
	case g.doubt == DoubtNone:
		g.doubt = DoubtStep
	case heldFor >= g.o.SuspectHold:
		return g.trust(r, step)
	}
	g.mono = r.Mono
	return Observation{NowNs: g.last, Suspect: true, Doubt: g.doubt, Step: time.Duration(step)}
}

// distance is how far a suspect clock is from the last stamp, 0 in a new store.
func (g *Guard) distance(r Reading) int64 {
	if g.last == 0 {
		return 0
	}
	return r.Wall - g.last
}

// Accept believes the wall clock of r at once, because an operator says that it
// is right: a suspect clock, or a step that is not confirmed yet. With nothing
// in doubt it is an observation like any other.
func (g *Guard) Accept(r Reading) Observation {
	switch {
	case r.Mono < g.mono || !g.pending:
		return g.Observe(r)
	case g.suspect:
		return g.trust(r, g.distance(r))
	}
	expected := g.last + r.Mono - g.mono
	step := r.Wall - expected
	switch {
	case step >= int64(g.o.StepThreshold):
		return g.believe(r, EventStepFollowed, step)
	case step <= -int64(g.o.StepThreshold):
		return g.believe(r, EventRebase, step)
	}
	return g.follow(r, step)
}

// trust ends the suspicion. A clock behind the last stamp by less than the
// threshold is waited for; one that is further behind means that time goes back.
func (g *Guard) trust(r Reading, step int64) Observation {
	g.suspect, g.doubt = false, DoubtNone
	if step <= -int64(g.o.StepThreshold) {
		return g.believe(r, EventRebase, step)
	}
	r.Wall = max(r.Wall, g.last)
	return g.believe(r, EventTrusted, step)
}

// believe takes the wall clock for the time, wherever it stands.
func (g *Guard) believe(r Reading, e Event, step int64) Observation {
	g.pending = false
	return g.tell(r, r.Wall, e, step)
}

// tell notes what is believed now and says so.
func (g *Guard) tell(r Reading, now int64, e Event, step int64) Observation {
	g.last, g.mono = now, r.Mono
	return Observation{NowNs: now, Event: e, Step: time.Duration(step)}
}

// NextLook says how long after r, the reading observed last, the next one should
// be observed at the latest: a second when nothing is wrong, and less when
// something will be confirmed or passed before.
func (g *Guard) NextLook(r Reading) time.Duration {
	if !g.pending || g.doubt == DoubtBefore2020 {
		return lookEvery // nothing will come about by waiting
	}
	hold := g.o.StepConfirm
	if g.suspect && g.doubt != DoubtStep {
		hold = g.o.SuspectHold
	}
	left := hold - time.Duration(r.Mono-g.since)
	if g.doubt == DoubtBehind {
		left = min(left, time.Duration(g.last-r.Wall)-g.o.StepThreshold+1)
	}
	return min(max(left, time.Millisecond), lookEvery)
}

func abs(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}
