package benchpeers

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server/thw"
	"github.com/zeromicro/go-zero/core/collection"
	"github.com/zeromicro/go-zero/core/timex"

	"github.com/duemq/duemq/wheel/internal/contest"
)

func BenchmarkTimers(b *testing.B) {
	b.Run("thw", func(b *testing.B) {
		contest.Run(b, func(*testing.B) contest.Timers[entry] { return newHashWheel() })
	})
	b.Run("gozero", func(b *testing.B) {
		contest.Run(b, func(b *testing.B) contest.Timers[int] { return newGoZero(b) })
	})
}

// hashWheel is the wheel that the NATS server expires messages with: one ring of
// 4096 slots of a second, a map in each. It is not told the time but reads the
// clock. So the contest's hour begins now for tasks that only wait, and for
// those that are to fire it began two hours ago.
type hashWheel struct {
	w     *thw.HashWheel
	start int64 // Unix ns
	seq   uint64
	sum   uint64
}

// entry is how a task is named there.
type entry struct {
	seq     uint64
	expires int64
}

func newHashWheel() *hashWheel {
	return &hashWheel{w: thw.NewHashWheel(), start: time.Now().UnixNano()}
}

func (h *hashWheel) Add(due int64) entry { return h.addAt(h.start + due*int64(time.Millisecond)) }

func (h *hashWheel) addAt(expires int64) entry {
	h.seq++
	e := entry{h.seq, expires}
	if err := h.w.Add(e.seq, e.expires); err != nil {
		panic(err)
	}
	return e
}

func (h *hashWheel) Cancel(e entry) {
	if err := h.w.Remove(e.seq, e.expires); err != nil {
		panic(err)
	}
}

func (h *hashWheel) Close() {}

func (h *hashWheel) Burst(n int) time.Duration { return h.Spread(slices.Repeat([]int64{1000}, n)) }

func (h *hashWheel) Spread(dues []int64) time.Duration {
	past := time.Now().Add(-2 * time.Hour).UnixNano()
	for _, due := range dues {
		h.addAt(past + due*int64(time.Millisecond))
	}
	began := time.Now()
	h.w.ExpireTasks(func(seq uint64, _ int64) bool {
		h.sum += seq
		return true
	})
	return time.Since(began)
}

// goZero is the wheel that go-zero's cache expires entries with: one ring with
// rounds, a goroutine that owns it and is sent every task, here 4096 slots of a
// second. Its ticker is a fake one: it ticks when told.
type goZero struct {
	w      *collection.TimingWheel
	ticker timex.FakeTicker
	called sync.WaitGroup
	key    int
}

func newGoZero(b *testing.B) *goZero {
	g := &goZero{ticker: timex.NewFakeTicker()}
	w, err := collection.NewTimingWheelWithTicker(time.Second, 4096, func(_, _ any) { g.called.Done() }, g.ticker)
	if err != nil {
		b.Fatal(err)
	}
	g.w = w
	return g
}

func (g *goZero) Add(due int64) int {
	g.key++
	if err := g.w.SetTimer(g.key, nil, time.Duration(due)*time.Millisecond); err != nil {
		panic(err)
	}
	return g.key
}

func (g *goZero) Cancel(key int) {
	if err := g.w.RemoveTimer(key); err != nil {
		panic(err)
	}
}

func (g *goZero) Close() { g.w.Stop() }

func (g *goZero) Burst(n int) time.Duration {
	g.called.Add(n)
	for range n {
		g.Add(1000)
	}
	began := time.Now()
	g.ticker.Tick()
	g.called.Wait()
	return time.Since(began)
}
