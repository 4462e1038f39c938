// Package group holds how far each consumer group has come: for each queue the
// offset below which everything is finished, the ranges finished above it, how
// often what is not finished was delivered, and a pull consumer's offset. That
// much is replicated state, changed by commands. Leases (who holds what until
// when) and queue locks are memory; a crash makes what was leased visible
// again, and its next delivery counts one more.
//
// The engine's applier is the only writer of groups; leases and locks have a
// mutex of their own.
package group

import (
	"slices"

	"github.com/duemq/duemq/internal/record"
)

// A Group is one consumer group.
type Group struct {
	record.Group

	queues map[record.QueueNumber]*Progress
}

// Set is all groups.
type Set struct {
	groups []*Group // by number; nil where one ended
	names  map[string]*Group
	ended  record.GroupNumber // one more than the highest number that ended

	// What the next cut writes, or deletes if it is not there any more. Both may
	// name a thing twice.
	dirty []place
	made  []record.GroupNumber
}

type place struct {
	group record.GroupNumber
	queue record.QueueNumber
}

// MaxNumber bounds the numbers that are believed from a cut; groups are kept by
// number, and numbers are handed out one by one.
const MaxNumber = 1 << 24

// NewSet makes an empty set.
func NewSet() *Set { return &Set{names: make(map[string]*Group)} }

// Get finds a group by number; nil if there is none.
func (s *Set) Get(n record.GroupNumber) *Group {
	if int64(n) >= int64(len(s.groups)) {
		return nil
	}
	return s.groups[n]
}

// Named finds a group by name; nil if there is none.
func (s *Set) Named(name string) *Group { return s.names[name] }

// Len is how many groups there are.
func (s *Set) Len() int { return len(s.names) }

// All gives the groups in the order of their numbers.
func (s *Set) All() []*Group {
	out := make([]*Group, 0, len(s.names))
	for _, g := range s.groups {
		if g != nil {
			out = append(out, g)
		}
	}
	return out
}

// NextNumber is the number that the next group gets. It survives the end of the
// group that had the highest one.
func (s *Set) NextNumber() record.GroupNumber { return record.GroupNumber(len(s.groups)) }

// Make makes a group, or gives the one of that number other attributes. Two
// proposers may ask for one name at once; the first number stays. A number that
// was passed over or has ended makes nothing: the answer is nil.
func (s *Set) Make(g record.Group) *Group {
	if old := s.names[g.Name]; old != nil && old.Number != g.Number {
		return old
	}
	made := s.Get(g.Number)
	if made == nil {
		if g.Number < s.NextNumber() {
			return nil
		}
		made = s.put(g.Number)
	}
	if made.Name != g.Name {
		delete(s.names, made.Name)
	}
	made.Group = g
	s.names[g.Name] = made
	s.made = append(s.made, g.Number)
	return made
}

// put makes an empty group of a number.
func (s *Set) put(n record.GroupNumber) *Group {
	s.reserve(n)
	g := &Group{queues: make(map[record.QueueNumber]*Progress)}
	s.groups[n] = g
	return g
}

// reserve has the next number be beyond n.
func (s *Set) reserve(n record.GroupNumber) {
	if more := int(n) + 1 - len(s.groups); more > 0 {
		s.groups = append(s.groups, make([]*Group, more)...)
	}
}

// End ends a group. Its number is never used again; the next cut deletes what
// the index keeps of it.
func (s *Set) End(n record.GroupNumber) {
	g := s.Get(n)
	if g == nil {
		return
	}
	for q := range g.queues {
		s.dirty = append(s.dirty, place{n, q})
	}
	s.made = append(s.made, n)
	delete(s.names, g.Name)
	s.groups[n] = nil
	s.ended = max(s.ended, n+1)
}

// Forget drops the progress of all groups in the n queues from first on, which
// have ended; the next cut deletes it from the index.
func (s *Set) Forget(first record.QueueNumber, n uint32) {
	for number, g := range s.groups {
		if g == nil {
			continue
		}
		for q := range g.queues {
			if q >= first && uint64(q) < uint64(first)+uint64(n) {
				s.dirty = append(s.dirty, place{record.GroupNumber(number), q})
				delete(g.queues, q)
			}
		}
	}
}

// Progress finds how far the group has come in a queue; nil if it never began.
func (g *Group) Progress(q record.QueueNumber) *Progress { return g.queues[q] }

// Queues gives the queues in which the group began, in order.
func (g *Group) Queues() []record.QueueNumber {
	queues := make([]record.QueueNumber, 0, len(g.queues))
	for q := range g.queues {
		queues = append(queues, q)
	}
	slices.Sort(queues)
	return queues
}

// Begin makes the group's progress in a queue, which begins at from, unless it
// is there already. Whoever changes a progress gets it from here, so that the
// next cut writes it.
func (s *Set) Begin(g *Group, q record.QueueNumber, from record.Offset) *Progress {
	p := g.queues[q]
	if p == nil {
		p = StartAt(from)
		g.queues[q] = p
	}
	if !p.dirty {
		p.dirty = true
		s.dirty = append(s.dirty, place{g.Number, q})
	}
	return p
}
