package index

import "github.com/cockroachdb/pebble/v2"

// Iter walks over the keys of one space in their order. It keeps the view that
// it had when it was opened: later cuts and excises do not show, and the disk
// space that they free is held until it is closed. It is for one goroutine at a
// time.
type Iter struct {
	x   *Index
	s   Space
	it  *pebble.Iterator
	key []byte // the buffer in which seek keys are built
}

// NewIter opens an iterator over the keys of a space in [lower, upper). A nil
// bound is the end of the space. It stands nowhere until it is moved. It must
// be closed, before the index is.
func (x *Index) NewIter(s Space, lower, upper []byte) (*Iter, error) {
	if err := checkSpace(s); err != nil {
		return nil, err
	}
	lo, hi := bounds(s, lower, upper)
	if string(hi) < string(lo) {
		hi = lo
	}
	if err := x.enter(); err != nil {
		return nil, err
	}
	defer x.leave()
	it, err := x.db.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return nil, x.readError(s, err)
	}
	x.mu.Lock()
	x.iters++
	x.mu.Unlock()
	return &Iter{x: x, s: s, it: it}, nil
}

// First goes to the first key and says whether there is one.
func (i *Iter) First() bool { return i.it.First() }

// Last goes to the last key and says whether there is one.
func (i *Iter) Last() bool { return i.it.Last() }

// SeekGE goes to the first key at or after key and says whether there is one.
func (i *Iter) SeekGE(key []byte) bool { return i.it.SeekGE(i.seekKey(key)) }

// SeekLT goes to the last key before key and says whether there is one.
func (i *Iter) SeekLT(key []byte) bool { return i.it.SeekLT(i.seekKey(key)) }

func (i *Iter) seekKey(key []byte) []byte {
	i.key = appendKey(i.key[:0], i.s, key)
	return i.key
}

// Next goes one key on and says whether there is one.
func (i *Iter) Next() bool { return i.it.Next() }

// Prev goes one key back and says whether there is one.
func (i *Iter) Prev() bool { return i.it.Prev() }

// Valid says whether the iterator stands on a key. When it does not, ask
// [Iter.Error] whether the end was reached or reading failed.
func (i *Iter) Valid() bool { return i.it.Valid() }

// Key gives the key, without its space. It is valid until the iterator moves
// and must not be changed.
func (i *Iter) Key() []byte { return i.it.Key()[1:] }

// Value gives the value. It is valid until the iterator moves and must not be
// changed.
func (i *Iter) Value() []byte { return i.it.Value() }

// Error gives the error that ended the walk, nil at its regular end.
func (i *Iter) Error() error {
	if err := i.it.Error(); err != nil {
		return i.x.readError(i.s, err)
	}
	return nil
}

// Close lets the view go and gives the error that ended the walk, if any. A
// second call does nothing.
func (i *Iter) Close() error {
	if i.it == nil {
		return nil
	}
	err := i.it.Close()
	i.it = nil
	i.x.mu.Lock()
	i.x.iters--
	i.x.mu.Unlock()
	if err != nil {
		return i.x.readError(i.s, err)
	}
	return nil
}
