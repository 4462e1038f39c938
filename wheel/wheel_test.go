package wheel

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// fired advances w and returns the ids that fired.
func fired(w ring[int], now int64) (ids []int) {
	w.Advance(now, func(_ int64, id int) { ids = append(ids, id) })
	return ids
}

func wantIDs(t *testing.T, what string, got, want []int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s fired %v, want %v", what, got, want)
	}
}

// TestOrderWithinTick adds tasks for one tick from farther and farther near, so
// that each starts in another level, with some for other ticks in between.
func TestOrderWithinTick(t *testing.T) {
	bothWheels(t, 10, 0, func(t *testing.T, w ring[int]) {
		const due = 10 * 777 // in the overflow of 512 ticks at first
		id, want := 0, []int(nil)
		for now := int64(0); now < due; now += 130 {
			w.Advance(now, func(ms int64, _ int) {
				if ms == due {
					t.Fatalf("Advance(%d) fired a task due at %d", now, ms)
				}
			})
			w.Add(due-now%10, id) // rounds up to due
			w.Add(now+400, -1)
			want = append(want, id)
			id++
		}
		w.Advance(due-1, func(int64, int) {})
		got := fired(w, due)
		wantIDs(t, "the tick", slices.DeleteFunc(got, func(id int) bool { return id < 0 }), want)
	})
}

func TestOrderOfTicks(t *testing.T) {
	bothWheels(t, 1, 5, func(t *testing.T, w ring[int]) {
		for id, due := range []int64{600, 6, 70, 6, 599, 4, 5, 70, 5000} {
			w.Add(due, id)
		}
		wantIDs(t, "Advance(700)", fired(w, 700), []int{5, 6, 1, 3, 2, 7, 4, 0})
		wantIDs(t, "Advance(4999)", fired(w, 4999), nil)
		wantIDs(t, "Advance(5000)", fired(w, 5000), []int{8})
	})
}

// TestFireTellsDue: fire is told the due rounded up, even if it was past.
func TestFireTellsDue(t *testing.T) {
	bothWheels(t, 10, 100, func(t *testing.T, w ring[int]) {
		for _, due := range []int64{33, 100, 101, 110, 1234} {
			w.Add(due, 0)
		}
		var got []int64
		w.Advance(2000, func(due int64, _ int) { got = append(got, due) })
		if want := []int64{40, 100, 110, 110, 1240}; !slices.Equal(got, want) {
			t.Errorf("fire was told %d, want %d", got, want)
		}
	})
}

func TestDueNow(t *testing.T) {
	bothWheels(t, 1, 100, func(t *testing.T, w ring[int]) {
		w.Add(100, 1)
		w.Add(7, 2)
		w.Add(101, 3)
		if due, ok := w.Next(); due != 100 || !ok {
			t.Errorf("Next() = %d, %t, want 100, true", due, ok)
		}
		wantIDs(t, "Advance to the same now", fired(w, 100), []int{1, 2})
		w.Add(100, 4)
		wantIDs(t, "Advance to the past", fired(w, 50), []int{4})
		if w.Now() != 100 {
			t.Errorf("Now() = %d after Advance(50), want 100", w.Now())
		}
	})
}

func TestAddFromFire(t *testing.T) {
	bothWheels(t, 1, 0, func(t *testing.T, w ring[int]) {
		w.Add(10, 0)
		var got []int
		fire := func(due int64, id int) {
			got = append(got, id)
			if id == 0 {
				w.Add(due, 1)    // the tick that is firing: not again in this Advance
				w.Add(due-5, 2)  // past: neither
				w.Add(due+3, 3)  // due by now: in this Advance
				w.Add(due+90, 4) // later
			}
		}
		w.Advance(50, fire)
		wantIDs(t, "Advance(50)", got, []int{0, 3})
		got = nil
		w.Advance(50, fire)
		wantIDs(t, "Advance(50) again", got, []int{1, 2})
		got = nil
		w.Advance(100, fire)
		wantIDs(t, "Advance(100)", got, []int{4})
	})
}

func TestNextFromFire(t *testing.T) {
	bothWheels(t, 1, 0, func(t *testing.T, w ring[int]) {
		w.Add(10, 0)
		w.Add(15, 1)
		w.Advance(10, func(due int64, _ int) {
			if next, ok := w.Next(); next != 15 || !ok {
				t.Errorf("Next() from fire = %d, %t, want 15, true", next, ok)
			}
			w.Add(due, 2) // for the next Advance
			if next, ok := w.Next(); next != 10 || !ok {
				t.Errorf("Next() from fire = %d, %t, want 10, true", next, ok)
			}
		})
	})
}

// TestAddFromFireEnds: a task that adds itself again without a delay does not
// keep Advance from returning, and a periodic one runs through.
func TestAddFromFireEnds(t *testing.T) {
	bothWheels(t, 1, 0, func(t *testing.T, w ring[int]) {
		w.Add(0, 0)
		n := w.Advance(1000, func(due int64, id int) { w.Add(due, id) })
		if n != 1 || w.Len() != 1 {
			t.Errorf("Advance fired %d, left %d, want 1, 1", n, w.Len())
		}
		w.Reset(0)
		w.Add(0, 0)
		n = w.Advance(1000, func(due int64, id int) { w.Add(due+10, id) })
		if n != 101 {
			t.Errorf("a task every 10 ms fired %d times in 1000 ms, want 101", n)
		}
	})
}

func TestCancelFromFire(t *testing.T) {
	bothWheels(t, 1, 0, func(t *testing.T, w ring[int]) {
		var handles []Handle
		for id := range 6 {
			handles = append(handles, w.Add(int64(10+id/4), id)) // four at 10, two at 11
		}
		var got []int
		w.Advance(20, func(_ int64, id int) {
			got = append(got, id)
			if id == 0 {
				for _, victim := range []int{1, 3, 4} {
					if v, ok := w.Cancel(handles[victim]); v != victim || !ok {
						t.Errorf("Cancel(task %d) = %d, %t", victim, v, ok)
					}
				}
				if _, ok := w.Cancel(handles[0]); ok {
					t.Error("a task that fires was cancelled")
				}
			}
		})
		wantIDs(t, "Advance", got, []int{0, 2, 5})
		checkInvariants(t, w)
	})
}

func TestLimit(t *testing.T) {
	bothWheels(t, 1, 0, func(t *testing.T, w ring[int]) {
		for id := range 5 {
			w.Add(10, id)
		}
		w.Add(12, 5)
		var got []int
		fire := func(_ int64, id int) { got = append(got, id) }
		if n := w.AdvanceLimit(100, 2, fire); n != 2 || w.Now() != 10 {
			t.Errorf("AdvanceLimit fired %d, Now() = %d, want 2, 10", n, w.Now())
		}
		w.Add(3, 6)  // overdue where the wheel stands: behind the rest of the slot
		w.Add(11, 7) // before what comes next
		if due, ok := w.Next(); due != 10 || !ok {
			t.Errorf("Next() = %d, %t, want 10, true", due, ok)
		}
		for w.AdvanceLimit(100, 1, fire) > 0 {
			checkInvariants(t, w)
		}
		wantIDs(t, "in steps", got, []int{0, 1, 2, 3, 4, 6, 7, 5})
		if w.Now() != 100 {
			t.Errorf("Now() = %d, want 100", w.Now())
		}
		w.Add(100, 8)
		if n := w.AdvanceLimit(100, 0, fire); n != 0 || w.Len() != 1 {
			t.Errorf("limit 0 fired %d", n)
		}
	})
}

func TestMisuseFromFire(t *testing.T) {
	bothWheels(t, 1, 0, func(t *testing.T, w ring[int]) {
		for name, call := range map[string]func(){
			"Advance": func() { w.Advance(5, func(int64, int) {}) },
			"Rebase":  func() { w.Rebase(-5) },
			"Reset":   func() { w.Reset(0) },
		} {
			w.Add(w.Now(), 0)
			w.Advance(w.Now(), func(int64, int) {
				defer func() {
					if v := fmt.Sprint(recover()); !strings.Contains(v, name) {
						t.Errorf("%s from fire: panic %q", name, v)
					}
				}()
				call()
			})
		}
	})
}

func TestPanicInFire(t *testing.T) {
	bothWheels(t, 1, 0, func(t *testing.T, w ring[int]) {
		for id := range 4 {
			w.Add(10, id)
		}
		func() {
			defer func() { _ = recover() }()
			w.Advance(20, func(_ int64, id int) {
				if id == 1 {
					panic("fire")
				}
			})
		}()
		checkInvariants(t, w)
		wantIDs(t, "Advance after the panic", fired(w, 20), []int{2, 3})
	})
}

func TestStaleHandles(t *testing.T) {
	bothWheels(t, 1, 0, func(t *testing.T, w ring[int]) {
		gone := []Handle{0, 1, 1 << 32, 1<<32 | 1, 5<<32 | 1, math.MaxUint64, 1 << 63}
		h := w.Add(10, 1)
		w.Cancel(h)
		gone = append(gone, h)
		h = w.Add(10, 2)
		fired(w, 10)
		gone = append(gone, h)
		h = w.Add(20, 3)
		w.Reset(0)
		gone = append(gone, h)
		live := w.Add(10, 4)
		for _, h := range gone {
			if v, ok := w.Cancel(h); ok {
				t.Errorf("Cancel(%#x) = %d, true", uint64(h), v)
			}
		}
		if v, ok := w.Cancel(live); v != 4 || !ok {
			t.Errorf("Cancel(live) = %d, %t, want 4, true", v, ok)
		}
	})
}

// TestGenerationsEnd: a node whose generations are used up is not used again.
func TestGenerationsEnd(t *testing.T) {
	w := mustHierarchical[int](t, Config{}, 0)
	h := w.Add(10, 1)
	i := int32(h >> 32)
	w.Cancel(h)
	w.slab.at(i).gen = math.MaxUint32 - 1 // free, one use before the end
	last := w.Add(10, 2)
	if int32(last>>32) != i {
		t.Fatalf("node %d was not used again", i)
	}
	w.Cancel(last)
	if next := w.Add(10, 3); int32(next>>32) == i {
		t.Errorf("node %d was used after its last generation", i)
	}
	w.Reset(0)
	for range 3 {
		if next := w.Add(10, 3); int32(next>>32) == i {
			t.Errorf("node %d was used after its last generation and a Reset", i)
		}
	}
}

// TestValuesAreLetGo: what has fired, was cancelled or reset is not kept alive
// by the slab.
func TestValuesAreLetGo(t *testing.T) {
	w := mustHierarchical[*int](t, Config{}, 0)
	w.Add(1, new(int))
	w.Cancel(w.Add(2, new(int)))
	w.Advance(1, func(int64, *int) {})
	w.Add(2, new(int))
	w.Reset(0)
	for i := first; i < w.slab.unused; i++ {
		if w.slab.at(i).v != nil {
			t.Errorf("node %d still holds its value", i)
		}
	}
}

func TestRebase(t *testing.T) {
	bothWheels(t, 1, 1000, func(t *testing.T, w ring[int]) {
		w.Add(900, 0)
		w.Add(1500, 1)
		w.Add(950, 2)
		w.Add(1500, 3)
		w.Rebase(2000) // forward is not its business
		if w.Now() != 1000 {
			t.Errorf("Now() = %d after Rebase(2000), want 1000", w.Now())
		}
		w.Rebase(920)
		checkInvariants(t, w)
		wantIDs(t, "Advance(920)", fired(w, 920), []int{0})
		wantIDs(t, "Advance(949)", fired(w, 949), nil)
		wantIDs(t, "Advance(950)", fired(w, 950), []int{2})
		wantIDs(t, "Advance(1500)", fired(w, 1500), []int{1, 3})
	})
}

// TestEndsOfTime: dues at the ends of int64 neither wrap nor fire early.
func TestEndsOfTime(t *testing.T) {
	for _, tick := range []int64{1, 10, 7} {
		for _, start := range []int64{0, math.MinInt64, math.MaxInt64 - 15} {
			bothWheels(t, tick, start, func(t *testing.T, w ring[int]) {
				w.Add(math.MaxInt64, 0)
				w.Add(math.MinInt64, 1)
				w.Add(math.MaxInt64-30, 2)
				w.Cancel(w.Add(start, 3))
				if got := fired(w, start/tick*tick); !slices.Contains(got, 1) || slices.Contains(got, 0) {
					t.Errorf("the start fired %v", got)
				}
				if n := w.Len(); n > 0 {
					due, _ := w.Next()
					if got := fired(w, due-1); len(got) > 0 {
						t.Errorf("Advance before Next() = %d fired %v", due, got)
					}
				}
				fired(w, math.MaxInt64-15)
				if due, ok := w.Next(); due != math.MaxInt64 || !ok {
					t.Errorf("Next() = %d, %t, want the end, true", due, ok)
				}
				fired(w, math.MaxInt64-1)
				wantIDs(t, "the end", fired(w, math.MaxInt64), []int{0})
			})
		}
	}
}

// TestNextAfterCancels cancels the earliest task again and again, in a slot of
// many ticks whose tasks came in no order: first Next searches, then it sorts.
func TestNextAfterCancels(t *testing.T) {
	w := mustHierarchical[int](t, Config{Slots: 256, Levels: 2}, 0)
	const n = 200
	handles := make(map[int64]Handle, n)
	for i := range int64(n) {
		due := 256 + i*77%256 // all different, in level 1's slot 1
		handles[due] = w.Add(due, int(due))
	}
	for len(handles) > 0 {
		due, ok := w.Next()
		h, want := handles[due]
		if !ok || !want {
			t.Fatalf("Next() = %d, %t with %d tasks left", due, ok, len(handles))
		}
		for other := range handles {
			if other < due {
				t.Fatalf("Next() = %d, but a task is due at %d", due, other)
			}
		}
		w.Cancel(h)
		delete(handles, due)
		checkInvariants(t, w)
	}
	if due, ok := w.Next(); ok {
		t.Errorf("Next() = %d of an empty wheel", due)
	}
}

// TestNextIsExact: one ms before Next nothing fires, at Next something does.
func TestNextIsExact(t *testing.T) {
	bothWheels(t, 10, 3, func(t *testing.T, w ring[int]) {
		for i := range 200 {
			w.Add(int64(i*i*7+3), i)
		}
		n := 0
		for due, ok := w.Next(); ok; due, ok = w.Next() {
			if due > w.Now() {
				wantIDs(t, "a ms before Next", fired(w, due-1), nil)
			}
			got := len(fired(w, due))
			if got == 0 {
				t.Fatalf("nothing fired at Next() = %d", due)
			}
			n += got
		}
		if n != 200 {
			t.Errorf("%d tasks fired, want 200", n)
		}
	})
}

func TestNextFunc(t *testing.T) {
	bothWheels(t, 1, 0, func(t *testing.T, w ring[int]) {
		for id, due := range []int64{30, 0, 2, 20, 20, 500, 300} {
			w.Add(due, id)
		}
		dead := map[int]bool{1: true, 2: true, 3: true, 6: true}
		var asked []int
		keep := func(id int) bool {
			asked = append(asked, id)
			return !dead[id]
		}
		if due, ok := w.NextFunc(keep); due != 20 || !ok || w.Len() != 4 {
			t.Errorf("NextFunc() = %d, %t, Len() = %d, want 20, true, 4", due, ok, w.Len())
		}
		wantIDs(t, "keep", asked, []int{1, 2, 3, 4})
		wantIDs(t, "Advance", fired(w, 30), []int{4, 0})
		if due, ok := w.NextFunc(keep); due != 500 || !ok {
			t.Errorf("NextFunc() = %d, %t, want 500, true", due, ok)
		}
		dead[5] = true
		if due, ok := w.NextFunc(keep); ok || w.Len() != 0 {
			t.Errorf("NextFunc() = %d, %t, Len() = %d of an empty wheel", due, ok, w.Len())
		}
	})
}

func TestAllWhileCancelling(t *testing.T) {
	bothWheels(t, 1, 0, func(t *testing.T, w ring[int]) {
		handles := make([]Handle, 100)
		for id := range handles {
			handles[id] = w.Add(int64(id*13), id)
		}
		seen := 0
		for due, id := range w.All() {
			if due != int64(id*13) {
				t.Errorf("All yields task %d due at %d", id, due)
			}
			w.Cancel(handles[id])
			seen++
			if seen == 60 {
				break
			}
		}
		if w.Len() != 40 {
			t.Errorf("Len() = %d, want 40", w.Len())
		}
		checkInvariants(t, w)
	})
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{
		{},
		{Tick: 1000, Slots: 2, Levels: 62},
		{Slots: 4096, Levels: 5},
		{Slots: 256, Levels: 7},
	} {
		if w, err := NewHierarchical[int](c, 0); err != nil || w == nil {
			t.Errorf("NewHierarchical(%+v): %v", c, err)
		}
	}
	for _, c := range []struct {
		config Config
		faults []string
	}{
		{Config{Tick: -1}, []string{"tick -1 ms"}},
		{Config{Slots: 1}, []string{"1 slots"}},
		{Config{Slots: 100}, []string{"100 slots", "power of two"}},
		{Config{Slots: 8192}, []string{"8192 slots"}},
		{Config{Levels: -2}, []string{"-2 levels"}},
		{Config{Levels: 8}, []string{"8 levels of 256 slots", "at most 7"}},
		{Config{Tick: -5, Slots: 3, Levels: -1}, []string{"tick -5", "3 slots", "-1 levels"}},
	} {
		_, err := NewHierarchical[int](c.config, 0)
		wantConfigError(t, c.config, err, c.faults)
	}
	for _, c := range []struct {
		config SingleConfig
		faults []string
	}{
		{SingleConfig{Tick: -1, Slots: -1}, []string{"tick -1 ms", "-1 slots"}},
		{SingleConfig{Slots: 4097}, []string{"4097 slots"}},
	} {
		_, err := NewSingleLevel[int](c.config, 0)
		wantConfigError(t, c.config, err, c.faults)
	}
}

func wantConfigError(t *testing.T, config any, err error, faults []string) {
	t.Helper()
	if !errors.Is(err, ErrConfig) {
		t.Errorf("%+v: error %v, want the class ErrConfig", config, err)
		return
	}
	for _, fault := range faults {
		if !strings.Contains(err.Error(), fault) {
			t.Errorf("%+v: error %q does not say %q", config, err, fault)
		}
	}
}

// TestNodeSize holds the documentation to the sizes it gives.
func TestNodeSize(t *testing.T) {
	for _, c := range []struct {
		what      string
		got, want uintptr
	}{
		{"uint32", unsafe.Sizeof(node[uint32]{}), 24},
		{"struct{}", unsafe.Sizeof(node[struct{}]{}), 24},
		{"uint64", unsafe.Sizeof(node[uint64]{}), 32},
		{"[3]uint32", unsafe.Sizeof(node[[3]uint32]{}), 32},
		{"single uint32", unsafe.Sizeof(node[lap[uint32]]{}), 40},
		{"single uint64", unsafe.Sizeof(node[lap[uint64]]{}), 40},
	} {
		if c.got != c.want {
			t.Errorf("a task of %s takes %d bytes, want %d", c.what, c.got, c.want)
		}
	}
}

func TestBytes(t *testing.T) {
	w := mustHierarchical[uint32](t, Config{}, 0)
	const n = 100_000
	for i := range n {
		w.Add(int64(i), 1)
	}
	if perTask := float64(w.Bytes()) / n; perTask < 24 || perTask > 25 {
		t.Errorf("%.2f bytes a task, want 24 to 25", perTask)
	}
}
