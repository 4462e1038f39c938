package wheel

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// bothRunners runs a test in a bubble of fake time with a runner on a wheel of
// each kind, of ticks of a millisecond. The runner has not started; it is
// stopped at the end.
func bothRunners(t *testing.T, workers int, test func(t *testing.T, r *Runner)) {
	for name, build := range map[string]func(t *testing.T) Wheel[func()]{
		"hierarchical": func(t *testing.T) Wheel[func()] {
			return mustHierarchical[func()](t, Config{Slots: 8, Levels: 4}, 0)
		},
		"single": func(t *testing.T) Wheel[func()] {
			return mustSingle[func()](t, SingleConfig{Slots: 50}, 1_790_000_000_000)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, err := NewRunner(build(t), RunnerOptions{Workers: workers, OnPanic: unexpectedPanic(t)})
				if err != nil {
					t.Fatal(err)
				}
				defer r.Stop()
				test(t, r)
			})
		})
	}
}

func unexpectedPanic(t *testing.T) func(any, []byte) {
	return func(v any, stack []byte) { t.Errorf("callback panicked: %v\n%s", v, stack) }
}

// pass lets time go by in a bubble, and all that happens meanwhile come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func mustStart(t *testing.T, r *Runner) {
	t.Helper()
	if err := r.Start(); err != nil {
		t.Fatalf("Start: %v", err)
	}
}

// TestRunnerOnTime starts callbacks with random delays at random phases of the
// tick: none early, none later than a tick, and no wake-up in vain.
func TestRunnerOnTime(t *testing.T) {
	bothRunners(t, 1000, func(t *testing.T, r *Runner) {
		mustStart(t, r)
		rng := rand.New(rand.NewPCG(1, 2))
		var ran atomic.Int64
		const n = 300
		for range n {
			time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Millisecond))))
			due := time.Now().Add(time.Duration(rng.Int64N(int64(2 * time.Second))))
			check := func() {
				ran.Add(1)
				if late := time.Since(due); late < 0 || late > time.Millisecond {
					t.Errorf("a callback ran %v after its time", late)
				}
			}
			if rng.IntN(2) == 0 {
				r.At(due, check)
			} else {
				r.After(time.Until(due), check)
			}
		}
		pass(3 * time.Second)
		s := r.Stats()
		if ran.Load() != n || s.Started != n || s.Waiting != 0 || s.Running != 0 {
			t.Errorf("%d of %d callbacks ran, stats %+v", ran.Load(), n, s)
		}
		if s.Fruitless != 0 {
			t.Errorf("%d of %d wake-ups found nothing", s.Fruitless, s.Wakeups)
		}
	})
}

// TestRunnerSleeps: over a day with few tasks, and with the earliest one
// cancelled again and again, the runner wakes once for each that runs.
func TestRunnerSleeps(t *testing.T) {
	bothRunners(t, 4, func(t *testing.T, r *Runner) {
		mustStart(t, r)
		for range 24 {
			r.After(30*time.Minute, func() {})
			early := r.After(10*time.Minute, func() { t.Error("a cancelled callback ran") })
			pass(5 * time.Minute)
			if !r.Cancel(early) {
				t.Error("Cancel(early) = false")
			}
			pass(55 * time.Minute)
		}
		if s := r.Stats(); s.Wakeups != 24 || s.Fruitless != 0 || s.Started != 24 {
			t.Errorf("after a day with 24 tasks: %+v, want 24 wake-ups, none fruitless", s)
		}
	})
}

// TestRunnerFruitless: the count counts. A timer that fires at once, whatever it
// was set to, wakes the runner in vain.
func TestRunnerFruitless(t *testing.T) {
	clock := newManualClock()
	r, err := NewRunner(mustHierarchical[func()](t, Config{}, 0), RunnerOptions{Clock: clock, OnPanic: unexpectedPanic(t)})
	if err != nil {
		t.Fatal(err)
	}
	mustStart(t, r)
	defer r.Stop()
	r.After(time.Hour, func() {})
	clock.timer.c <- time.Time{}
	clock.timer.c <- time.Time{} // received: the first was dealt with
	for r.Stats().Wakeups < 2 {
		runtime.Gosched()
	}
	if s := r.Stats(); s.Fruitless != 2 || s.Started != 0 {
		t.Errorf("after two false alarms: %+v, want 2 fruitless", s)
	}
}

// TestRunnerClockBack: after a clock without a monotonic reading stepped back,
// callbacks wait until it has caught up, and none is early or lost.
func TestRunnerClockBack(t *testing.T) {
	clock := newManualClock()
	r, err := NewRunner(mustHierarchical[func()](t, Config{}, 0), RunnerOptions{Clock: clock, OnPanic: unexpectedPanic(t)})
	if err != nil {
		t.Fatal(err)
	}
	mustStart(t, r)
	defer r.Stop()
	clock.step(-time.Hour)
	done := make(chan struct{})
	r.After(time.Minute, func() { close(done) })
	if got := clock.timer.reset.Load(); got != int64(time.Hour) {
		t.Errorf("timer set to %v, want 1h0m0s", time.Duration(got))
	}
	clock.step(time.Minute)
	clock.timer.c <- time.Time{}
	for r.Stats().Wakeups < 1 {
		runtime.Gosched()
	}
	if s := r.Stats(); s.Started != 0 {
		t.Errorf("a callback started while the clock was behind: %+v", s)
	}
	clock.step(time.Hour)
	clock.timer.c <- time.Time{}
	<-done
}

// TestRunnerWorkerTakes: a worker that becomes free takes the task that the
// timer is set for, and sets the timer to the one after it.
func TestRunnerWorkerTakes(t *testing.T) {
	clock := newManualClock()
	r, err := NewRunner(mustHierarchical[func()](t, Config{}, 0),
		RunnerOptions{Clock: clock, Workers: 2, OnPanic: unexpectedPanic(t)})
	if err != nil {
		t.Fatal(err)
	}
	if mustStart(t, r); !clock.timer.stopped.Load() {
		t.Error("the timer of a runner without tasks is running")
	}
	begun, finish, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r.After(0, func() { close(begun); <-finish })
	clock.timer.c <- time.Time{}
	<-begun
	r.After(time.Second, func() { close(done) })
	r.After(time.Hour, func() { t.Error("a callback started after Stop") })
	clock.step(time.Second)
	close(finish)
	<-done
	if got := clock.timer.reset.Load(); got != int64(time.Hour-time.Second) {
		t.Errorf("timer set to %v, want 59m59s", time.Duration(got))
	}
	r.Stop()
	clock.step(time.Hour)
	r.wake() // the timer may win against Stop
	if s := r.Stats(); s.Wakeups != 1 || s.Started != 2 || s.Waiting != 1 {
		t.Errorf("stats %+v, want 1 wake-up, 2 started, 1 waiting", s)
	}
}

// A manualClock is one whose timer fires when the test says so.
type manualClock struct {
	mu    sync.Mutex
	now   time.Time
	timer *manualTimer
}

type manualTimer struct {
	c     chan time.Time
	reset atomic.Int64 // the last duration it was set to

	stopped atomic.Bool
}

func newManualClock() *manualClock {
	return &manualClock{now: time.Unix(1_790_000_000, 0), timer: &manualTimer{c: make(chan time.Time)}}
}

func (c *manualClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *manualClock) NewTimer(time.Duration) Timer { return c.timer }

func (t *manualTimer) C() <-chan time.Time { return t.c }

func (t *manualTimer) Reset(d time.Duration) bool {
	t.reset.Store(int64(d))
	t.stopped.Store(false)
	return true
}

func (t *manualTimer) Stop() bool {
	t.stopped.Store(true)
	return true
}

// TestRunnerBound: no more callbacks run at a time than there are workers, they
// start in the order of their times, and those that wait for a worker can be
// cancelled.
func TestRunnerBound(t *testing.T) {
	bothRunners(t, 3, func(t *testing.T, r *Runner) {
		mustStart(t, r)
		var mu sync.Mutex
		var order []int
		running, most := 0, 0
		var handles []Handle
		for i := range 20 {
			handles = append(handles, r.After(time.Duration(i)*time.Millisecond, func() {
				mu.Lock()
				order = append(order, i)
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(100 * time.Millisecond)
				mu.Lock()
				running--
				mu.Unlock()
			}))
		}
		pass(50 * time.Millisecond)
		if s := r.Stats(); s.Running != 3 || s.Waiting != 17 {
			t.Errorf("with 3 workers: %+v, want 3 running, 17 waiting", s)
		}
		if !r.Cancel(handles[10]) {
			t.Error("a callback that lacks a worker could not be cancelled")
		}
		if r.Cancel(handles[0]) {
			t.Error("a callback that runs was cancelled")
		}
		pass(10 * time.Second)
		if most != 3 {
			t.Errorf("%d callbacks ran at a time, want 3", most)
		}
		want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19}
		if got := slices.Sorted(slices.Values(order)); !slices.Equal(got, want) {
			t.Errorf("ran %v, want %v", got, want)
		}
	})
}

func TestRunnerOrderOfOneWorker(t *testing.T) {
	bothRunners(t, 1, func(t *testing.T, r *Runner) {
		mustStart(t, r)
		var order []int
		r.After(0, func() { time.Sleep(time.Second) })
		pass(time.Millisecond)
		for i, ms := range []int{700, 20, 500, 20, 0} {
			r.After(time.Duration(ms)*time.Millisecond, func() { order = append(order, i) })
		}
		pass(2 * time.Second)
		if want := []int{4, 1, 3, 2, 0}; !slices.Equal(order, want) {
			t.Errorf("ran in the order %v, want %v", order, want)
		}
	})
}

func TestRunnerPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type report struct {
			value any
			stack string
		}
		var reports []report
		r, err := NewRunner(mustHierarchical[func()](t, Config{}, 0), RunnerOptions{
			Workers: 1,
			OnPanic: func(v any, stack []byte) { reports = append(reports, report{v, string(stack)}) },
		})
		if err != nil {
			t.Fatal(err)
		}
		mustStart(t, r)
		defer r.Stop()
		after := false
		r.After(time.Second, func() { panicHere() })
		r.After(time.Second, func() { after = true })
		pass(2 * time.Second)
		if len(reports) != 1 || reports[0].value != "as told" || !strings.Contains(reports[0].stack, "panicHere") {
			t.Errorf("reports %v, want one of panicHere", reports)
		}
		if !after {
			t.Error("the callback after the panic did not run")
		}
		if s := r.Stats(); s.Panics != 1 || s.Running != 0 {
			t.Errorf("stats %+v, want 1 panic, none running", s)
		}
	})
}

//go:noinline
func panicHere() { panic("as told") }

// TestRunnerGoexit: a callback that ends its goroutine gives its worker back.
func TestRunnerGoexit(t *testing.T) {
	bothRunners(t, 1, func(t *testing.T, r *Runner) {
		mustStart(t, r)
		ran := false
		r.After(time.Second, runtime.Goexit)
		r.After(time.Second, func() { ran = true })
		pass(2 * time.Second)
		if s := r.Stats(); !ran || s.Running != 0 {
			t.Errorf("after Goexit the next callback ran: %t, stats %+v", ran, s)
		}
	})
}

func TestRunnerStop(t *testing.T) {
	bothRunners(t, 2, func(t *testing.T, r *Runner) {
		mustStart(t, r)
		finished := false
		r.After(time.Second, func() {
			time.Sleep(time.Minute)
			finished = true
		})
		r.After(2*time.Second, func() { time.Sleep(time.Second) })
		r.After(2*time.Second, func() { t.Error("a callback started after Stop") })
		r.After(time.Hour, func() { t.Error("a callback started after Stop") })
		pass(2500 * time.Millisecond)
		var stops sync.WaitGroup
		for range 3 {
			stops.Go(func() {
				r.Stop()
				if !finished {
					t.Error("Stop returned while a callback ran")
				}
			})
		}
		stops.Wait()
		if h := r.After(0, func() { t.Error("a callback started after Stop") }); h != 0 {
			t.Errorf("After = %#x after Stop, want 0", uint64(h))
		}
		if err := r.Start(); !errors.Is(err, ErrStopped) {
			t.Errorf("Start after Stop: %v, want ErrStopped", err)
		}
		if s := r.Stats(); s.Waiting != 2 || s.Started != 2 {
			t.Errorf("stats %+v, want 2 waiting, 2 started", s)
		}
		pass(2 * time.Hour)
	})
}

func TestRunnerStopBeforeStart(t *testing.T) {
	bothRunners(t, 1, func(t *testing.T, r *Runner) {
		r.After(0, func() { t.Error("a callback ran without Start") })
		r.Stop()
		r.Stop()
		if err := r.Start(); !errors.Is(err, ErrStopped) {
			t.Errorf("Start after Stop: %v, want ErrStopped", err)
		}
	})
}

// TestRunnerBeforeStart: what is added before Start waits for it.
func TestRunnerBeforeStart(t *testing.T) {
	bothRunners(t, 1, func(t *testing.T, r *Runner) {
		var order []int
		r.After(time.Second, func() { order = append(order, 1) })
		h := r.After(time.Second, func() { order = append(order, 2) })
		r.After(-time.Second, func() { order = append(order, 0) })
		pass(time.Minute)
		if len(order) != 0 || !r.Cancel(h) {
			t.Errorf("before Start %v ran", order)
		}
		mustStart(t, r)
		if err := r.Start(); !errors.Is(err, ErrStarted) {
			t.Errorf("second Start: %v, want ErrStarted", err)
		}
		synctest.Wait()
		if want := []int{0, 1}; !slices.Equal(order, want) {
			t.Errorf("after Start %v ran, want %v", order, want)
		}
	})
}

// TestRunnerFromCallbacks: callbacks may use the runner.
func TestRunnerFromCallbacks(t *testing.T) {
	bothRunners(t, 1, func(t *testing.T, r *Runner) {
		mustStart(t, r)
		var n atomic.Int64
		victim := r.After(90*time.Millisecond, func() { t.Error("a cancelled callback ran") })
		var tick func()
		tick = func() {
			r.Cancel(victim)
			if n.Add(1) < 10 {
				r.After(10*time.Millisecond, tick)
			}
		}
		r.After(10*time.Millisecond, tick)
		pass(99 * time.Millisecond)
		if got := n.Load(); got != 9 {
			t.Errorf("%d calls in 99 ms, want 9", got)
		}
		pass(time.Hour)
		if got := n.Load(); got != 10 {
			t.Errorf("%d calls in an hour, want 10", got)
		}
	})
}

// TestRunnerFarFuture: a delay beyond all dues neither fires nor wraps.
func TestRunnerFarFuture(t *testing.T) {
	bothRunners(t, 1, func(t *testing.T, r *Runner) {
		mustStart(t, r)
		pass(time.Second)
		h := r.After(1<<63-1, func() { t.Error("a callback ran 292 years early") })
		pass(24 * time.Hour)
		if !r.Cancel(h) {
			t.Error("Cancel = false")
		}
	})
}

func TestRunnerOptions(t *testing.T) {
	w := mustHierarchical[func()](t, Config{}, 0)
	_, err := NewRunner(w, RunnerOptions{Workers: -1})
	wantConfigError(t, RunnerOptions{Workers: -1}, err, []string{"OnPanic", "-1 workers"})
}

// TestRunnerRealTime uses the real clock and many goroutines, for the race
// detector, and measures nothing but that no callback is early.
func TestRunnerRealTime(t *testing.T) {
	r, err := NewRunner(mustHierarchical[func()](t, Config{}, 0), RunnerOptions{Workers: 8, OnPanic: unexpectedPanic(t)})
	if err != nil {
		t.Fatal(err)
	}
	mustStart(t, r)
	var callers, calls sync.WaitGroup
	var started, cancelled atomic.Int64
	const perCaller = 200
	for seed := range uint64(4) {
		callers.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			for range perCaller {
				d := time.Duration(rng.Int64N(int64(20 * time.Millisecond)))
				due := time.Now().Add(d)
				calls.Add(1)
				h := r.After(d, func() {
					defer calls.Done()
					started.Add(1)
					if early := time.Until(due); early > 0 {
						t.Errorf("a callback ran %v early", early)
					}
				})
				if rng.IntN(3) == 0 && r.Cancel(h) {
					cancelled.Add(1)
					calls.Done()
				}
			}
		})
	}
	callers.Wait()
	calls.Wait()
	r.Stop()
	if got := started.Load() + cancelled.Load(); got != 4*perCaller {
		t.Errorf("%d started and %d cancelled of %d", started.Load(), cancelled.Load(), 4*perCaller)
	}
}
