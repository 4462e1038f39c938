package timeline

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// A Frozen is the timeline's part of a cut: a generation that takes no more
// references and the marks and outcomes that go with it. [Frozen.Write] may run
// beside the timeline, which goes on delivering from it.
type Frozen struct {
	gen       *generation
	popped    record.Key
	floor     record.Key
	outcomes  map[name]Outcome
	forgotten map[name]struct{} // outcomes that nobody will ask for again
	rebases   []rebase
	state     []byte
}

// Freeze begins a cut: everything added so far goes into the Frozen, new
// references into a new generation. There is one cut at a time. stamp is the
// last batch's.
func (t *Timeline) Freeze(stamp int64) *Frozen {
	t.rebases = slices.DeleteFunc(t.rebases, func(r rebase) bool { return r.floor.Compare(t.popped) <= 0 })
	f := &Frozen{gen: t.live, popped: t.popped, floor: t.floor, outcomes: t.outcomes.live, rebases: slices.Clone(t.rebases), state: t.encodeState()}
	t.frozen, t.floors = t.live, record.Key{}
	t.live = newGeneration(max(stamp, t.popped.Due))
	t.frozen.newer = t.live
	t.outcomes.frozen, t.outcomes.live = t.outcomes.live, make(map[name]Outcome)
	return f
}

// State is the timeline's small state as of the freeze, for [Restore].
func (f *Frozen) State() []byte { return f.state }

// ForgetFate has the cut delete what is remembered of a reference, which nobody
// will ask for again: its message is gone from the log. Before Write.
func (f *Frozen) ForgetFate(r record.Ref) {
	if f.forgotten == nil {
		f.forgotten = make(map[name]struct{})
	}
	f.forgotten[nameOf(r)] = struct{}{}
}

// Excise removes from the index what had been delivered by the freeze. The cut
// is durable, so that this is mere garbage: readers begin behind it.
func (f *Frozen) Excise(x *index.Index) error {
	return x.Excise(SpaceRefs, nil, appendRefKey(nil, f.popped))
}

// Write adds the generation's references and outcomes to the cut, in order.
func (f *Frozen) Write(c *index.Cut) error {
	if f.floor.Compare(f.popped) > 0 {
		// A rebase: delivered references above the head are still in the index.
		// The tombstone does not reach the references of its own table.
		if err := c.DeleteRange(SpaceRefs, nil, append(appendRefKey(nil, f.floor), 0)); err != nil {
			return fmt.Errorf("cut references: %w", err)
		}
	}
	if err := f.writeRefs(c); err != nil {
		return fmt.Errorf("cut references: %w", err)
	}
	if err := f.writeOutcomes(c); err != nil {
		return fmt.Errorf("cut outcomes: %w", err)
	}
	return nil
}

// writeRefs merges the FIFOs, the any-time references sorted, and the marks.
func (f *Frozen) writeRefs(c *index.Cut) error {
	dead := f.deadKeys()
	m := newMerge(f.gen, f.popped)
	var key, value []byte
	last := f.popped
	for r := m.next(); r != nil; r = m.next() {
		k := r.Key()
		if k.Compare(last) <= 0 {
			continue // a second copy of a reference that was moved away and back
		}
		last = k
		for len(dead) > 0 && dead[0].Compare(k) < 0 {
			if err := c.Delete(SpaceRefs, appendRefKey(key[:0], dead[0])); err != nil {
				return err
			}
			dead = dead[1:]
		}
		if len(dead) > 0 && dead[0] == k {
			continue // deleted when its turn comes
		}
		key, value = appendRefKey(key[:0], k), appendRefValue(value[:0], r)
		if err := c.Set(SpaceRefs, key, value); err != nil {
			return err
		}
	}
	for _, k := range dead {
		if err := c.Delete(SpaceRefs, appendRefKey(key[:0], k)); err != nil {
			return err
		}
	}
	return nil
}

// deadKeys are the marks above the head, in order. Each becomes a deletion,
// also where the reference was in memory only: an older cut may hold a copy.
func (f *Frozen) deadKeys() []record.Key {
	dead := make([]record.Key, 0, len(f.gen.dead))
	for k := range f.gen.dead {
		if k.Compare(f.popped) > 0 {
			dead = append(dead, k)
		}
	}
	slices.SortFunc(dead, record.Key.Compare)
	return dead
}

func (f *Frozen) writeOutcomes(c *index.Cut) error {
	names := make([]name, 0, len(f.outcomes)+len(f.forgotten))
	for n := range f.outcomes {
		if _, gone := f.forgotten[n]; !gone {
			names = append(names, n)
		}
	}
	for n := range f.forgotten {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b name) int {
		return a.compare(b)
	})
	var value []byte
	for _, n := range names {
		key := n.bytes()
		if _, gone := f.forgotten[n]; gone {
			if err := c.Delete(SpaceOutcomes, key[:]); err != nil {
				return err
			}
			continue
		}
		value = appendOutcome(value[:0], f.outcomes[n])
		if err := c.Set(SpaceOutcomes, key[:], value); err != nil {
			return err
		}
	}
	return nil
}

// Open positions an iterator for [Timeline.Install] once the cut is durable.
// It may run beside the timeline.
func (f *Frozen) Open(src Source) (*index.Iter, error) { return openStored(src, f.popped) }

// Install ends a cut that is durable: the index takes over from the frozen
// generation. It returns the old iterator, which the caller closes.
func (t *Timeline) Install(f *Frozen, it *index.Iter) *index.Iter {
	t.floor, t.floors = t.floors, record.Key{}
	t.frozen, t.outcomes.frozen = nil, nil
	return t.stored.swap(it, higher(t.popped, t.floor), f.gen.newer)
}

// Abandon ends a cut that failed: what was frozen goes back to being live, so
// that the next cut writes it.
func (t *Timeline) Abandon(f *Frozen) {
	newer, kept := t.live, t.live.rest(t)
	g := f.gen
	g.newer = nil
	for k := range newer.dead {
		g.kill(k)
	}
	newer.newer = g // for views that hold what it had
	t.frozen, t.live, t.floors = nil, g, record.Key{}
	g.refile(t, newer.now)
	for _, r := range kept {
		g.revive(r.Key())
		g.add(r)
	}
	maps.Copy(t.outcomes.frozen, t.outcomes.live)
	t.outcomes.live, t.outcomes.frozen = t.outcomes.frozen, nil
}

// merge yields a generation's references in key order.
type merge struct {
	lanes []lane
}

type lane struct {
	slab  *slab
	order []uint32 // nil: as it stands
	next  int
	end   int
}

func (l *lane) ref() *record.Ref {
	if l.order != nil {
		return l.slab.at(int(l.order[l.next]))
	}
	return l.slab.at(l.next)
}

func newMerge(g *generation, above record.Key) *merge {
	m := &merge{}
	order := g.sorted(above)
	m.add(lane{slab: &g.slab, order: order, end: len(order)})
	for i := range g.levels {
		l := lane{slab: &g.levels[i].slab, end: g.levels[i].n}
		for l.next < l.end && l.ref().Key().Compare(above) <= 0 {
			l.next++
		}
		m.add(l)
	}
	return m
}

// sorted is the numbers of the any-time references above a key, in key order.
// The dues are brought together first: comparing them in place would miss the
// cache twice a comparison.
func (g *generation) sorted(above record.Key) []uint32 {
	type item struct {
		due int64
		ref uint32
	}
	items := make([]item, 0, g.slab.n)
	for i := range g.slab.n {
		if r := g.slab.at(i); r.Key().Compare(above) > 0 {
			items = append(items, item{r.Due, uint32(i)})
		}
	}
	slices.SortFunc(items, func(a, b item) int {
		if a.due != b.due {
			return cmp.Compare(a.due, b.due)
		}
		return g.slab.at(int(a.ref)).Key().Compare(g.slab.at(int(b.ref)).Key())
	})
	order := make([]uint32, len(items))
	for i := range items {
		order[i] = items[i].ref
	}
	return order
}

func (m *merge) add(l lane) {
	if l.next < l.end {
		m.lanes = append(m.lanes, l)
	}
}

func (m *merge) next() *record.Ref {
	best := -1
	var key record.Key
	for i := range m.lanes {
		if k := m.lanes[i].ref().Key(); best < 0 || k.Compare(key) < 0 {
			best, key = i, k
		}
	}
	if best < 0 {
		return nil
	}
	l := &m.lanes[best]
	r := l.ref()
	l.next++
	if l.next == l.end {
		m.lanes = slices.Delete(m.lanes, best, best+1)
	}
	return r
}

// stateVersion is the version of the timeline's small state in a cut.
const stateVersion = 1

func (t *Timeline) encodeState() []byte {
	dst := []byte{stateVersion}
	dst = appendRefKey(dst, t.popped)
	dst = appendRefKey(dst, t.floor)
	dst = binary.AppendVarint(dst, t.waiting)
	for _, l := range t.levels {
		dst = binary.AppendUvarint(dst, l.Total)
		dst = binary.AppendUvarint(dst, l.Delivered)
		dst = binary.AppendVarint(dst, l.Waiting)
	}
	dst = binary.AppendUvarint(dst, uint64(len(t.rebases)))
	for _, r := range t.rebases {
		dst = appendRefKey(dst, r.floor)
		dst = binary.BigEndian.AppendUint64(dst, uint64(r.position))
	}
	return dst
}
