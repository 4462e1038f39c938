package timeline

import (
	"math"
	"slices"

	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/wheel"
)

// A generation is what was added since a cut: the levels' FIFOs, and a slab of
// any-time references whose numbers sit in the wheel. While a frozen
// generation is written to the index it still delivers; the writer reads only
// the slabs, which do not change any more.
type generation struct {
	levels [Levels + 1]level
	slab   slab
	wheel  *wheel.Hierarchical[uint32]
	now    int64 // the wheel's time
	ready  ready // fired by the wheel, in key order, not yet handed out
	late   late  // added at or before the wheel's time, while there is a backlog

	// dead marks keys that were cancelled or moved away since this generation
	// began. A mark holds for this generation and everything older; it is not
	// removed when its reference is passed over, since the cut needs it.
	dead   map[record.Key]struct{}
	oldest record.ID   // smallest id that was added for the first time
	newer  *generation // the one that came after this was frozen, whose marks hold here too
}

func newGeneration(stamp int64) *generation {
	g := &generation{dead: make(map[record.Key]struct{}), oldest: math.MaxUint64}
	g.empty(stamp)
	return g
}

// empty forgets all references; marks stay.
func (g *generation) empty(stamp int64) {
	w, err := wheel.NewHierarchical[uint32](wheel.Config{Tick: 1}, stamp)
	if err != nil {
		panic(err) // the shape is a constant
	}
	g.wheel, g.now, g.slab = w, stamp, slab{}
	g.ready, g.late = ready{gen: g}, late{gen: g}
	for i := range g.levels {
		g.levels[i] = level{gen: g}
	}
}

// alive decides for a reference of this generation or of an older one.
func (g *generation) alive(t *Timeline, k record.Key) bool {
	if k.Compare(t.popped) <= 0 || (t.endings && t.ended(k.Queue)) {
		return false
	}
	for ; g != nil; g = g.newer {
		if len(g.dead) == 0 {
			continue
		}
		if _, dead := g.dead[k]; dead {
			return false
		}
	}
	return true
}

func (g *generation) kill(k record.Key)   { g.dead[k] = struct{}{} }
func (g *generation) revive(k record.Key) { delete(g.dead, k) }

// add files a reference. A second copy of one that was moved away and back is
// harmless: both have one key, and a key is popped once.
func (g *generation) add(r record.Ref) {
	if r.Level != 0 && g.levels[r.Level].fits(r.Key()) {
		g.levels[r.Level].push(r)
		return
	}
	i := g.slab.append(r)
	if r.Due <= g.now {
		g.late.push(i)
		return
	}
	g.wheel.Add(r.Due, i)
}

// turn moves the wheel on to stamp.
func (g *generation) turn(stamp int64) {
	if stamp <= g.now {
		return
	}
	g.now = stamp
	g.wheel.Advance(stamp, g.ready.fire)
	g.ready.settle()
}

func (g *generation) each(look func(source)) {
	for i := range g.levels {
		if l := &g.levels[i]; l.next < l.n {
			look(l)
		}
	}
	if g.ready.next < len(g.ready.refs) {
		look(&g.ready)
	}
	if len(g.late.refs) > 0 {
		look(&g.late)
	}
}

// wheelNext is the due of the first reference alive in the wheel.
func (g *generation) wheelNext(t *Timeline) (int64, bool) {
	return g.wheel.NextFunc(func(i uint32) bool { return g.alive(t, g.slab.at(int(i)).Key()) })
}

// refile files anew what has not been handed out, in a generation that begins
// at stamp, be it before its own time. What was handed out is forgotten, so that
// the popped key need not tell it from the rest.
func (g *generation) refile(t *Timeline, stamp int64) {
	kept := g.rest(t)
	g.empty(stamp)
	for _, r := range kept {
		g.add(r)
	}
}

// rest is what is alive and has not been handed out.
func (g *generation) rest(t *Timeline) (kept []record.Ref) {
	keep := func(r *record.Ref) {
		if g.alive(t, r.Key()) {
			kept = append(kept, *r)
		}
	}
	for i := range g.levels {
		for l, k := &g.levels[i], g.levels[i].next; k < l.n; k++ {
			keep(l.at(k))
		}
	}
	for _, i := range g.ready.refs[g.ready.next:] {
		keep(g.slab.at(int(i)))
	}
	for _, i := range g.late.refs {
		keep(g.slab.at(int(i)))
	}
	for _, i := range g.wheel.All() {
		keep(g.slab.at(int(i)))
	}
	return kept
}

// holds looks for a reference by its key. It reads everything that the
// generation ever held, which is only asked for ids that are long past.
func (g *generation) holds(k record.Key) bool {
	for i := range g.levels {
		if g.levels[i].holds(k) {
			return true
		}
	}
	return g.slab.holds(k)
}

// ready is what the wheel has fired, in key order.
type ready struct {
	gen      *generation
	refs     []uint32
	next     int
	unsorted bool
}

func (q *ready) key(i uint32) record.Key { return q.gen.slab.at(int(i)).Key() }

func (q *ready) fire(_ int64, i uint32) {
	if n := len(q.refs); n > q.next && q.key(q.refs[n-1]).Compare(q.key(i)) > 0 {
		q.unsorted = true
	}
	q.refs = append(q.refs, i)
}

// settle puts what was fired into key order. A slot of the wheel holds one
// millisecond in the order of adding, which is the order of ids unless
// messages were moved; so this seldom sorts.
func (q *ready) settle() {
	if q.unsorted {
		slices.SortFunc(q.refs[q.next:], func(a, b uint32) int { return q.key(a).Compare(q.key(b)) })
		q.unsorted = false
	}
}

func (q *ready) head(t *Timeline) *record.Ref {
	for q.next < len(q.refs) {
		r := q.gen.slab.at(int(q.refs[q.next]))
		if q.gen.alive(t, r.Key()) {
			return r
		}
		q.advance()
	}
	return nil
}

func (q *ready) advance() {
	q.next++
	if q.next == len(q.refs) {
		q.refs, q.next = q.refs[:0], 0
	}
}

// late is a binary heap of references that were due when they were added.
type late struct {
	gen  *generation
	refs []uint32
}

func (h *late) key(i int) record.Key { return h.gen.slab.at(int(h.refs[i])).Key() }

func (h *late) push(ref uint32) {
	h.refs = append(h.refs, ref)
	for i := len(h.refs) - 1; i > 0; {
		up := (i - 1) / 2
		if h.key(up).Compare(h.key(i)) <= 0 {
			return
		}
		h.refs[up], h.refs[i] = h.refs[i], h.refs[up]
		i = up
	}
}

func (h *late) head(t *Timeline) *record.Ref {
	for len(h.refs) > 0 {
		if r := h.gen.slab.at(int(h.refs[0])); h.gen.alive(t, r.Key()) {
			return r
		}
		h.advance()
	}
	return nil
}

func (h *late) advance() {
	last := len(h.refs) - 1
	h.refs[0] = h.refs[last]
	h.refs = h.refs[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			return
		}
		if down+1 < last && h.key(down+1).Compare(h.key(down)) < 0 {
			down++
		}
		if h.key(i).Compare(h.key(down)) <= 0 {
			return
		}
		h.refs[i], h.refs[down] = h.refs[down], h.refs[i]
		i = down
	}
}
