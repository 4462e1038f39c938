package keys

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// A View is the index as it was when it was taken. It is read without any lock.
type View struct {
	src    Source
	memory [2]slab
}

// Take makes a view. The caller holds at least a read lock on the state; it
// costs a few words for every 4,096 keys in memory. What a cut moves to the index
// afterwards is in the view all the same.
func (x *Index) Take() View {
	return View{src: x.src, memory: [2]slab{slices.Clone(x.frozen), slices.Clone(x.live)}}
}

// A Match is a message that may have the key, by the record.
type Match struct {
	ID    record.ID
	Queue record.QueueNumber // for which it was sent
}

// Find gives the newest messages that may have a key, newest first, at most limit
// of them, of those with ids below before (0: all). More says that there are
// others, for which the last id is the next before.
//
// A message may be named that is no more: its record says so, or its segment is
// gone.
func (v View) Find(key string, before record.ID, limit int) (found []Match, more bool, err error) {
	if limit <= 0 {
		return nil, false, nil
	}
	s := search{hash: Sum([]byte(key)), before: before - 1, limit: limit + 1} // of 0: the last id
	for _, m := range v.memory {
		for _, chunk := range m {
			s.scan(chunk)
		}
	}
	s.settle()
	if err := s.stored(v.src); err != nil {
		return nil, false, fmt.Errorf("find key %q: %w", key, err)
	}
	if len(s.found) > limit {
		return s.found[:limit], true, nil
	}
	return s.found, false, nil
}

// A search keeps the newest matches.
type search struct {
	hash   uint64
	before record.ID // the last id that is wanted
	limit  int
	found  []Match
	floor  record.ID // ids up to this one are too old to be among the newest
}

// scan looks through entries that have no order.
func (s *search) scan(entries []entry) {
	for i := range entries {
		if e := &entries[i]; e.hash == s.hash && e.id <= s.before && e.id > s.floor {
			s.take(Match{e.id, e.queue})
		}
	}
}

// take keeps a match. The list is cut to the newest when it has become twice as
// long.
func (s *search) take(m Match) {
	s.found = append(s.found, m)
	if len(s.found) >= 2*s.limit {
		s.settle()
	}
}

// settle brings the matches into order, each once: a carried message has a row in
// its day too, and what was in memory may be in the index by now.
func (s *search) settle() {
	slices.SortFunc(s.found, func(a, b Match) int { return cmp.Compare(b.ID, a.ID) })
	s.found = slices.CompactFunc(s.found, func(a, b Match) bool { return a.ID == b.ID })
	if len(s.found) >= s.limit {
		s.found = s.found[:s.limit]
		s.floor = s.found[s.limit-1].ID
	}
}

// stored looks into each bucket from the newest to that of the carried ones. Ids
// grow with the days, except where a clock was set back, so most often a look at
// an older bucket finds nothing new enough and ends at once.
func (s *search) stored(src Source) error {
	it, err := src.NewIter(SpaceKeys, nil, nil)
	if err != nil {
		return err
	}
	defer func() { _ = it.Close() }() // its error is asked for below
	var key []byte
	for ok := it.Last(); ok; ok = it.SeekLT(key) {
		bucket, _, _, err := decodeRow(it.Key())
		if err != nil {
			return err
		}
		if err := s.bucket(it, bucket); err != nil {
			return err
		}
		s.settle()
		key = appendRow(key[:0], bucket, 0, 0)
	}
	return it.Error()
}

// bucket looks through the key's rows of one bucket, newest first.
func (s *search) bucket(it *index.Iter, bucket uint32) error {
	after := append(appendRow(nil, bucket, s.hash, s.before), 0)
	for ok := it.SeekLT(after); ok; ok = it.Prev() {
		b, hash, id, err := decodeRow(it.Key())
		if err != nil {
			return err
		}
		if b != bucket || hash != s.hash || id <= s.floor {
			return nil
		}
		queue, err := decodeQueue(it.Value())
		if err != nil {
			return err
		}
		s.take(Match{id, queue})
	}
	return it.Error()
}
