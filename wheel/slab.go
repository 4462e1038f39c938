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

// A slab holds the nodes of one wheel and hands them out again. Each chunk has
// its own free list, and one chunk's free nodes are used up before the next
// one's, so that tasks which are added one after the other stay neighbours in
// memory however long the wheel has been in use. A single list would hand out
// nodes in the order in which they were freed, which soon is no order at all.
type slab[T any] struct {
	chunks []*[chunkLen]node[T]
	frees  []freeList // by chunk
	usable int32      // the first chunk that has free nodes, or noChunk
	unused int32      // the lowest index that was never in use
}

// A freeList is that of one chunk.
type freeList struct {
	head int32 // linked by next
	next int32 // the next chunk that has free nodes, or noChunk; only if head is not none
}

const noChunk int32 = -1

func (s *slab[T]) init() {
	s.grow()
	s.usable = noChunk
	s.unused = first
}

func (s *slab[T]) grow() {
	s.chunks = append(s.chunks, new([chunkLen]node[T]))
	s.frees = append(s.frees, freeList{})
}

func (s *slab[T]) at(i int32) *node[T] {
	return &s.chunks[uint32(i)>>chunkBits][i&chunkMask]
}

// alloc returns a node in use, which is in no list.
func (s *slab[T]) alloc(due int64, v T) (int32, *node[T]) {
	var i int32
	var n *node[T]
	if c := s.usable; c != noChunk {
		f := &s.frees[c]
		i = f.head
		n = s.at(i)
		f.head = n.next
		if f.head == none {
			s.usable = f.next
		}
	} else {
		i = s.extend()
		n = s.at(i)
	}
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
		s.grow()
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
	s.chain(i, n)
}

// chain puts a node that is not in use on its chunk's free list, unless its
// generations are used up.
func (s *slab[T]) chain(i int32, n *node[T]) {
	if n.gen == 0 {
		return
	}
	c := i >> chunkBits
	f := &s.frees[c]
	if f.head == none {
		f.next = s.usable
		s.usable = c
	}
	n.next = f.head
	f.head = i
}

// reset frees all nodes and keeps the memory. Nodes are handed out in the
// order of their addresses again.
func (s *slab[T]) reset() {
	var zero T
	clear(s.frees)
	s.usable = noChunk
	for i := s.unused - 1; i >= first; i-- {
		n := s.at(i)
		if n.gen&1 == 1 {
			n.gen++
			n.v = zero
		}
		s.chain(i, n)
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
	return len(s.chunks)*int(unsafe.Sizeof([chunkLen]node[T]{})) +
		cap(s.chunks)*int(unsafe.Sizeof(s.chunks[0])) +
		cap(s.frees)*int(unsafe.Sizeof(freeList{}))
}
