package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/duemq/duemq/internal/count"
	"github.com/duemq/duemq/internal/engine"
)

// MaxBuckets is how many buckets a timeline may have, and with ByTopic how many
// pairs of bucket and topic.
const MaxBuckets = 10_000

// steps are what a timeline that names none is cut into, in minutes: 1m 5m 15m
// 1h 6h 1d 1w.
var steps = []int64{1, 5, 15, 60, 360, 1440, 10080}

// fewBuckets is how many buckets a step that nobody chose gives at most.
const fewBuckets = 120

// A TimelineRequest asks how many messages wait, by time.
type TimelineRequest struct {
	Topic   string        // with what groups get again of it; empty: all
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
	sel, err := b.selects(ctx, Filter{Topic: r.Topic})
	if err != nil {
		return TimelineResult{}, err
	}
	var out TimelineResult
	if out.Overdue, err = b.Count(ctx, Filter{Topic: r.Topic, State: StateWaiting, Overdue: true}); err != nil {
		return out, err
	}
	_, out.Paused = sel.counts()
	q := engine.CountQuery{To: math.MaxUint32, Split: r.ByTopic, MaxBuckets: MaxBuckets}
	first, last, ok, err := sel.horizon(ctx, q)
	if err != nil {
		return out, err
	}
	if ok {
		out.Earliest, out.Latest = int64(first)*minuteMs, int64(last)*minuteMs
	} else {
		first = count.MinuteOf(b.e.Now())
		last = first
	}
	if err := r.bounds(&q, int64(first), int64(last)); err != nil {
		return out, err
	}
	out.From, out.To, out.Step = int64(q.From)*minuteMs, int64(q.To)*minuteMs, time.Duration(q.Step)*time.Minute
	all, err := sel.waitingBy(ctx, q)
	if errors.Is(err, count.ErrQuery) {
		return out, fmt.Errorf("%w: timeline: %w", ErrTooMany, err)
	}
	if err != nil {
		return out, err
	}
	for _, c := range all {
		out.Total += c.Count
		out.add(b.bucket(&c))
	}
	return out, nil
}

// bounds makes of a request the minutes and the step to ask for: from minute
// first to last where the request does not say.
func (r *TimelineRequest) bounds(q *engine.CountQuery, first, last int64) error {
	if r.From < 0 || r.To < 0 || (r.To > 0 && r.To <= r.From) {
		return fmt.Errorf("%w: timeline from %d to %d, want from before to", ErrInvalid, r.From, r.To)
	}
	if r.Step < 0 || r.Step%time.Minute != 0 || r.Step > 366*24*time.Hour {
		return fmt.Errorf("%w: step %v, want whole minutes, a year at most", ErrInvalid, r.Step)
	}
	from, to := min(r.From/minuteMs, math.MaxUint32), r.To/minuteMs
	if r.To%minuteMs != 0 {
		to++
	}
	if r.To == 0 {
		to = last + 1
	}
	if r.From == 0 {
		from = first
	}
	to = min(max(to, from), math.MaxUint32)
	step := int64(r.Step / time.Minute)
	if step == 0 {
		step = stepFor(to - from)
	}
	if r.From == 0 {
		from -= from % step // at full hours and days
	}
	q.From, q.To, q.Step = uint32(from), uint32(to), uint32(step)
	return nil
}

// stepFor is the shortest step that gives few buckets.
func stepFor(minutes int64) int64 {
	for _, s := range steps {
		if minutes <= fewBuckets*s {
			return s
		}
	}
	week := steps[len(steps)-1]
	return (minutes + fewBuckets*week - 1) / (fewBuckets * week) * week
}

// add appends a bucket, or adds it to the last one if that is the same.
func (t *TimelineResult) add(b Bucket) {
	last := len(t.Buckets) - 1
	if last < 0 || t.Buckets[last].From != b.From {
		t.Buckets = append(t.Buckets, b)
		return
	}
	t.Buckets[last].Count += b.Count
	for topic, n := range b.Topics {
		t.Buckets[last].Topics[topic] += n
	}
}

// bucket names the topics of a count; what groups get again counts for the topic
// that it was sent to, as it is shown. One that has ended meanwhile is left out.
func (b *Broker) bucket(c *engine.CountBucket) Bucket {
	out := Bucket{From: int64(c.From) * minuteMs, Count: c.Count}
	if c.Topics == nil {
		return out
	}
	out.Topics = make(map[string]int64, len(c.Topics))
	for n, waiting := range c.Topics {
		if t := b.e.FamilyTopic(n); t != nil {
			name := t.Name
			if _, topic, ok := parseRetry(name); ok {
				name = topic
			}
			out.Topics[name] += waiting
		}
	}
	return out
}
