package index

import (
	"errors"
	"fmt"
)

// errSpent is what a cut says after its end.
var errSpent = errors.New("index: the cut was installed or aborted before")

// A Cut collects changes of any spaces, one table each, and installs all of
// them in one atomic step. It is for one goroutine at a time. Readers see
// nothing of it before Install. The first error stays with it, so that only the
// answer of Install has to be looked at.
//
// In each space, keys come in increasing order and each once, whatever is done
// to them; ranges come in order too and do not overlap, but may be mixed with
// keys in any way. Spaces may be mixed in any way. Slices may be used again as
// soon as a call has returned.
type Cut struct {
	x      *Index
	number uint64
	tables [256]*table
	err    error
}

// NewCut begins a cut. It costs nothing before the first change. It must be
// ended by Install or Abort.
func (x *Index) NewCut() *Cut { return &Cut{x: x, number: x.cuts.Add(1)} }

// Set gives a key its value.
func (c *Cut) Set(s Space, key, value []byte) error {
	return c.point(s, key, func(t *table) error { return t.w.Set(t.last, value) })
}

// Delete removes a key of older cuts.
func (c *Cut) Delete(s Space, key []byte) error {
	return c.point(s, key, func(t *table) error { return t.w.Delete(t.last) })
}

// Add adds delta to the sum that a key holds, zero if there was none. The value
// is read with [Sum]. Sums wrap around. A key whose sum has come to zero stays
// until it is deleted.
func (c *Cut) Add(s Space, key []byte, delta int64) error {
	return c.point(s, key, func(t *table) error {
		t.sum = AppendSum(t.sum[:0], delta)
		return t.w.Merge(t.last, t.sum)
	})
}

// DeleteRange removes the keys of older cuts in [lower, upper); a nil bound is
// the end of the space. It never hits keys of its own cut, wherever it stands.
// An empty range does nothing. Each range has to be remembered by all readers
// until a compaction has carried it out, so a few are fine and many are not;
// for keys that nobody reads any more, [Index.Excise] is cheaper.
func (c *Cut) DeleteRange(s Space, lower, upper []byte) error {
	t, err := c.table(s)
	if err != nil {
		return err
	}
	lo, hi := bounds(s, lower, upper)
	if string(lo) >= string(hi) {
		return nil
	}
	if string(lo) < string(t.lastEnd) {
		return c.fail(fmt.Errorf("index: space %#02x: range from %x begins before the last one ended", byte(s), lower))
	}
	t.lastEnd = hi
	return c.fail(t.w.DeleteRange(lo, hi))
}

// point does one change of one key.
func (c *Cut) point(s Space, key []byte, change func(*table) error) error {
	t, err := c.table(s)
	if err != nil {
		return err
	}
	if t.keys > 0 && string(key) <= string(t.last[1:]) {
		return c.fail(fmt.Errorf("index: space %#02x: key %x does not come after %x", byte(s), key, t.last[1:]))
	}
	t.last = append(t.last[:1], key...)
	t.keys++
	return c.fail(change(t))
}

// fail keeps the first error.
func (c *Cut) fail(err error) error {
	if err != nil && c.err == nil {
		c.err = err
	}
	return err
}

// table gives the table of a space and makes it at its first change.
func (c *Cut) table(s Space) (*table, error) {
	if c.err != nil {
		return nil, c.err
	}
	if t := c.tables[s]; t != nil {
		return t, nil
	}
	if err := checkSpace(s); err != nil {
		return nil, c.fail(err)
	}
	t, err := newTable(c.x, c.number, s)
	if err != nil {
		return nil, c.fail(err)
	}
	c.tables[s] = t
	return t, nil
}

// Bytes says how large the tables are so far: exact for what has been written,
// and what is still buffered before compression.
func (c *Cut) Bytes() int64 {
	var n int64
	for _, t := range &c.tables {
		if t != nil {
			n += t.bytes()
		}
	}
	return n
}

// Install finishes and syncs the tables and installs them in one atomic step.
// On return the cut is durable and seen by everyone who reads from then on; an
// empty cut is nothing. Install ends the cut, whatever it returns.
//
// After an error that is not final (see [Index]) the index holds what it held
// before: build the cut again when the reason, such as a full disk, is gone.
func (c *Cut) Install() error {
	defer c.Abort()
	if c.err != nil {
		return c.err
	}
	if err := c.x.enter(); err != nil {
		return err
	}
	defer c.x.leave()
	paths, err := c.finish()
	if err == nil {
		err = c.ingest(paths)
	}
	if err := c.x.outcome(err); err != nil {
		return fmt.Errorf("index %s: install a cut: %w", c.x.dir, err)
	}
	return nil
}

// finish makes the tables durable and gives the paths of those that are not
// empty.
func (c *Cut) finish() (paths []string, err error) {
	for _, t := range &c.tables {
		if t == nil {
			continue
		}
		if err := t.finish(); err != nil {
			return nil, err
		}
		if !t.empty() {
			paths = append(paths, t.path)
		}
	}
	return paths, nil
}

// ingest is the one place where anything enters the index.
func (c *Cut) ingest(paths []string) error {
	if ahead := c.tables[c.x.bugs.AppliedAhead]; ahead != nil && !ahead.empty() {
		if err := c.x.db.Ingest(background(), []string{ahead.path}); err != nil {
			return err
		}
		rest := paths[:0:0]
		for _, path := range paths {
			if path != ahead.path {
				rest = append(rest, path)
			}
		}
		paths = rest
	}
	if len(paths) == 0 {
		return nil
	}
	return c.x.db.Ingest(background(), paths)
}

// Abort throws the cut away, with its files. After Install it does nothing.
func (c *Cut) Abort() {
	for s, t := range &c.tables {
		if t != nil {
			t.discard()
			c.tables[s] = nil
		}
	}
	c.err = errSpent
}
