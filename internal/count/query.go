package count

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/duemq/duemq/internal/record"
)

// ErrQuery is the class of a question that asks for too much at once, or for
// nothing that can be answered.
var ErrQuery = errors.New("count query refused")

// DefaultMaxBuckets is [Query.MaxBuckets] when it is 0: more than the minutes of
// two months.
const DefaultMaxBuckets = 100_000

// A Query asks how many messages wait in a range of minutes (see [MinuteOf]).
type Query struct {
	From, To uint32 // minutes, To exclusive; empty if To is not above From
	Step     uint32 // minutes in a bucket, at least 1; the first one begins at From

	Topic record.TopicNumber // 0: all topics
	Split bool               // each bucket also says what it holds of each topic

	// Live says whether a topic is to be counted; nil: all are. What waits of a
	// topic that has ended stays counted until it surfaces. It is asked about once
	// for each topic, without the lock. Leave it out when nothing
	// waits of any topic that has ended: without it, and without Split, one sum a
	// minute is read and not one for each topic in it.
	Live func(record.TopicNumber) bool

	// MaxBuckets is how many buckets the range may have, empty ones included, and
	// with Split also how many pairs of bucket and topic. 0: DefaultMaxBuckets.
	MaxBuckets int
}

// A Bucket is what waits in Step minutes.
type Bucket struct {
	From   uint32 // its first minute
	Count  int64
	Topics map[record.TopicNumber]int64 // with Query.Split, else nil
}

// Range counts what waits, by buckets, in order. Buckets in which nothing waits
// are left out. lock is the read side of what keeps writers away; it must not
// be held. It is taken for microseconds at a time.
//
// Messages that are added, delivered or moved meanwhile do not disturb the
// others: each count of a minute and topic is the exact one of some instant
// during the call, but not all of the same instant. So a message that is moved
// from one minute to another while the call runs may be seen in both or in
// neither. When nothing changes meanwhile, all is exact.
//
// A query that asks for too many buckets is refused with an error of class
// [ErrQuery]; a sum that cannot be read is of class [record.ErrCorrupt]. When
// ctx is done its cause is returned.
func (c *Counts) Range(ctx context.Context, lock sync.Locker, q Query) ([]Bucket, error) {
	b, err := newBuckets(q)
	if err != nil || q.To <= q.From {
		return nil, err
	}
	v, err := c.view(ctx, lock, &q)
	if err != nil {
		return nil, err
	}
	defer v.it.Close()
	for _, d := range v.changes {
		b.add(d)
	}
	if err := v.forward(b.add); err != nil {
		return nil, fmt.Errorf("counts: %w", err)
	}
	if b.err != nil {
		return nil, b.err
	}
	if q.Split {
		return b.split(), nil
	}
	return b.plain(), nil
}

// buckets is an answer being added up.
type buckets struct {
	q     Query
	most  int
	live  topics
	sums  []int64 // by bucket
	pairs table   // with Split: by bucket and topic, keyed as by minute and topic
	err   error
}

func newBuckets(q Query) (*buckets, error) {
	if q.Step == 0 {
		return nil, fmt.Errorf("%w: a step of 0 minutes", ErrQuery)
	}
	if q.To <= q.From {
		return nil, nil
	}
	most := cmp.Or(q.MaxBuckets, DefaultMaxBuckets)
	width := int64(q.To - q.From)
	n := (width + int64(q.Step) - 1) / int64(q.Step)
	if n > int64(most) {
		fits := (width + int64(most) - 1) / int64(most)
		return nil, fmt.Errorf("%w: %d buckets, at most %d: take a step of %d minutes or a shorter range", ErrQuery, n, most, fits)
	}
	return &buckets{q: q, most: most, live: topics{ask: q.Live}, sums: make([]int64, n)}, nil
}

// add adds a sum or a change, and says whether there is room for more.
func (b *buckets) add(c cell) bool {
	topic := topicOfKey(c.key)
	if c.n == 0 || !b.live.has(topic) {
		return true
	}
	bucket := (minuteOfKey(c.key) - b.q.From) / b.q.Step
	b.sums[bucket] += c.n
	if !b.q.Split {
		return true
	}
	key := keyOf(bucket, topic)
	*b.pairs.place(key, hashOf(key)) += c.n
	if b.pairs.used > b.most {
		b.err = fmt.Errorf("%w: more than %d pairs of bucket and topic: take a longer step, a shorter range or one topic", ErrQuery, b.most)
	}
	return b.err == nil
}

// from is the first minute of a bucket.
func (b *buckets) from(bucket int) uint32 { return b.q.From + uint32(bucket)*b.q.Step }

func (b *buckets) plain() []Bucket {
	var all []Bucket
	for i, n := range b.sums {
		if n != 0 {
			all = append(all, Bucket{From: b.from(i), Count: n})
		}
	}
	return all
}

func (b *buckets) split() []Bucket {
	pairs := slices.DeleteFunc(b.pairs.cells, func(c cell) bool { return c.n == 0 })
	slices.SortFunc(pairs, func(a, b cell) int { return cmp.Compare(a.key, b.key) })
	var all []Bucket
	last := -1
	for _, p := range pairs {
		bucket := int(minuteOfKey(p.key))
		if bucket != last {
			last = bucket
			all = append(all, Bucket{From: b.from(bucket), Count: b.sums[bucket], Topics: make(map[record.TopicNumber]int64)})
		}
		all[len(all)-1].Topics[topicOfKey(p.key)] = p.n
	}
	return all
}

// First is the earliest minute of a query's range in which anything waits, as
// exact as [Counts.Range] is. Step, Split and MaxBuckets mean nothing here.
func (c *Counts) First(ctx context.Context, lock sync.Locker, q Query) (minute uint32, ok bool, err error) {
	return c.edge(ctx, lock, q, func(a, b uint64) bool { return a < b }, (*view).forward)
}

// Last is the latest minute of a query's range in which anything waits.
func (c *Counts) Last(ctx context.Context, lock sync.Locker, q Query) (minute uint32, ok bool, err error) {
	return c.edge(ctx, lock, q, func(a, b uint64) bool { return a > b }, (*view).backward)
}

// edge finds the first key in the order of walk that has messages. What a cut
// left is never below zero, so a change above zero is one without asking the
// index; those below zero are looked up on the way through it.
func (c *Counts) edge(ctx context.Context, lock sync.Locker, q Query, before func(a, b uint64) bool,
	walk func(*view, func(cell) bool) error,
) (minute uint32, ok bool, err error) {
	if q.To <= q.From {
		return 0, false, nil
	}
	q.Split = false
	v, err := c.view(ctx, lock, &q)
	if err != nil {
		return 0, false, err
	}
	defer v.it.Close()
	live := topics{ask: q.Live}
	var best uint64
	changes := v.table()
	for _, d := range changes.cells {
		if d.n > 0 && (best == 0 || before(d.key, best)) && live.has(topicOfKey(d.key)) {
			best = d.key
		}
	}
	err = walk(v, func(s cell) bool {
		if best != 0 && !before(s.key, best) {
			return false
		}
		if s.n+changes.get(s.key) > 0 && live.has(topicOfKey(s.key)) {
			best = s.key
			return false
		}
		return true
	})
	if err != nil {
		return 0, false, fmt.Errorf("counts: %w", err)
	}
	return minuteOfKey(best), best != 0, nil
}

// table adds up the changes by the keys under which the index has its sums.
func (v *view) table() table {
	var t table
	if !v.totals {
		t.grow(len(v.changes))
	}
	for _, d := range v.changes {
		key := d.key
		if v.totals {
			key = totalOf(key)
		}
		*t.place(key, hashOf(key)) += d.n
	}
	return t
}

// topics remembers which topics are to be counted.
type topics struct {
	ask   func(record.TopicNumber) bool
	known []answer // by number
}

type answer uint8

const (
	unknown answer = iota
	yes
	no
)

// remembered is how many topics are asked about once; the others each time.
const remembered = 1 << 20

func (t *topics) has(n record.TopicNumber) bool {
	if t.ask == nil {
		return true
	}
	if n >= remembered {
		return t.ask(n)
	}
	if int(n) >= len(t.known) {
		t.known = append(t.known, make([]answer, int(n)+1-len(t.known))...)
	}
	if t.known[n] == unknown {
		t.known[n] = no
		if t.ask(n) {
			t.known[n] = yes
		}
	}
	return t.known[n] == yes
}
