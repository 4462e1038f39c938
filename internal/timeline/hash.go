package timeline

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/duemq/duemq/internal/record"
)

// hashPage is how many references Hash reads at once.
const hashPage = 4096

// Hash writes everything that decides about what waits to w, in an order that
// does not depend on when cuts happened. The caller holds at least a read lock.
// held says of a reference that is not in the timeline whether something holds
// it back all the same.
func (t *Timeline) Hash(w io.Writer, held func(record.Ref) bool) error {
	fmt.Fprintf(w, "popped %v waiting %d levels %v\n", t.popped, t.waiting, t.levels)
	var n int64
	for at, more := t.popped, true; more; {
		v, err := t.Take()
		if err != nil {
			return err
		}
		var page []Candidate
		page, more, err = v.Page(at, math.MaxInt64, hashPage, func(*record.Ref) bool { return true })
		if cerr := v.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
		refs, err := t.Confirm(page)
		if err != nil {
			return err
		}
		for i := range refs {
			fmt.Fprintf(w, "%v\n", refs[i])
		}
		n += int64(len(refs))
		if len(page) > 0 {
			at = page[len(page)-1].Key()
		}
	}
	if n != t.waiting {
		return fmt.Errorf("%w: %d references wait, %d are counted", record.ErrCorrupt, n, t.waiting)
	}
	return t.hashOutcomes(w, held)
}

// hashOutcomes leaves out what was sent before the part of the log that is kept
// and does not wait: it may be forgotten at any time.
func (t *Timeline) hashOutcomes(w io.Writer, held func(record.Ref) bool) error {
	all, err := t.outcomes.all()
	if err != nil {
		return err
	}
	names := slices.SortedFunc(maps.Keys(all), name.compare)
	for _, n := range names {
		o := all[n]
		r := record.Ref{Due: o.Due, ID: n.id, Kind: n.kind, Queue: n.queue}
		ended := t.endings && t.ended(n.queue)
		waits := o.State == Moved && !ended && (t.above(r.Key(), o.At) || held(r))
		if n.id < t.kept && !waits {
			continue
		}
		fmt.Fprintf(w, "%v %v\n", n, o)
	}
	return nil
}

// all reads every outcome.
func (o *outcomes) all() (map[name]Outcome, error) {
	all := make(map[name]Outcome)
	it, err := o.src.NewIter(SpaceOutcomes, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("read outcomes: %w", err)
	}
	for it.First(); it.Valid() && err == nil; it.Next() {
		var n name
		if n, err = decodeName(it.Key()); err == nil {
			all[n], err = decodeOutcome(it.Value())
		}
	}
	if err == nil {
		err = it.Error()
	}
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	for _, layer := range []map[name]Outcome{o.frozen, o.live} {
		maps.Copy(all, layer)
	}
	return all, err
}
