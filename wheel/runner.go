package wheel

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// Errors of a [Runner]'s life.
var (
	ErrStarted = errors.New("wheel: runner already started")
	ErrStopped = errors.New("wheel: runner stopped")
)

// RunnerOptions are how a [Runner] works. A zero field stands for its default.
type RunnerOptions struct {
	// OnPanic is told of a panic in a callback: its value and the stack where
	// it happened. It is called by the worker that ran the callback, so perhaps
	// by several at a time, and must not panic itself. Required: a panic that
	// nobody hears of is worse than one that stops the program.
	OnPanic func(value any, stack []byte)

	Clock   Clock // default: package time
	Workers int   // callbacks that may run at a time; default GOMAXPROCS
}

// Validate reports everything that is wrong with o at once; each complaint is
// of the class [ErrConfig].
func (o RunnerOptions) Validate() error {
	var errs []error
	if o.OnPanic == nil {
		errs = append(errs, fmt.Errorf("%w: no OnPanic, want a function", ErrConfig))
	}
	if o.Workers < 0 {
		errs = append(errs, fmt.Errorf("%w: %d workers, want at least 1", ErrConfig, o.Workers))
	}
	return errors.Join(errs...)
}

func (o RunnerOptions) withDefaults() RunnerOptions {
	if o.Clock == nil {
		o.Clock = realClock{}
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	return o
}

// RunnerStats are counts since [NewRunner].
type RunnerStats struct {
	Wakeups   uint64 // times the runner woke because the earliest due had come
	Fruitless uint64 // those of them that found nothing to run; see Runner
	Started   uint64 // callbacks that were started
	Panics    uint64 // callbacks that panicked
	Running   int    // callbacks that run now
	Waiting   int    // callbacks that wait, overdue ones that lack a worker included
}

// A Runner calls functions at their time, with a wheel to keep them in. It is
// to the wheel what the runtime is to time.AfterFunc. All its methods may be
// called by any goroutine and, but for Stop, by callbacks.
//
// It sleeps until the earliest task is due, and re-arms its one timer when that
// changes; it does not tick. It wakes in vain, which [RunnerStats] counts, only
// if in the moment between the timer and the runner's lock the task it was woken
// for is cancelled, or taken by a worker that has just become free.
//
// A callback starts at most a tick after its time, plus however late the
// clock's timer is, and never before it. If all workers are busy, callbacks
// wait in the wheel, where they can still be cancelled, and start in the order
// of their times.
//
// Delays are measured by the clock's monotonic reading, so a step of the wall
// clock moves nothing.
type Runner struct {
	onPanic func(value any, stack []byte)
	clock   Clock
	workers int
	epoch   time.Time // the instant of the wheel's time origin
	origin  int64     // ms: the wheel's time at epoch
	quit    chan struct{}
	done    sync.WaitGroup // the loop and the workers

	mu      sync.Mutex
	wheel   Wheel[func()]
	timer   Timer // nil before Start
	armed   bool  // timer is to fire at armedAt
	armedAt int64 // ms of the wheel
	started bool
	stopped bool
	stats   RunnerStats // but for Waiting
}

// NewRunner returns a runner that has not started. The wheel is the runner's
// from now on, with what is in it: its Now is made to mean the clock's present
// instant, and one of its ms a millisecond. The error is of the class
// [ErrConfig].
func NewRunner(w Wheel[func()], o RunnerOptions) (*Runner, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("new runner: %w", err)
	}
	o = o.withDefaults()
	return &Runner{
		onPanic: o.OnPanic,
		clock:   o.Clock,
		workers: o.Workers,
		epoch:   o.Clock.Now(),
		origin:  w.Now(),
		quit:    make(chan struct{}),
		wheel:   w,
	}, nil
}

// After calls f after d, on one of the workers; a d that is not positive counts
// as zero. Before Start callbacks wait, however late they get. After Stop f is
// never called, and the Handle is the zero one.
func (r *Runner) After(d time.Duration, f func()) Handle {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return 0
	}
	due := r.due(r.elapsed(), d)
	h := r.wheel.Add(due, f)
	if !r.armed || due < r.armedAt {
		r.armLocked()
	}
	return h
}

// At calls f at the instant t; see [Runner.After]. If t carries no monotonic
// reading, the delay until t is worked out now, by the wall clock, and a later
// step of that clock does not change it.
func (r *Runner) At(t time.Time, f func()) Handle {
	return r.After(t.Sub(r.clock.Now()), f)
}

// Cancel keeps a callback from being called. It reports false if it was too
// late: the callback has been started or cancelled before.
func (r *Runner) Cancel(h Handle) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.wheel.Cancel(h)
	if ok && r.armed {
		r.armLocked()
	}
	return ok
}

// Start lets callbacks be called. It returns [ErrStarted] the second time and
// [ErrStopped] after Stop.
func (r *Runner) Start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stopped:
		return ErrStopped
	case r.started:
		return ErrStarted
	}
	r.started = true
	r.timer = r.clock.NewTimer(math.MaxInt64)
	r.timer.Stop()
	r.armLocked()
	r.done.Add(1)
	go r.loop(r.timer.C())
	return nil
}

// Stop lets no more callbacks start, waits for those that run, and leaves
// nothing of the runner behind. What waits is never called. Stop may be called
// more than once and before Start; each call waits. A callback must not call
// it: it would wait for itself.
func (r *Runner) Stop() {
	r.mu.Lock()
	if !r.stopped {
		r.stopped = true
		r.disarmLocked()
		close(r.quit)
	}
	r.mu.Unlock()
	r.done.Wait()
}

// Stats returns the runner's counts.
func (r *Runner) Stats() RunnerStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Waiting = r.wheel.Len()
	return s
}

// loop wakes when the earliest task is due.
func (r *Runner) loop(due <-chan time.Time) {
	defer r.done.Done()
	for {
		select {
		case <-r.quit:
			return
		case <-due:
			r.wake()
		}
	}
}

// wake starts as many due callbacks as there are free workers.
func (r *Runner) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	r.stats.Wakeups++
	r.armed = false
	launch := func(_ int64, f func()) {
		r.stats.Running++
		r.done.Add(1)
		go r.work(f)
	}
	if r.advanceLocked(r.workers-r.stats.Running, launch) == 0 {
		r.stats.Fruitless++
	}
	r.armLocked()
}

// work calls f and then what else is due, until nothing is.
func (r *Runner) work(f func()) {
	// Deferred, because a callback may end its goroutine (runtime.Goexit).
	defer r.done.Done()
	defer r.free()
	for f != nil {
		r.call(f)
		f = r.take()
	}
}

// call calls f and contains its panic.
func (r *Runner) call(f func()) {
	defer func() {
		if v := recover(); v != nil {
			r.mu.Lock()
			r.stats.Panics++
			r.mu.Unlock()
			r.onPanic(v, debug.Stack())
		}
	}()
	f()
}

// take removes the next due callback, or returns nil if there is none.
func (r *Runner) take() (f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return nil
	}
	r.advanceLocked(1, func(_ int64, due func()) { f = due })
	if f != nil && r.armed {
		r.armLocked() // the timer may have been armed for f
	}
	return f
}

// free gives a worker back.
func (r *Runner) free() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Running--
	if !r.armed {
		r.armLocked()
	}
}

// advanceLocked hands at most limit due callbacks to fire. To a wheel, what is
// due at or before its pointer is due now; while a clock that stepped back is
// behind the pointer, that would be early.
func (r *Runner) advanceLocked(limit int, fire func(due int64, f func())) (fired int) {
	now := r.now()
	if now < r.wheel.Now() {
		return 0
	}
	fired = r.wheel.AdvanceLimit(now, limit, fire)
	r.stats.Started += uint64(fired)
	return fired
}

// armLocked sets the timer to the earliest task, if a worker is free for it. If
// none is, the next one that becomes free looks for itself.
func (r *Runner) armLocked() {
	if !r.started || r.stopped {
		return
	}
	due, ok := r.wheel.Next()
	if !ok || r.stats.Running >= r.workers {
		r.disarmLocked()
		return
	}
	if r.armed && r.armedAt == due {
		return
	}
	r.armed, r.armedAt = true, due
	r.timer.Reset(r.until(due))
}

func (r *Runner) disarmLocked() {
	if r.armed {
		r.armed = false
		r.timer.Stop()
	}
}

// elapsed returns the time since the epoch.
func (r *Runner) elapsed() time.Duration { return r.clock.Now().Sub(r.epoch) }

// now returns the present on the wheel: the last whole ms, never one to come.
func (r *Runner) now() int64 { return r.origin + floorMS(r.elapsed()) }

// due returns the instant d after elapsed on the wheel, rounded up to a ms.
func (r *Runner) due(elapsed, d time.Duration) int64 {
	switch {
	case d <= 0:
		return r.origin + floorMS(elapsed)
	case d > math.MaxInt64-max(elapsed, 0):
		return math.MaxInt64 // 292 years after the epoch and later
	}
	return r.origin - floorMS(-(elapsed + d))
}

// until returns how long it is until an instant of the wheel, which is at or
// after the origin, as every Next is.
func (r *Runner) until(due int64) time.Duration {
	const longest = uint64(math.MaxInt64 / time.Millisecond)
	ms := uint64(due) - uint64(r.origin) // may not fit an int64
	d := time.Duration(min(ms, longest)) * time.Millisecond
	elapsed := r.elapsed()
	if d > math.MaxInt64+min(elapsed, 0) {
		return math.MaxInt64
	}
	return d - elapsed
}

// floorMS returns the last whole ms at or before d.
func floorMS(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond < 0 {
		ms--
	}
	return ms
}
