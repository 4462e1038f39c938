package engine

import (
	"context"
	"fmt"

	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/record"
)

// GroupNow finds a group and how it is configured now; nil if there is none of
// that name. What the group itself says is read under the lock only. The
// attributes are the caller's to read.
func (e *Engine) GroupNow(name string) (*group.Group, record.Group) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	g := e.m.groups.Named(name)
	if g == nil {
		return nil, record.Group{}
	}
	return g, g.Group
}

// GroupsNow tells how all groups are configured now, in the order in which they
// were made.
func (e *Engine) GroupsNow() []record.Group {
	e.mu.RLock()
	defer e.mu.RUnlock()
	all := e.m.groups.All()
	out := make([]record.Group, len(all))
	for i, g := range all {
		out[i] = g.Group
	}
	return out
}

// GroupQueues gives the queues in which a group has begun, in order.
func (e *Engine) GroupQueues(g *group.Group) []record.QueueNumber {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return g.Queues()
}

// Redrive finishes offsets for a group and sends messages in their place, as a
// step of a bulk operation whose cursor tells of it: all in one batch, durable
// on return. ErrGone: the operation did not run any more, and the step was done
// uncounted.
func (e *Engine) Redrive(ctx context.Context, a record.Ack, msgs []record.Message, d Delay, o record.Operate) error {
	bytes := 0
	for i := range msgs {
		bytes += len(msgs[i].Body) + 512
	}
	out, _, err := e.together(ctx, len(msgs)+2, bytes, func(dst []byte, now instant) ([]byte, error) {
		dst = record.AppendAck(dst, &a)
		for i := range msgs {
			m := &msgs[i]
			var err error
			if m.Due, m.Level, err = now.resolve(d); err != nil {
				return dst, err
			}
			m.Stored = now.stamp
			dst = record.AppendSend(dst, m)
		}
		return record.AppendOperate(dst, &o), nil
	})
	if err == nil && out.Gone {
		err = fmt.Errorf("bulk operation %d: %w", o.Number, ErrGone)
	}
	return err
}
