package wheel

import (
	"math"
	"unsafe"
)

// A node is a task in the slab. Its links are indices, so that a slab of
// pointer-free values is nothing to the garbage collector, and half the size.
type node[T any] struct {
	due        int64  // in ticks, rounded up
	prev, next int32  // neighbours in the node's list; next also chains the free list
	gen        uint32 // odd while the node is in use; see slab.free
	v          T
}

// Two indices never name a task.
const (
	none    int32 = 0 // no node: the zero value of a link
	barrier int32 = 1 // the end of what an Advance in progress may fire; see core
	first   int32 = 2 // the first index given to a task
)

// Nodes come in chunks, so that growth copies nothing and the thousandth task
// costs as much as the millionth.
const (
	chunkBits = 10
	chunkLen  = 1 << chunkBits
	chunkMask = chunkLen - 1
)

// A slab holds the nodes of one wheel and hands them out again.
type slab[T any] struct {
	chunks []*[chunkLen]node[T]
	unused int32 // the lowest index that was never in use
	freed  int32 // head of the free list, last freed first: that node is in the cache
}

func (s *slab[T]) init() {
	s.chunks = append(s.chunks, new([chunkLen]node[T]))
	s.unused = first
}

func (s *slab[T]) at(i int32) *node[T] {
	return &s.chunks[uint32(i)>>chunkBits][i&chunkMask]
}

// alloc returns a node in use, which is in no list.
func (s *slab[T]) alloc(due int64, v T) (int32, *node[T]) {
	i := s.freed
	if i == none {
		i = s.extend()
	}
	n := s.at(i)
	s.freed = n.next
	n.due, n.v = due, v
	n.prev, n.next = none, none
	n.gen++
	return i, n
}

// extend returns an index that was never in use.
func (s *slab[T]) extend() int32 {
	i := s.unused
	if i == math.MaxInt32 {
		panic("wheel: more than 2^31 tasks")
	}
	if int(i)>>chunkBits == len(s.chunks) {
		s.chunks = append(s.chunks, new([chunkLen]node[T]))
	}
	s.unused++
	return i
}

// free takes back a node that is in no list. Every use of a node has its own
// generation, and a handle carries it; a node whose generations are used up is
// never handed out again, so that no handle ever names two tasks.
func (s *slab[T]) free(i int32, n *node[T]) {
	var zero T
	n.v = zero // let go of what it points to
	n.gen++
	if n.gen == 0 {
		return
	}
	n.next = s.freed
	s.freed = i
}

// reset frees all nodes and keeps the memory. Nodes are handed out in the
// order of their addresses again.
func (s *slab[T]) reset() {
	var zero T
	s.freed = none
	for i := s.unused - 1; i >= first; i-- {
		n := s.at(i)
		if n.gen&1 == 1 {
			n.gen++
			n.v = zero
		}
		if n.gen == 0 {
			continue
		}
		n.next = s.freed
		s.freed = i
	}
}

func (s *slab[T]) handle(i int32, n *node[T]) Handle {
	return Handle(uint64(uint32(i))<<32 | uint64(n.gen))
}

// lookup returns the node that h names, or none if h is stale.
func (s *slab[T]) lookup(h Handle) (int32, *node[T]) {
	i, gen := int32(h>>32), uint32(h)
	if i < first || i >= s.unused || gen&1 == 0 {
		return none, nil
	}
	n := s.at(i)
	if n.gen != gen {
		return none, nil
	}
	return i, n
}

// all yields the nodes in use in the order of their addresses. Nodes may be
// freed meanwhile.
func (s *slab[T]) all(yield func(n *node[T]) bool) {
	for i := first; i < s.unused; i++ {
		if n := s.at(i); n.gen&1 == 1 && !yield(n) {
			return
		}
	}
}

func (s *slab[T]) bytes() int {
	return len(s.chunks)*int(unsafe.Sizeof([chunkLen]node[T]{})) + cap(s.chunks)*int(unsafe.Sizeof(s.chunks[0]))
}
