package index

import (
	"bytes"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// View is the whole index at one moment: all spaces as the newest cut left
// them. Later cuts and excises do not show, and the disk space that they free
// is held until it is closed. It is for one goroutine at a time.
type View struct {
	x  *Index
	it *pebble.Iterator
}

// View opens a view. It must be closed, before the index is.
//
// It is one iterator over everything: several that were opened one after the
// other could have a cut between them, and a snapshot of Pebble's does not keep
// what an excise drops.
func (x *Index) View() (*View, error) {
	if err := x.enter(); err != nil {
		return nil, err
	}
	defer x.leave()
	it, err := x.db.NewIter(&pebble.IterOptions{LowerBound: []byte{0x01}, UpperBound: []byte{0xff}})
	if err != nil {
		return nil, x.viewError(err)
	}
	x.mu.Lock()
	x.iters++
	x.mu.Unlock()
	return &View{x: x, it: it}, nil
}

// Get appends the value of a key to dst, as [Index.Get] does.
func (v *View) Get(dst []byte, s Space, key []byte) (value []byte, ok bool, err error) {
	want := appendKey(nil, s, key)
	if !v.it.SeekGE(want) || !bytes.Equal(v.it.Key(), want) {
		return dst, false, v.x.viewError(v.it.Error())
	}
	found, err := v.it.ValueAndErr()
	if err != nil {
		return dst, false, v.x.viewError(err)
	}
	return append(dst, found...), true, nil
}

// Each calls fn for every key of every space, in order, and stops at fn's first
// error. Key and value are good during the call only.
func (v *View) Each(fn func(s Space, key, value []byte) error) error {
	for v.it.First(); v.it.Valid(); v.it.Next() {
		key := v.it.Key()
		value, err := v.it.ValueAndErr()
		if err != nil {
			return v.x.viewError(err)
		}
		if err := fn(Space(key[0]), key[1:], value); err != nil {
			return err
		}
	}
	return v.x.viewError(v.it.Error())
}

// Close lets the view go. A second call does nothing.
func (v *View) Close() error {
	if v.it == nil {
		return nil
	}
	err := v.it.Close()
	v.it = nil
	v.x.mu.Lock()
	v.x.iters--
	v.x.mu.Unlock()
	return v.x.viewError(err)
}

func (x *Index) viewError(err error) error {
	if err == nil {
		return nil
	}
	if final := x.failure.get(); final != nil {
		return final
	}
	return fmt.Errorf("index %s: read: %w", x.dir, classify(err))
}
