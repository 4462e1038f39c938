// Package contest is the load that timers are compared under: the same for the
// wheels, for what they stand in for, and for other people's wheels, which are in
// a module of their own.
package contest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Timers is a contender. Dues are ms after its start; H is how it names a task.
type Timers[H any] interface {
	Add(due int64) H
	Cancel(h H)

	// Burst adds n tasks that are due at one instant, and returns how long it
	// took from that instant until the last of them had been called.
	Burst(n int) time.Duration

	// Close lets go of what the contender runs. Tasks may wait.
	Close()
}

// A Spreader can be told the time, so it can go through an hour at once.
type Spreader interface {
	// Spread adds tasks with the given dues, and returns how long it took to be
	// told the end of the hour and to have called all of them.
	Spread(dues []int64) time.Duration
}

// Outstanding are the numbers of tasks that wait meanwhile.
var Outstanding = []int{1_000, 100_000, 1_000_000}

const (
	hour  = 3_600_000 // ms: all delays are spread over one
	batch = 1_000     // tasks between two looks at the clock
)

// Run runs all benchmarks on contenders made by build. Each gets a fresh one. The
// hour is only for those that can be told the time.
func Run[H any](b *testing.B, build func(b *testing.B) Timers[H]) {
	loads := []load[H]{
		{"add", benchmarkAdd[H]},
		{"cancel", benchmarkCancel[H]},
		{"burst", benchmarkBurst[H]},
	}
	probe := build(b)
	if _, ok := probe.(Spreader); ok {
		loads = append(loads, load[H]{"hour", benchmarkHour[H]})
	}
	probe.Close()
	for _, l := range loads {
		for _, n := range Outstanding {
			b.Run(fmt.Sprintf("%s/n=%d", l.name, n), func(b *testing.B) {
				t := build(b)
				defer t.Close()
				b.ReportAllocs()
				l.run(b, n, t)
			})
		}
	}
}

// A load is a benchmark of a contender with n tasks.
type load[H any] struct {
	name string
	run  func(b *testing.B, n int, t Timers[H])
}

// Dues returns n dues spread evenly at random over an hour.
func Dues(n int) []int64 {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	dues := make([]int64, n)
	for i := range dues {
		dues[i] = 1 + rng.Int64N(hour)
	}
	return dues
}

// benchmarkAdd measures one Add while about n tasks wait.
func benchmarkAdd[H any](b *testing.B, n int, t Timers[H]) {
	replace(b, n, t, func(cancel, add func()) {
		cancel()
		b.StartTimer()
		add()
		b.StopTimer()
	})
}

// benchmarkCancel measures one Cancel of any of about n tasks that wait.
func benchmarkCancel[H any](b *testing.B, n int, t Timers[H]) {
	replace(b, n, t, func(cancel, add func()) {
		b.StartTimer()
		cancel()
		b.StopTimer()
		add()
	})
}

// replace adds n tasks, and then cancels and adds b.N of them, taken at random
// from all, in batches that it hands to step. The timer is stopped. What a batch
// needs is gathered before, so that the load's own memory is not what is
// measured.
func replace[H any](b *testing.B, n int, t Timers[H], step func(cancel, add func())) {
	b.StopTimer()
	handles := make([]H, n)
	dues := Dues(n)
	for i, due := range dues {
		handles[i] = t.Add(due)
	}
	order := rand.New(rand.NewPCG(2, uint64(n))).Perm(n)
	var batchHandles [batch]H
	var batchDues [batch]int64
	b.ResetTimer()
	for done := 0; done < b.N; done += batch {
		from := done % n // batch divides every n
		some := order[from : from+min(batch, b.N-done)]
		for k, i := range some {
			batchHandles[k], batchDues[k] = handles[i], dues[i]
		}
		step(func() {
			for k := range some {
				t.Cancel(batchHandles[k])
			}
		}, func() {
			for k := range some {
				batchHandles[k] = t.Add(batchDues[k])
			}
		})
		for k, i := range some {
			handles[i] = batchHandles[k]
		}
	}
}

// benchmarkBurst measures calling n tasks of one instant; ns/op are for one.
func benchmarkBurst[H any](b *testing.B, n int, t Timers[H]) {
	perTask(b, n, func() time.Duration { return t.Burst(n) })
}

// benchmarkHour measures going through an hour in which n tasks are due at
// random; ns/op are for one.
func benchmarkHour[H any](b *testing.B, n int, t Timers[H]) {
	s, ok := t.(Spreader)
	if !ok {
		b.Fatalf("%T cannot be told the time", t)
	}
	dues := Dues(n)
	perTask(b, n, func() time.Duration { return s.Spread(dues) })
}

// perTask runs a round of n tasks, whose time it returns, until b.N tasks are
// done, and reports the time of one task. A round before brings memory and free
// lists to the state they are in after a while.
func perTask(b *testing.B, n int, round func() time.Duration) {
	round()
	b.ResetTimer()
	var spent time.Duration
	done := 0
	for done < b.N {
		spent += round()
		done += n
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(done), "ns/op")
}
