package duemq

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/record"
)

// local is a backend with a store in this process.
type local struct{ b *broker.Broker }

var _ backend = local{}

func (l local) send(ctx context.Context, msgs []broker.Message) ([]Receipt, error) {
	if ctx.Done() != nil {
		// If it ends while the messages are on their way, they are read after this
		// has returned, and the caller may use the bodies again.
		keepBodies(msgs)
	}
	rs, err := l.b.Send(ctx, msgs)
	if err != nil {
		return nil, err
	}
	receipts := make([]Receipt, len(rs))
	for i := range rs {
		receipts[i] = receiptOf(&rs[i])
	}
	return receipts, nil
}

// keepBodies copies the bodies, all into one piece of memory.
func keepBodies(msgs []broker.Message) {
	n := 0
	for i := range msgs {
		n += len(msgs[i].Body)
	}
	all := make([]byte, 0, n)
	for i := range msgs {
		from := len(all)
		all = append(all, msgs[i].Body...)
		msgs[i].Body = all[from:len(all):len(all)]
	}
}

func receiptOf(r *broker.Receipt) Receipt {
	out := Receipt{Topic: r.Topic, Queue: r.Queue, Offset: -1, Err: r.Err}
	if r.Err != nil {
		return out
	}
	out.ID, out.DueAt, out.Ready, out.Handle = r.ID.String(), instant(r.Due), r.Ready, r.Handle
	out.Repeat, out.Replaced = r.Repeat, idOf(r.Replaced)
	if r.Ready {
		out.Offset = int64(r.Offset)
	}
	return out
}

// idOf is an id as users have it, empty for none.
func idOf(id record.ID) string {
	if id == 0 {
		return ""
	}
	return id.String()
}

func (l local) receive(ctx context.Context, r broker.ReceiveRequest) ([]*Message, error) {
	ds, err := l.b.Receive(ctx, r)
	if errors.Is(err, broker.ErrDraining) {
		return nil, ErrClosed
	}
	if err != nil {
		return nil, err
	}
	msgs := make([]*Message, len(ds))
	for i := range ds {
		msgs[i] = messageOf(&ds[i].View)
		msgs[i].lease = ds[i].Lease
	}
	return msgs, nil
}

// messageOf makes a message of the broker's view of it, whose body it keeps.
func messageOf(v *broker.View) *Message {
	m := &Message{
		Topic: v.Topic, Body: v.Body, Key: v.Key, Tag: v.Tag, Queue: v.Queue,
		ID: v.ID.String(), Offset: -1, SentAt: instant(v.Born), StoredAt: instant(v.Stored),
		DueAt: instant(v.Due), DueLevel: v.Level, VisibleAt: instant(v.VisibleAt),
		Attempt: v.Attempt, State: State(v.State), NextAttempt: instant(v.NextAttempt),
		Group: v.Group, Origin: idOf(v.Origin), OriginTopic: v.OriginTopic, Reason: v.Reason,
	}
	if v.HasOffset {
		m.Offset = int64(v.Offset)
	}
	if len(v.Properties) > 0 {
		m.Headers = make(map[string]string, len(v.Properties))
		for _, p := range v.Properties {
			m.Headers[p.Name] = p.Value
		}
	}
	return m
}

func messagesOf(vs []broker.View) []*Message {
	msgs := make([]*Message, len(vs))
	for i := range vs {
		msgs[i] = messageOf(&vs[i])
	}
	return msgs
}

func (l local) giveBack(leases []string) { l.b.Return(leases) }

func (l local) ack(ctx context.Context, leases []string) ([]error, error) {
	return l.b.Ack(ctx, leases)
}

func (l local) nack(ctx context.Context, lease string, d *time.Duration) (retried, error) {
	r, err := l.b.Nack(ctx, lease, d)
	return retried{instant(r.Due), r.Dead}, err
}

func (l local) bury(ctx context.Context, lease, reason string) error {
	_, err := l.b.Bury(ctx, lease, reason)
	return err
}

func (l local) extend(ctx context.Context, lease string, d time.Duration) error {
	return l.b.Extend(ctx, lease, d)
}

func (l local) cancel(ctx context.Context, id string) error {
	_, err := l.b.Cancel(ctx, id)
	return err
}

func (l local) reschedule(ctx context.Context, id string, d Delay) error {
	_, err := l.b.Reschedule(ctx, id, d.d)
	return err
}

func (l local) shift(ctx context.Context, id string, by time.Duration) error {
	_, err := l.b.Shift(ctx, id, by)
	return err
}

func (l local) deliverNow(ctx context.Context, id string) error {
	_, err := l.b.DeliverNow(ctx, id)
	return err
}

func (l local) message(ctx context.Context, id string) (*Message, error) {
	v, err := l.b.Message(ctx, id)
	if err != nil {
		return nil, err
	}
	v.Body = slices.Clone(v.Body)
	return messageOf(&v), nil
}

func (l local) named(ctx context.Context, topic, name string) (*Message, error) {
	v, err := l.b.MessageByName(ctx, topic, name)
	if err != nil {
		return nil, err
	}
	v.Body = slices.Clone(v.Body)
	return messageOf(&v), nil
}

// cancelNamed cancels who waits under a name. Who has it may change between the
// look and the cancelling: then it looks again.
func (l local) cancelNamed(ctx context.Context, topic, name string) error {
	for tried := record.ID(0); ; {
		v, err := l.b.MessageByName(ctx, topic, name)
		if err != nil {
			return err
		}
		_, err = l.b.Cancel(ctx, v.ID.String())
		if !errors.Is(err, ErrAlreadyCancelled) || v.ID == tried {
			return err
		}
		tried = v.ID
	}
}

func (l local) pages(s selection) pager {
	f := l.filter(s)
	return func(ctx context.Context, cursor string) ([]*Message, string, error) {
		page, err := l.b.Pending(ctx, f, cursor, broker.MaxPage)
		if err != nil {
			return nil, "", err
		}
		return messagesOf(page.Messages), page.Cursor, nil
	}
}

func (l local) count(ctx context.Context, s selection) (int64, error) {
	return l.b.Count(ctx, l.filter(s))
}

// filter resolves a selection at this moment.
func (l local) filter(s selection) broker.Filter {
	f := broker.Filter{
		Topic: s.topic, Tag: s.tag, Key: s.key, IDs: s.ids, From: s.from,
		State: broker.State(s.state), Overdue: s.overdue,
	}
	switch s.end {
	case endNone:
	case endAt:
		f.To = max(s.to, 1) // 0 would be no end
	case endWithin:
		f.To = max(l.b.Now()+s.to, 1)
	}
	return f
}

func (l local) nextDue() (due time.Time, ok bool) {
	ms, ok := l.b.NextDue()
	if !ok {
		return time.Time{}, false
	}
	return instant(ms), true
}

func (l local) ready() error                     { return l.b.Ready() }
func (l local) failed() <-chan struct{}          { return l.b.Failed() }
func (l local) err() error                       { return l.b.Err() }
func (l local) now() time.Time                   { return time.UnixMilli(l.b.Now()).UTC() }
func (l local) acceptClock() error               { return l.b.AcceptClock() }
func (l local) settle(ctx context.Context) error { return l.b.Settle(ctx) }
func (l local) drain()                           { l.b.Drain() }
func (l local) close() error                     { return l.b.Close() }

func (l local) stats() (Stats, error) {
	c, err := l.b.Counts("")
	if err != nil {
		return Stats{}, err
	}
	s := l.b.Stats()
	return Stats{
		Waiting: c.Waiting, Visible: c.Visible, Overdue: c.Overdue,
		Wakeups: s.Wakeups, Fruitless: s.Fruitless, Ticks: s.Ticks, Syncs: s.Syncs, SyncTime: s.SyncTime,
		Cuts: s.Cuts, CutFailures: s.CutFailures, ClockSteps: s.ClockSteps, LogBytes: s.LogBytes,
	}, nil
}

func (l local) recovered() Recovery {
	r := l.b.Recovered()
	return Recovery{
		New: r.New, Waiting: r.Waiting, Overdue: r.Overdue, Replayed: r.Replayed,
		Torn: uint64(r.Log.Torn), Took: r.Took,
	}
}
