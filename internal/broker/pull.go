package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
)

// A PullRequest asks for messages of one queue from an offset on, without a
// group and without leases. Retry topics and dead letters can be looked at too.
type PullRequest struct {
	Topic    string
	Queue    int
	Offset   record.Offset
	Max      int           // 1 to MaxReceive; 0 is 1
	MaxBytes int           // of their bodies; 0 and above is MaxReceiveBytes. One message always fits
	Wait     time.Duration // how long to wait for the first one; 0 does not
	Tags     string        // as for a receive; what does not match is passed over
}

// A PullResult is what a pull found.
type PullResult struct {
	Messages []View
	Next     record.Offset // where the next pull goes on
	Low      record.Offset // the first that is kept
	High     record.Offset // one more than the last
	Moved    bool          // the offset asked for lies outside of what is kept: retention has moved it, or it is beyond the end
	Skipped  uint64        // how many offsets retention has moved it by
}

func (r *PullRequest) check() error { return checkAnswer(&r.Max, &r.MaxBytes, r.Wait) }

// Pull reads messages of a queue. Consumers that keep their own positions call
// it, and those that commit them to a group. No message within Wait is no error.
// An offset that is moved is answered at once. A message whose record is damaged
// is passed over, and reported in the log.
func (b *Broker) Pull(ctx context.Context, r PullRequest) (PullResult, error) {
	if err := r.check(); err != nil {
		return PullResult{}, err
	}
	tags, err := parseTags(r.Tags)
	if err != nil {
		return PullResult{}, err
	}
	t := b.e.TopicNamed(r.Topic)
	if t == nil {
		return PullResult{}, unknownTopic(r.Topic)
	}
	deadline := b.mono() + r.Wait.Milliseconds()
	res := PullResult{Next: r.Offset}
	for {
		bell := t.Bell.Wait()
		n, err := b.queueNumber(t, r.Queue)
		if err != nil {
			return PullResult{}, err
		}
		p := puller{b: b, r: &r, tags: &tags, topic: t, queue: n, room: r.MaxBytes}
		more, err := p.pass(&res)
		if errors.Is(err, engine.ErrNotFound) && b.e.TopicNamed(t.Name) != t {
			err = unknownTopic(t.Name)
		}
		if err != nil || len(res.Messages) > 0 || res.Moved {
			return res, err
		}
		left := deadline - b.mono()
		switch {
		case left <= 0:
			return res, nil
		case more:
			err = b.goesOn(ctx)
		default:
			err = b.await(ctx, bell, time.Duration(left)*time.Millisecond)
		}
		if err != nil {
			return PullResult{}, err
		}
	}
}

// queueNumber finds a queue of a topic.
func (b *Broker) queueNumber(t *engine.Topic, queue int) (record.QueueNumber, error) {
	if queue < 0 || queue >= int(t.Queues) {
		return 0, fmt.Errorf("%w: queue %d of topic %q, which has queues 0 to %d", ErrInvalid, queue, t.Name, t.Queues-1)
	}
	return t.First() + record.QueueNumber(queue), nil
}

// A puller is one pull on its way.
type puller struct {
	b     *Broker
	r     *PullRequest
	tags  *tagFilter
	topic *engine.Topic
	queue record.QueueNumber
	room  int
}

// pass looks once, at a bounded number of entries. more says that there may be
// more behind them.
func (p *puller) pass(res *PullResult) (more bool, err error) {
	if res.Low, res.High, err = p.b.e.Bounds(p.queue); err != nil {
		return false, err
	}
	switch {
	case res.Next < res.Low:
		res.Moved, res.Skipped = true, uint64(res.Low-res.Next)
		res.Next = res.Low
	case res.Next > res.High:
		res.Moved, res.Next = true, res.High
	}
	var entries []queue.Entry
	for looked := 0; res.Next < res.High && looked < passLook && len(res.Messages) < p.r.Max; looked += len(entries) {
		limit := p.r.Max - len(res.Messages)
		if !p.tags.all() {
			limit = max(limit, passChunk)
		}
		limit = int(min(uint64(limit), uint64(res.High-res.Next)))
		if entries, err = p.b.e.Entries(entries[:0], p.queue, res.Next, limit); errors.Is(err, engine.ErrNotFound) {
			return true, nil // retention took them in this moment
		}
		if err != nil {
			return false, err
		}
		if full := p.choose(res, entries); full {
			return false, nil
		}
	}
	return res.Next < res.High, nil
}

// choose reads what matches of entries from res.Next on, and moves that. full
// says that there is no room for the next one.
func (p *puller) choose(res *PullResult, entries []queue.Entry) (full bool) {
	var chosen []queue.Entry
	var offsets []record.Offset
	n := 0
	for ; n < len(entries); n++ {
		e := &entries[n]
		if !p.tags.mayMatch(e.Tag) {
			continue
		}
		some := len(res.Messages)+len(chosen) > 0
		if full = len(res.Messages)+len(chosen) == p.r.Max || some && int(e.Size) > p.room; full {
			break
		}
		p.room -= int(e.Size)
		chosen, offsets = append(chosen, *e), append(offsets, res.Next+record.Offset(n))
	}
	res.Next += record.Offset(n)
	p.b.e.Messages(chosen, func(i int, m *record.Message, err error) {
		e := &chosen[i]
		if err != nil {
			p.b.log.Error("message cannot be read", slog.Any("id", e.ID), slog.Any("error", err))
			return
		}
		if !p.tags.matches(m.Tag) {
			return
		}
		v := p.b.view(p.topic, p.queue, m, e.ID)
		v.Body = slices.Clone(m.Body)
		v.Offset, v.HasOffset, v.State = offsets[i], true, StateReady
		v.Due, v.VisibleAt = e.Due, e.VisibleAt
		res.Messages = append(res.Messages, v)
	})
	return full
}

// Commit notes a pull consumer's next offset in queues of a topic, for its
// group, which is made if there is none. It is as durable as an ack. An offset
// beyond the end is the end.
func (b *Broker) Commit(ctx context.Context, group, topic string, offsets map[int]record.Offset) error {
	t := b.e.TopicNamed(topic)
	if t == nil {
		return unknownTopic(topic)
	}
	s, err := b.subscriber(ctx, group)
	if err != nil {
		return err
	}
	commits := make([]record.Commit, 0, len(offsets))
	for i, o := range offsets {
		n, err := b.queueNumber(t, i)
		if err != nil {
			return err
		}
		commits = append(commits, record.Commit{Group: s.Number, Queue: n, Offset: o})
	}
	if len(commits) == 0 {
		return nil
	}
	slices.SortFunc(commits, func(x, y record.Commit) int { return int(x.Queue) - int(y.Queue) })
	return b.e.Commit(ctx, commits)
}

// Position gives a pull consumer's next offset in each queue of a topic: what it
// committed, or where its group begins, and not before what is kept.
func (b *Broker) Position(group, topic string) (map[int]record.Offset, error) {
	s, err := b.known(group)
	if err != nil {
		return nil, err
	}
	t := b.e.TopicNamed(topic)
	if t == nil {
		return nil, unknownTopic(topic)
	}
	out := make(map[int]record.Offset, t.Queues)
	first := t.First()
	for i := range int(t.Queues) {
		q, err := b.groupQueue(s, first+record.QueueNumber(i))
		if err != nil {
			return nil, err
		}
		out[i] = q.Pulled
	}
	return out, nil
}

// SearchOffset finds the first offset of a queue that became visible at an
// instant (Unix ms) or later: the next one to come if none did.
func (b *Broker) SearchOffset(topic string, queue int, at int64) (record.Offset, error) {
	t := b.e.TopicNamed(topic)
	if t == nil {
		return 0, unknownTopic(topic)
	}
	n, err := b.queueNumber(t, queue)
	if err != nil {
		return 0, err
	}
	return b.e.Search(n, at)
}
