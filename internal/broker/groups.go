package broker

import (
	"context"
	"errors"
	"time"

	"github.com/duemq/duemq/internal/record"
)

// ErrGroupUnknown says that there is no consumer group of that name.
var ErrGroupUnknown = errors.New("unknown group")

// Where a new group begins in each queue.
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
	MaxBackoffs        = 100 // steps of a back-off list
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

// CreateGroup makes a consumer group. One that is there and has the same
// configuration is the answer too; with another it is ErrExists.
func (b *Broker) CreateGroup(ctx context.Context, name string, c GroupConfig) (GroupInfo, error) {
	return GroupInfo{}, errors.ErrUnsupported
}

// UpdateGroup gives a group another configuration. Where it starts is of no
// consequence in queues in which it has begun.
func (b *Broker) UpdateGroup(ctx context.Context, name string, c GroupConfig) (GroupInfo, error) {
	return GroupInfo{}, errors.ErrUnsupported
}

// Group tells how a consumer group stands: ErrGroupUnknown if there is none.
func (b *Broker) Group(name string) (GroupInfo, error) { return GroupInfo{}, errors.ErrUnsupported }

// GroupList gives all groups in the order in which they were made, without their
// queues.
func (b *Broker) GroupList() []GroupInfo { return nil }

// DeleteGroup deletes a group, with its positions, what waits for its retry and
// its dead letters.
func (b *Broker) DeleteGroup(ctx context.Context, name string) error { return errors.ErrUnsupported }

// Reset has a group go on at another position of a topic, in all its queues.
// Attempts, leases and what waits for its retry are forgotten. The answer tells
// how each queue stood before and, in To, where the group goes on. A dry run
// changes nothing.
func (b *Broker) Reset(ctx context.Context, group, topic string, to Position, dryRun bool) ([]GroupQueue, error) {
	return nil, errors.ErrUnsupported
}
