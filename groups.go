package duemq

import (
	"context"
	"fmt"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/group"
)

// Limits and defaults of groups.
const (
	DefaultMaxAttempts = broker.DefaultMaxAttempts // RocketMQ's 16 retries
	MaxInflight        = group.MaxInflight         // messages of a queue that a group holds at once
)

// A GroupOption says how a group consumes.
type GroupOption interface{ group(g *groupTerms) }

// groupTerms are what the options say.
type groupTerms struct {
	config broker.GroupConfig
	err    error // the first thing that is wrong
}

type groupFunc func(*groupTerms)

func (f groupFunc) group(g *groupTerms) { f(g) }

// MaxAttempts says how often a message is received at most before it becomes a
// dead letter; default [DefaultMaxAttempts]. An attempt counts when it is given
// back and also when its receiver died with it.
func MaxAttempts(n int) GroupOption {
	return groupFunc(func(g *groupTerms) { g.config.MaxAttempts = n })
}

// Backoff says how long a message that was given back waits before its second
// attempt, its third and so on; the last one repeats. Each is in whole
// milliseconds. Default, and without any: the delay levels from 3 on, 10 s, 30 s,
// 1 min and so on to 2 h.
func Backoff(delays ...time.Duration) GroupOption {
	return groupFunc(func(g *groupTerms) { g.config.Backoff = delays })
}

// InflightMax says how many messages of one queue the group's receivers hold at
// once, all together; default and limit are [MaxInflight].
func InflightMax(n int) GroupOption {
	return groupFunc(func(g *groupTerms) { g.config.InflightMax = n })
}

// A Position is a place in every queue of a topic: where a new group begins, or
// where [Queue.ResetGroup] has one go on.
type Position struct {
	kind broker.PositionKind
	at   int64
	zero bool // the zero time was given
}

// StartEarliest begins with the first message that is kept. It is the default.
func StartEarliest() Position { return Position{kind: broker.PositionEarliest} }

// StartLatest begins with what becomes visible from now on; of a new group, from
// its first receive on.
func StartLatest() Position { return Position{kind: broker.PositionLatest} }

// StartAt begins with what became visible at t or later.
func StartAt(t time.Time) Position {
	return Position{kind: broker.PositionAt, at: unixMs(t), zero: t.IsZero()}
}

// StartOffset begins with that offset of each queue, or with the nearest one
// that is kept. It is for ResetGroup only.
func StartOffset(offset int64) Position {
	return Position{kind: broker.PositionOffset, at: offset}
}

// String says how the position was given.
func (p Position) String() string {
	switch p.kind {
	case broker.PositionLatest:
		return "latest"
	case broker.PositionAt:
		return instant(p.at).Format(time.RFC3339Nano)
	case broker.PositionOffset:
		return fmt.Sprintf("offset %d", p.at)
	default:
		return "earliest"
	}
}

func (p Position) group(g *groupTerms) {
	g.config.StartTime = 0
	switch p.kind {
	case broker.PositionLatest:
		g.config.Start = broker.StartLatest
	case broker.PositionAt:
		g.config.Start, g.config.StartTime = broker.StartAt, p.at
	case broker.PositionOffset:
		g.err = fmt.Errorf("%w: a group that begins at %v: each queue has offsets of its own", ErrInvalid, p)
	default:
		g.config.Start = broker.StartEarliest
	}
	if err := p.check(); err != nil {
		g.err = err
	}
}

func (p Position) check() error {
	switch {
	case p.zero:
		return fmt.Errorf("%w: the zero time as a position", ErrInvalid)
	case p.kind == broker.PositionOffset && p.at < 0:
		return fmt.Errorf("%w: offset %d, want none below zero", ErrInvalid, p.at)
	}
	return nil
}

// A GroupInfo is a consumer group.
type GroupInfo struct {
	Name        string
	Start       Position        // where it begins in a queue
	MaxAttempts int             // see [MaxAttempts]
	Backoff     []time.Duration // see [Backoff]
	InflightMax int             // see [InflightMax]
	Invisible   time.Duration   // see [Invisible]
	Topics      []GroupTopic    // in which it has begun, by name; only of [Queue.GroupInfo]
	Dead        int64           // dead letters, neither redriven nor purged
}

// A GroupTopic tells how a group stands in a topic.
type GroupTopic struct {
	Topic    string
	Lag      int64  // visible and not finished
	Inflight int64  // of these, received now
	Retrying int64  // of these, given back and waiting for their next attempt
	Skipped  uint64 // that retention took before the group was finished with them
	Queues   []GroupQueue
}

// A GroupQueue tells how a group stands in a queue.
type GroupQueue struct {
	Queue    int
	Low      int64 // the first offset that is kept
	Next     int64 // the offset that becomes visible next
	Base     int64 // everything below is finished
	Pulled   int64 // what [Queue.Commit] noted
	Lag      int64 // as of the topic
	Inflight int64
	Retrying int64
	Skipped  uint64
}

// CreateGroup makes a consumer group. Without options it is what the first
// receive would make. One that is there and is the same is no error, another one
// is [ErrExists]. It is durable as the [SyncPolicy] says.
func (q *Queue) CreateGroup(ctx context.Context, name string, opts ...GroupOption) (g GroupInfo, err error) {
	terms, err := termsOf(broker.GroupConfig{}, opts)
	if err != nil {
		return g, err
	}
	err = q.during(ctx, func() (err error) {
		g, err = q.b.createGroup(ctx, name, terms)
		return err
	})
	return g, err
}

func termsOf(c broker.GroupConfig, opts []GroupOption) (broker.GroupConfig, error) {
	t := groupTerms{config: c}
	for _, o := range opts {
		o.group(&t)
	}
	return t.config, t.err
}

// UpdateGroup gives a group the settings that the options name; the others stay.
// Where it starts matters only in queues in which it has not begun. What was
// given back before keeps its back-off.
func (q *Queue) UpdateGroup(ctx context.Context, name string, opts ...GroupOption) (g GroupInfo, err error) {
	err = q.during(ctx, func() error {
		old, err := q.b.groupInfo(ctx, name)
		if err != nil {
			return err
		}
		terms, err := termsOf(old.config(), opts)
		if err != nil {
			return err
		}
		g, err = q.b.updateGroup(ctx, name, terms)
		return err
	})
	return g, err
}

// config is how the group consumes.
func (g *GroupInfo) config() broker.GroupConfig {
	t := groupTerms{config: broker.GroupConfig{
		MaxAttempts: g.MaxAttempts, Backoff: g.Backoff, InflightMax: g.InflightMax, Invisible: g.Invisible,
	}}
	g.Start.group(&t)
	return t.config
}

// Groups gives all groups by name, without their topics.
func (q *Queue) Groups(ctx context.Context) (all []GroupInfo, err error) {
	err = q.during(ctx, func() (err error) {
		all, err = q.b.groupList(ctx)
		return err
	})
	return all, err
}

// GroupInfo tells how a group stands; [ErrUnknownGroup] if there is none.
func (q *Queue) GroupInfo(ctx context.Context, name string) (g GroupInfo, err error) {
	err = q.during(ctx, func() (err error) {
		g, err = q.b.groupInfo(ctx, name)
		return err
	})
	return g, err
}

// DeleteGroup deletes a group with its positions, what waits for its retries and
// its dead letters. A group of that name that is made afterwards begins anew.
func (q *Queue) DeleteGroup(ctx context.Context, name string) error {
	return q.during(ctx, func() error { return q.b.deleteGroup(ctx, name) })
}

// A ResetOption says how a group is reset: [DryRun].
type ResetOption interface{ reset(dry *bool) }

// A QueueReset tells what ResetGroup did in a queue.
type QueueReset struct {
	Queue    int
	From, To int64 // everything below was finished; is now
}

// ResetGroup has a group go on at another position of a topic, back or forward,
// in all its queues. Attempts, leases and what waits for its retries are
// forgotten: a message that somebody still holds is received again if it lies
// behind the new position. With [DryRun] nothing changes.
func (q *Queue) ResetGroup(ctx context.Context, name, topic string, to Position, opts ...ResetOption) (moved []QueueReset, err error) {
	if err := to.check(); err != nil {
		return nil, err
	}
	dry := false
	for _, o := range opts {
		o.reset(&dry)
	}
	err = q.during(ctx, func() (err error) {
		moved, err = q.b.resetGroup(ctx, name, topic, to, dry)
		return err
	})
	return moved, err
}
