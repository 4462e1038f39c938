package count_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/count"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// The shape of what the race test counts: each pair holds calm or calm + 3.
const (
	raceMinutes = 200
	raceTopics  = 5
	calm        = 7
)

// Readers beside a writer, and cuts one after the other: every pair has one of
// the two values it has at all times, so none was counted twice or left out on
// its way to the index.
func TestReadersBesideWriterAndCuts(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	x := openIndex(t, vfs.NewMem(), "idx")
	c := count.New(x)
	for n := range int64(raceMinutes) {
		for topic := range record.TopicNumber(raceTopics) {
			c.Add(1+topic, due(n), calm)
		}
	}
	var mu sync.RWMutex
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { wave(c, &mu, done) })
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					checkCalm(t, c, &mu)
				}
			}
		})
	}
	cuts(t, x, c, &mu, rounds)
	close(done)
	wg.Wait()
	checkCalm(t, c, &mu)
}

// wave adds three to every second pair or so and takes them away again.
func wave(c *count.Counts, mu *sync.RWMutex, done <-chan struct{}) {
	rng := rand.New(rand.NewPCG(1, 2))
	for {
		for n := range int64(raceMinutes) {
			topic := record.TopicNumber(1 + rng.IntN(raceTopics))
			mu.Lock()
			c.Add(topic, due(n), 3)
			mu.Unlock()
			mu.Lock()
			c.Add(topic, due(n), -3)
			mu.Unlock()
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func cuts(t *testing.T, x *index.Index, c *count.Counts, mu *sync.RWMutex, rounds int) {
	for i := range rounds {
		mu.Lock()
		f := c.Freeze(due(0))
		mu.Unlock()
		cut := x.NewCut()
		if err := f.Write(cut); err != nil {
			t.Errorf("Write: %v", err)
		}
		if i%5 == 4 {
			cut.Abort()
			mu.Lock()
			c.Abandon(f)
			mu.Unlock()
			continue
		}
		if err := cut.Install(); err != nil {
			t.Errorf("Install: %v", err)
		}
		mu.Lock()
		c.Install(f)
		mu.Unlock()
	}
}

func checkCalm(t *testing.T, c *count.Counts, mu *sync.RWMutex) {
	q := count.Query{From: base, To: base + raceMinutes, Step: 1, Split: true}
	got, err := c.Range(t.Context(), mu.RLocker(), q)
	if err != nil {
		t.Errorf("Range: %v", err)
		return
	}
	pairs := 0
	for _, b := range got {
		for topic, n := range b.Topics {
			pairs++
			if n != calm && n != calm+3 {
				t.Errorf("minute %d, topic %d: %d, want %d or %d", b.From-base, topic, n, calm, calm+3)
			}
		}
	}
	if pairs != raceMinutes*raceTopics {
		t.Errorf("%d pairs, want %d", pairs, raceMinutes*raceTopics)
	}
	first, _, err1 := c.First(t.Context(), mu.RLocker(), everything())
	last, _, err2 := c.Last(t.Context(), mu.RLocker(), everything())
	if first != base || last != base+raceMinutes-1 || err1 != nil || err2 != nil {
		t.Errorf("from %d to %d, %v, %v", first, last, err1, err2)
	}
}
