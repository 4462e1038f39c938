// Package dedupe remembers which message a hash stands for: an idempotency key
// that a producer sent, or a name that a client gave its message.
//
// An entry counts while its time is not over or its message still waits; after
// that it is as if it had never been put, whether or not its bytes are still
// there. So what is in memory and in the index may be swept at any cut, and the
// state remains a function of the batches alone.
//
// Entries lie in memory since the last cut and in the index before it, in the
// spaces y and z of docs/formats/index.md.
package dedupe

import (
	"fmt"
	"io"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// A Source reads the index.
type Source interface {
	Get(dst []byte, s index.Space, key []byte) ([]byte, bool, error)
	NewIter(s index.Space, lower, upper []byte) (*index.Iter, error)
}

// An Entry is what a hash stands for.
type Entry struct {
	ID    record.ID  // the message
	Print uint64     // of what was sent with the hash, so that a second use for something else is noticed
	Until int64      // Unix ms: it counts as long as this is above the stamp, whatever became of the message
	Ref   record.Ref // the reference as sent, by which one asks whether the message still waits; due 0 if it never did
}

// Waits says whether the message of an entry still waits, and for which due. A
// message that has ceased to wait must never be said to wait again.
type Waits func(Entry) (waits bool, due int64, err error)

// Counts says whether an entry counts at a stamp; if not, the caller treats its
// hash as unknown. The stamp is the highest one so far: a clock that is set
// back does not bring back what was over.
func (e *Entry) Counts(stamp int64, waits Waits) (bool, error) {
	if e.Until > stamp {
		return true, nil
	}
	ok, _, err := waits(*e)
	return ok, err
}

// A Set holds the entries. One goroutine changes it; [Set.Get] may be called by
// several at once while nobody does.
type Set struct {
	src    Source
	live   map[record.Hash]Entry
	frozen map[record.Hash]Entry // of the cut that is being written
	plan   plan                  // for the next cut
}

// New makes the set of the newest cut, which lies in the index as a whole.
func New(src Source) *Set {
	return &Set{src: src, live: make(map[record.Hash]Entry)}
}

// Put has a hash stand for e and for nothing else. A time before 1970 is over
// in any case and becomes 0.
func (s *Set) Put(h record.Hash, e Entry) {
	e.Until = max(e.Until, 0)
	s.live[h] = e
}

// Get gives what was last put under a hash, if it has not been swept. Whether it
// counts says [Entry.Counts].
func (s *Set) Get(h record.Hash) (Entry, bool, error) {
	if e, ok := s.live[h]; ok {
		return e, true, nil
	}
	if e, ok := s.frozen[h]; ok {
		return e, true, nil
	}
	st, ok, err := read(s.src, h)
	return st.entry, ok, err
}

func read(src Source, h record.Hash) (stored, bool, error) {
	var buf [96]byte
	value, ok, err := src.Get(buf[:0], SpaceHashes, h[:])
	if err != nil || !ok {
		return stored{}, false, err
	}
	st, err := decodeStored(value)
	if err != nil {
		return stored{}, false, fmt.Errorf("hash %x: %w", h, err)
	}
	return st, true, nil
}

// Hash writes every entry that counts, in the order of the hashes and without
// regard to cuts. The caller holds the engine's lock; it reads everything.
func (s *Set) Hash(w io.Writer, stamp int64, waits Waits) error {
	memory := changesOf(s.frozen)
	for h, e := range s.live {
		memory = append(memory, change{hash: h, stored: stored{entry: e}})
	}
	sortChanges(memory) // stable: of two with one hash, the live one is the second
	digest := func(h record.Hash, e Entry) error {
		counts, err := e.Counts(stamp, waits)
		if err != nil || !counts {
			return err
		}
		_, err = w.Write(appendStored(append([]byte(nil), h[:]...), stored{e, e.Until}))
		return err
	}
	err := s.merged(memory, digest)
	if err != nil {
		return fmt.Errorf("hash of the deduplication: %w", err)
	}
	return nil
}

// merged calls fn for each hash in order, with what memory says of it if it
// does, the last one counting, and with what the index says otherwise.
func (s *Set) merged(memory []change, fn func(record.Hash, Entry) error) error {
	it, err := s.src.NewIter(SpaceHashes, nil, nil)
	if err != nil {
		return err
	}
	defer func() { _ = it.Close() }() // its error is asked for below
	it.First()
	for it.Valid() || len(memory) > 0 {
		order := -1 // memory is next, index is next, or both have this hash
		if it.Valid() && len(memory) > 0 {
			order = compareKey(memory[0].hash, it.Key())
		} else if it.Valid() {
			order = 1
		}
		if order <= 0 {
			c := memory[0]
			memory = memory[1:]
			if len(memory) > 0 && memory[0].hash == c.hash {
				continue
			}
			if order == 0 {
				it.Next()
			}
			err = fn(c.hash, c.entry)
		} else {
			err = visit(it, fn)
			it.Next()
		}
		if err != nil {
			return err
		}
	}
	return it.Error()
}

func visit(it *index.Iter, fn func(record.Hash, Entry) error) error {
	if len(it.Key()) != len(record.Hash{}) {
		return fmt.Errorf("%w: deduplication key %x in the index", record.ErrCorrupt, it.Key())
	}
	st, err := decodeStored(it.Value())
	if err != nil {
		return err
	}
	return fn(record.Hash(it.Key()), st.entry)
}
