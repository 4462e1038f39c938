package count_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/count"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

const minute = 60_000

// due is n minutes after the base.
func due(n int64) int64 { return (base + n) * minute }

// cut takes all changes to the index.
func cut(t testing.TB, x *index.Index, c *count.Counts, popped int64) *count.Frozen {
	t.Helper()
	f := c.Freeze(popped)
	write(t, x, f)
	c.Install(f)
	return f
}

func write(t testing.TB, x *index.Index, f *count.Frozen) {
	t.Helper()
	cut := x.NewCut()
	if err := errors.Join(f.Write(cut), cut.Install()); err != nil {
		t.Fatalf("cut: %v", err)
	}
}

// dump is the whole space, a line for each key.
func dump(t testing.TB, x *index.Index) string {
	t.Helper()
	it, err := x.NewIter(count.SpaceCounts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for ok := it.First(); ok; ok = it.Next() {
		fmt.Fprintf(&b, "%x = %x\n", it.Key(), it.Value())
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The bytes of a cut: only a decision changes them.
func TestGolden(t *testing.T) {
	x := openIndex(t, vfs.NewMem(), "idx")
	c := count.New(x)
	c.Add(1, due(0), 1)
	c.Add(1, due(1)-1, 1)
	c.Add(1<<24-1, due(0), 64)
	c.Add(7, due(599), 300)
	c.Add(9, due(599), 5)
	c.Add(7, due(600), 1)
	c.Add(8, due(600), 1)
	c.Add(8, due(600), -1)
	cut(t, x, c, due(0))
	c.Add(1, due(0), -2)
	c.Add(7, due(600), -1)
	cut(t, x, c, due(1))
	want, err := os.ReadFile("testdata/space.golden")
	if err != nil {
		t.Fatal(err)
	}
	if got := dump(t, x); got != string(want) {
		t.Errorf("the space holds\n%swant\n%s", got, want)
	}
}

// A message that comes and goes between two cuts leaves nothing, a minute that
// is past goes with the cut, and the excise takes what had come to zero before.
func TestIndexHoldsOnlyWhatWaits(t *testing.T) {
	x := openIndex(t, vfs.NewMem(), "idx")
	c := count.New(x)
	c.Add(1, due(0), 1)
	c.Add(1, due(0), -1)
	cut(t, x, c, due(0))
	if got := dump(t, x); got != "" {
		t.Errorf("a cut of nothing left\n%s", got)
	}
	for topic := record.TopicNumber(1); topic <= 3; topic++ {
		c.Add(topic, due(0), 1)
		c.Add(topic, due(1), 1)
	}
	cut(t, x, c, due(0))
	c.Add(1, due(0), -1)
	cut(t, x, c, due(0)+59_999) // not wholly past: a zero stays
	c.Add(2, due(0), -1)
	c.Add(3, due(0), -1)
	f := cut(t, x, c, due(1))
	if got := strings.Count(dump(t, x), "\n"); got != 1+1+4 {
		t.Errorf("%d keys, want the mark, one zero, 3 counts and their sum:\n%s", got, dump(t, x))
	}
	if err := f.Excise(x); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(dump(t, x), "\n"); got != 1+4 {
		t.Errorf("%d keys after the excise, want the mark, 3 counts and their sum:\n%s", got, dump(t, x))
	}
	if _, known, err := count.Restore(x); !known || err != nil {
		t.Errorf("Restore: %v, %v", known, err)
	}
}

func TestRestoreOfAnIndexWithoutCounts(t *testing.T) {
	x := openIndex(t, vfs.NewMem(), "idx")
	c, known, err := count.Restore(x)
	if known || err != nil {
		t.Fatalf("Restore: %v, %v", known, err)
	}
	c.Add(1, due(0), 3) // as the engine does for what waited before
	cut(t, x, c, due(0))
	if c, known, err = count.Restore(x); !known || err != nil {
		t.Fatalf("Restore: %v, %v", known, err)
	}
	wantTotal(t, c, &sync.Mutex{}, 3)
}

func wantTotal(t *testing.T, c *count.Counts, lock sync.Locker, want int64) {
	t.Helper()
	got, err := c.Range(t.Context(), lock, everything())
	if err != nil || len(got) != 1 || got[0].Count != want {
		t.Errorf("Range = %v, %v; want %d", got, err, want)
	}
}

func TestQueriesRefused(t *testing.T) {
	x := openIndex(t, vfs.NewMem(), "idx")
	c := count.New(x)
	for topic := range record.TopicNumber(20) {
		c.Add(1+topic, due(int64(topic)), 1)
	}
	for _, q := range []struct {
		what string
		q    count.Query
		says string // empty: not refused
	}{
		{"step 0", count.Query{From: base, To: base + 10}, "step of 0"},
		{"as many as may be", count.Query{From: base, To: base + 10, Step: 1, MaxBuckets: 10}, ""},
		{"one more", count.Query{From: base, To: base + 11, Step: 1, MaxBuckets: 10}, "11 buckets, at most 10: take a step of 2 minutes"},
		{"its advice", count.Query{From: base, To: base + 11, Step: 2, MaxBuckets: 10}, ""},
		{"all time", count.Query{To: 1<<32 - 1, Step: 1}, "at most 100000: take a step of 42950 minutes"},
		{"all time by its advice", count.Query{To: 1<<32 - 1, Step: 42_950}, ""},
		{"pairs", count.Query{From: base, To: base + 30, Step: 30, Split: true, MaxBuckets: 20}, ""},
		{"a pair too many", count.Query{From: base, To: base + 30, Step: 30, Split: true, MaxBuckets: 19}, "more than 19 pairs"},
		{"nothing", count.Query{From: 5, To: 5, Step: 1}, ""},
		{"backwards", count.Query{From: 6, To: 5, Step: 1}, ""},
	} {
		for _, where := range []string{"in memory", "in the index"} {
			_, err := c.Range(t.Context(), &sync.Mutex{}, q.q)
			switch {
			case q.says == "" && err != nil:
				t.Errorf("%s %s: %v", q.what, where, err)
			case q.says != "" && (!errors.Is(err, count.ErrQuery) || !strings.Contains(err.Error(), q.says)):
				t.Errorf("%s %s: %v, want %q", q.what, where, err, q.says)
			}
			if where == "in memory" {
				cut(t, x, c, 0)
			}
		}
	}
}

// What is asked of a caller is asked without the lock, once a topic.
func TestLiveIsAskedWithoutTheLock(t *testing.T) {
	x := openIndex(t, vfs.NewMem(), "idx")
	c := count.New(x)
	fill := func() {
		for n := range int64(10) {
			c.Add(3, due(n), 1)
			c.Add(4, due(n), 1)
			c.Add(1<<24, due(n), 1)
		}
	}
	fill()
	cut(t, x, c, 0)
	fill()
	var mu sync.Mutex
	asked := make(map[record.TopicNumber]int)
	q := everything()
	q.Live = func(topic record.TopicNumber) bool {
		mu.Lock()
		defer mu.Unlock()
		asked[topic]++
		return topic != 4
	}
	got, err := c.Range(t.Context(), &mu, q)
	if err != nil || len(got) != 1 || got[0].Count != 40 {
		t.Errorf("Range = %v, %v; want 40", got, err)
	}
	if asked[3] != 1 || asked[4] != 1 {
		t.Errorf("asked %v", asked)
	}
}

func TestDoneAndDamaged(t *testing.T) {
	x := openIndex(t, vfs.NewMem(), "idx")
	c := count.New(x)
	for n := range int64(10_000) {
		c.Add(1, due(n), 1)
	}
	cut(t, x, c, 0)
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := c.Range(ctx, &sync.Mutex{}, everything()); !errors.Is(err, reason) {
		t.Errorf("done: %v", err)
	}
	damage(t, x, c, "key", func(cut *index.Cut) { cut.Set(count.SpaceCounts, []byte{0, 2, 2}, []byte{2}) })
	damage(t, x, c, "value", func(cut *index.Cut) { cut.Set(count.SpaceCounts, []byte{0, 2, 0, 0, 0}, []byte{0x80, 0}) })
	damage(t, x, c, "mark", func(cut *index.Cut) { cut.Set(count.SpaceCounts, nil, nil) })
	if _, _, err := count.Restore(x); !errors.Is(err, record.ErrCorrupt) {
		t.Errorf("Restore: %v", err)
	}
}

func damage(t *testing.T, x *index.Index, c *count.Counts, what string, with func(*index.Cut)) {
	t.Helper()
	cut := x.NewCut()
	with(cut)
	if err := cut.Install(); err != nil {
		t.Fatal(err)
	}
	lock := &sync.Mutex{}
	_, errRange := c.Range(t.Context(), lock, everything())
	_, _, errLast := c.Last(t.Context(), lock, everything())
	if !errors.Is(errRange, record.ErrCorrupt) || !errors.Is(errLast, record.ErrCorrupt) {
		t.Errorf("damaged %s: %v, %v", what, errRange, errLast)
	}
	cut = x.NewCut()
	for _, key := range []string{"\x00\x02\x00\x00\x00", "\x00\x02\x02"} {
		if err := cut.Delete(count.SpaceCounts, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	if err := cut.Install(); err != nil {
		t.Fatal(err)
	}
}

// hook is a lock at which something happens whenever a reader comes.
type hook struct{ before func() }

func (h *hook) Lock()   { h.before() }
func (h *hook) Unlock() {}

// A cut may pass to the index at any moment of a reading. The counts do not
// change by that, so the answer must not.
func TestCutAtAnyMomentOfAReading(t *testing.T) {
	for moment := 0; moment < 130; moment += 1 + moment/20 {
		for _, phase := range []string{"freeze", "durable", "install", "abandon", "two cuts"} {
			x := openIndex(t, vfs.NewMem(), fmt.Sprint(phase, moment))
			c := count.New(x)
			want := spread(c)
			cut(t, x, c, 0)
			want += spread(c)
			f := c.Freeze(0)
			want += spread(c)
			if phase == "install" {
				write(t, x, f)
			}
			h := &hook{before: at(moment, func() {
				switch phase {
				case "freeze":
					c.Abandon(f)
					c.Freeze(0)
				case "durable":
					write(t, x, f)
				case "install":
					c.Install(f)
				case "abandon":
					c.Abandon(f)
				case "two cuts":
					write(t, x, f)
					c.Install(f)
					cut(t, x, c, 0)
				}
			})}
			wantTotal(t, c, h, want)
		}
	}
}

// spread makes changes in all shards and says how many.
func spread(c *count.Counts) int64 {
	for n := range int64(500) {
		c.Add(record.TopicNumber(1+n%3), due(n), 1)
	}
	return 500
}

// at makes a function that does f at its n-th call, from 0.
func at(n int, f func()) func() {
	calls := 0
	return func() {
		if calls == n {
			f()
		}
		calls++
	}
}

// When cuts come faster than memory can be read, it is read in one go.
func TestReadingGivesUpOnSmallSteps(t *testing.T) {
	x := openIndex(t, vfs.NewMem(), "idx")
	c := count.New(x)
	want := spread(c)
	cut(t, x, c, 0)
	calls := 0
	h := &hook{before: func() {
		calls++
		want += spread(c)
		cut(t, x, c, 0)
	}}
	got, err := c.Range(t.Context(), h, everything())
	if err != nil || len(got) != 1 || got[0].Count != want {
		t.Errorf("Range = %v, %v; want %d", got, err, want)
	}
	if calls > 20 {
		t.Errorf("%d times locked", calls)
	}
}

// An index from which the cuts were taken away is noticed.
func TestAnotherIndex(t *testing.T) {
	x := openIndex(t, vfs.NewMem(), "idx")
	c := count.New(x)
	spread(c)
	cut(t, x, c, 0)
	if err := x.Excise(count.SpaceCounts, nil, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Range(t.Context(), &sync.Mutex{}, everything()); !errors.Is(err, record.ErrCorrupt) {
		t.Errorf("Range = %v, %v", got, err)
	}
}

func TestCells(t *testing.T) {
	x := openIndex(t, vfs.NewMem(), "idx")
	c := count.New(x)
	spread(c)
	spread(c)
	if c.Cells() != 500 {
		t.Errorf("%d cells, want 500", c.Cells())
	}
	f := c.Freeze(0)
	c.Add(9, due(1), 1)
	c.Add(9, due(1), 1)
	c.Add(1, due(0), 1)
	if c.Cells() != 2 {
		t.Errorf("%d cells after a freeze, want 2", c.Cells())
	}
	c.Abandon(f)
	if c.Cells() != 501 {
		t.Errorf("%d cells after it was abandoned, want 501", c.Cells())
	}
	c.Add(1, due(0), 1) // the place that was changed last has moved
	wantTotal(t, c, &sync.Mutex{}, 1004)
}

// The ends of a range belong to it as To is exclusive.
func TestFirstAndLastWithinTheirRange(t *testing.T) {
	x := openIndex(t, vfs.NewMem(), "idx")
	c := count.New(x)
	for topic := record.TopicNumber(1); topic <= 20; topic++ {
		c.Add(topic, due(10), 1)
		c.Add(topic, due(20), 1)
	}
	for _, where := range []string{"in memory", "in the index"} {
		for _, topic := range []record.TopicNumber{0, 1, 11, 20} {
			for _, r := range []struct{ from, to, first, last uint32 }{
				{0, 100, 10, 20},
				{10, 21, 10, 20},
				{10, 20, 10, 10},
				{20, 21, 20, 20},
				{11, 21, 20, 20},
			} {
				q := count.Query{From: base + r.from, To: base + r.to, Topic: topic}
				first, _, err1 := c.First(t.Context(), &sync.Mutex{}, q)
				last, _, err2 := c.Last(t.Context(), &sync.Mutex{}, q)
				if first != base+r.first || last != base+r.last || err1 != nil || err2 != nil {
					t.Errorf("%s, topic %d, minutes %d to %d: from %d to %d, %v, %v; want %d to %d",
						where, topic, r.from, r.to, first-base, last-base, err1, err2, r.first, r.last)
				}
			}
			q := count.Query{From: base + 11, To: base + 20, Topic: topic}
			_, first, err1 := c.First(t.Context(), &sync.Mutex{}, q)
			_, last, err2 := c.Last(t.Context(), &sync.Mutex{}, q)
			if first || last || err1 != nil || err2 != nil {
				t.Errorf("%s, topic %d: found where nothing is: %v, %v, %v, %v", where, topic, first, last, err1, err2)
			}
		}
		if where == "in memory" {
			cut(t, x, c, 0)
		}
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	c := count.New(nil)
	spread(c)
	n := int64(0)
	if got := testing.AllocsPerRun(1000, func() {
		c.Add(record.TopicNumber(1+n%3), due(n%500), 1)
		c.Add(1, due(3), -1)
		n += 7
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
