package wheel

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSort: a sorted list is in the order of due, equal dues keep theirs, and
// the links back are whole.
func TestSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 2, 3, 7, 8, 9, 100, 1000, 4097} {
		for _, dues := range []int64{1, 3, 1 << 40} {
			var s slab[int]
			var l list
			s.init()
			type task struct {
				due int64
				id  int
			}
			var want []task
			for id := range size {
				due := rng.Int64N(dues) - dues/2
				i, n := s.alloc(due, id)
				s.pushBack(&l, i, n)
				want = append(want, task{due, id})
			}
			slices.SortStableFunc(want, func(a, b task) int { return cmp.Compare(a.due, b.due) })
			s.sort(&l)
			var got []task
			checkList(t, &s, l, func(n *node[int]) { got = append(got, task{n.due, n.v}) })
			if !slices.Equal(got, want) {
				t.Errorf("%d tasks of %d dues come in another order than a stable sort gives", size, dues)
			}
		}
	}
}

func TestBitmap(t *testing.T) {
	for _, size := range []int{1, 63, 64, 65, 1281, 64*64 + 7, 20481} {
		b := newBitmap(size)
		set := map[int]bool{}
		rng := rand.New(rand.NewPCG(1, uint64(size)))
		for range 300 {
			i := rng.IntN(size)
			if rng.IntN(3) == 0 {
				b.set(i)
				set[i] = true
			} else {
				b.clear(i)
				delete(set, i)
			}
			from := rng.IntN(size + 1)
			first, next := -1, -1
			for k := range set {
				if first < 0 || k < first {
					first = k
				}
				if k >= from && (next < 0 || k < next) {
					next = k
				}
			}
			if got := b.first(); got != first {
				t.Fatalf("first() of %d bits = %d, want %d", size, got, first)
			}
			if got := b.next(from); got != next {
				t.Fatalf("next(%d) of %d bits = %d, want %d", from, size, got, next)
			}
		}
		b.reset()
		if got := b.first(); got != -1 {
			t.Errorf("first() after reset = %d, want -1", got)
		}
	}
}
