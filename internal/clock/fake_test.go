package clock_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duemq/duemq/internal/clock"
)

var start = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

func TestFakeFiresInOrderAtEachInstant(t *testing.T) {
	f := clock.NewFake(start)
	durations := []time.Duration{3 * time.Second, time.Second, 2 * time.Second, time.Second, 5 * time.Second}
	timers := make([]clock.Timer, len(durations))
	for i, d := range durations {
		timers[i] = f.NewTimer(d)
	}
	if n := f.Timers(); n != 5 {
		t.Fatalf("Timers() = %d, want 5", n)
	}
	if d, ok := f.NextTimer(); !ok || d != time.Second {
		t.Errorf("NextTimer() = %v, %v", d, ok)
	}
	f.Advance(4 * time.Second)
	for i, d := range durations[:4] {
		if at := <-timers[i].C(); !at.Equal(start.Add(d)) {
			t.Errorf("timer %d fired at %v, want %v", i, at, start.Add(d))
		}
	}
	if d, ok := f.NextTimer(); !ok || d != time.Second || f.Timers() != 1 {
		t.Errorf("left: NextTimer() = %v, %v of %d", d, ok, f.Timers())
	}
	if now := f.Now(); now.Mono != int64(4*time.Second) || !now.Time().Equal(start.Add(4*time.Second)) {
		t.Errorf("Now() = %+v after 4 s", now)
	}
}

// A loop that sets its timer anew each time must get every one of its ticks
// out of a single Advance, as long as it runs between them.
func TestFakeAdvanceFiresTimersSetMeanwhile(t *testing.T) {
	f := clock.NewFake(start)
	var got []int64
	var mu sync.Mutex
	synctest.Test(t, func(t *testing.T) {
		timer := f.NewTimer(time.Second)
		stop := make(chan struct{})
		go func() {
			for {
				select {
				case at := <-timer.C():
					mu.Lock()
					got = append(got, int64(at.Sub(start)/time.Second))
					mu.Unlock()
					timer.Reset(time.Second)
				case <-stop:
					return
				}
			}
		}()
		for range 3 {
			f.Advance(time.Second)
			synctest.Wait()
		}
		close(stop)
	})
	if !slices.Equal(got, []int64{1, 2, 3}) {
		t.Errorf("ticks at %v s, want 1 2 3", got)
	}
}

func TestFakeStepMovesOnlyTheWallClock(t *testing.T) {
	f := clock.NewFake(start)
	timer := f.NewTimer(time.Minute)
	f.Step(-time.Hour)
	f.Advance(time.Minute)
	at := <-timer.C()
	if want := start.Add(time.Minute - time.Hour); !at.Equal(want) {
		t.Errorf("fired at %v, want %v", at, want)
	}
	if now := f.Now(); now.Mono != int64(time.Minute) {
		t.Errorf("the monotonic clock shows %v after a minute", time.Duration(now.Mono))
	}
}

func TestFakeStoppedTimersAreForgotten(t *testing.T) {
	f := clock.NewFake(start)
	a, b := f.NewTimer(time.Second), f.NewTimer(time.Second)
	if !a.Stop() || a.Stop() {
		t.Error("Stop must say true once")
	}
	f.Advance(time.Second)
	select {
	case <-a.C():
		t.Error("a stopped timer fired")
	default:
	}
	<-b.C()
	if n := f.Timers(); n != 0 {
		t.Errorf("Timers() = %d at the end", n)
	}
	if _, ok := f.NextTimer(); ok {
		t.Error("NextTimer() finds one")
	}
}

func TestFakeAdvanceBackPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	clock.NewFake(start).Advance(-1)
}

// Run with -race: many goroutines read, wait and stop while time moves.
func TestFakeConcurrentUse(t *testing.T) {
	f := clock.NewFake(start)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 100 {
				timer := f.NewTimer(time.Duration(i*j%7) * time.Millisecond)
				last := f.Now()
				f.Advance(time.Millisecond)
				if now := f.Now(); now.Mono < last.Mono {
					t.Errorf("the monotonic clock went back from %d to %d", last.Mono, now.Mono)
				}
				timer.Stop()
			}
		})
	}
	wg.Wait()
	if f.Timers() != 0 {
		t.Errorf("%d timers left", f.Timers())
	}
}
