package duemq

import (
	"context"
	"fmt"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

func (r *remote) pull(ctx context.Context, q broker.PullRequest) (Pulled, error) {
	got, err := r.c.Pull(ctx, client.PullQuery{
		Topic: q.Topic, Queue: q.Queue, Offset: uint64(q.Offset),
		Max: q.Max, MaxBytes: q.MaxBytes, Wait: min(q.Wait, r.poll), Tags: q.Tags,
	})
	if err := answered(ctx, err); err != nil {
		return Pulled{}, err
	}
	r.line.up()
	return Pulled{
		Messages: messagesFrom(got.Messages), Next: int64(got.Next), Low: int64(got.Low), High: int64(got.High),
		Moved: got.Moved, Skipped: got.Skipped,
	}, nil
}

func (r *remote) commit(ctx context.Context, group, topic string, next map[int]int64) error {
	offsets := make(map[int]wire.Number, len(next))
	for queue, o := range next {
		offsets[queue] = wire.Number(o)
	}
	return r.twice(ctx, func() error { return r.c.CommitOffsets(ctx, group, topic, offsets) })
}

func (r *remote) position(ctx context.Context, group, topic string) (map[int]int64, error) {
	offsets, err := ask(ctx, r, func(ctx context.Context) (map[int]wire.Number, error) { return r.c.Offsets(ctx, group, topic) })
	if err != nil {
		return nil, err
	}
	next := make(map[int]int64, len(offsets))
	for queue, o := range offsets {
		next[queue] = int64(o)
	}
	return next, nil
}

func (r *remote) offsetAt(ctx context.Context, topic string, queue int, at int64) (int64, error) {
	o, err := ask(ctx, r, func(ctx context.Context) (uint64, error) {
		return r.c.SearchOffset(ctx, topic, queue, wire.Time(at))
	})
	return int64(o), err
}

func (r *remote) createTopic(ctx context.Context, name string, t topicTerms) (TopicInfo, error) {
	return topicFrom(ask(ctx, r, func(ctx context.Context) (wire.Topic, error) {
		return r.c.CreateTopic(ctx, wire.NewTopic{Name: name, Queues: given(t.queues), Attributes: t.attributes})
	}))
}

func (r *remote) updateTopic(ctx context.Context, name string, attributes map[string]string) (TopicInfo, error) {
	return topicFrom(ask(ctx, r, func(ctx context.Context) (wire.Topic, error) {
		return r.c.UpdateTopic(ctx, name, wire.TopicPatch{Attributes: attributes})
	}))
}

func (r *remote) topicInfo(ctx context.Context, name string) (TopicInfo, error) {
	return topicFrom(ask(ctx, r, func(ctx context.Context) (wire.Topic, error) { return r.c.Topic(ctx, name) }))
}

// topicFrom makes a topic of the wire's.
func topicFrom(w wire.Topic, err error) (TopicInfo, error) {
	if err != nil {
		return TopicInfo{}, err
	}
	t := TopicInfo{
		Name: w.Name, Queues: w.Queues, MaxRate: w.MaxRate, Attributes: w.Attributes, Paused: w.Paused,
		Waiting: w.Waiting, Held: w.Held, Halves: w.Halves, Visible: w.Visible,
	}
	for _, o := range w.Offsets {
		t.Offsets = append(t.Offsets, QueueOffsets{int64(o.Low), int64(o.Next)})
	}
	return t, nil
}

// every reads a listing to its end.
func every[T any](ctx context.Context, r *remote, read func(ctx context.Context, cursor string) ([]T, string, error)) (all []T, err error) {
	for cursor := ""; ; {
		var page []T
		err := r.twice(ctx, func() (err error) {
			var next string
			if page, next, err = read(ctx, cursor); err == nil {
				cursor = next
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); cursor == "" {
			return all, nil
		}
	}
}

func (r *remote) topicList(ctx context.Context) ([]TopicInfo, error) {
	list, err := every(ctx, r, func(ctx context.Context, cursor string) ([]wire.Topic, string, error) {
		page, err := r.c.Topics(ctx, false, broker.MaxPage, cursor)
		return page.Topics, page.Cursor, err
	})
	if err != nil {
		return nil, err
	}
	all := make([]TopicInfo, len(list))
	for i := range list {
		all[i], _ = topicFrom(list[i], nil)
	}
	return all, nil
}

func (r *remote) pauseTopic(ctx context.Context, name string) error {
	_, err := ask(ctx, r, func(ctx context.Context) (wire.Topic, error) { return r.c.PauseTopic(ctx, name) })
	return err
}

func (r *remote) resumeTopic(ctx context.Context, name string) error {
	_, err := ask(ctx, r, func(ctx context.Context) (wire.Topic, error) { return r.c.ResumeTopic(ctx, name) })
	return err
}

func (r *remote) deleteTopic(ctx context.Context, name string) (Purged, error) {
	p, err := change(ctx, r, func(ctx context.Context) (wire.Purged, error) { return r.c.DeleteTopic(ctx, name) })
	return Purged{p.Waiting, p.Visible}, err
}

func (r *remote) purgeTopic(ctx context.Context, name string) (Purged, error) {
	p, err := change(ctx, r, func(ctx context.Context) (wire.Purged, error) { return r.c.PurgeTopic(ctx, name) })
	return Purged{p.Waiting, p.Visible}, err
}

func (r *remote) createGroup(ctx context.Context, name string, c broker.GroupConfig) (GroupInfo, error) {
	return groupFrom(ask(ctx, r, func(ctx context.Context) (wire.Group, error) {
		return r.c.CreateGroup(ctx, wire.NewGroup{Name: name, GroupSettings: settingsOf(&c)})
	}))
}

func (r *remote) updateGroup(ctx context.Context, name string, c broker.GroupConfig) (GroupInfo, error) {
	return groupFrom(ask(ctx, r, func(ctx context.Context) (wire.Group, error) { return r.c.PutGroup(ctx, name, settingsOf(&c)) }))
}

// Where a group begins, as the wire has it, beside an instant.
const (
	earliest = "earliest"
	latest   = "latest"
)

// given makes of a number that is 0 when nobody gave it what the wire has.
func given(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func settingsOf(c *broker.GroupConfig) wire.GroupSettings {
	s := wire.GroupSettings{Start: earliest, MaxAttempts: given(c.MaxAttempts), InflightMax: given(c.InflightMax)}
	if c.Invisible != 0 {
		s.Invisible = new(wire.Duration(c.Invisible))
	}
	for _, d := range c.Backoff {
		s.Backoff = append(s.Backoff, wire.Duration(d))
	}
	switch c.Start {
	case broker.StartLatest:
		s.Start = latest
	case broker.StartAt:
		s.Start = wire.Time(c.StartTime).String()
	default:
	}
	return s
}

func (r *remote) groupInfo(ctx context.Context, name string) (GroupInfo, error) {
	return groupFrom(ask(ctx, r, func(ctx context.Context) (wire.Group, error) { return r.c.Group(ctx, name) }))
}

// groupFrom makes a group of the wire's.
func groupFrom(w wire.Group, err error) (GroupInfo, error) {
	if err != nil {
		return GroupInfo{}, err
	}
	g := GroupInfo{
		Name: w.Name, Start: StartEarliest(), MaxAttempts: w.MaxAttempts, InflightMax: w.InflightMax,
		Invisible: time.Duration(w.Invisible), Dead: w.Dead,
	}
	for _, d := range w.Backoff {
		g.Backoff = append(g.Backoff, time.Duration(d))
	}
	switch w.Start {
	case earliest:
	case latest:
		g.Start = StartLatest()
	default:
		t, err := wire.ParseInstant(w.Start, nil)
		if err != nil {
			return g, fmt.Errorf("group %q begins at %q: %w", w.Name, w.Start, err)
		}
		g.Start = StartAt(t)
	}
	for i := range w.Topics {
		t := &w.Topics[i]
		topic := GroupTopic{Topic: t.Topic, Lag: t.Lag, Inflight: t.Inflight, Retrying: t.Retrying, Skipped: t.Skipped}
		for _, q := range t.Queues {
			topic.Queues = append(topic.Queues, GroupQueue{
				Queue: q.Queue, Low: int64(q.Low), Next: int64(q.Next), Base: int64(q.Base), Pulled: int64(q.Pulled),
				Lag: q.Lag, Inflight: q.Inflight, Retrying: q.Retrying, Skipped: q.Skipped,
			})
		}
		g.Topics = append(g.Topics, topic)
	}
	return g, nil
}

func (r *remote) groupList(ctx context.Context) ([]GroupInfo, error) {
	list, err := every(ctx, r, func(ctx context.Context, cursor string) ([]wire.Group, string, error) {
		page, err := r.c.Groups(ctx, broker.MaxPage, cursor)
		return page.Groups, page.Cursor, err
	})
	if err != nil {
		return nil, err
	}
	all := make([]GroupInfo, len(list))
	for i := range list {
		if all[i], err = groupFrom(list[i], nil); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (r *remote) deleteGroup(ctx context.Context, name string) error {
	return r.once(ctx, func() error { return r.c.DeleteGroup(ctx, name) })
}

func (r *remote) resetGroup(ctx context.Context, name, topic string, to Position, dry bool) ([]QueueReset, error) {
	q := wire.Reset{Topic: topic, DryRun: dry, To: to.kindName()}
	switch to.kind {
	case broker.PositionOffset:
		o := uint64(to.at)
		q.Offset = &o
	case broker.PositionAt:
		q.To = wire.Time(to.at).String()
	default:
	}
	reply, err := ask(ctx, r, func(ctx context.Context) (wire.ResetReply, error) { return r.c.ResetGroup(ctx, name, q) })
	if err != nil {
		return nil, err
	}
	moved := make([]QueueReset, len(reply.Queues))
	for i, q := range reply.Queues {
		moved[i] = QueueReset{q.Queue, int64(q.Base), int64(q.To)}
	}
	return moved, nil
}

func (p Position) kindName() string {
	switch p.kind {
	case broker.PositionOffset, broker.PositionAt:
		return ""
	case broker.PositionLatest:
		return latest
	default:
		return earliest
	}
}
