package wheel

import (
	"iter"
	"math"
	"testing"
)

// ring is what both wheels have, for tests that hold for both.
type ring[T any] interface {
	Wheel[T]
	Advance(now int64, fire func(due int64, v T)) int
	NextFunc(keep func(v T) bool) (int64, bool)
	Rebase(now int64)
	Reset(start int64)
	All() iter.Seq2[int64, T]
	Bytes() int
}

var (
	_ ring[int] = (*Hierarchical[int])(nil)
	_ ring[int] = (*SingleLevel[int])(nil)
)

// fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func mustHierarchical[T any](t testing.TB, c Config, start int64) *Hierarchical[T] {
	t.Helper()
	w, err := NewHierarchical[T](c, start)
	if err != nil {
		t.Fatalf("NewHierarchical(%+v, %d): %v", c, start, err)
	}
	return w
}

func mustSingle[T any](t testing.TB, c SingleConfig, start int64) *SingleLevel[T] {
	t.Helper()
	w, err := NewSingleLevel[T](c, start)
	if err != nil {
		t.Fatalf("NewSingleLevel(%+v, %d): %v", c, start, err)
	}
	return w
}

// bothWheels runs a test on a wheel of each kind, of the given tick and 8 slots
// a ring.
func bothWheels(t *testing.T, tick, start int64, test func(t *testing.T, w ring[int])) {
	t.Run("hierarchical", func(t *testing.T) {
		test(t, mustHierarchical[int](t, Config{Tick: tick, Slots: 8, Levels: 3}, start))
	})
	t.Run("single", func(t *testing.T) {
		test(t, mustSingle[int](t, SingleConfig{Tick: tick, Slots: 8}, start))
	})
}

// checkInvariants looks into every list of a wheel.
func checkInvariants[T any](t fataler, w ring[T]) {
	t.Helper()
	switch w := w.(type) {
	case *Hierarchical[T]:
		checkHierarchical(t, w)
	case *SingleLevel[T]:
		checkSingle(t, w)
	}
}

func checkHierarchical[T any](t fataler, w *Hierarchical[T]) {
	t.Helper()
	seen := checkList(t, &w.slab, w.due, func(n *node[T]) {
		if n.due > w.pointer {
			t.Fatalf("due list has tick %d, pointer %d", n.due, w.pointer)
		}
	})
	for k := range w.slots {
		s := &w.slots[k]
		inOrder, last, least := true, int64(math.MinInt64), int64(math.MaxInt64)
		size := checkList(t, &w.slab, s.list, func(n *node[T]) {
			if n.due <= w.pointer || w.slotFor(n.due) != k {
				t.Fatalf("slot %d has tick %d, pointer %d", k, n.due, w.pointer)
			}
			inOrder = inOrder && n.due >= last
			last, least = n.due, min(least, n.due)
		})
		seen += size
		if set := w.occupied.next(k) == k; set != (size > 0) {
			t.Fatalf("slot %d of %d tasks: occupied %t", k, size, set)
		}
		if size == 0 || w.oneTick(k) {
			continue
		}
		checkSlot(t, w, k, inOrder, least)
	}
	checkSlab(t, &w.core, seen)
}

func checkSlot[T any](t fataler, w *Hierarchical[T], k int, inOrder bool, least int64) {
	t.Helper()
	s := &w.slots[k]
	switch {
	case s.sorted && !inOrder:
		t.Fatalf("slot %d says that it is sorted", k)
	case s.sorted && s.earliest != s.head:
		t.Fatalf("slot %d is sorted: earliest %d, head %d", k, s.earliest, s.head)
	case s.earliest == none && s.min > least:
		t.Fatalf("slot %d: bound %d, least %d", k, s.min, least)
	case s.earliest != none && (s.min != least || s.earliest != w.slab.least(s.list)):
		t.Fatalf("slot %d: min %d, least %d, earliest %d", k, s.min, least, s.earliest)
	}
}

func checkSingle[T any](t fataler, w *SingleLevel[T]) {
	t.Helper()
	seen := checkList(t, &w.slab, w.due, func(n *node[lap[T]]) {
		if n.due > w.pointer {
			t.Fatalf("due list has tick %d, pointer %d", n.due, w.pointer)
		}
	})
	least, slots := int64(math.MaxInt64), int64(len(w.slots))
	for k := range w.slots {
		size := checkList(t, &w.slab, w.slots[k], func(n *node[lap[T]]) {
			ahead := uint64(n.due) - uint64(w.pointer)
			if n.due <= w.pointer || w.slotFor(n.due) != k || n.v.rounds != (ahead-1)/uint64(slots) {
				t.Fatalf("slot %d has tick %d, rounds %d, pointer %d", k, n.due, n.v.rounds, w.pointer)
			}
			least = min(least, n.due)
		})
		seen += size
		if set := w.occupied.next(k) == k; set != (size > 0) {
			t.Fatalf("slot %d of %d tasks: occupied %t", k, size, set)
		}
	}
	if i := w.earliest; i != none && w.slab.at(i).due != least {
		t.Fatalf("earliest is tick %d, want %d", w.slab.at(i).due, least)
	}
	checkSlab(t, &w.core, seen)
}

// checkList walks l, hands each node to visit and returns how many there are.
func checkList[T any](t fataler, s *slab[T], l list, visit func(n *node[T])) (size int) {
	t.Helper()
	prev := none
	for i := l.head; i != none; i = s.at(i).next {
		n := s.at(i)
		if n.prev != prev || n.gen&1 == 0 {
			t.Fatalf("node %d: prev %d, want %d; generation %d, want it odd", i, n.prev, prev, n.gen)
		}
		visit(n)
		prev = i
		size++
	}
	if l.tail != prev {
		t.Fatalf("list's tail %d, want %d", l.tail, prev)
	}
	return size
}

// checkSlab holds the nodes seen in lists against the counts and the free list.
func checkSlab[T any](t fataler, c *core[T], seen int) {
	t.Helper()
	inUse := 0
	c.slab.all(func(*node[T]) bool { inUse++; return true })
	free := 0
	for k := c.slab.usable; k != noChunk; k = c.slab.frees[k].next {
		for i := c.slab.frees[k].head; i != none; i = c.slab.at(i).next {
			if i>>chunkBits != k {
				t.Fatalf("node %d is free in chunk %d", i, k)
			}
			free++
		}
	}
	if total := int(c.slab.unused - first); seen != c.count || inUse != c.count || free+inUse != total {
		t.Fatalf("%d tasks: %d in lists, %d in use, %d free, %d nodes", c.count, seen, inUse, free, total)
	}
}
