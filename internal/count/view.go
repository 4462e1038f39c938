package count

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// A view is what a question is answered from: sums of the index as of some cut,
// and the changes since.
type view struct {
	ctx     context.Context //nolint:containedctx // a view lives as long as the call that opened it
	it      *index.Iter
	q       *Query
	totals  bool   // the index's sums of all topics, not those of each
	changes []cell // since
	need    int    // room in changes for the next shard
	seen    int    // keys read
}

// tries is how often a view is opened anew because a cut was installed while
// memory was read, before it is opened under the lock. Reading memory takes
// about a millisecond and cuts are a second apart or more.
const tries = 8

// view opens a view. The index's part may then be read for as long as it takes:
// it does not change.
func (c *Counts) view(ctx context.Context, lock sync.Locker, q *Query) (*view, error) {
	v := &view{ctx: ctx, q: q, totals: q.Topic == 0 && !q.Split && q.Live == nil}
	for range tries {
		ok, err := c.tryView(v, lock)
		if err != nil {
			return nil, fmt.Errorf("counts: %w", err)
		}
		if ok {
			return v, nil
		}
	}
	lock.Lock()
	defer lock.Unlock()
	ok, err := c.tryView(v, unlocked{})
	if err == nil && !ok {
		err = fmt.Errorf("%w: the index does not hold the cut of counts that it should, %d", record.ErrCorrupt, c.installed)
	}
	if err != nil {
		return nil, fmt.Errorf("counts: %w", err)
	}
	return v, nil
}

// unlocked is a lock for those who hold it already.
type unlocked struct{}

// Lock does nothing.
func (unlocked) Lock() {}

// Unlock does nothing.
func (unlocked) Unlock() {}

// tryView opens the iterator and then gathers what memory has on top of it. If
// a cut passes to the index in between, some of that is gone and ok is false.
func (c *Counts) tryView(v *view, lock sync.Locker) (ok bool, err error) {
	it, number, err := c.open()
	if err != nil {
		return false, err
	}
	v.changes = v.changes[:0]
	for shard := 0; shard < shards; {
		lock.Lock()
		ok := c.gather(v, number, shard)
		lock.Unlock()
		if !ok {
			return false, it.Close()
		}
		if v.need > 0 {
			v.changes = slices.Grow(v.changes, 2*v.need) // not under the lock
		} else {
			shard++
		}
	}
	v.it = it
	return true, nil
}

// open opens an iterator and reads the mark: the number of the last cut with
// counts that the iterator shows.
func (c *Counts) open() (it *index.Iter, number uint64, err error) {
	if it, err = c.src.NewIter(SpaceCounts, nil, nil); err != nil {
		return nil, 0, err
	}
	if it.First() && len(it.Key()) == 0 {
		number, err = decodeMark(it.Value())
	}
	if err == nil {
		err = it.Error()
	}
	if err != nil {
		return nil, 0, errors.Join(err, it.Close())
	}
	return it, number, nil
}

// gather appends one shard's changes that come on top of a view of the index,
// or sets need and does nothing if there is no room for them. It is false if
// memory does not have all of them any more. The caller holds the lock, so
// nothing is called here that could take long.
func (c *Counts) gather(v *view, number uint64, shard int) bool {
	live, frozen := &c.live.shards[shard], &table{}
	switch {
	case c.frozen != nil && number == c.frozen.number:
		// The cut is in the index already, and soon no longer in memory.
	case number != c.installed:
		return false
	case c.frozen != nil:
		frozen = &c.frozen.changes.shards[shard]
	}
	if v.need = live.used + frozen.used; v.need <= cap(v.changes)-len(v.changes) {
		v.need = 0
		v.take(live)
		v.take(frozen)
	}
	return true
}

// take appends the changes that the query asks for. Keys are in the order of
// minutes, so that a range of minutes is one of keys.
func (v *view) take(t *table) {
	from := uint64(v.q.From) << 32
	width := uint64(v.q.To)<<32 - from
	for _, c := range t.cells {
		if c.key-from < width && c.n != 0 && (v.q.Topic == 0 || v.q.Topic == topicOfKey(c.key)) {
			v.changes = append(v.changes, c)
		}
	}
}

// wanted says whether a sum is one of those asked for, and not only in the range.
func (v *view) wanted(key uint64) bool { return v.q.Topic == 0 || v.q.Topic == topicOfKey(key) }

// seekKey is a key of the part of the space that the view reads.
func (v *view) seekKey(dst []byte, key uint64) []byte {
	if v.totals {
		return appendKey(dst, totalOf(key))
	}
	return appendEach(dst, key)
}

// within says whether the iterator still stands in the part of the space that
// the view reads.
func (v *view) within() bool {
	key := v.it.Key()
	return len(key) > 0 && (key[0] == ofAll) == v.totals
}

// nearby is how many keys of other topics are stepped over before a seek: about
// what one costs.
const nearby = 8

// forward calls fn for the index's sums in the query's range, in order, until
// it returns false.
func (v *view) forward(fn func(cell) bool) error {
	key := v.seekKey(nil, keyOf(v.q.From, v.q.Topic))
	steps := 0
	for ok := v.it.SeekGE(key); ok && v.within(); {
		c, err := v.read()
		if err != nil || minuteOfKey(c.key) >= v.q.To {
			return err
		}
		steps++
		if v.wanted(c.key) {
			if !fn(c) {
				return nil
			}
			steps = 0
		}
		if steps < nearby {
			ok = v.it.Next()
			continue
		}
		minute := minuteOfKey(c.key)
		if topicOfKey(c.key) > v.q.Topic {
			minute++
		}
		key = v.seekKey(key[:0], keyOf(minute, v.q.Topic))
		ok, steps = v.it.SeekGE(key), 0
	}
	return v.it.Error()
}

// backward is forward the other way, from the end of the range.
func (v *view) backward(fn func(cell) bool) error {
	key := v.seekKey(nil, keyOf(v.q.To, 0))
	steps := 0
	for ok := v.it.SeekLT(key); ok && v.within(); {
		c, err := v.read()
		if err != nil || minuteOfKey(c.key) < v.q.From {
			return err
		}
		steps++
		if v.wanted(c.key) {
			if !fn(c) {
				return nil
			}
			steps = 0
		}
		if steps < nearby {
			ok = v.it.Prev()
			continue
		}
		minute := minuteOfKey(c.key)
		if topicOfKey(c.key) < v.q.Topic {
			minute--
		}
		key = v.seekKey(key[:0], keyOf(minute, v.q.Topic)+1)
		ok, steps = v.it.SeekLT(key), 0
	}
	return v.it.Error()
}

// read decodes where the iterator stands.
func (v *view) read() (cell, error) {
	if v.seen++; v.seen%4096 == 0 {
		if err := context.Cause(v.ctx); err != nil {
			return cell{}, err
		}
	}
	key, err := decodeKey(v.it.Key())
	if err != nil {
		return cell{}, err
	}
	n, err := index.Sum(v.it.Value())
	if err != nil {
		return cell{}, fmt.Errorf("%w: minute %d, topic %d: %w", record.ErrCorrupt, minuteOfKey(key), topicOfKey(key), err)
	}
	return cell{key, n}, nil
}
