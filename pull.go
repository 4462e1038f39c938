package duemq

import (
	"context"
	"fmt"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/record"
)

// A Pulled is what a pull found.
type Pulled struct {
	Messages []*Message
	Next     int64  // the offset at which the next pull goes on
	Low      int64  // the first offset that is kept
	High     int64  // one more than the last
	Moved    bool   // the offset asked for is not kept, or beyond the end: what came is of the nearest that is
	Skipped  uint64 // offsets by which retention has moved it
}

// Pull reads messages of one queue of a topic from an offset on, without a group
// and without leases: for consumers that keep their own place, so that each of
// them sees everything, or that keep it with [Queue.Commit]. It returns what is
// there, at most [Max], or waits for the first one as ReceiveBatch does; with
// [Wait] none is no error. The messages cannot be acknowledged.
//
// An offset that is not kept any more is no error either: see Moved. Where to
// begin says [Queue.OffsetAt] or [Queue.TopicInfo].
func (q *Queue) Pull(ctx context.Context, topic string, queue int, offset int64, opts ...PullOption) (Pulled, error) {
	r, err := receptionOf(topic, defaultBatch, opts)
	if err != nil {
		return Pulled{}, err
	}
	if offset < 0 {
		return Pulled{}, fmt.Errorf("%w: offset %d, want none below zero", ErrInvalid, offset)
	}
	ask := broker.PullRequest{
		Topic: topic, Queue: queue, Offset: record.Offset(offset),
		Max: r.req.Max, MaxBytes: r.req.MaxBytes, Tags: r.req.Tags,
	}
	var all, got Pulled
	err = q.inSteps(ctx, r, func(wait time.Duration) (bool, error) {
		ask.Wait = wait
		err := q.patiently(ctx, func(ctx context.Context) (err error) {
			got, err = q.b.pull(ctx, ask)
			return err
		})
		if err != nil {
			return false, err
		}
		// What was passed over, for its tag, need not be looked at again.
		got.Moved, got.Skipped = got.Moved || all.Moved, got.Skipped+all.Skipped
		all, ask.Offset = got, record.Offset(got.Next)
		return len(got.Messages) > 0, nil
	})
	return all, err
}

// Commit notes where a group that pulls goes on in queues of a topic: by queue,
// the offset of its next pull. It is as durable as an acknowledgement.
func (q *Queue) Commit(ctx context.Context, group, topic string, next map[int]int64) error {
	for queue, offset := range next {
		if offset < 0 {
			return fmt.Errorf("%w: offset %d in queue %d, want none below zero", ErrInvalid, offset, queue)
		}
	}
	return q.during(ctx, func() error { return q.b.commit(ctx, group, topic, next) })
}

// Position tells where a group that pulls goes on in each queue of a topic: what
// it committed, or where it begins.
func (q *Queue) Position(ctx context.Context, group, topic string) (next map[int]int64, err error) {
	err = q.during(ctx, func() (err error) {
		next, err = q.b.position(ctx, group, topic)
		return err
	})
	return next, err
}

// OffsetAt gives the first offset of a queue that became visible at t or later;
// the next one to come if none did.
func (q *Queue) OffsetAt(ctx context.Context, topic string, queue int, t time.Time) (offset int64, err error) {
	err = q.during(ctx, func() (err error) {
		offset, err = q.b.offsetAt(ctx, topic, queue, unixMs(t))
		return err
	})
	return offset, err
}
