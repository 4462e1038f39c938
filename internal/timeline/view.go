package timeline

import (
	"fmt"
	"slices"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// A View is a stretch of what waits as it stood when the view was taken. Taking
// it needs the engine's lock for microseconds; reading it needs none, since
// slabs only grow and the iterator pins its tables.
type View struct {
	lanes []viewLane
	it    *index.Iter
	owner *generation // the oldest whose marks hold for what it reads in the index
}

type viewLane struct {
	chunks []*chunk
	from   int
	n      int
	gen    *generation
}

// Take makes a view. The caller holds at least a read lock on the state and
// closes the view.
func (t *Timeline) Take() (*View, error) {
	it, err := t.src.NewIter(SpaceRefs, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("view of what waits: %w", err)
	}
	v := &View{it: it, owner: t.stored.owner}
	for _, g := range []*generation{t.frozen, t.live} {
		if g == nil {
			continue
		}
		v.add(&g.slab, 0, g)
		for i := range g.levels {
			v.add(&g.levels[i].slab, g.levels[i].next, g)
		}
	}
	return v, nil
}

func (v *View) add(s *slab, from int, g *generation) {
	if from < s.n {
		v.lanes = append(v.lanes, viewLane{chunks: s.chunks, from: from, n: s.n, gen: g})
	}
}

// Close releases the view.
func (v *View) Close() error { return v.it.Close() }

// A Candidate is a reference that waited when the view was taken, unless
// [Timeline.Confirm] says otherwise.
type Candidate struct {
	record.Ref

	gen    *generation // whose marks, and those of newer ones, hold for it
	stored bool        // found in the index
}

// Page collects the first limit candidates with keys above after and dues
// below before that keep accepts, in key order. more says that there may be
// further ones behind the last.
func (v *View) Page(after record.Key, before int64, limit int, keep func(*record.Ref) bool) (page []Candidate, more bool, err error) {
	page = v.memory(after, before, limit, keep)
	full := len(page) == limit
	seekAfter(v.it, after)
	n := 0
	var last record.Key // the largest of a full page: its heap's top
	if full {
		last = page[0].Key()
	}
	for ; v.it.Valid() && n < limit; v.it.Next() {
		r, err := decodeRef(v.it.Key(), v.it.Value())
		if err != nil {
			return nil, false, err
		}
		if r.Due >= before || (full && r.Key().Compare(last) > 0) {
			break
		}
		if keep(&r) {
			page = append(page, Candidate{Ref: r, gen: v.owner, stored: true})
			n++
		}
	}
	if err := v.it.Error(); err != nil {
		return nil, false, fmt.Errorf("read waiting references: %w", err)
	}
	slices.SortStableFunc(page, func(a, b Candidate) int { return a.Key().Compare(b.Key()) })
	if len(page) >= limit {
		return page[:limit], true, nil
	}
	return page, false, nil
}

// memory finds the first limit matching references of the lanes with a heap
// whose top is the largest kept.
func (v *View) memory(after record.Key, before int64, limit int, keep func(*record.Ref) bool) []Candidate {
	var top topK
	top.limit = limit
	for _, l := range v.lanes {
		for i := l.from; i < l.n; i++ {
			r := &l.chunks[i>>chunkBits][i&(chunkLen-1)]
			if r.Due >= before || r.Key().Compare(after) <= 0 || !top.wants(r) || !keep(r) {
				continue
			}
			top.push(Candidate{Ref: *r, gen: l.gen})
		}
	}
	return top.heap
}

// Confirm keeps of a page what waits now, each once. The caller holds at least
// a read lock on the state.
func (t *Timeline) Confirm(page []Candidate) ([]record.Ref, error) {
	out := make([]record.Ref, 0, len(page))
	for i := range page {
		c := &page[i]
		k := c.Key()
		if k.Compare(t.floor) <= 0 && c.stored {
			continue
		}
		if !c.gen.alive(t, k) || (len(out) > 0 && out[len(out)-1].Key() == k) {
			continue
		}
		added, err := t.addedAt(c.Ref)
		if err != nil {
			return nil, err
		}
		if t.above(k, added) {
			out = append(out, c.Ref)
		}
	}
	return out, nil
}

// addedAt is the position of the command that filed the reference as it is.
func (t *Timeline) addedAt(r record.Ref) (record.ID, error) {
	if len(t.rebases) == 0 {
		return r.ID, nil // only asked for after a rebase
	}
	o, ok, err := t.outcomes.get(nameOf(r))
	if err != nil || !ok {
		return r.ID, err
	}
	return o.At, nil
}

// topK keeps the limit smallest candidates in a max-heap.
type topK struct {
	heap  []Candidate
	limit int
}

func (h *topK) wants(r *record.Ref) bool {
	return len(h.heap) < h.limit || r.Key().Compare(h.heap[0].Key()) < 0
}

func (h *topK) push(c Candidate) {
	if len(h.heap) < h.limit {
		h.heap = append(h.heap, c)
		for i := len(h.heap) - 1; i > 0; {
			up := (i - 1) / 2
			if h.heap[up].Key().Compare(h.heap[i].Key()) >= 0 {
				return
			}
			h.heap[up], h.heap[i] = h.heap[i], h.heap[up]
			i = up
		}
		return
	}
	h.heap[0] = c
	for i := 0; ; {
		down := 2*i + 1
		if down >= len(h.heap) {
			return
		}
		if down+1 < len(h.heap) && h.heap[down+1].Key().Compare(h.heap[down].Key()) > 0 {
			down++
		}
		if h.heap[i].Key().Compare(h.heap[down].Key()) >= 0 {
			return
		}
		h.heap[i], h.heap[down] = h.heap[down], h.heap[i]
		i = down
	}
}
