package count

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// SpaceCounts is the index's space of counts: key 1, minute of the due and
// topic, value a sum; key 0 and minute, value the sum of all topics; and the
// empty key, the mark, with the number of the last cut that had counts. See
// docs/formats/index.md.
const SpaceCounts index.Space = 'c'

const minuteMillis = 60_000

// The first minute there is, so that no key is 0, and the last, in the year
// 10136: a range, whose end is exclusive, can hold it.
const (
	minMinute = 1
	maxMinute = math.MaxUint32 - 1
)

// MinuteOf is the minute of a due (Unix ms): how many whole minutes are before
// it, since 1970. Dues outside what is counted belong to the first or the last
// minute, 1 and 2^32 - 2.
func MinuteOf(due int64) uint32 {
	return uint32(min(max(due/minuteMillis, minMinute), maxMinute))
}

// The first byte of a key in the index says what is summed. What most questions
// are about, all topics, stands together.
const (
	ofAll  = 0
	ofEach = 1
)

// keyOf is a key as a number, in the order of minutes. The sum of all topics has
// topic 0.
func keyOf(minute uint32, topic record.TopicNumber) uint64 {
	return uint64(minute)<<32 | uint64(topic)
}

func minuteOfKey(key uint64) uint32 { return uint32(key >> 32) }

func topicOfKey(key uint64) record.TopicNumber { return record.TopicNumber(uint32(key)) }

// totalOf is the key of the sum of all topics in a key's minute.
func totalOf(key uint64) uint64 { return key &^ math.MaxUint32 }

func appendKey(dst []byte, key uint64) []byte {
	if topicOfKey(key) == 0 {
		return binary.BigEndian.AppendUint32(append(dst, ofAll), minuteOfKey(key))
	}
	return appendEach(dst, key)
}

// appendEach appends a key of a single topic, or with topic 0 where those of a
// minute begin.
func appendEach(dst []byte, key uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, ofEach), key)
}

func decodeKey(src []byte) (key uint64, err error) {
	switch {
	case len(src) == 5 && src[0] == ofAll:
		key = keyOf(binary.BigEndian.Uint32(src[1:]), 0)
	case len(src) == 9 && src[0] == ofEach && binary.BigEndian.Uint32(src[5:]) != 0:
		key = binary.BigEndian.Uint64(src[1:])
	default:
		return 0, badKey(src)
	}
	if m := minuteOfKey(key); m < minMinute || m > maxMinute {
		return 0, badKey(src)
	}
	return key, nil
}

func badKey(src []byte) error {
	return fmt.Errorf("%w: key %x of a count in the index", record.ErrCorrupt, src)
}

func encodeMark(number uint64) []byte { return binary.AppendUvarint(nil, number) }

func decodeMark(src []byte) (uint64, error) {
	number, n := binary.Uvarint(src)
	if n <= 0 || n != len(src) || n > 1 && src[n-1] == 0 || number == 0 {
		return 0, fmt.Errorf("%w: mark %x of the counts in the index", record.ErrCorrupt, src)
	}
	return number, nil
}
