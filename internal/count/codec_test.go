package count

import (
	"bytes"
	"math"
	"testing"

	"github.com/duemq/duemq/internal/record"
)

func TestMinuteOf(t *testing.T) {
	for _, c := range []struct {
		due  int64
		want uint32
	}{
		{math.MinInt64, 1},
		{-1, 1},
		{0, 1},
		{119_999, 1},
		{120_000, 2},
		{1_796_115_600_000, 29_935_260},
		{maxMinute * 60_000, maxMinute},
		{math.MaxInt64, maxMinute},
	} {
		if got := MinuteOf(c.due); got != c.want {
			t.Errorf("MinuteOf(%d) = %d, want %d", c.due, got, c.want)
		}
	}
}

func TestKeysStandInOrder(t *testing.T) {
	var last []byte
	var keys []uint64
	for _, minute := range []uint32{1, 2, 255, 256, maxMinute} {
		keys = append(keys, keyOf(minute, 0))
	}
	for _, minute := range []uint32{1, 2, 255, 256, maxMinute} {
		for _, topic := range []record.TopicNumber{1, 255, 256, math.MaxUint32} {
			keys = append(keys, keyOf(minute, topic))
		}
	}
	for _, want := range keys {
		src := appendKey(nil, want)
		if got, err := decodeKey(src); err != nil || got != want {
			t.Errorf("%x was read as %x, %v; want %x", src, got, err, want)
		}
		if bytes.Compare(last, src) >= 0 {
			t.Errorf("key %x does not stand behind %x", src, last)
		}
		last = src
	}
}

func FuzzDecodeKey(f *testing.F) {
	f.Add(appendKey(nil, keyOf(29_935_260, 7)))
	f.Add(appendKey(nil, keyOf(maxMinute, math.MaxUint32)))
	f.Add(appendKey(nil, keyOf(1, 0)))
	f.Add(appendEach(nil, keyOf(1, 0)))
	f.Add(appendKey(nil, keyOf(0, 1)))
	f.Add(appendKey(nil, keyOf(math.MaxUint32, 1)))
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, src []byte) {
		key, err := decodeKey(src)
		if err == nil && !bytes.Equal(appendKey(nil, key), src) {
			t.Errorf("%x was read as %x", src, key)
		}
		if err == nil && (minuteOfKey(key) == 0 || minuteOfKey(key) > maxMinute) {
			t.Errorf("%x was taken", src)
		}
	})
}

func FuzzDecodeMark(f *testing.F) {
	f.Add(encodeMark(1))
	f.Add(encodeMark(math.MaxUint64))
	f.Add([]byte{0})
	f.Add([]byte{0x80, 0})
	f.Add([]byte{1, 1})
	f.Fuzz(func(t *testing.T, src []byte) {
		number, err := decodeMark(src)
		if err == nil && (number == 0 || !bytes.Equal(encodeMark(number), src)) {
			t.Errorf("%x was read as %d", src, number)
		}
	})
}

// A table is a map, also while it grows and when all keys want one place.
func TestTableAgainstMap(t *testing.T) {
	var m memory
	want := make(map[uint64]int64)
	for i := range uint64(20_000) {
		key := keyOf(uint32(1+i*i%977), record.TopicNumber(1+i%31))
		*m.place(key) += int64(i)
		want[key] += int64(i)
	}
	if m.cells != len(want) {
		t.Errorf("%d cells, want %d", m.cells, len(want))
	}
	m.each(func(c cell) {
		if want[c.key] != c.n {
			t.Errorf("key %x holds %d, want %d", c.key, c.n, want[c.key])
		}
		delete(want, c.key)
	})
	for key, n := range want {
		if n != 0 {
			t.Errorf("key %x with %d is missing", key, n)
		}
	}
}

// No shard has much more than its share, whether many minutes have one topic,
// one minute has many topics, or hours of both are held.
func TestShardsAreEven(t *testing.T) {
	for _, shape := range []struct{ minutes, topics uint32 }{{40_000, 1}, {1, 40_000}, {200, 200}} {
		var m memory
		for minute := range shape.minutes {
			for topic := range shape.topics {
				*m.place(keyOf(29_000_000+minute, record.TopicNumber(1+topic)))++
			}
		}
		for i := range m.shards {
			if used := m.shards[i].used; used > 2*m.cells/shards {
				t.Errorf("%d minutes of %d topics: shard %d has %d of %d cells", shape.minutes, shape.topics, i, used, m.cells)
			}
		}
	}
}
