package count

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// SpaceCounts is the index's space of counts: key minute of the due and topic,
// 4 bytes each, value a sum; and the empty key, the mark, with the number of
// the last cut that had counts. See docs/formats/index.md.
const SpaceCounts index.Space = 'c'

const minuteMillis = 60_000

// maxMinute is the last minute there is, in the year 10136: one below the
// largest number, so that a range, whose end is exclusive, can hold it.
const maxMinute = math.MaxUint32 - 1

// MinuteOf is the minute of a due (Unix ms): how many whole minutes before it,
// since 1970. Dues outside what is counted belong to the first or last minute.
func MinuteOf(due int64) uint32 {
	return uint32(min(max(due/minuteMillis, 0), maxMinute))
}

// keyOf is a key as a number; its bytes, big-endian, are those in the index.
func keyOf(minute uint32, topic record.TopicNumber) uint64 {
	return uint64(minute)<<32 | uint64(topic)
}

func minuteOfKey(key uint64) uint32 { return uint32(key >> 32) }

func topicOfKey(key uint64) record.TopicNumber { return record.TopicNumber(uint32(key)) }

func appendKey(dst []byte, key uint64) []byte {
	return binary.BigEndian.AppendUint64(dst, key)
}

func decodeKey(src []byte) (uint64, error) {
	if len(src) != 8 {
		return 0, fmt.Errorf("%w: key %x of a count in the index", record.ErrCorrupt, src)
	}
	key := binary.BigEndian.Uint64(src)
	if topicOfKey(key) == 0 || minuteOfKey(key) > maxMinute {
		return 0, fmt.Errorf("%w: key %x of a count in the index", record.ErrCorrupt, src)
	}
	return key, nil
}

func appendMark(dst []byte, number uint64) []byte { return binary.AppendUvarint(dst, number) }

func decodeMark(src []byte) (uint64, error) {
	number, n := binary.Uvarint(src)
	if n <= 0 || n != len(src) || n > 1 && src[n-1] == 0 || number == 0 {
		return 0, fmt.Errorf("%w: mark %x of the counts in the index", record.ErrCorrupt, src)
	}
	return number, nil
}
