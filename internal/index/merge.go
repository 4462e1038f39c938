package index

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// AppendSum appends the value of a key that [Cut.Add] adds to: a zigzag varint
// of one to ten bytes.
func AppendSum(dst []byte, sum int64) []byte { return binary.AppendVarint(dst, sum) }

// Sum reads the value of a key that [Cut.Add] adds to. Anything but exactly one
// varint in its shortest form is an error of class [ErrCorrupt].
func Sum(value []byte) (int64, error) {
	sum, n := binary.Varint(value)
	if n <= 0 || n != len(value) || n > 1 && value[n-1] == 0 {
		return 0, fmt.Errorf("%w: %d bytes are not a sum", ErrCorrupt, len(value))
	}
	return sum, nil
}

// sumMerger adds. Its name is in the files: another meaning needs another name.
var sumMerger = &pebble.Merger{
	Name: "duemq.sum",
	Merge: func(_, value []byte) (pebble.ValueMerger, error) {
		sum, err := Sum(value)
		return &summer{sum: sum}, err
	},
}

// summer is the addition under way.
//
// It does not tell Pebble to drop a sum of zero. Pebble offers that (its
// DeletableValueMerger), but a compaction that drops the result leaves no
// tombstone, and an older value of the key in a level below shows again.
type summer struct{ sum int64 }

// MergeNewer adds; order does not matter.
func (s *summer) MergeNewer(value []byte) error { return s.MergeOlder(value) }

// MergeOlder adds.
func (s *summer) MergeOlder(value []byte) error {
	v, err := Sum(value)
	s.sum += v
	return err
}

// Finish gives the sum.
func (s *summer) Finish(bool) ([]byte, io.Closer, error) {
	return AppendSum(nil, s.sum), nil, nil
}
