package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/record"
)

// CreateGroup makes a consumer group. One that is there and has the same
// configuration is the answer too; with another it is ErrExists. It is durable
// on return.
func (b *Broker) CreateGroup(ctx context.Context, name string, c GroupConfig) (GroupInfo, error) {
	c = filled(c, b.e.LevelTable())
	if err := c.check(name); err != nil {
		return GroupInfo{}, err
	}
	s, err := b.known(name)
	if errors.Is(err, ErrGroupUnknown) {
		g := record.Group{Name: name, Start: c.Start, StartTime: c.StartTime, Attributes: c.attributes(b.e.LevelTable(), nil)}
		s, err = b.makeGroup(ctx, g)
	}
	if err != nil {
		return GroupInfo{}, err
	}
	if is := configOf(&s.Group, b.e.LevelTable()); !is.equal(&c) {
		return GroupInfo{}, fmt.Errorf("%w: group %q, with another configuration", ErrExists, name)
	}
	return b.groupInfo(s)
}

// UpdateGroup gives a group another configuration. Where it starts is of no
// consequence in queues in which it has begun. It is durable on return.
func (b *Broker) UpdateGroup(ctx context.Context, name string, c GroupConfig) (GroupInfo, error) {
	c = filled(c, b.e.LevelTable())
	if err := c.check(name); err != nil {
		return GroupInfo{}, err
	}
	s, err := b.known(name)
	if err != nil {
		return GroupInfo{}, err
	}
	next := s.Group
	next.Start, next.StartTime, next.Attributes = c.Start, c.StartTime, c.attributes(b.e.LevelTable(), s.Attributes)
	if err := b.e.ChangeGroup(ctx, next); err != nil {
		return GroupInfo{}, err
	}
	b.ringTopics(s.state) // who waits may get more now
	return b.Group(name)
}

// Group tells how a consumer group stands: ErrGroupUnknown if there is none.
func (b *Broker) Group(name string) (GroupInfo, error) {
	s, err := b.known(name)
	if err != nil {
		return GroupInfo{}, err
	}
	return b.groupInfo(s)
}

// GroupList gives all groups in the order in which they were made, without their
// queues.
func (b *Broker) GroupList() []GroupInfo {
	all := b.e.GroupsNow()
	list := make([]GroupInfo, 0, len(all))
	for i := range all {
		if g := &all[i]; g.Name != deadGroup {
			list = append(list, GroupInfo{Name: g.Name, Config: configOf(g, b.e.LevelTable()), Dead: b.deadCount(g.Name)})
		}
	}
	return list
}

// DeleteGroup deletes a group, with its positions, what waits for its retry and
// its dead letters. One that is made under its name afterwards gets none of it.
// It is durable on return.
func (b *Broker) DeleteGroup(ctx context.Context, name string) error {
	s, err := b.known(name)
	if err != nil {
		return err
	}
	if err := b.e.EndGroup(ctx, s.Number); err != nil {
		return err
	}
	b.forget(func(k leaseKey) bool { return k.group == s.Number })
	return b.endTopics(ctx, func(topic string) bool {
		return topic == deadTopic(name) || strings.HasPrefix(topic, retryTopic(name, ""))
	})
}

// endTopics ends topics of the broker's own.
func (b *Broker) endTopics(ctx context.Context, which func(name string) bool) error {
	for _, c := range b.e.Topics() {
		t := b.e.TopicNamed(c.Name)
		if t == nil || !isSystem(c.Name) || !which(c.Name) {
			continue
		}
		first := t.First()
		if err := b.e.EndTopic(ctx, t, false); err != nil && !errors.Is(err, engine.ErrGone) {
			return err
		}
		b.forget(func(k leaseKey) bool { return k.queue >= first && k.queue-first < record.QueueNumber(t.Queues) })
	}
	return nil
}

// forget drops leases of what has ended.
func (b *Broker) forget(which func(leaseKey) bool) {
	b.leases.Range(func(k, _ any) bool {
		if which(k.(leaseKey)) { //nolint:forcetypeassert // only leasesOf stores
			b.leases.Delete(k)
		}
		return true
	})
}

// ringTopics wakes who waits in the topics in which a group has begun.
func (b *Broker) ringTopics(g *group.Group) {
	var last *engine.Topic
	for _, q := range b.e.GroupQueues(g) {
		if t, _ := b.e.TopicOf(q); t != nil && t != last {
			t.Bell.Ring()
			last = t
		}
	}
}

// groupInfo tells how a group stands.
func (b *Broker) groupInfo(s subscriber) (GroupInfo, error) {
	info := GroupInfo{Name: s.Name, Config: configOf(&s.Group, b.e.LevelTable()), Dead: b.deadCount(s.Name)}
	topics := make(map[string]*GroupTopic)
	for _, n := range b.e.GroupQueues(s.state) {
		t, i := b.e.TopicOf(n)
		if t == nil {
			continue
		}
		q, err := b.groupQueue(s, n)
		if errors.Is(err, engine.ErrNotFound) {
			continue // deleted in this moment
		}
		if err != nil {
			return info, err
		}
		q.Queue = i
		if topics[t.Name] == nil {
			topics[t.Name] = &GroupTopic{Topic: t.Name}
		}
		topics[t.Name].add(q)
	}
	for _, t := range topics {
		info.Topics = append(info.Topics, *t)
	}
	slices.SortFunc(info.Topics, func(a, b GroupTopic) int { return cmp.Compare(a.Topic, b.Topic) })
	return info, nil
}

func (t *GroupTopic) add(q GroupQueue) {
	t.Queues = append(t.Queues, q)
	t.Lag += q.Lag
	t.Inflight += q.Inflight
	t.Retrying += q.Retrying
	t.Skipped += q.Skipped
}

// groupQueue tells how a group stands in a queue.
func (b *Broker) groupQueue(s subscriber, n record.QueueNumber) (GroupQueue, error) {
	var out GroupQueue
	unix := b.e.Now()
	err := b.e.Progress(s.state, n, func(p *group.Progress, bounds engine.Bounds) {
		out.Low, out.Next = bounds.Low, bounds.Next
		out.Base, out.Skipped = p.Behind(bounds.Low)
		out.Pulled = max(p.Pulled, bounds.Low)
		out.Lag, out.Retrying = p.Lag(bounds.Low, bounds.Next), p.Retrying(unix)
	})
	if l, ok := b.leases.Load(leaseKey{s.Number, n}); ok {
		out.Inflight = l.(*group.Leases).Inflight(out.Base, b.mono()) //nolint:forcetypeassert // only leasesOf stores
	}
	return out, err
}
