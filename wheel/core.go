package wheel

import (
	"iter"
	"math"
)

// A core is what both wheels share: the tasks, the pointer, and the list of
// those that are due.
//
// While an Advance is in progress the node barrier stands in that list. What
// is before it may fire in this Advance; what fire adds at or before the
// pointer goes behind it and waits for the next one, so that an Advance always
// ends. Cancel need not know of any of this: to unlink a node, the list that
// it is in is enough.
type core[T any] struct {
	slab slab[T]
	due  list // tasks due at or before the pointer, first added first

	pointer int64 // in ticks: all before it has fired
	tick    int64 // ms
	lastDue int64 // the last tick that is an int64 number of ms
	count   int
	firing  bool // barrier is in due
}

func newCore[T any](tick, start int64) core[T] {
	c := core[T]{tick: tick, lastDue: math.MaxInt64 / tick}
	c.slab.init()
	c.pointer = c.floor(start)
	return c
}

// floor returns the last tick at or before the instant ms. At the end of time
// it is the tick that everything has come by.
func (c *core[T]) floor(ms int64) int64 {
	if c.tick == 1 {
		return ms
	}
	if ms == math.MaxInt64 {
		return c.ceil(ms)
	}
	t := ms / c.tick
	if ms%c.tick < 0 {
		t--
	}
	return t
}

// ceil returns the first tick at or after the instant ms.
func (c *core[T]) ceil(ms int64) int64 {
	if c.tick == 1 {
		return ms
	}
	t := ms / c.tick
	if ms%c.tick > 0 {
		t++
	}
	return t
}

// instant returns the time of a tick in ms, held within int64.
func (c *core[T]) instant(t int64) int64 {
	switch {
	case t > c.lastDue:
		return math.MaxInt64
	case t < -c.lastDue:
		return math.MinInt64
	}
	return t * c.tick
}

// Now returns the instant of the pointer in ms: the last tick that the wheel
// was told of, or, after an AdvanceLimit that stopped, the tick it stopped in.
func (c *core[T]) Now() int64 { return c.instant(c.pointer) }

// Len returns the number of tasks that wait.
func (c *core[T]) Len() int { return c.count }

// All yields every task that waits with its due, rounded up to a tick, in ms.
// The order is that of memory and means nothing. The loop may cancel tasks;
// whether it meets a task that it adds is not said.
func (c *core[T]) All() iter.Seq2[int64, T] {
	return func(yield func(int64, T) bool) {
		c.slab.all(func(n *node[T]) bool { return yield(c.instant(n.due), n.v) })
	}
}

// begin lets what is due now fire.
func (c *core[T]) begin(method string) {
	c.mustBeIdle(method)
	c.firing = true
	c.slab.pushBack(&c.due, barrier, c.slab.at(barrier))
}

// end takes the barrier away. What has not fired stays in order.
func (c *core[T]) end() {
	c.slab.unlink(&c.due, c.slab.at(barrier))
	c.firing = false
}

// mustBeIdle panics if the caller is a fire function.
func (c *core[T]) mustBeIdle(method string) {
	if c.firing {
		panic("wheel: " + method + " called from fire")
	}
}

// mayFire reports whether a task is due before the barrier.
func (c *core[T]) mayFire() bool { return c.due.head != barrier }

// pop removes the first due task.
func (c *core[T]) pop() (due int64, v T) {
	i := c.due.head
	n := c.slab.at(i)
	c.slab.unlink(&c.due, n)
	return c.release(i, n)
}

// release frees a node that is in no list.
func (c *core[T]) release(i int32, n *node[T]) (due int64, v T) {
	due, v = c.instant(n.due), n.v
	c.slab.free(i, n)
	c.count--
	return due, v
}

// firstDue returns the first task of the due list, or none.
func (c *core[T]) firstDue() int32 {
	if i := c.due.head; i != barrier {
		return i
	}
	return c.slab.at(barrier).next
}

// keepDue drops due tasks until keep accepts one, and reports whether it did.
func (c *core[T]) keepDue(keep func(T) bool) bool {
	for {
		i := c.firstDue()
		if i == none {
			return false
		}
		n := c.slab.at(i)
		if keep(n.v) {
			return true
		}
		c.slab.unlink(&c.due, n)
		c.release(i, n)
	}
}
