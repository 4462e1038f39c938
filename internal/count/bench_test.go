package count_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/count"
	"github.com/duemq/duemq/internal/record"
)

// month is how many minutes the benchmarks count.
const month = 43_200

// BenchmarkAdd is what the applier pays for a message: delivery of one topic
// in due order, of a thousand topics whose messages take turns, and sends for
// any minute of a month.
func BenchmarkAdd(b *testing.B) {
	b.Run("in order", func(b *testing.B) {
		c := count.New(nil)
		at := due(0)
		b.ReportAllocs()
		for b.Loop() {
			c.Add(1, at, -1)
			at++
		}
	})
	b.Run("topics in turn", func(b *testing.B) {
		c := count.New(nil)
		at, topic := due(0), record.TopicNumber(0)
		b.ReportAllocs()
		for b.Loop() {
			c.Add(1+topic%1000, at, -1)
			topic++
		}
	})
	b.Run("any minute", func(b *testing.B) {
		c := count.New(nil)
		rng := rand.New(rand.NewPCG(1, 1))
		dues := make([]int64, 1<<16)
		for i := range dues {
			dues[i] = due(rng.Int64N(month))
			c.Add(1, dues[i], 1)
		}
		n := 0
		b.ReportAllocs()
		for b.Loop() {
			c.Add(1, dues[n%len(dues)], 1)
			n++
		}
	})
	b.Run("new minutes", func(b *testing.B) { // a cut's worth, its tables made on the way
		b.ReportAllocs()
		for b.Loop() {
			c := count.New(nil)
			for n := range int64(250_000) {
				c.Add(record.TopicNumber(1+n%1000), due(n%1009), 1)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/250_000, "ns/add")
	})
}

// timed is a lock that remembers for how long it was held.
type timed struct {
	sync.Mutex

	since time.Time
	holds []time.Duration
}

func (l *timed) Lock() {
	l.Mutex.Lock()
	l.since = time.Now()
}

func (l *timed) Unlock() {
	l.holds = append(l.holds, time.Since(l.since))
	l.Mutex.Unlock()
}

// report gives the longest hold and the 99th percentile, in microseconds. A
// busy machine takes the processor away from a holder, so the two differ.
func (l *timed) report(b *testing.B) {
	slices.Sort(l.holds)
	n := len(l.holds)
	b.ReportMetric(float64(l.holds[n*99/100].Nanoseconds())/1000, "us-locked-p99")
	b.ReportMetric(float64(l.holds[n-1].Nanoseconds())/1000, "us-locked-max")
}

// BenchmarkRange asks for the minutes, hours and ends of a month in which
// messages wait, with a cut's worth of changes in memory.
func BenchmarkRange(b *testing.B) {
	for _, waiting := range []int{1_000_000, 10_000_000} {
		for _, topics := range []int{1, 1000} {
			b.Run(fmt.Sprintf("waiting=%dM/topics=%d", waiting/1_000_000, topics), func(b *testing.B) {
				benchRange(b, waiting, topics)
			})
		}
	}
}

func benchRange(b *testing.B, waiting, topics int) {
	x := openIndex(b, vfs.Default, b.TempDir())
	c := count.New(x)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range waiting {
		c.Add(record.TopicNumber(1+rng.IntN(topics)), due(rng.Int64N(month)), 1)
		if i%250_000 == 0 && i < waiting-250_000 {
			cut(b, x, c, 0)
		}
	}
	lock := &timed{}
	minutes := count.Query{From: base, To: base + month, Step: 1}
	ask := func(name string, want int64, q count.Query) {
		b.Run(name, func(b *testing.B) {
			lock.holds = lock.holds[:0]
			for b.Loop() {
				got, err := c.Range(b.Context(), lock, q)
				if err != nil {
					b.Fatal(err)
				}
				sum := int64(0)
				for _, bucket := range got {
					sum += bucket.Count
				}
				if want != 0 && sum != want {
					b.Fatalf("%d messages, want %d", sum, want)
				}
			}
			lock.report(b)
		})
	}
	ask("minutes", int64(waiting), minutes)
	one := minutes
	one.Topic = 1
	ask("one-topic", 0, one)
	hour := minutes
	hour.From, hour.To = base+month/2, base+month/2+60
	ask("one-hour", 0, hour)
	days := minutes
	days.Step, days.Split = 1440, true
	ask("days-by-topic", int64(waiting), days)
	b.Run("first-last", func(b *testing.B) {
		for b.Loop() {
			_, _, err := c.First(b.Context(), lock, minutes)
			_, ok, err2 := c.Last(b.Context(), lock, minutes)
			if err != nil || err2 != nil || !ok {
				b.Fatal(err, err2, ok)
			}
		}
	})
}
