package engine

import (
	"fmt"
	"math"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

const maxLevels = timeline.Levels

// An instant is one reading of the clock, with which the proposer resolves
// what producers said.
type instant struct {
	ns      int64 // believed time, Unix ns
	stamp   int64 // stamp of the batch that takes the command, Unix ms
	suspect bool
	o       *Options
	numbers *numbers
}

// resolve turns a delay into a due (Unix ms, 0 for at once) and the level that
// it waits under. A relative due is rounded up, so that it is never early.
func (n *instant) resolve(d Delay) (due int64, level uint8, err error) {
	switch d.Kind {
	case DelayLevel:
		if d.Value <= 0 || len(n.o.Levels) == 0 {
			return 0, 0, nil
		}
		l := min(d.Value, int64(len(n.o.Levels)))
		due, err = n.after(n.o.Levels[l-1].Milliseconds())
		return due, uint8(l), err
	case DelayAfter:
		if d.Value <= 0 {
			return 0, 0, nil
		}
		due, err = n.after(d.Value)
		return due, 0, err
	case DelayAt:
		if d.Value <= 0 {
			return 0, 0, nil
		}
		if limit := n.o.MaxDelay; d.Value-clock.FloorMs(n.ns) > limit.Milliseconds() {
			return 0, 0, tooLong(d.Value-clock.FloorMs(n.ns), limit)
		}
		return max(d.Value, n.stamp), 0, nil
	default:
		return 0, 0, nil
	}
}

func (n *instant) after(ms int64) (int64, error) {
	if n.suspect {
		return 0, fmt.Errorf("%w: a delay cannot be counted from it; set the clock, or run: duemq clock accept", ErrClockSuspect)
	}
	if limit := n.o.MaxDelay.Milliseconds(); ms > limit {
		return 0, tooLong(ms, n.o.MaxDelay)
	}
	if n.o.Bugs.FloorDue {
		return clock.FloorMs(n.ns) + ms, nil
	}
	return clock.CeilMs(n.ns) + ms, nil
}

// terms resolves what a message is sent under, once its own due is known. A half
// message waits for its first check; its delay counts from the commit.
func (n *instant) terms(t *record.Terms, m *record.Message, d Delay) error {
	if t.Half {
		if _, err := n.after(0); err != nil { // the clock
			return err
		}
		t.Kind, t.Delay = uint8(d.Kind), d.Value
		t.Check = clock.CeilMs(n.ns) + CheckAfter
		m.Due, m.Level = 0, 0
	}
	if t.Once != (record.Hash{}) {
		t.Until = max(n.stamp+n.o.Idempotency.Milliseconds(), m.Due)
	}
	return nil
}

func tooLong(ms int64, limit time.Duration) error {
	d := time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	return fmt.Errorf("%w: %v, limit %v (%d ms)", ErrDelayTooLong, d, limit, limit.Milliseconds())
}

// numbers hands out numbers for names. They run ahead of the state by what is
// on its way.
type numbers struct {
	nextTopic record.TopicNumber
	nextQueue record.QueueNumber
	nextGroup record.GroupNumber
	nextOp    uint64
}

func (n *numbers) topic(queues uint32) (record.TopicNumber, record.QueueNumber) {
	t := n.nextTopic
	n.nextTopic++
	return t, n.queues(queues)
}

func (n *numbers) queues(queues uint32) record.QueueNumber {
	q := n.nextQueue
	n.nextQueue += record.QueueNumber(queues)
	return q
}

func (n *numbers) operation() uint64 {
	o := n.nextOp
	n.nextOp++
	return o
}

func (n *numbers) group() record.GroupNumber {
	g := n.nextGroup
	n.nextGroup++
	return g
}
