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
		if o.State == Cancelled {
			return r, AlreadyCancelled, nil
		}
	}
	// A due of 0 stands for one by its own stamp. Before the first delivery it
	// would stand above the popped key.
	if r.Due == 0 || !t.above(r.Key(), added) {
		return r, NotWaiting, nil
	}
	return r, Done, nil
}

// Outcome tells whether the reference was moved or cancelled.
func (t *Timeline) Outcome(r record.Ref) (Outcome, bool, error) { return t.outcomes.get(nameOf(r)) }

// above says that the reference with key k, filed by a command at position
// added, has not been popped.
func (t *Timeline) above(k record.Key, added record.ID) bool {
	if k.Compare(t.popped) <= 0 {
		return false
	}
	for _, r := range t.rebases {
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
