package duemq

import (
	"context"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

func (r *remote) deadPages(group string) pager {
	return func(ctx context.Context, cursor string) ([]*Message, string, error) {
		page, err := ask(ctx, r, func(ctx context.Context) (wire.Page, error) {
			return r.c.DeadLetters(ctx, group, true, deadPage, cursor)
		})
		return messagesFrom(page.Messages), page.Cursor, err
	}
}

func (r *remote) redrive(ctx context.Context, q broker.RedriveRequest) (*Operation, error) {
	return operationFrom(change(ctx, r, func(ctx context.Context) (wire.Operation, error) {
		return r.c.Redrive(ctx, q.Group, wire.Redrive{
			IDs: q.IDs, Delay: wire.Duration(time.Duration(q.Delay.Value) * time.Millisecond), Rate: q.Rate, DryRun: q.DryRun,
		})
	}))
}

func (r *remote) purgeDead(ctx context.Context, group string, ids []string) (int, error) {
	p, err := change(ctx, r, func(ctx context.Context) (wire.PurgedDead, error) { return r.c.PurgeDead(ctx, group, ids) })
	return p.Purged, err
}

func (r *remote) endTransaction(ctx context.Context, id string, commit bool) error {
	_, err := change(ctx, r, func(ctx context.Context) (wire.Answer, error) { return r.c.EndTransaction(ctx, id, commit) })
	return err
}

func (r *remote) checks(ctx context.Context, producer string, most int, wait time.Duration) ([]*Check, error) {
	got, err := r.c.Checks(ctx, wire.Checks{Producer: producer, Max: most, Wait: wire.Duration(min(wait, r.poll))})
	if err := answered(ctx, err); err != nil {
		return nil, err
	}
	r.line.up()
	checks := make([]*Check, len(got.Messages))
	for i := range got.Messages {
		checks[i] = &Check{Message: messageFrom(&got.Messages[i]), Checks: got.Messages[i].Checks}
	}
	return checks, nil
}

func (r *remote) transactions(ctx context.Context, producer string) ([]*Message, error) {
	got, err := ask(ctx, r, func(ctx context.Context) (wire.Halves, error) { return r.c.Transactions(ctx, producer) })
	return messagesFrom(got.Messages), err
}

func (r *remote) startBulk(ctx context.Context, b *bulk) (*Operation, error) {
	filter := b.s.wire()
	filter.All = b.all
	var call func(context.Context) (wire.Operation, error)
	switch b.kind {
	case broker.BulkCancel:
		call = func(ctx context.Context) (wire.Operation, error) {
			return r.c.BulkCancel(ctx, wire.BulkCancel{Filter: filter, DryRun: b.dry})
		}
	case broker.BulkSpread:
		q := wire.BulkSpread{Filter: filter, Over: wire.Duration(b.spreadOver), DryRun: b.dry}
		if b.spreadFrom != 0 {
			q.At = wire.Time(b.spreadFrom).String()
		}
		call = func(ctx context.Context) (wire.Operation, error) { return r.c.BulkSpread(ctx, q) }
	case broker.BulkReschedule:
		q := b.rescheduling()
		q.Filter = filter
		call = func(ctx context.Context) (wire.Operation, error) { return r.c.BulkReschedule(ctx, q) }
	default:
		call = func(ctx context.Context) (wire.Operation, error) {
			return r.c.BulkDeliver(ctx, wire.BulkCancel{Filter: filter, DryRun: b.dry})
		}
	}
	return operationFrom(change(ctx, r, call))
}

// rescheduling says where the messages of a bulk operation are moved.
func (b *bulk) rescheduling() wire.BulkReschedule {
	q := wire.BulkReschedule{DryRun: b.dry}
	switch {
	case b.moved:
		q.By = milliseconds(b.by.Milliseconds())
	case b.d.d.Kind == broker.DelayNone:
		q.After = milliseconds(0)
	default:
		q.After, q.At, q.Level = typed(b.d.d)
	}
	return q
}

// wire is a selection as the wire has it for bulk operations.
func (s *selection) wire() wire.Filter {
	q := s.query()
	return wire.Filter{
		Topic: q.Topic, Tag: q.Tag, Key: q.Key, IDs: q.IDs, From: q.From, To: q.To, Within: q.Within,
		State: q.State, Overdue: q.Overdue,
	}
}

// operationFrom makes an operation of the wire's.
func operationFrom(w wire.Operation, err error) (*Operation, error) {
	if err != nil {
		return nil, err
	}
	return &Operation{
		ID: w.ID, Kind: w.Kind, State: OperationState(w.State), Matched: w.Matched, Done: w.Done, Missed: w.Missed,
		Samples: messagesFrom(w.Samples), Began: instant(int64(w.BeganAt)), Ended: instant(int64(w.EndedAt)), Error: w.Error,
	}, nil
}

func (r *remote) operation(ctx context.Context, id string) (*Operation, error) {
	return operationFrom(ask(ctx, r, func(ctx context.Context) (wire.Operation, error) { return r.c.Operation(ctx, id, 0) }))
}

func (r *remote) operations(ctx context.Context) ([]*Operation, error) {
	list, err := ask(ctx, r, r.c.Operations)
	if err != nil {
		return nil, err
	}
	all := make([]*Operation, len(list.Operations))
	for i := range list.Operations {
		all[i], _ = operationFrom(list.Operations[i], nil)
	}
	return all, nil
}

func (r *remote) waitOperation(ctx context.Context, id string) (*Operation, error) {
	return operationFrom(ask(ctx, r, func(ctx context.Context) (wire.Operation, error) { return r.c.Operation(ctx, id, r.poll) }))
}

func (r *remote) stopOperation(ctx context.Context, id string) error {
	_, err := ask(ctx, r, func(ctx context.Context) (wire.Operation, error) { return r.c.StopOperation(ctx, id) })
	return err
}

func (r *remote) timeline(ctx context.Context, q broker.TimelineRequest) (Timeline, error) {
	got, err := ask(ctx, r, func(ctx context.Context) (wire.Timeline, error) {
		return r.c.Timeline(ctx, wire.TimelineQuery{
			Topic: q.Topic, From: wire.Time(q.From), To: wire.Time(q.To), Step: wire.Duration(q.Step), ByTopic: q.ByTopic,
		})
	})
	if err != nil {
		return Timeline{}, err
	}
	t := Timeline{
		From: instant(int64(got.From)), To: instant(int64(got.To)), Step: time.Duration(got.Step),
		Buckets: make([]Bucket, len(got.Buckets)), Total: got.Total, Paused: got.Paused, Overdue: got.Overdue,
		Earliest: instant(int64(got.Earliest)), Latest: instant(int64(got.Latest)),
	}
	for i, b := range got.Buckets {
		t.Buckets[i] = Bucket{From: instant(int64(b.From)), Count: b.Count}
		if b.Topics == nil {
			continue
		}
		t.Buckets[i].Topics = make(map[string]int64, len(b.Topics))
		for name, n := range b.Topics {
			t.Buckets[i].Topics[name] = int64(n)
		}
	}
	return t, nil
}
