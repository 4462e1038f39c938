// Package group holds how far each consumer group has come: for each queue the
// offset below which everything is finished, the ranges finished above it, and
// a pull consumer's offset. That much is replicated state, changed by commands.
// Leases (who holds what until when) are memory; a crash makes what was leased
// visible again.
//
// The engine's applier is the only writer of groups; leases have a lock of
// their own.
package group

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/duemq/duemq/internal/record"
)

// A Group is one consumer group.
type Group struct {
	record.Group

	queues map[record.QueueNumber]*Progress
}

// Progress is how far a group has come in one queue.
type Progress struct {
	Base   record.Offset        // everything below is finished
	Acked  []record.OffsetRange // finished above Base: in order, disjoint, not adjacent
	Pulled record.Offset        // a pull consumer's next offset
	dirty  bool
}

// Set is all groups.
type Set struct {
	groups []*Group // by number; nil where one ended
	names  map[string]*Group
	dirty  []place
	made   []*Group
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

// NextNumber is the number that the next group gets.
func (s *Set) NextNumber() record.GroupNumber { return record.GroupNumber(len(s.groups)) }

// Make makes a group, or gives the one of that number other attributes. Two
// proposers may ask for one name at once; the first number stays.
func (s *Set) Make(g record.Group) *Group {
	if old := s.names[g.Name]; old != nil && old.Number != g.Number {
		return old
	}
	if int(g.Number) >= len(s.groups) {
		s.groups = append(s.groups, make([]*Group, int(g.Number)+1-len(s.groups))...)
	}
	made := s.groups[g.Number]
	if made == nil {
		made = &Group{queues: make(map[record.QueueNumber]*Progress)}
		s.groups[g.Number] = made
	}
	made.Group = g
	s.names[g.Name] = made
	s.made = append(s.made, made)
	return made
}

// Progress finds how far the group has come in a queue; nil if it never began.
func (g *Group) Progress(q record.QueueNumber) *Progress { return g.queues[q] }

// Begin makes the group's progress in a queue, which begins at from, unless it
// is there already.
func (s *Set) Begin(g *Group, q record.QueueNumber, from record.Offset) *Progress {
	p := g.queues[q]
	if p == nil {
		p = &Progress{Base: from, Pulled: from}
		g.queues[q] = p
	}
	if !p.dirty {
		p.dirty = true
		s.dirty = append(s.dirty, place{g.Number, q})
	}
	return p
}

// Ack finishes ranges of offsets and answers how many were not finished
// before. limit is the queue's next offset; nothing beyond it is believed.
func (p *Progress) Ack(ranges []record.OffsetRange, limit record.Offset) uint64 {
	var fresh uint64
	for _, r := range ranges {
		r.From, r.To = max(r.From, p.Base), min(r.To, limit)
		if r.From < r.To {
			fresh += p.insert(r)
		}
	}
	if len(p.Acked) > 0 && p.Acked[0].From == p.Base {
		p.Base = p.Acked[0].To
		p.Acked = slices.Delete(p.Acked, 0, 1)
	}
	return fresh
}

// insert adds one range, joining it with those it touches.
func (p *Progress) insert(r record.OffsetRange) uint64 {
	if n := len(p.Acked); n > 0 && p.Acked[n-1].To == r.From { // the common case
		p.Acked[n-1].To = r.To
		return uint64(r.To - r.From)
	}
	i, _ := slices.BinarySearchFunc(p.Acked, r.From, func(a record.OffsetRange, from record.Offset) int {
		return cmp.Compare(a.To, from)
	})
	j := i
	covered := uint64(0)
	joined := r
	for ; j < len(p.Acked) && p.Acked[j].From <= r.To; j++ {
		a := p.Acked[j]
		lo, hi := max(a.From, r.From), min(a.To, r.To)
		if lo < hi {
			covered += uint64(hi - lo)
		}
		joined.From, joined.To = min(joined.From, a.From), max(joined.To, a.To)
	}
	p.Acked = slices.Replace(p.Acked, i, j, joined)
	return uint64(r.To-r.From) - covered
}

// Finished says whether the group is finished with an offset.
func (p *Progress) Finished(o record.Offset) bool {
	if o < p.Base {
		return true
	}
	for _, r := range p.Acked {
		if o < r.From {
			return false
		}
		if o < r.To {
			return true
		}
	}
	return false
}

// A Frozen is the groups' part of a cut: encoded, in order.
type Frozen struct {
	Groups   []State
	Progress []State
	places   []place
	made     []*Group
}

// A State is one thing's small state under its key.
type State struct{ Key, Value []byte }

// Freeze encodes what changed since the last freeze.
func (s *Set) Freeze() *Frozen {
	f := &Frozen{places: s.dirty, made: s.made}
	s.dirty, s.made = nil, nil
	slices.SortFunc(f.places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.queue, b.queue))
	})
	for _, at := range f.places {
		p := s.groups[at.group].queues[at.queue]
		p.dirty = false
		f.Progress = append(f.Progress, State{at.key(), p.encode()})
	}
	slices.SortFunc(f.made, func(a, b *Group) int { return cmp.Compare(a.Number, b.Number) })
	f.made = slices.Compact(f.made)
	for _, g := range f.made {
		key := binary.BigEndian.AppendUint32(nil, uint32(g.Number))
		f.Groups = append(f.Groups, State{key, record.AppendGroup(nil, &g.Group)})
	}
	return f
}

// Abandon ends a cut that failed.
func (s *Set) Abandon(f *Frozen) {
	for _, at := range f.places {
		s.Begin(s.groups[at.group], at.queue, 0)
	}
	s.made = append(s.made, f.made...)
}

func (p place) key() []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(p.group)), uint32(p.queue))
}

func (p *Progress) encode() []byte {
	dst := binary.AppendUvarint(nil, uint64(p.Base))
	dst = binary.AppendUvarint(dst, uint64(p.Pulled))
	return record.AppendAck(dst, &record.Ack{Ranges: p.Acked})
}

// RestoreGroup takes back a group from a cut.
func (s *Set) RestoreGroup(value []byte) error {
	c, err := record.NextCommand(value, 0)
	if err != nil {
		return fmt.Errorf("group: %w", err)
	}
	g, err := record.DecodeGroup(c.Payload)
	if err != nil {
		return fmt.Errorf("group: %w", err)
	}
	if g.Number > MaxNumber {
		return fmt.Errorf("%w: group number %d", record.ErrCorrupt, g.Number)
	}
	s.Make(g)
	s.made = nil
	return nil
}

// RestoreProgress takes back a group's progress in a queue from a cut.
func (s *Set) RestoreProgress(key, value []byte) error {
	bad := fmt.Errorf("%w: progress %x = %x", record.ErrCorrupt, key, value)
	if len(key) != 8 {
		return bad
	}
	g := s.Get(record.GroupNumber(binary.BigEndian.Uint32(key)))
	if g == nil {
		return bad
	}
	base, n := binary.Uvarint(value)
	if n <= 0 {
		return bad
	}
	value = value[n:]
	pulled, n := binary.Uvarint(value)
	if n <= 0 {
		return bad
	}
	c, err := record.NextCommand(value[n:], 0)
	if err != nil {
		return bad
	}
	var a record.Ack
	if err := record.DecodeAck(c.Payload, &a); err != nil {
		return bad
	}
	g.queues[record.QueueNumber(binary.BigEndian.Uint32(key[4:]))] = &Progress{
		Base: record.Offset(base), Pulled: record.Offset(pulled), Acked: a.Ranges,
	}
	return nil
}

// Hash feeds the group's whole state to fn in a fixed order.
func (g *Group) Hash(fn func([]byte)) {
	fn(record.AppendGroup(nil, &g.Group))
	queues := make([]record.QueueNumber, 0, len(g.queues))
	for q := range g.queues {
		queues = append(queues, q)
	}
	slices.Sort(queues)
	for _, q := range queues {
		fn(place{g.Number, q}.key())
		fn(g.queues[q].encode())
	}
}
