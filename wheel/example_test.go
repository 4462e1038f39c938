package wheel_test

import (
	"fmt"
	"os"
	"time"

	"github.com/duemq/duemq/wheel"
)

// Three tasks in a wheel that is told the time: each falls through the levels
// as its time comes near.
func ExampleHierarchical() {
	w, err := wheel.NewHierarchical[string](wheel.Config{Tick: 1000, Slots: 8, Levels: 3}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	w.Add(100_000, "c")
	w.Add(5_000, "a")
	w.Add(20_500, "b") // rounded up to a tick

	fire := func(due int64, v string) { fmt.Printf("%s at %d s\n", v, due/1000) }
	for due, ok := w.Next(); ok; due, ok = w.Next() {
		w.Advance(due, fire)
	}
	// Output:
	// a at 5 s
	// b at 21 s
	// c at 100 s
}

func ExampleHierarchical_Cancel() {
	w, err := wheel.NewHierarchical[string](wheel.Config{}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	h := w.Add(60_000, "time out")
	fmt.Println(w.Cancel(h))
	_, again := w.Cancel(h)
	fmt.Println(again, w.Len())
	// Output:
	// time out true
	// false 0
}

// A burst is taken in portions: the order is that of one Advance.
func ExampleHierarchical_AdvanceLimit() {
	w, err := wheel.NewHierarchical[int](wheel.Config{}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 5 {
		w.Add(1_000, i)
	}
	for w.Len() > 0 {
		n := w.AdvanceLimit(1_000, 2, func(_ int64, v int) { fmt.Print(v, " ") })
		fmt.Println("-", n)
	}
	// Output:
	// 0 1 - 2
	// 2 3 - 2
	// 4 - 1
}

// The ring of the package comment: 8 slots of a second, a task of 5 s in slot
// 5, and one of 21 s that waits two rounds in the same slot.
func ExampleSingleLevel() {
	w, err := wheel.NewSingleLevel[string](wheel.SingleConfig{Tick: 1000, Slots: 8}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	w.Add(21_000, "21 s")
	w.Add(5_000, "5 s")
	for now := int64(1000); w.Len() > 0; now += 1000 {
		w.Advance(now, func(_ int64, v string) { fmt.Println(v, "at", now/1000) })
	}
	// Output:
	// 5 s at 5
	// 21 s at 21
}

func ExampleRunner() {
	w, err := wheel.NewHierarchical[func()](wheel.Config{}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := wheel.NewRunner(w, wheel.RunnerOptions{
		Workers: 4,
		OnPanic: func(v any, stack []byte) { fmt.Fprintf(os.Stderr, "callback: %v\n%s", v, stack) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := r.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer r.Stop() // waits for callbacks that run

	done := make(chan struct{})
	never := r.After(time.Hour, func() { fmt.Println("too late") })
	r.After(10*time.Millisecond, func() {
		fmt.Println("cancelled:", r.Cancel(never))
		close(done)
	})
	<-done
	// Output: cancelled: true
}
