// Package keys finds messages by their business keys, as RocketMQ's IndexFile
// does.
//
// It holds the hash of each key and the message's id, so what it finds are
// candidates: hashes collide, and the record decides. Nothing else depends on
// it; it is no part of the state that batches make.
//
// What was added since the last cut lies in memory, in the order of adding. What
// is older lies in the index, in the space k of docs/formats/index.md, by the day
// on which it was stored, so that a day that is given up goes as a whole.
package keys

import (
	"bytes"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// MaxKeys is how many different keys of one message are indexed. By the others
// it cannot be found.
const MaxKeys = 16

// A Source reads the index.
type Source interface {
	NewIter(s index.Space, lower, upper []byte) (*index.Iter, error)
}

// Sum is the hash of one key: XXH64 with seed 0, which is in the index for good.
func Sum(key []byte) uint64 { return xxhash.Sum64(key) }

// Sums appends the hashes under which a message with these keys is indexed: of
// the first [MaxKeys] different ones. Keys are separated by blanks, as RocketMQ's
// clients join them.
func Sums(dst []uint64, keys []byte) []uint64 {
	start := len(dst)
	for len(keys) > 0 && len(dst)-start < MaxKeys {
		var key []byte
		key, keys, _ = bytes.Cut(keys, []byte{' '})
		if len(key) == 0 {
			continue
		}
		if h := Sum(key); !slices.Contains(dst[start:], h) {
			dst = append(dst, h)
		}
	}
	return dst
}

// An entry is one key of one message.
type entry struct {
	hash  uint64
	id    record.ID
	day   uint32
	queue record.QueueNumber
}

// chunkEntries is how many entries memory grows by at a time: 96 KiB.
const chunkEntries = 4096

// A slab is a list of entries in chunks that never move: what was written can be
// read without a lock while more is added behind it.
type slab [][]entry

func (s *slab) add(e entry) {
	last := len(*s) - 1
	if last < 0 || len((*s)[last]) == cap((*s)[last]) {
		*s = append(*s, make([]entry, 0, chunkEntries))
		last++
	}
	(*s)[last] = append((*s)[last], e)
}

// An Index finds messages. One goroutine changes it; [Index.Take] may be called
// by several at once while nobody does.
type Index struct {
	src     Source
	live    slab
	frozen  slab   // of the cut that is being written
	drop    uint32 // the day up to which the next cut gives up all; 0: none
	dropped uint32 // the day up to which a cut of this run did
}

// New makes the index of the newest cut.
func New(src Source) *Index { return &Index{src: src} }

// Add has a message be found by its keys, which are separated by blanks. stored
// is when it was, in Unix ms, and decides with which day it goes. An id is added
// once.
func (x *Index) Add(keys []byte, stored int64, id record.ID, queue record.QueueNumber) {
	if len(keys) == 0 {
		return
	}
	var buf [MaxKeys]uint64
	for _, h := range Sums(buf[:0], keys) {
		x.live.add(entry{hash: h, id: id, day: Day(stored), queue: queue})
	}
}

// Drop has the days up to and including day leave the index with the next cut. It
// costs nothing for days that have left. Carried keys stay. What was added since
// the last cut stays too, until a later day is dropped, so that keys of a day may
// be found for longer than their messages exist.
func (x *Index) Drop(day uint32) {
	if day > x.dropped {
		x.drop = max(x.drop, day)
	}
}

// Memory is how many keys lie in memory.
func (x *Index) Memory() int { return x.live.len() + x.frozen.len() }

func (s *slab) len() int {
	n := 0
	for _, chunk := range *s {
		n += len(chunk)
	}
	return n
}
