package group

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/duemq/duemq/internal/record"
)

// A Frozen is the groups' part of a cut: encoded, in the order of the keys.
// A nil value deletes its key.
type Frozen struct {
	Groups   []State
	Progress []State
	places   []place
	numbers  []record.GroupNumber
}

// A State is one thing's small state under its key.
type State struct{ Key, Value []byte }

// Freeze encodes what changed since the last freeze.
func (s *Set) Freeze() *Frozen {
	f := &Frozen{places: s.dirty, numbers: s.made}
	s.dirty, s.made = nil, nil
	slices.SortFunc(f.places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.queue, b.queue))
	})
	f.places = slices.Compact(f.places)
	for _, at := range f.places {
		var value []byte
		if p := s.at(at); p != nil {
			p.dirty = false
			value = p.encode()
		}
		f.Progress = append(f.Progress, State{at.key(), value})
	}
	slices.Sort(f.numbers)
	f.numbers = slices.Compact(f.numbers)
	ended := false
	for _, n := range f.numbers {
		var value []byte
		if g := s.Get(n); g != nil {
			value = record.AppendGroup(nil, &g.Group)
		}
		ended = ended || value == nil
		f.Groups = append(f.Groups, State{binary.BigEndian.AppendUint32(nil, uint32(n)), value})
	}
	if ended { // under the empty key, so that the number is not used again
		last := record.AppendEndGroup(nil, &record.EndGroup{Number: s.ended - 1})
		f.Groups = slices.Insert(f.Groups, 0, State{nil, last})
	}
	return f
}

// Abandon ends a cut that failed: what it would have written or deleted, the
// next one does.
func (s *Set) Abandon(f *Frozen) {
	for _, at := range f.places {
		if p := s.at(at); p != nil {
			p.dirty = true
		}
	}
	s.dirty = append(s.dirty, f.places...)
	s.made = append(s.made, f.numbers...)
}

func (s *Set) at(p place) *Progress {
	if g := s.Get(p.group); g != nil {
		return g.queues[p.queue]
	}
	return nil
}

func (p place) key() []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(p.group)), uint32(p.queue))
}

// encode gives the progress's value in a cut. What came after the first three
// fields is left out while it says nothing, so that a store in which nothing
// was leased has the bytes that it always had.
func (p *Progress) encode() []byte {
	dst := binary.AppendUvarint(nil, uint64(p.Base))
	dst = binary.AppendUvarint(dst, uint64(p.Pulled))
	dst = record.AppendAck(dst, &record.Ack{Ranges: p.Acked})
	if p.Skipped == 0 && p.Leased == p.Base && len(p.tries) == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, p.Skipped)
	dst = binary.AppendUvarint(dst, uint64(p.Leased-p.Base))
	dst = binary.AppendUvarint(dst, uint64(len(p.tries)))
	at := p.Base
	for _, t := range p.tries {
		dst = binary.AppendUvarint(dst, uint64(t.Offset-at))
		dst = binary.AppendUvarint(dst, uint64(t.Attempt))
		dst = binary.AppendUvarint(dst, uint64(t.Due))
		at = t.Offset + 1
	}
	return dst
}

// RestoreGroup takes back a group from a cut, or the highest number that has
// ended. Anything that a cut cannot have written is [record.ErrCorrupt].
func (s *Set) RestoreGroup(value []byte) error {
	c, err := record.NextCommand(value, 0)
	if err != nil {
		return fmt.Errorf("group: %w", err)
	}
	if c.Size != len(value) {
		return fmt.Errorf("%w: group %x", record.ErrCorrupt, value)
	}
	switch c.Type {
	case record.CommandGroup:
		return s.restoreMade(c.Payload)
	case record.CommandEndGroup:
		return s.restoreEnded(c.Payload)
	default:
		return fmt.Errorf("%w: group %x", record.ErrCorrupt, value)
	}
}

func (s *Set) restoreMade(payload []byte) error {
	g, err := record.DecodeGroup(payload)
	if err != nil {
		return fmt.Errorf("group: %w", err)
	}
	if g.Number > MaxNumber || s.Get(g.Number) != nil || s.Named(g.Name) != nil {
		return fmt.Errorf("%w: group number %d named %q", record.ErrCorrupt, g.Number, g.Name)
	}
	made := s.put(g.Number)
	made.Group = g
	s.names[g.Name] = made
	return nil
}

func (s *Set) restoreEnded(payload []byte) error {
	e, err := record.DecodeEndGroup(payload)
	if err != nil {
		return fmt.Errorf("group: %w", err)
	}
	if e.Number > MaxNumber {
		return fmt.Errorf("%w: ended group number %d", record.ErrCorrupt, e.Number)
	}
	s.reserve(e.Number)
	s.ended = max(s.ended, e.Number+1)
	return nil
}

// RestoreProgress takes back a group's progress in a queue from a cut, after
// its group. Anything that a cut cannot have written is [record.ErrCorrupt].
func (s *Set) RestoreProgress(key, value []byte) error {
	bad := fmt.Errorf("%w: progress %x = %x", record.ErrCorrupt, key, value)
	if len(key) != 8 {
		return bad
	}
	g := s.Get(record.GroupNumber(binary.BigEndian.Uint32(key)))
	if g == nil {
		return bad
	}
	p := decodeProgress(value)
	if p == nil {
		return bad
	}
	g.queues[record.QueueNumber(binary.BigEndian.Uint32(key[4:]))] = p
	return nil
}

// decodeProgress reads what encode wrote; nil if it cannot have been that.
func decodeProgress(value []byte) *Progress {
	f := record.ReadFields(value)
	p := &Progress{Base: record.Offset(f.Uvarint()), Pulled: record.Offset(f.Uvarint())}
	rest := f.Take(f.Left())
	c, err := record.NextCommand(rest, 0)
	if err != nil || c.Type != record.CommandAck {
		return nil
	}
	var a record.Ack
	if record.DecodeAck(c.Payload, &a) != nil {
		return nil
	}
	end := p.Base // what is adjacent would have been joined
	for _, r := range a.Ranges {
		if r.From <= end {
			return nil
		}
		end = r.To
	}
	p.Acked, p.Leased = a.Ranges, p.Base
	if c.Size < len(rest) && !p.decodeTries(rest[c.Size:]) {
		return nil
	}
	return p
}

func (p *Progress) decodeTries(src []byte) bool {
	f := record.ReadFields(src)
	p.Skipped = f.Uvarint()
	p.Leased += record.Offset(f.Uvarint())
	n := f.Uvarint()
	if p.Leased < p.Base || n > MaxInflight || n > uint64(f.Left()/3) {
		return false
	}
	p.tries = make([]Try, 0, n)
	away := uint64(0) // from Base; cannot wrap around before it is refused
	for ; n > 0; n-- {
		gap, attempt, due := f.Uvarint(), f.Uvarint(), f.Uvarint()
		if gap >= MaxInflight || away+gap >= MaxInflight || attempt > 1<<32-1 {
			return false
		}
		away += gap
		t := Try{Offset: p.Base + record.Offset(away), Attempt: uint32(attempt), Due: int64(due)}
		if t.Offset < p.Base || p.Finished(t.Offset) {
			return false
		}
		p.tries = append(p.tries, t)
		away++
	}
	return f.Done()
}

// Hash feeds the group's whole state to fn in a fixed order.
func (g *Group) Hash(fn func([]byte)) {
	fn(record.AppendGroup(nil, &g.Group))
	for _, q := range g.Queues() {
		fn(place{g.Number, q}.key())
		fn(g.queues[q].encode())
	}
}
