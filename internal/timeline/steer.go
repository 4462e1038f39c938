package timeline

import (
	"fmt"
	"slices"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// MarkMoved remembers that a reference waits under another due than before,
// though it is not filed here: it was due, and something outside holds it back
// (a paused topic). from is the due before, at the position of the command.
func (t *Timeline) MarkMoved(r record.Ref, from int64, at record.ID) {
	old := r
	old.Due = from
	t.live.kill(old.Key())
	t.outcomes.set(nameOf(r), Outcome{State: Moved, Due: r.Due, At: at})
}

// MarkCancelled remembers that a reference which was held back outside was
// cancelled.
func (t *Timeline) MarkCancelled(r record.Ref, stamp int64, at record.ID) {
	t.live.kill(r.Key()) // a copy that was delivered may stand above the popped key, after a rebase
	t.outcomes.set(nameOf(r), Outcome{State: Cancelled, Due: r.Due, At: at, Stamp: stamp})
}

// MarkDelivered remembers that a reference which was held back outside has been
// delivered, if its key does not tell.
func (t *Timeline) MarkDelivered(r record.Ref, at record.ID) {
	if k := r.Key(); k.Compare(t.popped) > 0 {
		t.live.kill(k)
		t.outcomes.set(nameOf(r), Outcome{State: Delivered, Due: r.Due, At: at})
	}
}

// Return files a reference that was held back outside under a due of its own
// again, and answers how it waits.
func (t *Timeline) Return(r record.Ref, due, stamp int64, at record.ID) record.Ref {
	t.live.kill(r.Key())
	r.Due = due
	r = t.lift(r, stamp)
	t.outcomes.set(nameOf(r), Outcome{State: Moved, Due: r.Due, At: at})
	t.file(r)
	return r
}

// A Head is how far delivery had come at some command.
type Head struct {
	at      record.ID
	popped  record.Key
	rebases []rebase
}

// Head is how far delivery has come. at is the position of the command that is
// being applied.
func (t *Timeline) Head(at record.ID) Head {
	return Head{at: at, popped: t.popped, rebases: slices.Clone(t.rebases)}
}

// Waited says whether a reference waited in the timeline at the head, or has
// since, and for which due it waits or left; o is its outcome now, if it has
// one. It may be asked of references that were sent before the head. What was
// cancelled since is taken not to have waited; of what was held back outside at
// the head it knows only if it was moved or lifted since.
func (h *Head) Waited(r record.Ref, o Outcome, ok bool) (due int64, waited bool) {
	if !ok {
		return r.Due, r.Due != 0 && above(r.Key(), r.ID, h.popped, h.rebases)
	}
	switch {
	case o.State == Cancelled:
		return 0, false
	case o.At > h.at: // only what waited can be moved
		return o.Due, true
	case o.State == Delivered:
		return 0, false
	}
	r.Due = o.Due
	return r.Due, above(r.Key(), o.At, h.popped, h.rebases)
}

// Judge says whether a reference waited when the cut was taken, and for which
// due; o is its outcome then, if it had one. r is the reference as it was sent,
// with a due of 0 if it did not wait by then. A due of 0 is of one that was
// cancelled or never waited.
func (f *Frozen) Judge(r record.Ref, o Outcome, ok bool) (due int64, waits bool) {
	added := r.ID
	if ok {
		if o.State != Moved {
			return 0, false
		}
		r.Due, added = o.Due, o.At
	}
	return r.Due, r.Due != 0 && above(r.Key(), added, f.popped, f.rebases)
}

// A Fate is what is remembered of a reference at a cut.
type Fate struct {
	Ref record.Ref // ID, Kind and Queue are set
	Outcome
}

// Fates calls fn for the outcomes, as of the cut, of references with ids from
// one up to another, in the order of ids. It may run beside the timeline.
func (f *Frozen) Fates(src Source, from, to record.ID, fn func(Fate) error) error {
	fresh := make([]name, 0)
	for n := range f.outcomes {
		if n.id >= from && n.id < to {
			fresh = append(fresh, n)
		}
	}
	slices.SortFunc(fresh, name.compare)
	give := func(n name, o Outcome) error {
		return fn(Fate{Ref: record.Ref{ID: n.id, Kind: n.kind, Queue: n.queue}, Outcome: o})
	}
	lower, upper := name{id: from}.bytes(), name{id: to}.bytes()
	it, err := src.NewIter(SpaceOutcomes, lower[:], upper[:])
	if err != nil {
		return fmt.Errorf("read outcomes: %w", err)
	}
	err = mergeFates(it, fresh, func(n name) error { return give(n, f.outcomes[n]) }, give)
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	return err
}

// mergeFates merges what the iterator yields with names in order, which win.
func mergeFates(it *index.Iter, fresh []name, newer func(name) error, older func(name, Outcome) error) error {
	for it.First(); it.Valid(); it.Next() {
		n, err := decodeName(it.Key())
		if err != nil {
			return err
		}
		for len(fresh) > 0 && fresh[0].compare(n) < 0 {
			if err := newer(fresh[0]); err != nil {
				return err
			}
			fresh = fresh[1:]
		}
		if len(fresh) > 0 && fresh[0] == n {
			continue // its turn comes
		}
		o, err := decodeOutcome(it.Value())
		if err != nil {
			return err
		}
		if err := older(n, o); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return fmt.Errorf("read outcomes: %w", err)
	}
	for _, n := range fresh {
		if err := newer(n); err != nil {
			return err
		}
	}
	return nil
}
