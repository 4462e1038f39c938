package keys

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// A Frozen is the keys' part of a cut. [Frozen.Write] may run beside the index.
type Frozen struct {
	entries slab
	drop    uint32
}

// Freeze begins a cut: the keys so far go into the Frozen. There is one cut at a
// time.
func (x *Index) Freeze() *Frozen {
	f := &Frozen{entries: x.live, drop: x.drop}
	x.frozen, x.live, x.drop = x.live, nil, 0
	return f
}

// Install ends a cut that is durable: the index takes over.
func (x *Index) Install(f *Frozen) { x.frozen, x.dropped = nil, max(x.dropped, f.drop) }

// Abandon ends a cut that failed: the keys go back, and so do the days that were
// to leave.
func (x *Index) Abandon(f *Frozen) {
	x.live = slices.Concat(f.entries, x.live)
	x.frozen, x.drop = nil, max(x.drop, f.drop)
}

// A Change is a key of a message whose bytes are carried into the index by this
// cut, or leave it. As long as it is carried, a message is found whatever days
// are dropped.
type Change struct {
	Hash  uint64 // one of [Sums]
	ID    record.ID
	Queue record.QueueNumber
	Gone  bool // the bytes leave
}

// Write adds the keys to the cut, and the changes of carried messages, in any
// order; of two for one key and message the second counts.
func (f *Frozen) Write(c *index.Cut, changes []Change) error {
	if err := f.write(c, changes); err != nil {
		return fmt.Errorf("cut message keys: %w", err)
	}
	return nil
}

func (f *Frozen) write(c *index.Cut, changes []Change) error {
	if err := writeCarried(c, changes); err != nil {
		return err
	}
	if f.drop > 0 {
		var upper []byte // of the last day there is: the end of the space
		if f.drop < math.MaxUint32 {
			upper = appendRow(nil, f.drop+1, 0, 0)[:4]
		}
		if err := c.DeleteRange(SpaceKeys, appendRow(nil, carried+1, 0, 0)[:4], upper); err != nil {
			return err
		}
	}
	var key, value []byte
	for _, e := range f.sorted() {
		key, value = appendRow(key[:0], e.day, e.hash, e.id), appendQueue(value[:0], e.queue)
		if err := c.Set(SpaceKeys, key, value); err != nil {
			return err
		}
	}
	return nil
}

// sorted copies the entries into the order of their rows; readers may be looking
// through them where they are.
func (f *Frozen) sorted() []entry {
	entries := slices.Concat(f.entries...)
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.day, b.day), cmp.Compare(a.hash, b.hash), cmp.Compare(a.id, b.id))
	})
	return entries
}

// writeCarried writes the bucket before all days.
func writeCarried(c *index.Cut, changes []Change) error {
	changes = slices.Clone(changes)
	compare := func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Hash, b.Hash), cmp.Compare(a.ID, b.ID))
	}
	slices.SortStableFunc(changes, compare)
	var key, value []byte
	for i, ch := range changes {
		if i+1 < len(changes) && compare(ch, changes[i+1]) == 0 {
			continue
		}
		key = appendRow(key[:0], carried, ch.Hash, ch.ID)
		if ch.Gone {
			if err := c.Delete(SpaceKeys, key); err != nil {
				return err
			}
			continue
		}
		value = appendQueue(value[:0], ch.Queue)
		if err := c.Set(SpaceKeys, key, value); err != nil {
			return err
		}
	}
	return nil
}
