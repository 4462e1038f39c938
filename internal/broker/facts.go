package broker

import (
	"time"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/timeline"
)

// Delay is when a message may be consumed, as its sender said it.
type Delay = engine.Delay

// Counts are the figures of a topic, or of all.
type Counts = engine.Counts

// Stats are figures of the engine since it was opened.
type Stats = engine.Stats

// TopicCount is a topic's name and figures.
type TopicCount = engine.TopicCount

// LevelCount is how a delay level stands.
type LevelCount = timeline.LevelCount

// The kinds of a [Delay]; see the engine's constants of the same names.
const (
	DelayNone  = engine.DelayNone
	DelayLevel = engine.DelayLevel
	DelayAfter = engine.DelayAfter
	DelayAt    = engine.DelayAt
)

// Classes of error that come up from the engine.
var (
	ErrClosed       = engine.ErrClosed
	ErrFailed       = engine.ErrFailed
	ErrDelayTooLong = engine.ErrDelayTooLong
	ErrClockSuspect = engine.ErrClockSuspect
	ErrDiskFull     = engine.ErrDiskFull
	ErrGone         = engine.ErrGone
	ErrNotFound     = engine.ErrNotFound
	ErrMismatch     = engine.ErrMismatch
)

// Name is the broker's name, as recall handles have it.
func (b *Broker) Name() string { return b.o.Name }

// Suspect says that the machine's clock is not believed: nothing falls due and
// relative delays are refused.
func (b *Broker) Suspect() bool { return b.e.Suspect() }

// LevelTable is the delays of the levels, from level 1 on; read only.
func (b *Broker) LevelTable() []time.Duration { return b.e.LevelTable() }

// MaxDelay is the longest delay that is accepted.
func (b *Broker) MaxDelay() time.Duration { return b.e.MaxDelay() }

// Levels tells how the delay levels stand: index 1 is level 1, index 0 is any
// time that is no level. It has an element for every level of the table, and
// for those of an earlier table under which messages were filed.
func (b *Broker) Levels() []LevelCount {
	all := b.e.Levels()
	n := 1 + len(b.e.LevelTable())
	for i, l := range all {
		if l.Total > 0 {
			n = max(n, i+1)
		}
	}
	return all[:n]
}

// Topics gives the figures of all topics, in the order in which they were made.
func (b *Broker) Topics() []TopicCount { return b.e.Topics() }
