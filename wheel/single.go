package wheel

import (
	"fmt"
	"iter"
	"math"
	"unsafe"
)

// A SingleLevel is the classic timing wheel for values of type T: one ring of
// slots, a pointer, and in each task the number of rounds that the pointer has
// yet to make before the task's turn comes. The package comment draws it.
//
// It promises what [Hierarchical] promises and has the same methods; use it
// where the ring is longer than nearly all delays, or to see how a wheel works.
// It too is told the time, starts nothing, and has one owner.
//
// # Cost
//
// Add and Cancel are O(1), and allocate nothing once as many tasks have waited
// at a time before. Passing a slot touches every task in it, due or not: with n
// tasks and s slots a tick costs about n/s, and a task that waits r rounds is
// touched r times. That is what the hierarchy saves. Next is O(1) until the
// earliest task fires or is cancelled, and then looks at the tasks for it, all
// of them at worst.
//
// A task takes 32 bytes in the slab plus the size of T, rounded up to a
// multiple of 8.
type SingleLevel[T any] struct {
	core[lap[T]]

	slots    []list
	occupied bitmap
	earliest int32 // the earliest task after the pointer; none if not known
	quiet    int64 // ticks since a task was last found due, no more than a turn
}

// A lap is a value and the full turns that its slot must be passed over first.
type lap[T any] struct {
	rounds uint64
	v      T
}

// NewSingleLevel returns an empty wheel whose pointer stands at the last tick at
// or before start, in ms; ticks are multiples of [SingleConfig].Tick, whatever
// the start. The error is of the class [ErrConfig].
func NewSingleLevel[T any](c SingleConfig, start int64) (*SingleLevel[T], error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("new single-level wheel: %w", err)
	}
	c = c.withDefaults()
	return &SingleLevel[T]{
		core:     newCore[lap[T]](c.Tick, start),
		slots:    make([]list, c.Slots),
		occupied: newBitmap(c.Slots),
	}, nil
}

// Add files v to fire at due; see [Hierarchical.Add].
func (w *SingleLevel[T]) Add(due int64, v T) Handle {
	i, n := w.slab.alloc(w.ceil(due), lap[T]{v: v})
	w.count++
	w.file(i, n)
	return w.slab.handle(i, n)
}

// Cancel removes the task of h; see [Hierarchical.Cancel].
func (w *SingleLevel[T]) Cancel(h Handle) (T, bool) {
	i, n := w.slab.lookup(h)
	if n == nil {
		var zero T
		return zero, false
	}
	w.unfile(i, n)
	_, l := w.release(i, n)
	return l.v, true
}

// Advance moves the pointer to now and fires what is due; see
// [Hierarchical.Advance].
func (w *SingleLevel[T]) Advance(now int64, fire func(due int64, v T)) (fired int) {
	return w.AdvanceLimit(now, math.MaxInt, fire)
}

// AdvanceLimit is Advance that stops after limit tasks; see
// [Hierarchical.AdvanceLimit].
func (w *SingleLevel[T]) AdvanceLimit(now int64, limit int, fire func(due int64, v T)) (fired int) {
	w.begin("Advance")
	defer w.end()
	target := w.floor(now)
	w.quiet = 0
	for {
		for w.mayFire() {
			if fired >= limit {
				return fired
			}
			due, l := w.pop()
			fired++
			fire(due, l.v)
		}
		if !w.step(target) {
			return fired
		}
	}
}

// Next returns the earliest instant in ms at which Advance will fire a task,
// exactly; see [Hierarchical.Next], and the cost above.
func (w *SingleLevel[T]) Next() (due int64, ok bool) {
	if w.firstDue() != none {
		return w.Now(), true
	}
	i := w.find()
	if i == none {
		return 0, false
	}
	return w.instant(w.slab.at(i).due), true
}

// NextFunc is Next, but drops tasks from the front until keep accepts the
// earliest one; see [Hierarchical.NextFunc]. Every drop costs a Next.
func (w *SingleLevel[T]) NextFunc(keep func(v T) bool) (due int64, ok bool) {
	if w.keepDue(func(l lap[T]) bool { return keep(l.v) }) {
		return w.Now(), true
	}
	for i := w.find(); i != none; i = w.find() {
		n := w.slab.at(i)
		if keep(n.v.v) {
			return w.instant(n.due), true
		}
		w.unfile(i, n)
		w.release(i, n)
	}
	return 0, false
}

// All yields every task that waits with its due, rounded up to a tick, in ms.
// The order is that of memory and means nothing. The loop may cancel tasks;
// whether it meets a task that it adds is not said.
func (w *SingleLevel[T]) All() iter.Seq2[int64, T] {
	return func(yield func(int64, T) bool) {
		w.slab.all(func(n *node[lap[T]]) bool { return yield(w.instant(n.due), n.v.v) })
	}
}

// Rebase sets the pointer back to now and files every task anew; see
// [Hierarchical.Rebase].
func (w *SingleLevel[T]) Rebase(now int64) {
	w.mustBeIdle("Rebase")
	t := w.floor(now)
	if t >= w.pointer {
		return
	}
	tasks := w.due
	for k := range w.slots {
		w.slab.concat(&tasks, w.slots[k])
	}
	w.forget()
	w.pointer = t
	for i := tasks.head; i != none; {
		n := w.slab.at(i)
		next := n.next
		w.file(i, n)
		i = next
	}
}

// Reset drops all tasks and sets the pointer to start; see
// [Hierarchical.Reset].
func (w *SingleLevel[T]) Reset(start int64) {
	w.mustBeIdle("Reset")
	w.slab.reset()
	w.forget()
	w.count = 0
	w.pointer = w.floor(start)
}

// Bytes returns the memory that the wheel holds, in bytes, without what values
// point to.
func (w *SingleLevel[T]) Bytes() int {
	return w.slab.bytes() + len(w.slots)*int(unsafe.Sizeof(list{})) + w.occupied.bytes()
}

// forget empties all lists and frees no node.
func (w *SingleLevel[T]) forget() {
	clear(w.slots)
	w.occupied.reset()
	w.due = list{}
	w.earliest = none
}

// slotFor returns the slot of a tick. Every tick has one slot for ever, so a
// task is where the pointer comes by at its due.
func (w *SingleLevel[T]) slotFor(due int64) int {
	s := int64(len(w.slots))
	k := due % s
	if k < 0 {
		k += s
	}
	return int(k)
}

// file puts a node that is in no list where it belongs. The pointer comes by a
// tick at a distance of 1 to s ticks in this turn, so that of s+1 in the next.
func (w *SingleLevel[T]) file(i int32, n *node[lap[T]]) {
	if n.due <= w.pointer {
		w.slab.pushBack(&w.due, i, n)
		return
	}
	ahead := uint64(n.due) - uint64(w.pointer) // may not fit an int64
	n.v.rounds = (ahead - 1) / uint64(len(w.slots))
	k := w.slotFor(n.due)
	switch {
	case w.occupied.first() < 0:
		w.earliest = i
	case w.earliest != none && n.due < w.slab.at(w.earliest).due:
		w.earliest = i
	}
	w.slab.pushBack(&w.slots[k], i, n)
	w.occupied.set(k)
}

// unfile takes a node out of the list that it is in.
func (w *SingleLevel[T]) unfile(i int32, n *node[lap[T]]) {
	if n.due <= w.pointer {
		w.slab.unlink(&w.due, n)
		return
	}
	if i == w.earliest {
		w.earliest = none
	}
	w.remove(w.slotFor(n.due), n)
}

// remove takes a node out of slot k.
func (w *SingleLevel[T]) remove(k int, n *node[lap[T]]) {
	w.slab.unlink(&w.slots[k], n)
	if w.slots[k].head == none {
		w.occupied.clear(k)
	}
}

// find returns the earliest task after the pointer, or none. It goes round the
// ring from the pointer: the first task without a round to wait is the one, and
// if all have some, it has seen them all.
func (w *SingleLevel[T]) find() int32 {
	if w.earliest != none {
		return w.earliest
	}
	var least int64
	for d, ok := w.ahead(1); ok; d, ok = w.ahead(d + 1) {
		for i := w.slots[w.slotFor(w.pointer+int64(d))].head; i != none; {
			n := w.slab.at(i)
			if n.v.rounds == 0 {
				w.earliest = i
				return i
			}
			if w.earliest == none || n.due < least {
				w.earliest, least = i, n.due
			}
			i = n.next
		}
	}
	return w.earliest
}

// ahead returns the distance in ticks, from..s, of the first occupied slot that
// is at least from ticks ahead of the pointer in this turn.
func (w *SingleLevel[T]) ahead(from int) (distance int, ok bool) {
	s := len(w.slots)
	if from > s {
		return 0, false
	}
	at := w.slotFor(w.pointer)
	start := at + from // at most 2s-1
	if start < s {
		if k := w.occupied.next(start); k >= 0 {
			return k - at, true
		}
		start = s
	}
	if k := w.occupied.next(start - s); k >= 0 && k <= at {
		return k + s - at, true
	}
	return 0, false
}

// step moves the pointer to the next occupied slot and runs it, or to target if
// that comes first. It reports whether there is more to do before target.
func (w *SingleLevel[T]) step(target int64) bool {
	if target <= w.pointer {
		return false
	}
	s := int64(len(w.slots))
	if w.quiet >= s {
		w.skip(target)
	}
	left := uint64(target) - uint64(w.pointer)
	d, ok := w.ahead(1)
	if !ok || uint64(d) > left {
		w.pointer = target
		return false
	}
	w.pointer += int64(d)
	w.quiet += int64(d)
	w.run(w.slotFor(w.pointer))
	return true
}

// run passes the pointer over slot k: the tasks whose rounds are used up are
// due, the others have waited one more.
func (w *SingleLevel[T]) run(k int) {
	for i := w.slots[k].head; i != none; {
		n := w.slab.at(i)
		next := n.next
		if n.v.rounds == 0 {
			if i == w.earliest {
				w.earliest = none
			}
			w.quiet = 0
			w.remove(k, n)
			w.slab.insertBefore(&w.due, barrier, i)
		} else {
			n.v.rounds--
		}
		i = next
	}
}

// skip passes over as many whole turns as can be before the earliest task, all
// at once, so that a wheel which was not told the time for long does not turn
// and turn. It looks at every task, like the turn without a find before it.
func (w *SingleLevel[T]) skip(target int64) {
	w.quiet = 0
	i := w.find()
	if i == none {
		return
	}
	s := uint64(len(w.slots))
	until := min(target, w.slab.at(i).due)
	turns := (uint64(until) - uint64(w.pointer) - 1) / s
	if turns == 0 {
		return
	}
	for k := range w.slots {
		for i := w.slots[k].head; i != none; {
			n := w.slab.at(i)
			n.v.rounds -= turns
			i = n.next
		}
	}
	w.pointer += int64(turns * s)
}
