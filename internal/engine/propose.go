package engine

import (
	"cmp"
	"context"
	"fmt"

	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// lazily proposes n commands that are answered once they are written; under
// SyncAlways they ride on the next sync, at most 10 ms later.
func (e *Engine) lazily(ctx context.Context, n, bytes int, encode func(dst []byte) []byte) error {
	c := e.newCall()
	c.lazy = true
	c.expect(n)
	c.encode = func(dst []byte, _ instant) ([]byte, error) { return encode(dst), nil }
	if err := e.do(ctx, c, int64(bytes)); err != nil {
		return err
	}
	e.recycle(c)
	return nil
}

// Ack finishes offsets for groups. It returns once the batch is written; under
// SyncAlways it rides on the next sync, at most 10 ms later.
func (e *Engine) Ack(ctx context.Context, acks []record.Ack) error {
	return e.lazily(ctx, len(acks), 32*len(acks), func(dst []byte) []byte {
		for i := range acks {
			dst = record.AppendAck(dst, &acks[i])
		}
		return dst
	})
}

// Lease notes that offsets are being handed to a consumer, so that a crash does
// not forget how often they were. It is as durable as an ack.
func (e *Engine) Lease(ctx context.Context, leases []record.Lease) error {
	return e.lazily(ctx, len(leases), 64*len(leases), func(dst []byte) []byte {
		for i := range leases {
			dst = record.AppendLease(dst, &leases[i])
		}
		return dst
	})
}

// Release notes that offsets were given back, and when they may be delivered
// again. It is as durable as an ack.
func (e *Engine) Release(ctx context.Context, r record.Release) error {
	return e.lazily(ctx, 1, 32+24*len(r.Entries), func(dst []byte) []byte { return record.AppendRelease(dst, &r) })
}

// Commit sets a pull consumer's next offset in queues. It is as durable as an
// ack.
func (e *Engine) Commit(ctx context.Context, commits []record.Commit) error {
	return e.lazily(ctx, len(commits), 32*len(commits), func(dst []byte) []byte {
		for i := range commits {
			dst = record.AppendCommit(dst, &commits[i])
		}
		return dst
	})
}

// Reset sets a group's position in queues. It is durable on return.
func (e *Engine) Reset(ctx context.Context, resets []record.Reset) error {
	_, _, err := e.together(ctx, len(resets), 32*len(resets), func(dst []byte, _ instant) ([]byte, error) {
		for i := range resets {
			dst = record.AppendReset(dst, &resets[i])
		}
		return dst, nil
	})
	return err
}

// Bury finishes an offset for a group and sends the message that takes its
// place, in one step: a dead letter, or a later redelivery. It is durable on
// return, with the message's id.
func (e *Engine) Bury(ctx context.Context, a record.Ack, m *record.Message, d Delay) (record.ID, error) {
	_, id, err := e.together(ctx, 2, len(m.Body)+512, func(dst []byte, now instant) ([]byte, error) {
		var err error
		if m.Due, m.Level, err = now.resolve(d); err != nil {
			return dst, err
		}
		m.Stored = now.stamp
		return record.AppendSend(record.AppendAck(dst, &a), m), nil
	})
	return id, err
}

// MakeTopic makes a topic with that many queues, or finds the one that has the
// name already.
func (e *Engine) MakeTopic(ctx context.Context, name string, queues uint32, attributes []record.Property) (*Topic, error) {
	out, _, err := e.together(ctx, 1, 256, func(dst []byte, now instant) ([]byte, error) {
		t := record.Topic{Name: name, Queues: queues, Attributes: attributes}
		t.Number, t.FirstQueue = now.numbers.topic(queues)
		return record.AppendTopic(dst, &t), nil
	})
	return out.Topic, err
}

// Configure gives a topic other attributes; ErrGone if it has ended meanwhile.
func (e *Engine) Configure(ctx context.Context, t *Topic, attributes []record.Property) error {
	e.mu.RLock()
	next := t.Topic
	e.mu.RUnlock()
	next.Attributes = attributes
	out, _, err := e.together(ctx, 1, 256, func(dst []byte, _ instant) ([]byte, error) { return record.AppendTopic(dst, &next), nil })
	if err == nil && out.Topic != t {
		err = ErrGone
	}
	return err
}

// EndTopic deletes a topic with everything in it and everything that waits for
// it; one that is made under its name afterwards gets none of it. With purge the
// topic stays, empty.
func (e *Engine) EndTopic(ctx context.Context, t *Topic, purge bool) error {
	out, _, err := e.together(ctx, 1, 64, func(dst []byte, now instant) ([]byte, error) {
		c := record.EndTopic{Number: t.Number, Purge: purge}
		if purge {
			c.FirstQueue = now.numbers.queues(t.Queues)
		}
		return record.AppendEndTopic(dst, &c), nil
	})
	if err == nil && out.Gone {
		err = ErrGone
	}
	return err
}

// Pause stops a topic from delivering, or lets it go on.
func (e *Engine) Pause(ctx context.Context, t *Topic, paused bool) error {
	out, _, err := e.together(ctx, 1, 64, func(dst []byte, _ instant) ([]byte, error) {
		return record.AppendPause(dst, &record.Pause{Topic: t.Number, Paused: paused}), nil
	})
	if err == nil && out.Gone {
		err = ErrGone
	}
	return err
}

// MakeGroup makes a consumer group, or finds the one that has the name already.
// Without a start it begins at the earliest.
func (e *Engine) MakeGroup(ctx context.Context, g record.Group) (*group.Group, error) {
	g.Start = cmp.Or(g.Start, record.StartEarliest)
	out, _, err := e.together(ctx, 1, 256, func(dst []byte, now instant) ([]byte, error) {
		g.Number = now.numbers.group()
		return record.AppendGroup(dst, &g), nil
	})
	return out.Group, err
}

// ChangeGroup gives the group of that number other attributes.
func (e *Engine) ChangeGroup(ctx context.Context, g record.Group) error {
	_, _, err := e.together(ctx, 1, 256, func(dst []byte, _ instant) ([]byte, error) { return record.AppendGroup(dst, &g), nil })
	return err
}

// EndGroup deletes a consumer group with its positions.
func (e *Engine) EndGroup(ctx context.Context, n record.GroupNumber) error {
	_, _, err := e.together(ctx, 1, 32, func(dst []byte, _ instant) ([]byte, error) {
		return record.AppendEndGroup(dst, &record.EndGroup{Number: n}), nil
	})
	return err
}

// Set changes a setting that is part of the state.
func (e *Engine) Set(ctx context.Context, s record.Setting) error {
	_, _, err := e.together(ctx, 1, 64+len(s.Value), func(dst []byte, _ instant) ([]byte, error) { return record.AppendSetting(dst, &s), nil })
	return err
}

// EndHalf commits or rolls back a half message; on a commit its delay counts
// from now. The answer is durable. A verdict of NotWaiting: there is no such
// half message any more.
func (e *Engine) EndHalf(ctx context.Context, id record.ID, commit bool) (Outcome, error) {
	h, ok := e.Half(id)
	if !ok {
		return Outcome{Verdict: timeline.NotWaiting}, nil
	}
	out, _, err := e.together(ctx, 1, 64, func(dst []byte, now instant) ([]byte, error) {
		c := record.EndHalf{Ref: h.Ref, Commit: commit}
		if commit {
			var err error
			if c.Due, c.Level, err = now.resolve(Delay{h.Kind, h.Delay}); err != nil {
				return dst, err
			}
		}
		return record.AppendEndHalf(dst, &c), nil
	})
	return out, err
}

// MaxSpec bounds what is remembered about how a bulk operation was asked for,
// in bytes.
const MaxSpec = 64 << 10

// BeginOperation begins a bulk operation and gives its number.
func (e *Engine) BeginOperation(ctx context.Context, spec string) (uint64, error) {
	if len(spec) > MaxSpec {
		return 0, fmt.Errorf("%w: bulk operation described by %d bytes, limit %d", record.ErrTooLarge, len(spec), MaxSpec)
	}
	var number uint64
	_, _, err := e.together(ctx, 1, len(spec)+64, func(dst []byte, now instant) ([]byte, error) {
		number = now.numbers.operation()
		return record.AppendOperation(dst, &record.Operation{Number: number, State: record.OperationRunning, Spec: spec}), nil
	})
	return number, err
}

// EndOperation ends a bulk operation: it is done, or was stopped.
func (e *Engine) EndOperation(ctx context.Context, number uint64, state record.OperationState) error {
	_, _, err := e.together(ctx, 1, 64, func(dst []byte, _ instant) ([]byte, error) {
		return record.AppendOperation(dst, &record.Operation{Number: number, State: state}), nil
	})
	return err
}

// MaxChunk is how many messages one step of a bulk operation may cancel or move.
const MaxChunk = 2000

// Operate does one step of a bulk operation, at most MaxChunk messages: cancels
// what has a due of 0 and moves the rest. It is durable on return; what was done
// is counted in the operation. ErrGone: the operation does not run any more.
func (e *Engine) Operate(ctx context.Context, o record.Operate) error {
	out, _, err := e.together(ctx, 1, 64+40*len(o.Entries), func(dst []byte, _ instant) ([]byte, error) {
		return record.AppendOperate(dst, &o), nil
	})
	if err == nil && out.Gone {
		err = fmt.Errorf("bulk operation %d: %w", o.Number, ErrGone)
	}
	return err
}

// trimAndCarry proposes what a plan says.
func (e *Engine) trimAndCarry(ctx context.Context, p plan) error {
	if p.trim > 0 {
		_, _, err := e.together(ctx, 1, 32, func(dst []byte, _ instant) ([]byte, error) {
			return record.AppendTrim(dst, &record.Trim{Before: p.trim}), nil
		})
		if err != nil {
			return err
		}
		if e.o.Bugs.RemoveEarly {
			e.mu.RLock()
			from := e.m.keep.from()
			e.mu.RUnlock()
			e.removes <- from
		}
	}
	if p.carry > 0 {
		_, _, err := e.together(ctx, 1, 32, func(dst []byte, _ instant) ([]byte, error) {
			return record.AppendCarry(dst, &record.Carry{To: p.carry}), nil
		})
		return err
	}
	return nil
}
