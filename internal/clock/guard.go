package clock

import "time"

// An Event is what an observation found out about the wall clock.
type Event uint8

// The events. At most one comes with an observation.
const (
	EventNone         Event = iota // nothing happened
	EventStepSeen                  // the wall clock jumped; not followed yet
	EventStepFollowed              // a jump forward has held and is believed now
	EventRebase                    // a jump backward has held: the believed time went back
	EventStepVanished              // a jump was taken back before it was believed
	EventTrusted                   // a clock that was suspect is believed now
)

// GuardOptions are the limits of a Guard. Zero means the default.
type GuardOptions struct {
	StepThreshold time.Duration // default 1 s: a smaller difference is drift, not a step
	StepConfirm   time.Duration // default 5 s: how long a step must hold to be followed
	SuspectHold   time.Duration // default 60 s: how long a suspect clock must hold to be believed
	MaxDelay      time.Duration // default 366 days: the farthest that a start may lie beyond the last stamp
}

// An Observation is what a Guard makes of one reading.
type Observation struct {
	NowNs   int64         // the believed time, Unix nanoseconds
	Suspect bool          // the clock is not believed: nothing may fall due
	Event   Event         // what was found out with this reading
	Step    time.Duration // by how much the wall clock jumped; negative is back
}

// Guard turns readings into the time that the broker believes.
type Guard struct {
	o    GuardOptions
	last int64
}

// NewGuard starts a guard with the first reading. lastStamp is the last stamp of
// the log in Unix milliseconds, 0 for a new store.
func NewGuard(o GuardOptions, lastStamp int64, first Reading) *Guard {
	return &Guard{o: o, last: max(first.Wall, lastStamp*int64(time.Millisecond))}
}

// Observe takes a reading.
func (g *Guard) Observe(r Reading) Observation {
	g.last = max(g.last, r.Wall)
	return Observation{NowNs: g.last}
}

// Accept believes the wall clock of r because an operator says so.
func (g *Guard) Accept(r Reading) Observation { return g.Observe(r) }

// NextLook says how long after r the caller should observe again at the latest.
func (g *Guard) NextLook(Reading) time.Duration { return time.Second }
