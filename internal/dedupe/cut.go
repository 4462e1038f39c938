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

// sweepRows is how many rows of [SpaceFiled] a cut looks at, or twice what it
// adds if that is more, so that sweeping never falls behind putting.
const sweepRows = 10_000

// askAgain is how many ms later a message is asked for again that is overdue
// and still waits: in a paused topic, or in a backlog.
const askAgain = 60_000

// A Frozen is the set's part of a cut. [Frozen.Write] may run beside the set.
type Frozen struct {
	src     Source
	entries map[record.Hash]Entry
	rows    int
}

// Freeze begins a cut: the entries so far go into the Frozen. There is one cut
// at a time.
func (s *Set) Freeze() *Frozen {
	f := &Frozen{src: s.src, entries: s.live, rows: max(sweepRows, 2*len(s.live))}
	s.frozen, s.live = s.live, make(map[record.Hash]Entry)
	return f
}

// Install ends a cut that is durable: the index takes over.
func (s *Set) Install(*Frozen) { s.frozen = nil }

// Abandon ends a cut that failed: the entries go back, below newer ones.
func (s *Set) Abandon(f *Frozen) {
	maps.Copy(f.entries, s.live)
	s.live, s.frozen = f.entries, nil
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

// Write adds the entries to the cut and sweeps some that do not count at stamp,
// the highest up to the cut. waits answers as of the cut as well: what left the
// timeline after the freeze still waits, because commands between the freeze and
// that moment found it waiting, and must find it again when they are replayed.
func (f *Frozen) Write(c *index.Cut, stamp int64, waits Waits) error {
	if err := f.write(c, max(stamp, 0), waits); err != nil {
		return fmt.Errorf("cut deduplication: %w", err)
	}
	return nil
}

func (f *Frozen) write(c *index.Cut, stamp int64, waits Waits) error {
	changes := changesOf(f.entries)
	swept, last, err := f.sweep(stamp)
	if err != nil {
		return err
	}
	changes = append(changes, swept...)
	for i := range changes {
		if err := changes[i].settle(stamp, waits); err != nil {
			return err
		}
	}
	sortChanges(changes)
	if err := writeHashes(c, changes); err != nil {
		return err
	}
	if last != nil {
		// All rows up to the last one have been looked at. Those that are filed
		// again come later, and a range spares the keys of its own cut.
		if err := c.DeleteRange(SpaceFiled, nil, append(last, 0)); err != nil {
			return err
		}
	}
	return writeFiled(c, changes)
}

// sweep reads the rows whose time has come by stamp, and gives the entries that
// are filed there and the key of the last row. A row whose hash was put again
// since then, or is by this cut, is stale.
func (f *Frozen) sweep(stamp int64) (found []change, last []byte, err error) {
	it, err := f.src.NewIter(SpaceFiled, nil, appendFiled(nil, stamp+1, record.Hash{}))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = it.Close() }() // its error is asked for below
	rows := 0
	for ok := it.First(); ok && rows < f.rows; ok = it.Next() {
		rows++
		at, h, err := decodeFiled(it.Key())
		if err != nil {
			return nil, nil, err
		}
		last = append(last[:0], it.Key()...)
		if _, again := f.entries[h]; again {
			continue
		}
		st, ok, err := read(f.src, h)
		if err != nil {
			return nil, nil, err
		}
		if ok && st.filed == at {
			found = append(found, change{hash: h, stored: st})
		}
	}
	return found, last, it.Error()
}

// settle decides what becomes of an entry whose time has come: it is filed for
// later or goes.
func (c *change) settle(stamp int64, waits Waits) error {
	if c.filed > stamp {
		return nil
	}
	ok, due, err := waits(c.entry)
	if err != nil {
		return fmt.Errorf("message %v: %w", c.entry.ID, err)
	}
	c.gone = !ok
	c.filed = max(due, c.entry.Until)
	if c.filed <= stamp {
		c.filed = stamp + askAgain
	}
	return nil
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
