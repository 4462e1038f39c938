package dedupe

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// lookRows is how many rows of [SpaceFiled] a cut looks at, or twice what it
// adds if that is more, so that sweeping never falls behind putting.
const lookRows = 10_000

// askAgain is how many ms later a message is asked for again that is overdue
// and still waits: in a paused topic, or in a backlog.
const askAgain = 60_000

// A Frozen is the set's part of a cut. [Frozen.Write] may run beside the set.
type Frozen struct {
	src     Source
	entries map[record.Hash]Entry
	plan    plan // made by the cut before
	next    plan
}

// A plan is what one cut found in the index and the next one does about it.
//
// Between the freeze and the moment at which a message is found not to wait any
// more, commands may have found it waiting, and must find it again when they are
// replayed from that cut. So what is over leaves with the next cut, whose replay
// begins later.
type plan struct {
	changes []change
	last    []byte // of the rows of [SpaceFiled] that were looked at
}

// Freeze begins a cut: the entries so far go into the Frozen. There is one cut
// at a time.
func (s *Set) Freeze() *Frozen {
	f := &Frozen{src: s.src, entries: s.live, plan: s.plan}
	s.frozen, s.live, s.plan = s.live, make(map[record.Hash]Entry), plan{}
	return f
}

// Install ends a cut that is durable: the index takes over.
func (s *Set) Install(f *Frozen) { s.frozen, s.plan = nil, f.next }

// Abandon ends a cut that failed: the entries go back, below newer ones.
func (s *Set) Abandon(f *Frozen) {
	maps.Copy(f.entries, s.live)
	s.live, s.frozen, s.plan = f.entries, nil, f.plan
}

// A change is one hash's part of a cut.
type change struct {
	hash record.Hash
	stored
	gone bool
}

func changesOf(entries map[record.Hash]Entry) []change {
	changes := make([]change, 0, len(entries))
	for h, e := range entries {
		changes = append(changes, change{hash: h, stored: stored{e, max(e.Until, e.Ref.Due)}})
	}
	return changes
}

func sortChanges(changes []change) {
	slices.SortStableFunc(changes, func(a, b change) int { return compareKey(a.hash, b.hash[:]) })
}

// Write adds the entries to the cut, removes some of those that the cut before
// found to be over, and looks for more. stamp is the highest stamp up to the cut.
// waits is asked beside the set and answers as of the cut or of any later moment.
func (f *Frozen) Write(c *index.Cut, stamp int64, waits Waits) error {
	stamp = max(stamp, 0)
	if err := f.write(c, stamp); err != nil {
		return fmt.Errorf("cut deduplication: %w", err)
	}
	var err error
	if f.next, err = f.look(stamp, waits); err != nil {
		return fmt.Errorf("sweep deduplication: %w", err)
	}
	return nil
}

func (f *Frozen) write(c *index.Cut, stamp int64) error {
	changes := changesOf(f.entries)
	for _, ch := range f.plan.changes {
		if _, again := f.entries[ch.hash]; !again {
			changes = append(changes, ch)
		}
	}
	for i := range changes {
		// Behind all rows that this cut looks at, which the next one removes.
		changes[i].filed = max(changes[i].filed, stamp+1)
	}
	sortChanges(changes)
	if err := writeHashes(c, changes); err != nil {
		return err
	}
	if f.plan.last != nil {
		// Those of them that are filed again are spared: a range does not remove
		// keys of its own cut.
		if err := c.DeleteRange(SpaceFiled, nil, behind(f.plan.last)); err != nil {
			return err
		}
	}
	return writeFiled(c, changes)
}

// look makes the plan for the next cut. A row whose hash was put again since it
// was written is stale.
func (f *Frozen) look(stamp int64, waits Waits) (plan, error) {
	rows, last, err := f.rows(stamp)
	if err != nil {
		return plan{}, err
	}
	it, err := f.src.NewIter(SpaceHashes, nil, nil)
	if err != nil {
		return plan{}, err
	}
	defer func() { _ = it.Close() }() // its error is asked for below
	p := plan{last: last}
	for _, r := range rows {
		if !it.SeekGE(r.hash[:]) || compareKey(r.hash, it.Key()) != 0 {
			continue
		}
		st, err := decodeStored(it.Value())
		if err != nil {
			return plan{}, err
		}
		if st.filed != r.at {
			continue
		}
		ch, err := settle(r.hash, st, stamp, waits)
		if err != nil {
			return plan{}, err
		}
		p.changes = append(p.changes, ch)
	}
	return p, it.Error()
}

type row struct {
	at   int64
	hash record.Hash
}

// rows reads the first rows up to stamp, behind those of the plan that this cut
// carries out, and gives the key of the last one. They come in the order of the
// hashes, so that each block of entries is read once.
func (f *Frozen) rows(stamp int64) (rows []row, last []byte, err error) {
	var from []byte
	if f.plan.last != nil {
		from = behind(f.plan.last)
	}
	it, err := f.src.NewIter(SpaceFiled, from, appendFiled(nil, stamp+1, record.Hash{}))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = it.Close() }() // its error is asked for below
	limit := max(lookRows, 2*len(f.entries))
	for ok := it.First(); ok && len(rows) < limit; ok = it.Next() {
		at, h, err := decodeFiled(it.Key())
		if err != nil {
			return nil, nil, err
		}
		rows, last = append(rows, row{at, h}), append(last[:0], it.Key()...)
	}
	rows = slices.DeleteFunc(rows, func(r row) bool {
		_, again := f.entries[r.hash]
		return again
	})
	slices.SortFunc(rows, func(a, b row) int { return compareKey(a.hash, b.hash[:]) })
	return rows, last, it.Error()
}

// behind gives the key that follows a key.
func behind(key []byte) []byte { return append(slices.Clone(key), 0) }

// settle decides what becomes of an entry whose time has come: it is filed for
// later or goes.
func settle(h record.Hash, st stored, stamp int64, waits Waits) (change, error) {
	ok, due, err := waits(st.entry)
	if err != nil {
		return change{}, fmt.Errorf("message %v: %w", st.entry.ID, err)
	}
	st.filed = max(due, st.entry.Until)
	if st.filed <= stamp {
		st.filed = stamp + askAgain
	}
	return change{hash: h, stored: st, gone: !ok}, nil
}

func writeHashes(c *index.Cut, changes []change) error {
	var value []byte
	for i := range changes {
		ch := &changes[i]
		if ch.gone {
			if err := c.Delete(SpaceHashes, ch.hash[:]); err != nil {
				return err
			}
			continue
		}
		value = appendStored(value[:0], ch.stored)
		if err := c.Set(SpaceHashes, ch.hash[:], value); err != nil {
			return err
		}
	}
	return nil
}

func writeFiled(c *index.Cut, changes []change) error {
	changes = slices.DeleteFunc(changes, func(ch change) bool { return ch.gone })
	slices.SortFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.filed, b.filed), bytes.Compare(a.hash[:], b.hash[:]))
	})
	var key []byte
	for i := range changes {
		key = appendFiled(key[:0], changes[i].filed, changes[i].hash)
		if err := c.Set(SpaceFiled, key, nil); err != nil {
			return err
		}
	}
	return nil
}
