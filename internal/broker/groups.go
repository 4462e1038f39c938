package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/record"
)

// ErrGroupUnknown says that there is no consumer group of that name.
var ErrGroupUnknown = errors.New("unknown group")

// A StartPolicy says where a new group begins in each queue.
type StartPolicy = record.StartPolicy

// The start policies.
const (
	StartEarliest = record.StartEarliest // with what is kept
	StartLatest   = record.StartLatest   // with what becomes visible after its first receive
	StartAt       = record.StartAt       // with what became visible at GroupConfig.StartTime or later
)

// Defaults and limits of a group's configuration.
const (
	DefaultMaxAttempts = 17 // RocketMQ's 16 retries
	MaxAttempts        = 10_000
	MaxBackoffs        = 100               // steps of a back-off list
	MaxInflight        = group.MaxInflight // messages of a queue leased at once
)

// A GroupConfig says how a consumer group consumes. Zero values are defaults.
type GroupConfig struct {
	Start       StartPolicy     // default StartEarliest
	StartTime   int64           // Unix ms, for StartAt
	MaxAttempts int             // default DefaultMaxAttempts: then a message is a dead letter
	Backoff     []time.Duration // before each retry, the last one repeats; default the delay levels from 3 on
	InflightMax int             // of a queue at once; default and limit group.MaxInflight, 10,000
	Invisible   time.Duration   // of a receive that does not say; default DefaultInvisible
}

// A GroupInfo is a consumer group.
type GroupInfo struct {
	Name   string
	Config GroupConfig  // with the defaults filled in
	Topics []GroupTopic // in which it has begun, by name; not in a list of groups
	Dead   int64        // dead letters, neither redriven nor purged
}

// A GroupTopic tells how a group stands in a topic.
type GroupTopic struct {
	Topic    string
	Queues   []GroupQueue
	Lag      int64 // sums of its queues
	Inflight int64
	Retrying int64
	Skipped  uint64
}

// A GroupQueue tells how a group stands in a queue.
type GroupQueue struct {
	Queue    int
	Low      record.Offset // the first that is kept
	Next     record.Offset // that becomes visible next
	Base     record.Offset // everything below is finished
	Pulled   record.Offset // a pull consumer's next
	Lag      int64         // visible and not finished, by acknowledging or by pulling beyond it
	Inflight int64         // of these, leased now
	Retrying int64         // of these, given back and waiting for their back-off
	Skipped  uint64        // that retention took before the group was finished with them
	To       record.Offset // where a reset has the group go on; only in an answer of Reset
}

// A PositionKind says how a position in a queue is given.
type PositionKind uint8

// The kinds of position.
const (
	PositionEarliest PositionKind = iota + 1 // the first that is kept
	PositionLatest                           // what becomes visible next
	PositionAt                               // the first that became visible at Value, Unix ms, or later
	PositionOffset                           // offset Value; one that is not kept is the nearest that is
)

// A Position is a place in each queue of a topic.
type Position struct {
	Kind  PositionKind
	Value int64
}

// deadGroup is the group that is finished with the dead letters that were
// redriven or purged. Nobody else consumes in its name.
const deadGroup = "%DLQ%"

// A subscriber is a group as it stood when a call began. What the group itself
// says is the applier's to change.
type subscriber struct {
	record.Group

	state *group.Group
}

// subscriber finds a consumer group, or makes it. A new one begins at the
// earliest.
func (b *Broker) subscriber(ctx context.Context, name string) (subscriber, error) {
	if s, err := b.known(name); err == nil || !errors.Is(err, ErrGroupUnknown) {
		return s, err
	}
	return b.makeGroup(ctx, record.Group{Name: name, Start: record.StartEarliest})
}

// known finds a consumer group that there is.
func (b *Broker) known(name string) (subscriber, error) {
	if name == deadGroup {
		return subscriber{}, fmt.Errorf("%w: group %q belongs to the broker; choose another name", ErrForbidden, name)
	}
	g, now := b.e.GroupNow(name)
	if g == nil {
		return subscriber{}, fmt.Errorf("%w: %q; it is made by its first receive", ErrGroupUnknown, short(name))
	}
	return subscriber{now, g}, nil
}

func (b *Broker) makeGroup(ctx context.Context, g record.Group) (subscriber, error) {
	if err := checkGroup(g.Name); err != nil {
		return subscriber{}, err
	}
	if _, groups := b.e.Sizes(); groups >= MaxGroups {
		return subscriber{}, fmt.Errorf("%w: %d groups, group %q would be one more; receive with one that there is", ErrFull, groups, g.Name)
	}
	if _, err := b.e.MakeGroup(ctx, g); err != nil {
		return subscriber{}, err
	}
	state, now := b.e.GroupNow(g.Name)
	if state == nil {
		return subscriber{}, fmt.Errorf("%w: %q was deleted in this moment", ErrGroupUnknown, g.Name)
	}
	return subscriber{now, state}, nil
}
