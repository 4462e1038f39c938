package duemq

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/record"
)

func (l local) pull(ctx context.Context, r broker.PullRequest) (Pulled, error) {
	got, err := l.b.Pull(ctx, r)
	if err != nil {
		return Pulled{}, drained(err)
	}
	return Pulled{
		Messages: messagesOf(got.Messages), Next: int64(got.Next), Low: int64(got.Low), High: int64(got.High),
		Moved: got.Moved, Skipped: got.Skipped,
	}, nil
}

// drained is the error of a call that waited.
func drained(err error) error {
	if errors.Is(err, broker.ErrDraining) {
		return ErrClosed
	}
	return err
}

func (l local) commit(ctx context.Context, group, topic string, next map[int]int64) error {
	offsets := make(map[int]record.Offset, len(next))
	for queue, o := range next {
		offsets[queue] = record.Offset(o)
	}
	return l.b.Commit(ctx, group, topic, offsets)
}

func (l local) position(_ context.Context, group, topic string) (map[int]int64, error) {
	offsets, err := l.b.Position(group, topic)
	if err != nil {
		return nil, err
	}
	next := make(map[int]int64, len(offsets))
	for queue, o := range offsets {
		next[queue] = int64(o)
	}
	return next, nil
}

func (l local) offsetAt(_ context.Context, topic string, queue int, at int64) (int64, error) {
	o, err := l.b.SearchOffset(topic, queue, at)
	return int64(o), err
}

func (l local) createTopic(ctx context.Context, name string, t topicTerms) (TopicInfo, error) {
	var attributes []record.Property
	for name, value := range t.attributes {
		attributes = append(attributes, record.Property{Name: name, Value: value})
	}
	slices.SortFunc(attributes, func(a, b record.Property) int { return strings.Compare(a.Name, b.Name) })
	return topicOf(l.b.CreateTopic(ctx, name, t.queues, attributes))
}

func (l local) updateTopic(ctx context.Context, name string, attributes map[string]string) (TopicInfo, error) {
	return topicOf(l.b.UpdateTopic(ctx, name, attributes))
}

func (l local) topicInfo(_ context.Context, name string) (TopicInfo, error) {
	return topicOf(l.b.Topic(name))
}

// topicOf makes a topic of the broker's.
func topicOf(t broker.TopicInfo, err error) (TopicInfo, error) {
	if err != nil {
		return TopicInfo{}, err
	}
	out := TopicInfo{
		Name: t.Name, Queues: t.Queues, MaxRate: t.MaxRate, Paused: t.Counts.Paused,
		Waiting: t.Counts.Waiting, Held: t.Counts.Held, Halves: t.Counts.Halves, Visible: t.Counts.Visible,
	}
	if len(t.Attributes) > 0 {
		out.Attributes = make(map[string]string, len(t.Attributes))
		for _, a := range t.Attributes {
			out.Attributes[a.Name] = a.Value
		}
	}
	for _, o := range t.Offsets {
		out.Offsets = append(out.Offsets, QueueOffsets{int64(o.Low), int64(o.Next)})
	}
	return out, nil
}

func (l local) topicList(context.Context) ([]TopicInfo, error) {
	list := l.b.TopicList(false)
	all := make([]TopicInfo, len(list))
	for i := range list {
		all[i], _ = topicOf(list[i], nil)
	}
	slices.SortFunc(all, func(a, b TopicInfo) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func (l local) pauseTopic(ctx context.Context, name string) error { return l.b.PauseTopic(ctx, name) }

func (l local) resumeTopic(ctx context.Context, name string) error { return l.b.ResumeTopic(ctx, name) }

func (l local) deleteTopic(ctx context.Context, name string) (p Purged, err error) {
	p.Waiting, p.Visible, err = l.b.DeleteTopic(ctx, name)
	return p, err
}

func (l local) purgeTopic(ctx context.Context, name string) (p Purged, err error) {
	p.Waiting, p.Visible, err = l.b.PurgeTopic(ctx, name)
	return p, err
}

func (l local) createGroup(ctx context.Context, name string, c broker.GroupConfig) (GroupInfo, error) {
	return groupOf(l.b.CreateGroup(ctx, name, c))
}

func (l local) updateGroup(ctx context.Context, name string, c broker.GroupConfig) (GroupInfo, error) {
	return groupOf(l.b.UpdateGroup(ctx, name, c))
}

func (l local) groupInfo(_ context.Context, name string) (GroupInfo, error) {
	return groupOf(l.b.Group(name))
}

// groupOf makes a group of the broker's.
func groupOf(g broker.GroupInfo, err error) (GroupInfo, error) {
	if err != nil {
		return GroupInfo{}, err
	}
	out := GroupInfo{
		Name: g.Name, Start: StartEarliest(), MaxAttempts: g.Config.MaxAttempts, Backoff: g.Config.Backoff,
		InflightMax: g.Config.InflightMax, Invisible: g.Config.Invisible, Dead: g.Dead,
	}
	switch g.Config.Start {
	case broker.StartLatest:
		out.Start = StartLatest()
	case broker.StartAt:
		out.Start = StartAt(instant(g.Config.StartTime))
	default:
	}
	for i := range g.Topics {
		t := &g.Topics[i]
		topic := GroupTopic{Topic: t.Topic, Lag: t.Lag, Inflight: t.Inflight, Retrying: t.Retrying, Skipped: t.Skipped}
		for _, q := range t.Queues {
			topic.Queues = append(topic.Queues, GroupQueue{
				Queue: q.Queue, Low: int64(q.Low), Next: int64(q.Next), Base: int64(q.Base), Pulled: int64(q.Pulled),
				Lag: q.Lag, Inflight: q.Inflight, Retrying: q.Retrying, Skipped: q.Skipped,
			})
		}
		out.Topics = append(out.Topics, topic)
	}
	return out, nil
}

func (l local) groupList(context.Context) ([]GroupInfo, error) {
	list := l.b.GroupList()
	all := make([]GroupInfo, len(list))
	for i := range list {
		all[i], _ = groupOf(list[i], nil)
	}
	slices.SortFunc(all, func(a, b GroupInfo) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func (l local) deleteGroup(ctx context.Context, name string) error { return l.b.DeleteGroup(ctx, name) }

func (l local) resetGroup(ctx context.Context, name, topic string, to Position, dry bool) ([]QueueReset, error) {
	p := broker.Position{Kind: to.kind, Value: to.at}
	if p.Kind == 0 {
		p.Kind = broker.PositionEarliest
	}
	queues, err := l.b.Reset(ctx, name, topic, p, dry)
	if err != nil {
		return nil, err
	}
	moved := make([]QueueReset, len(queues))
	for i, q := range queues {
		moved[i] = QueueReset{q.Queue, int64(q.Base), int64(q.To)}
	}
	return moved, nil
}

func (l local) deadPages(group string) pager {
	return func(ctx context.Context, cursor string) ([]*Message, string, error) {
		page, next, err := l.b.DeadLetters(ctx, group, cursor, deadPage)
		return messagesOf(page), next, err
	}
}

// deadPage is how many dead letters are in memory at once, with their bodies.
const deadPage = 16

func (l local) redrive(ctx context.Context, r broker.RedriveRequest) (*Operation, error) {
	return operationOf(l.b.Redrive(ctx, r))
}

func (l local) purgeDead(ctx context.Context, group string, ids []string) (int, error) {
	return l.b.PurgeDead(ctx, group, ids)
}

func (l local) endTransaction(ctx context.Context, id string, commit bool) error {
	_, err := l.b.EndTransaction(ctx, id, commit)
	return err
}

func (l local) checks(ctx context.Context, producer string, most int, wait time.Duration) ([]*Check, error) {
	got, err := l.b.Checks(ctx, producer, most, wait)
	if err != nil {
		return nil, drained(err)
	}
	checks := make([]*Check, len(got))
	for i := range got {
		checks[i] = &Check{Message: messageOf(&got[i].View), Checks: got[i].Checks}
	}
	return checks, nil
}

func (l local) transactions(_ context.Context, producer string) ([]*Message, error) {
	return messagesOf(l.b.Transactions(producer)), nil
}

func (l local) startBulk(ctx context.Context, b *bulk) (*Operation, error) {
	return operationOf(l.b.StartBulk(ctx, broker.Bulk{
		Kind: b.kind, Filter: l.filter(b.s), Delay: b.d.d, By: b.by,
		SpreadFrom: b.spreadFrom, SpreadOver: b.spreadOver.Milliseconds(), DryRun: b.dry,
	}))
}

// operationOf makes an operation of the broker's.
func operationOf(op broker.Operation, err error) (*Operation, error) {
	if err != nil {
		return nil, drained(err)
	}
	return &Operation{
		ID: op.ID, Kind: op.Kind, State: OperationState(op.State), Matched: op.Matched, Done: op.Done, Missed: op.Missed,
		Samples: messagesOf(op.Samples), Began: instant(op.Began), Ended: instant(op.Ended), Error: op.Error,
	}, nil
}

func (l local) operation(_ context.Context, id string) (*Operation, error) {
	return operationOf(l.b.Operation(id))
}

func (l local) operations(context.Context) ([]*Operation, error) {
	list := l.b.Operations()
	all := make([]*Operation, len(list))
	for i := range list {
		all[i], _ = operationOf(list[i], nil)
	}
	return all, nil
}

func (l local) waitOperation(ctx context.Context, id string) (*Operation, error) {
	return operationOf(l.b.WaitOperation(ctx, id))
}

func (l local) stopOperation(ctx context.Context, id string) error { return l.b.StopOperation(ctx, id) }

func (l local) timeline(ctx context.Context, r broker.TimelineRequest) (Timeline, error) {
	got, err := l.b.Timeline(ctx, r)
	if err != nil {
		return Timeline{}, err
	}
	t := Timeline{
		From: instant(got.From), To: instant(got.To), Step: got.Step, Buckets: make([]Bucket, len(got.Buckets)),
		Total: got.Total, Paused: got.Paused, Overdue: got.Overdue, Earliest: instant(got.Earliest), Latest: instant(got.Latest),
	}
	for i, b := range got.Buckets {
		t.Buckets[i] = Bucket{instant(b.From), b.Count, b.Topics}
	}
	return t, nil
}
