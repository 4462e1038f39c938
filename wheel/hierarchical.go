package wheel

import (
	"fmt"
	"math"
	"math/bits"
	"unsafe"
)

// A Hierarchical is a hierarchical timing wheel for values of type T: tasks
// that wait for an instant. The package comment explains the idea.
//
// It is told the time and starts nothing. It has one owner and no lock; for use
// by many goroutines lock outside, or use a [Runner].
//
// # Promises
//
//   - A task never fires before its due, which is rounded up to a tick. It
//     fires in the first Advance that is told that tick or a later one, so it
//     is at most one tick late, plus however late Advance is called.
//   - One Advance fires tasks in the order of their ticks, and tasks of one
//     tick in the order they were added, however far ahead that was.
//   - A handle never cancels a task that it was not returned for.
//
// # Cost
//
// Add and Cancel are O(1), and allocate nothing once as many tasks have waited
// at a time before. A task is moved at most once for each level above the
// lowest before it fires. Advance goes from occupied slot to occupied slot; to
// advance over an hour in which nothing is due costs as much as over a tick.
// Next is O(1), except right after the cancellation of the earliest task in a
// slot of more than one tick: then the slot is searched, and at the eighth such
// search sorted, after which each further one is O(1) again.
//
// A task takes 24 bytes in the slab when T is a uint32 or smaller, otherwise 20
// bytes plus the size of T, rounded up to the alignment of both. The slab grows by chunks
// of 1024 tasks, never moves and never shrinks: drop the wheel to give memory
// back. If T holds no pointer, neither does the slab, and the garbage collector
// does not look into it.
type Hierarchical[T any] struct {
	core[T]

	// Level l's slots start at l << slotBits. The last slot is the overflow:
	// what is beyond the top level's range. The lower the slot, the earlier
	// all that is in it, so the first occupied slot holds the earliest task.
	slots    []slot
	occupied bitmap

	slotBits uint
	levels   int
	levelOf  [65]uint8 // by the length in bits of pointer^due
}

// NewHierarchical returns an empty wheel whose pointer stands at the last tick
// at or before start, in ms; ticks are multiples of [Config].Tick, whatever the
// start. The error is of the class [ErrConfig].
func NewHierarchical[T any](c Config, start int64) (*Hierarchical[T], error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("new hierarchical wheel: %w", err)
	}
	c = c.withDefaults()
	n := c.Slots*c.Levels + 1
	w := &Hierarchical[T]{
		core:     newCore[T](c.Tick, start),
		slots:    make([]slot, n),
		occupied: newBitmap(n),
		slotBits: uint(c.slotBits()),
		levels:   c.Levels,
	}
	for length := range w.levelOf {
		w.levelOf[length] = uint8(min(max(length-1, 0)/c.slotBits(), c.Levels))
	}
	return w, nil
}

// Add files v to fire at due, in ms, rounded up to a tick. A due at or before
// Now fires at the next Advance, even at one with the same now; of several
// such the first added fires first. Add may be called from fire.
//
// Add panics at the 2^31st task that waits at one time.
func (w *Hierarchical[T]) Add(due int64, v T) Handle {
	i, n := w.slab.alloc(w.ceil(due), v)
	w.count++
	w.file(i, n)
	return w.slab.handle(i, n)
}

// Cancel removes the task of h and returns its value, or reports false if that
// task has fired or was cancelled before. Cancel may be called from fire, where
// it also reaches the tasks that are next to fire.
func (w *Hierarchical[T]) Cancel(h Handle) (T, bool) {
	i, n := w.slab.lookup(h)
	if n == nil {
		var zero T
		return zero, false
	}
	w.unfile(i, n)
	_, v := w.release(i, n)
	return v, true
}

// Advance moves the pointer to now, in ms, and calls fire for every task whose
// due, rounded up to a tick, is at or before now. It returns how many fired. A
// now before Now is taken as Now: a wheel does not run backwards (see
// [Hierarchical.Rebase]).
//
// Fire is given the task's due, rounded up to a tick, in ms. It may call Add
// and Cancel. What it adds at an instant after the pointer fires in this same
// Advance if it is due by now; what it adds at or before the pointer, which is
// where the task that is firing stands, fires in the next one. So Advance
// always ends, even if every task adds itself again without a delay. Fire must
// not call Advance, Rebase or Reset: they panic. If fire panics, its task is
// gone and the wheel is whole: the tasks that have not fired do so at the next
// Advance.
func (w *Hierarchical[T]) Advance(now int64, fire func(due int64, v T)) (fired int) {
	return w.AdvanceLimit(now, math.MaxInt, fire)
}

// AdvanceLimit is [Hierarchical.Advance], but stops after limit tasks, also in
// the middle of a slot. The next call goes on in the same order. Until then the
// pointer, and so Now, stays at the tick where it stopped; if more is due, Next
// is at or before now. A limit of less than one fires nothing.
func (w *Hierarchical[T]) AdvanceLimit(now int64, limit int, fire func(due int64, v T)) (fired int) {
	w.begin("Advance")
	defer w.end()
	target := w.floor(now)
	for {
		for w.mayFire() {
			if fired >= limit {
				return fired
			}
			due, v := w.pop()
			fired++
			fire(due, v)
		}
		next, ok := w.nextTick()
		if !ok || next > target {
			break
		}
		w.enter(next)
	}
	if target > w.pointer {
		w.enter(target)
	}
	return fired
}

// Next returns the earliest instant in ms at which Advance will fire a task,
// exactly: no sooner and no later one will do. It is Now if something is due
// already. Next reports false if no task waits. It may be called from fire.
func (w *Hierarchical[T]) Next() (due int64, ok bool) {
	if w.firstDue() != none {
		return w.Now(), true
	}
	t, ok := w.nextTick()
	return w.instant(t), ok
}

// NextFunc is [Hierarchical.Next], but drops tasks from the front, without
// firing them, until keep accepts the earliest one. For an owner that marks
// tasks dead in place of cancelling them. Keep must not touch the wheel.
func (w *Hierarchical[T]) NextFunc(keep func(v T) bool) (due int64, ok bool) {
	if w.keepDue(keep) {
		return w.Now(), true
	}
	for {
		k := w.occupied.first()
		if k < 0 {
			return 0, false
		}
		i := w.earliestIn(k)
		n := w.slab.at(i)
		if keep(n.v) {
			return w.instant(n.due), true
		}
		w.unfile(i, n)
		w.release(i, n)
	}
}

// Rebase sets the pointer back to now, in ms, for a clock that was set back,
// and files every task anew. Dues do not change, and none is lost: what was
// overdue and is due after the new now waits again, and tasks of one tick keep
// their order. A now at or after Now does nothing. The cost is O(n).
func (w *Hierarchical[T]) Rebase(now int64) {
	w.mustBeIdle("Rebase")
	t := w.floor(now)
	if t >= w.pointer {
		return
	}
	tasks := w.due
	for k := w.occupied.first(); k >= 0; k = w.occupied.first() {
		w.slab.concat(&tasks, w.empty(k))
	}
	w.due = list{}
	w.pointer = t
	w.fileAll(tasks)
}

// Reset drops all tasks and sets the pointer to start, in ms, before or after
// where it was. Memory is kept for reuse; handles from before name nothing.
func (w *Hierarchical[T]) Reset(start int64) {
	w.mustBeIdle("Reset")
	w.slab.reset()
	w.occupied.reset()
	clear(w.slots)
	w.due = list{}
	w.count = 0
	w.pointer = w.floor(start)
}

// Bytes returns the memory that the wheel holds, in bytes, without what values
// point to.
func (w *Hierarchical[T]) Bytes() int {
	return w.slab.bytes() + len(w.slots)*int(unsafe.Sizeof(slot{})) + w.occupied.bytes()
}

// slotFor returns the slot of a tick after the pointer. The highest bit in which
// the two differ decides the level: in all higher rings they are in the same
// slot, and in this ring the pointer has yet to come to the tick's slot.
func (w *Hierarchical[T]) slotFor(due int64) int {
	level := int(w.levelOf[bits.Len64(uint64(due^w.pointer))])
	if level == w.levels {
		return len(w.slots) - 1
	}
	inRing := int(due>>(uint(level)*w.slotBits)) & (1<<w.slotBits - 1)
	return level<<w.slotBits + inRing
}

// oneTick reports whether all tasks of slot k are due at the same tick.
func (w *Hierarchical[T]) oneTick(k int) bool { return k>>w.slotBits == 0 }

// file puts a node that is in no list where it belongs.
func (w *Hierarchical[T]) file(i int32, n *node[T]) {
	if n.due <= w.pointer {
		w.slab.pushBack(&w.due, i, n)
		return
	}
	k := w.slotFor(n.due)
	s := &w.slots[k]
	if s.head == none {
		w.occupied.set(k)
		s.start(i, n.due)
		return
	}
	if !w.oneTick(k) {
		s.added(i, n.due, w.slab.at(s.tail).due)
	}
	w.slab.pushBack(&s.list, i, n)
}

// unfile takes a node out of the list that it is in. Nobody wrote down which
// that is: a task is always where file would put it now.
func (w *Hierarchical[T]) unfile(i int32, n *node[T]) {
	if n.due <= w.pointer {
		w.slab.unlink(&w.due, n)
		return
	}
	k := w.slotFor(n.due)
	s := &w.slots[k]
	if w.oneTick(k) {
		w.slab.unlink(&s.list, n)
	} else {
		w.slab.take(s, i, n)
	}
	if s.head == none {
		w.occupied.clear(k)
	}
}

// fileAll files every node of l, in order. What is due goes before the barrier
// if an Advance is in progress.
func (w *Hierarchical[T]) fileAll(l list) {
	for i := l.head; i != none; {
		n := w.slab.at(i)
		next := n.next
		n.prev, n.next = none, none
		if w.firing && n.due <= w.pointer {
			w.slab.insertBefore(&w.due, barrier, i)
		} else {
			w.file(i, n)
		}
		i = next
	}
}

// empty takes all tasks out of slot k.
func (w *Hierarchical[T]) empty(k int) list {
	l := w.slots[k].list
	w.slots[k] = slot{}
	w.occupied.clear(k)
	return l
}

// nextTick returns the earliest tick after the pointer at which a task is due.
func (w *Hierarchical[T]) nextTick() (t int64, ok bool) {
	k := w.occupied.first()
	if k < 0 {
		return 0, false
	}
	if w.oneTick(k) {
		return w.pointer&^(1<<w.slotBits-1) | int64(k), true
	}
	s := &w.slots[k]
	if s.earliest == none {
		w.slab.refine(s)
	}
	return s.min, true
}

// earliestIn returns the earliest task of the occupied slot k.
func (w *Hierarchical[T]) earliestIn(k int) int32 {
	s := &w.slots[k]
	if w.oneTick(k) {
		return s.head
	}
	if s.earliest == none {
		w.slab.refine(s)
	}
	return s.earliest
}

// enter moves the pointer forward to tick t. No task is due before t. The tasks
// of the slot that the pointer enters fall down: those of t itself into the due
// list, the others to lower levels. It can be but one slot. In the rings above
// it the pointer stays in the slot it is in, which is empty; what is in the
// rings below it is due before it, and so there is nothing.
func (w *Hierarchical[T]) enter(t int64) {
	k := w.slotFor(t)
	s := &w.slots[k]
	w.pointer = t
	if s.head == none {
		return
	}
	switch {
	case w.oneTick(k):
		w.slab.spliceBefore(&w.due, barrier, w.empty(k))
	case k == len(w.slots)-1 && !w.reached(s.min):
		// Nothing of the overflow is in the turn that begins.
	default:
		w.fileAll(w.empty(k))
	}
}

// reached reports whether the pointer is in the turn of the top ring that tick t
// is in, or beyond it.
func (w *Hierarchical[T]) reached(t int64) bool {
	return t <= w.pointer || int(w.levelOf[bits.Len64(uint64(t^w.pointer))]) < w.levels
}
