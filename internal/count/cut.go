package count

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/duemq/duemq/internal/index"
)

// A Frozen is the counts' part of a cut: changes that nobody adds to any more.
// [Frozen.Write] and [Frozen.Excise] may run beside the counts.
type Frozen struct {
	changes *memory
	number  uint64
	past    uint32 // nothing waits in the minutes below
	wrote   bool   // the cut has changes and the mark
}

// Freeze begins a cut: all changes so far go into the Frozen. There is one cut
// at a time. popped is the due (Unix ms) below which nothing waits. It may fall
// when the clock is set back. The cost is the swap of a pointer.
func (c *Counts) Freeze(popped int64) *Frozen {
	c.last++
	f := &Frozen{changes: c.live, number: c.last, past: MinuteOf(popped)}
	c.frozen, c.live = f, c.live.next()
	c.forget()
	return f
}

// Write adds the changes to a cut. Keys of minutes that are past are deleted:
// their sums have come to zero, and would stay keys otherwise. A change of zero
// is left out, and so a message that comes and goes between two cuts costs the
// index nothing. Without changes the cut is left alone.
func (f *Frozen) Write(c *index.Cut) error {
	changes := make([]cell, 0, f.changes.cells)
	f.changes.each(func(d cell) { changes = append(changes, d) })
	if len(changes) == 0 {
		return nil
	}
	slices.SortFunc(changes, func(a, b cell) int { return cmp.Compare(a.key, b.key) })
	f.wrote = true
	if err := c.Set(SpaceCounts, nil, encodeMark(f.number)); err != nil {
		return fmt.Errorf("cut counts: %w", err)
	}
	if err := f.write(c, totals(changes)); err != nil {
		return fmt.Errorf("cut counts: %w", err)
	}
	if err := f.write(c, changes); err != nil {
		return fmt.Errorf("cut counts: %w", err)
	}
	return nil
}

func (f *Frozen) write(c *index.Cut, changes []cell) error {
	var key []byte
	for _, d := range changes {
		var err error
		key = appendKey(key[:0], d.key)
		switch {
		case minuteOfKey(d.key) < f.past:
			err = c.Delete(SpaceCounts, key)
		case d.n != 0:
			err = c.Add(SpaceCounts, key, d.n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// totals adds up changes, which are in order, by minute.
func totals(changes []cell) []cell {
	var all []cell
	for _, d := range changes {
		if key := totalOf(d.key); len(all) == 0 || all[len(all)-1].key != key {
			all = append(all, cell{key: key})
		}
		all[len(all)-1].n += d.n
	}
	return all
}

// Excise removes the keys of minutes that were past when the cut was begun from
// the index: all sums there have come to zero, also those that were zero before
// their minute was past. It is called after the cut has become durable.
func (f *Frozen) Excise(x *index.Index) error {
	past := keyOf(f.past, 0)
	if err := x.Excise(SpaceCounts, appendKey(nil, 0), appendKey(nil, past)); err != nil {
		return err
	}
	return x.Excise(SpaceCounts, appendEach(nil, 0), appendEach(nil, past))
}

// Install ends a cut that is durable: the index takes over its changes.
func (c *Counts) Install(f *Frozen) {
	if f.wrote {
		c.installed = f.number
	}
	c.frozen = nil
}

// Abandon ends a cut that failed: its changes go back to those of the next one.
// It takes some ten nanoseconds for each cell of the smaller side.
func (c *Counts) Abandon(f *Frozen) {
	into, from := f.changes, c.live
	if into.cells < from.cells {
		into, from = from, into
	}
	from.each(func(d cell) { *into.place(d.key) += d.n })
	c.live, c.frozen = into, nil
	c.forget()
}
