package broker

import (
	"context"
	"errors"
	"time"
)

// A TimelineRequest asks how many messages wait, by time.
type TimelineRequest struct {
	Topic   string        // empty: all
	From    int64         // Unix ms, rounded down to a minute; 0: where something waits first
	To      int64         // Unix ms, rounded up to a minute, exclusive; 0: where nothing waits any more
	Step    time.Duration // whole minutes in a bucket; 0: chosen so that there are about 60
	ByTopic bool
}

// A TimelineResult tells how many messages wait, by time. What is held back is
// in no bucket.
type TimelineResult struct {
	From, To int64 // Unix ms, whole minutes, To exclusive
	Step     time.Duration
	Buckets  []Bucket // without those in which nothing waits

	Total    int64 // in the buckets
	Paused   int64 // due, and held back by their topics
	Overdue  int64 // due and not delivered yet, those held back left out
	Earliest int64 // the first minute for which something waits, Unix ms; 0: nothing does
	Latest   int64 // the last one
}

// A Bucket is what falls due in a step from an instant on.
type Bucket struct {
	From   int64 // Unix ms
	Count  int64
	Topics map[string]int64 // with ByTopic, else nil
}

// Timeline counts what waits by time, without looking at each message. Sums are
// exact when nothing moves meanwhile.
func (b *Broker) Timeline(ctx context.Context, r TimelineRequest) (TimelineResult, error) {
	return TimelineResult{}, errors.ErrUnsupported
}
