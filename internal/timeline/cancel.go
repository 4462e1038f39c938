package timeline

import (
	"fmt"

	"github.com/duemq/duemq/internal/record"
)

// A Verdict is the answer to a cancel or a reschedule.
type Verdict uint8

// The verdicts.
const (
	Done             Verdict = iota + 1 // it waited, and it was done
	AlreadyCancelled                    // it was cancelled before
	NotWaiting                          // it was delivered, or never waited
)

// Locate finds how a reference waits now, if it was moved, and what is known
// of it. r carries the due and the level that the message was sent with, a due
// of 0 if it was due by its own stamp and so did not wait, unless it joined a
// backlog.
// Several readers may ask at once while nobody writes.
func (t *Timeline) Locate(r record.Ref) (record.Ref, Verdict, error) {
	added := r.ID
	o, ok, err := t.outcomes.get(nameOf(r))
	if err != nil {
		return r, 0, fmt.Errorf("outcome of %v: %w", r.ID, err)
	}
	if ok {
		r.Due, added = o.Due, o.At
		if o.State == Delivered || o.State == Cancelled && r.ID < t.kept {
			return r, NotWaiting, nil // the second may have been forgotten
		}
		if o.State == Cancelled {
			return r, AlreadyCancelled, nil
		}
	}
	// A due of 0 stands for one by its own stamp. Before the first delivery it
	// would stand above the popped key.
	if r.Due == 0 || !t.above(r.Key(), added) {
		return r, NotWaiting, nil
	}
	if !ok && r.ID < t.kept {
		there, err := t.exists(r.Key())
		if err != nil || !there {
			return r, NotWaiting, err
		}
	}
	return r, Done, nil
}

// Keep says that the log before a position has been given up: outcomes of what
// was sent before are remembered only for what still waits.
func (t *Timeline) Keep(from record.ID) { t.kept = from }

// exists looks whether a reference that was never moved is there at all. It
// decides for what was sent before the part of the log that is kept, whose
// cancels are forgotten.
func (t *Timeline) exists(k record.Key) (bool, error) {
	for _, g := range []*generation{t.frozen, t.live} {
		if g != nil && g.oldest < t.kept && g.holds(k) {
			return g.alive(t, k), nil
		}
	}
	if k.Compare(t.floor) <= 0 {
		return false, nil
	}
	_, ok, err := t.src.Get(nil, SpaceRefs, appendRefKey(nil, k))
	if err != nil {
		return false, fmt.Errorf("reference of %v: %w", k.ID, err)
	}
	return ok && t.stored.owner.alive(t, k), nil
}

// Remove takes a reference away that waits, as its key says, and remembers
// nothing of it: the caller knows whether it waits.
func (t *Timeline) Remove(r record.Ref) { t.drop(r) }

// Outcome tells whether the reference was moved or cancelled.
func (t *Timeline) Outcome(r record.Ref) (Outcome, bool, error) { return t.outcomes.get(nameOf(r)) }

// above says that the reference with key k, filed by a command at position
// added, has not been popped.
func (t *Timeline) above(k record.Key, added record.ID) bool {
	return above(k, added, t.popped, t.rebases)
}

func above(k record.Key, added record.ID, popped record.Key, rebases []rebase) bool {
	if k.Compare(popped) <= 0 {
		return false
	}
	for _, r := range rebases {
		if added < r.position && k.Compare(r.floor) <= 0 {
			return false
		}
	}
	return true
}

// Cancel takes the reference away if it waits, and answers how it waited.
// While it is overdue but not yet delivered, cancel wins. The proposer has made
// sure that such a message exists.
func (t *Timeline) Cancel(r record.Ref, stamp int64, at record.ID) (record.Ref, Verdict, error) {
	r, v, err := t.Locate(r)
	if v == Done {
		t.drop(r)
		t.outcomes.set(nameOf(r), Outcome{State: Cancelled, Due: r.Due, At: at, Stamp: stamp})
	}
	return r, v, err
}

func (t *Timeline) drop(r record.Ref) {
	t.live.kill(r.Key())
	t.waiting--
	t.levels[r.Level].Waiting--
}

// Reschedule gives a waiting reference another due, and answers how it waits
// then. It goes on counting under the level that it was sent with, so that all
// copies of a reference are equal, wherever a cut has put them.
func (t *Timeline) Reschedule(r record.Ref, due, stamp int64, at record.ID) (record.Ref, Verdict, error) {
	r, v, err := t.Locate(r)
	if v != Done {
		return r, v, err
	}
	t.drop(r)
	r.Due = due
	r = t.lift(r, stamp)
	t.outcomes.set(nameOf(r), Outcome{State: Moved, Due: r.Due, At: at})
	t.file(r)
	return r, Done, nil
}
