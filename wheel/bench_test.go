package wheel_test

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/duemq/duemq/wheel"
	"github.com/duemq/duemq/wheel/internal/contest"
)

// hourEnd is after all dues of the contest.
const hourEnd = 3_600_001

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// BenchmarkTimers is the contest. The hour and the ticks of a millisecond are
// what a broker asks for; the single level has a slot a second, for a ring that
// is longer than the delays.
func BenchmarkTimers(b *testing.B) {
	b.Run("hierarchical", func(b *testing.B) {
		contest.Run(b, func(*testing.B) contest.Timers[wheel.Handle] {
			return &passive{must(wheel.NewHierarchical[uint32](wheel.Config{}, 0)), 0, 0}
		})
	})
	b.Run("single", func(b *testing.B) {
		contest.Run(b, func(*testing.B) contest.Timers[wheel.Handle] {
			return &passive{must(wheel.NewSingleLevel[uint32](wheel.SingleConfig{Tick: 1000, Slots: 4096}, 0)), 0, 0}
		})
	})
	b.Run("heap", func(b *testing.B) {
		contest.Run(b, func(*testing.B) contest.Timers[int32] { return &heapTimers{} })
	})
	b.Run("runner", func(b *testing.B) {
		contest.Run(b, func(b *testing.B) contest.Timers[wheel.Handle] { return newRunnerTimers(b) })
	})
	b.Run("afterfunc", func(b *testing.B) {
		contest.Run(b, func(*testing.B) contest.Timers[*time.Timer] { return afterFuncTimers{} })
	})
}

// passive is one of our wheels, told the time.
type passive struct {
	w interface {
		wheel.Wheel[uint32]
		Reset(start int64)
	}
	now int64
	sum uint32
}

func (p *passive) Add(due int64) wheel.Handle { return p.w.Add(p.now+due, 1) }
func (p *passive) Cancel(h wheel.Handle)      { p.w.Cancel(h) }
func (p *passive) Close()                     {}

func (p *passive) Burst(n int) time.Duration {
	return p.Spread(slices.Repeat([]int64{hourEnd / 2}, n))
}

func (p *passive) Spread(dues []int64) time.Duration {
	for _, due := range dues {
		p.Add(due)
	}
	p.now += hourEnd
	began := time.Now()
	p.w.AdvanceLimit(p.now, len(dues), func(_ int64, v uint32) { p.sum += v })
	return time.Since(began)
}

// heapTimers is the heap, told the time.
type heapTimers struct {
	h        heap4
	now, sum int64
}

func (t *heapTimers) Add(due int64) int32 { return t.h.add(t.now + due) }
func (t *heapTimers) Cancel(task int32)   { t.h.cancel(task) }
func (t *heapTimers) Close()              {}

func (t *heapTimers) Burst(n int) time.Duration {
	return t.Spread(slices.Repeat([]int64{hourEnd / 2}, n))
}

func (t *heapTimers) Spread(dues []int64) time.Duration {
	for _, due := range dues {
		t.Add(due)
	}
	t.now += hourEnd
	began := time.Now()
	t.h.advance(t.now, func(int64, int32) { t.sum++ })
	return time.Since(began)
}

// runnerTimers is the hierarchical wheel in a Runner, in real time.
type runnerTimers struct{ r *wheel.Runner }

func newRunnerTimers(b *testing.B) runnerTimers {
	r := must(wheel.NewRunner(must(wheel.NewHierarchical[func()](wheel.Config{}, 0)), wheel.RunnerOptions{
		OnPanic: func(v any, _ []byte) { b.Error(v) },
	}))
	if err := r.Start(); err != nil {
		b.Fatal(err)
	}
	return runnerTimers{r}
}

func nothing() {}

// later keeps tasks that only wait from being due while the benchmark runs.
const later = time.Hour

func (t runnerTimers) Add(due int64) wheel.Handle {
	return t.r.After(later+time.Duration(due)*time.Millisecond, nothing)
}
func (t runnerTimers) Cancel(h wheel.Handle) { t.r.Cancel(h) }
func (t runnerTimers) Close()                { t.r.Stop() }

func (t runnerTimers) Burst(n int) time.Duration {
	return realBurst(n, func(at time.Time, f func()) { t.r.At(at, f) })
}

// afterFuncTimers is what the standard library has.
type afterFuncTimers struct{}

func (afterFuncTimers) Add(due int64) *time.Timer {
	return time.AfterFunc(later+time.Duration(due)*time.Millisecond, nothing)
}
func (afterFuncTimers) Cancel(t *time.Timer) { t.Stop() }
func (afterFuncTimers) Close()               { runtime.GC() } // what waits waits on; not in the next contender's heap

func (afterFuncTimers) Burst(n int) time.Duration {
	return realBurst(n, func(at time.Time, f func()) { time.AfterFunc(time.Until(at), f) })
}

// realBurst adds n tasks that are due once all have been added. If the machine
// was too busy to add them in time, it lets them go and tries again with more.
func realBurst(n int, add func(at time.Time, f func())) time.Duration {
	for lead := 20*time.Millisecond + time.Duration(n)*time.Microsecond; ; lead *= 2 {
		var called sync.WaitGroup
		called.Add(n)
		at := time.Now().Add(lead)
		for range n {
			add(at, called.Done)
		}
		inTime := time.Now().Before(at)
		called.Wait()
		if inTime {
			return time.Since(at)
		}
	}
}

// BenchmarkAdvanceQuiet tells the wheel of an hour in which nothing is due,
// while a hundred thousand tasks wait for later ones.
func BenchmarkAdvanceQuiet(b *testing.B) {
	w := must(wheel.NewHierarchical[uint32](wheel.Config{Levels: 7}, 0))
	for i := range int64(100_000) {
		w.Add(1<<54+i*1000, 1) // more hours away than a benchmark has iterations
	}
	b.ReportAllocs()
	now := int64(0)
	for b.Loop() {
		now += 3_600_000
		if w.Advance(now, func(int64, uint32) {}) > 0 {
			b.Fatal("something fired")
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for _, n := range contest.Outstanding {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			w := must(wheel.NewHierarchical[uint32](wheel.Config{}, 0))
			for _, due := range contest.Dues(n) {
				w.Add(due+10_000, 1)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := w.Next(); !ok {
					b.Fatal("no next")
				}
			}
		})
	}
}

// BenchmarkCancelEarliest cancels the earliest of n tasks, over and over until
// none is left, and asks for the next one each time: the dearest thing to ask of
// a wheel, here for tasks added in no order to one slot of the upper levels.
func BenchmarkCancelEarliest(b *testing.B) {
	for _, n := range contest.Outstanding {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			w := must(wheel.NewHierarchical[uint32](wheel.Config{}, 0))
			type task struct {
				due int64
				h   wheel.Handle
			}
			tasks := make([]task, n)
			dues := contest.Dues(n)
			b.ReportAllocs()
			for done := 0; done < b.N; done += n {
				b.StopTimer()
				for i, due := range dues {
					due += 1 << 24 // beyond level 2, and 3,600,000 is less than one slot of level 3
					tasks[i] = task{due, w.Add(due, 1)}
				}
				slices.SortFunc(tasks, func(a, b task) int { return cmp.Compare(a.due, b.due) })
				b.StartTimer()
				for _, t := range tasks[:min(n, b.N-done)] {
					w.Cancel(t.h)
					w.Next()
				}
				b.StopTimer()
				w.Reset(0)
			}
		})
	}
}

// BenchmarkMemory measures the bytes of a waiting task.
func BenchmarkMemory(b *testing.B) {
	const n = 1_000_000
	for name, fill := range map[string]func() any{
		"hierarchical": func() any {
			w := must(wheel.NewHierarchical[uint32](wheel.Config{}, 0))
			for _, due := range contest.Dues(n) {
				w.Add(due, 1)
			}
			return w
		},
		"heap": func() any {
			h := &heap4{}
			for _, due := range contest.Dues(n) {
				h.add(due)
			}
			return h
		},
		"afterfunc": func() any {
			timers := make([]*time.Timer, 0, n)
			for _, due := range contest.Dues(n) {
				timers = append(timers, afterFuncTimers{}.Add(due))
			}
			return timers
		},
	} {
		b.Run(name, func(b *testing.B) {
			var perTask float64
			for b.Loop() {
				before := heapBytes()
				timers := fill()
				perTask = float64(heapBytes()-before) / n
				runtime.KeepAlive(timers)
				if stop, ok := timers.([]*time.Timer); ok {
					for _, t := range stop {
						t.Stop()
					}
				}
			}
			b.ReportMetric(perTask, "B/task")
		})
	}
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
