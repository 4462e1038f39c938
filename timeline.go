package duemq

import (
	"context"
	"fmt"
	"time"

	"github.com/duemq/duemq/internal/broker"
)

// A TimelineOption says what a timeline shows: [Topic], [DueFrom], [DueBefore],
// [Within], [Step], [ByTopic].
type TimelineOption interface{ show(t *timelineTerms) }

// timelineTerms are what the options say.
type timelineTerms struct {
	selection

	step    time.Duration
	byTopic bool
}

type timelineFunc func(*timelineTerms)

func (f timelineFunc) show(t *timelineTerms) { f(t) }

// Step says how long a bucket of a timeline is, in whole minutes; default chosen
// so that there are about 60.
func Step(d time.Duration) TimelineOption {
	return timelineFunc(func(t *timelineTerms) { t.step = d })
}

// ByTopic has a timeline tell topics apart.
func ByTopic() TimelineOption { return timelineFunc(func(t *timelineTerms) { t.byTopic = true }) }

// A Timeline counts what waits by when it falls due.
type Timeline struct {
	From, To time.Time // of the buckets, whole minutes, To exclusive
	Step     time.Duration
	Buckets  []Bucket // those in which something falls due, in order

	Total            int64     // in the buckets
	Paused           int64     // due and held back by their topics: in no bucket
	Overdue          int64     // due and not delivered yet
	Earliest, Latest time.Time // the first and the last minute for which something waits; zero if nothing does
}

// A Bucket is what falls due in a [Timeline]'s step from an instant on.
type Bucket struct {
	From   time.Time
	Count  int64
	Topics map[string]int64 // with [ByTopic], else nil
}

// Timeline counts what waits by when it falls due, to the minute: a range is
// widened to whole minutes. It reads counters, not messages, and so costs the
// same for a thousand and for a hundred million of them.
func (q *Queue) Timeline(ctx context.Context, opts ...TimelineOption) (t Timeline, err error) {
	var terms timelineTerms
	for _, o := range opts {
		o.show(&terms)
	}
	if terms.step < 0 || terms.step%time.Minute != 0 {
		return t, fmt.Errorf("%w: step %v, want whole minutes", ErrInvalid, terms.step)
	}
	err = q.during(ctx, func() (err error) {
		ask := broker.TimelineRequest{Topic: terms.topic, From: terms.from, Step: terms.step, ByTopic: terms.byTopic}
		switch terms.end {
		case endNone:
		case endAt:
			ask.To = max(terms.to, 1) // 0 would be no end
		case endWithin:
			now := q.b.now()
			if now.IsZero() {
				return fmt.Errorf("%w: it does not tell the time", ErrUnavailable)
			}
			ask.To = max(now.UnixMilli()+terms.to, 1)
		}
		t, err = q.b.timeline(ctx, ask)
		return err
	})
	return t, err
}
