package group

import (
	"cmp"
	"slices"

	"github.com/duemq/duemq/internal/record"
)

// A Try is an unfinished offset that was delivered more than once, or was given
// back.
type Try struct {
	Offset  record.Offset
	Attempt uint32 // how often it was delivered
	Due     int64  // Unix ms: not to be delivered again before; 0 at once
}

// Lease notes that offsets are handed to consumers. An attempt never falls;
// what is finished, at or beyond limit (the queue's next offset) or beyond the
// window of MaxInflight is passed over.
func (p *Progress) Lease(runs []record.LeaseRun, limit record.Offset) {
	end := p.end(limit)
	f := filing{p: p}
	for _, r := range runs {
		from, to := max(r.From, p.Base), min(r.To, end)
		if from >= to {
			continue
		}
		if r.Attempt <= 1 {
			p.Leased = max(p.Leased, to)
			continue
		}
		for o := from; o < to; o++ {
			if !p.Finished(o) && f.attempts(o) < r.Attempt {
				f.put(Try{Offset: o, Attempt: r.Attempt})
			}
		}
	}
	f.merge()
}

// Release notes that offsets were given back and when they may be delivered
// again. An entry that names an older attempt than is known comes too late and
// changes nothing; what is finished or beyond limit or the window is passed
// over.
func (p *Progress) Release(entries []record.Released, limit record.Offset) {
	end := p.end(limit)
	f := filing{p: p}
	for _, e := range entries {
		if e.Offset < end && !p.Finished(e.Offset) && f.attempts(e.Offset) <= e.Attempt {
			f.put(Try(e))
		}
	}
	f.merge()
}

// Attempts is how often an offset was delivered; 0 once it is finished.
func (p *Progress) Attempts(o record.Offset) uint32 {
	if p.Finished(o) {
		return 0
	}
	return p.attempts(o)
}

// Tries gives the unfinished offsets that were delivered more than once or were
// given back, in order. The slice is the caller's.
func (p *Progress) Tries() []Try { return slices.Clone(p.tries) }

func (p *Progress) attempts(o record.Offset) (n uint32) {
	if i := p.find(o); i < len(p.tries) && p.tries[i].Offset == o {
		n = p.tries[i].Attempt
	}
	if o < p.Leased {
		n = max(n, 1)
	}
	return n
}

// end is the offset from which on nothing can have been leased.
func (p *Progress) end(limit record.Offset) record.Offset {
	if limit <= p.Base {
		return p.Base
	}
	return p.Base + min(limit-p.Base, MaxInflight)
}

// find is the index of the first try at or behind o.
func (p *Progress) find(o record.Offset) int {
	i, _ := slices.BinarySearchFunc(p.tries, o, func(t Try, o record.Offset) int {
		return cmp.Compare(t.Offset, o)
	})
	return i
}

// dropTries forgets the tries of what was finished between two offsets.
func (p *Progress) dropTries(low, high record.Offset) {
	i, j := p.find(low), p.find(high)
	kept := i
	for k := i; k < j; k++ {
		if !p.Finished(p.tries[k].Offset) {
			p.tries[kept] = p.tries[k]
			kept++
		}
	}
	if kept == 0 {
		p.tries = p.tries[j:] // the common case; append moves what is left now and then
		return
	}
	p.tries = slices.Delete(p.tries, kept, j)
}

// A filing puts tries in their places, those of one command together: each for
// itself would move all behind it.
type filing struct {
	p     *Progress
	fresh []Try // in order, not among the progress's yet
}

// attempts is how often an unfinished offset was delivered. Commands name their
// offsets in order; one that stands behind is found because what came before is
// put in its place first.
func (f *filing) attempts(o record.Offset) uint32 {
	if n := len(f.fresh); n > 0 && f.fresh[n-1].Offset >= o {
		f.merge()
	}
	return f.p.attempts(o)
}

// put takes a try over whose attempts were asked for just now.
func (f *filing) put(t Try) {
	if i := f.p.find(t.Offset); i < len(f.p.tries) && f.p.tries[i].Offset == t.Offset {
		f.p.tries[i] = t
		return
	}
	f.fresh = append(f.fresh, t)
}

// merge puts what is fresh in its place, from the end on so that nothing is
// moved twice.
func (f *filing) merge() {
	i, j := len(f.p.tries)-1, len(f.fresh)-1
	f.p.tries = append(f.p.tries, f.fresh...)
	all := f.p.tries
	for k := len(all) - 1; j >= 0 && i >= 0; k-- {
		if all[i].Offset > f.fresh[j].Offset {
			all[k] = all[i]
			i--
		} else {
			all[k] = f.fresh[j]
			j--
		}
	}
	copy(all, f.fresh[:j+1])
	f.fresh = f.fresh[:0]
}
