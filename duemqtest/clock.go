package duemqtest

import (
	"time"

	"github.com/duemq/duemq"
	"github.com/duemq/duemq/internal/clock"
)

// A Clock stands still until it is told to move. It is a [duemq.Clock] and safe
// for concurrent use.
//
// A [TestQueue] has one of its own. Make one to give it to several queues, with
// [duemq.WithClock]; then call [duemq.Queue.Settle] after each move.
type Clock struct{ fake *clock.Fake }

var _ duemq.Clock = (*Clock)(nil)

// NewClock makes a clock that shows wall.
func NewClock(wall time.Time) *Clock { return &Clock{clock.NewFake(wall)} }

// Now reads the wall clock, in UTC, and what Advance has added up to.
func (c *Clock) Now() (wall time.Time, elapsed time.Duration) {
	r := c.fake.Now()
	return r.Time(), time.Duration(r.Mono)
}

// NewTimer gives a timer that fires when Advance reaches its instant.
func (c *Clock) NewTimer(d time.Duration) duemq.Timer { return c.fake.NewTimer(d) }

// Advance has time pass, at once. Timers fire in order, each while the clock
// shows its instant; nobody is waited for. It panics when d is negative.
func (c *Clock) Advance(d time.Duration) { c.fake.Advance(d) }

// Step sets the wall clock by d, forward or back, as somebody does who sets a
// machine's clock. No time passes.
func (c *Clock) Step(d time.Duration) { c.fake.Step(d) }
