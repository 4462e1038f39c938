package queue

import (
	"math"
	"slices"
	"testing"

	"github.com/duemq/duemq/internal/record"
)

var sampleEntries = []Entry{
	{ID: 128, VisibleAt: 1_796_115_600_000, Size: 300},
	{ID: 99, Due: 1_796_115_600_123, VisibleAt: 1_796_115_600_124, Size: 17, Tag: 5},
	{ID: 1 << 50, Due: 1, VisibleAt: 1_796_115_600_124, Size: record.MaxBatch, Tag: math.MaxUint32},
}

func TestBlockRoundTrip(t *testing.T) {
	got, err := decodeBlock(nil, appendBlock(nil, sampleEntries))
	if err != nil || !slices.Equal(got, sampleEntries) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func FuzzDecodeBlock(f *testing.F) {
	f.Add(appendBlock(nil, sampleEntries))
	f.Add(appendBlock(nil, nil))
	f.Fuzz(func(t *testing.T, src []byte) {
		entries, err := decodeBlock(nil, src)
		if len(entries) > blockEntries {
			t.Fatalf("%d entries in a block", len(entries))
		}
		if err != nil {
			return
		}
		again, err := decodeBlock(nil, appendBlock(nil, entries))
		if err != nil || !slices.Equal(again, entries) {
			t.Errorf("%+v became %+v, %v", entries, again, err)
		}
	})
}

func FuzzDecodeDirectory(f *testing.F) {
	f.Add([]byte{2, 1, 0, 2, 0}) // as the first stores had it
	f.Add(appendDirectory(nil, []frozenQueue{{queue: 1, from: 0}, {queue: 70_000, from: 1 << 40}}, 1_796_115_600_000))
	f.Fuzz(func(t *testing.T, src []byte) {
		var queues []frozenQueue
		last, err := decodeDirectory(src, func(q record.QueueNumber, from record.Offset) {
			queues = append(queues, frozenQueue{queue: q, from: from})
		})
		if len(queues) > len(src) {
			t.Errorf("%d queues in %d bytes", len(queues), len(src))
		}
		if err != nil || last == unknown {
			return
		}
		n := 0
		again, err := decodeDirectory(appendDirectory(nil, queues, last), func(q record.QueueNumber, from record.Offset) {
			if n >= len(queues) || queues[n].queue != q || queues[n].from != from {
				t.Errorf("queue %d is %d from %d", n, q, from)
			}
			n++
		})
		if err != nil || again != last || n != len(queues) {
			t.Errorf("%d queues, last %d became %d, %d, %v", len(queues), last, n, again, err)
		}
	})
}

func FuzzRestore(f *testing.F) {
	f.Add((&Queue{Topic: 3, next: 12, lastVisible: 1_796_115_600_000}).appendState())
	f.Fuzz(func(t *testing.T, state []byte) {
		s := NewSet(nil, Visible())
		if s.Restore(5, state) != nil {
			return
		}
		again := NewSet(nil, Visible())
		if err := again.Restore(5, s.Get(5).appendState()); err != nil || again.Get(5).Next() != s.Get(5).Next() {
			t.Errorf("state %x does not survive: %v", state, err)
		}
	})
}

// TestMemoryReadsEveryOffset reads from every offset, across a freeze, with
// limits that end inside pieces.
func TestMemoryReadsEveryOffset(t *testing.T) {
	s := NewSet(nil, Visible())
	q := s.Add(1, 1)
	const n = 3000
	for i := range n {
		if i == 1700 {
			s.Freeze(1, 0)
		}
		s.Append(q, Entry{ID: record.ID(1000 + i)}, int64(i/10))
	}
	for from := range record.Offset(n) {
		for _, limit := range []int{1, 7, 1024} {
			got, ok := q.Memory(nil, from, limit)
			if want := min(limit, n-int(from)); !ok || len(got) != want {
				t.Fatalf("from %d limit %d: %d entries, want %d (%v)", from, limit, len(got), want, ok)
			}
			for i, e := range got {
				if e.ID != record.ID(1000+int(from)+i) {
					t.Fatalf("from %d: entry %d is %v", from, i, e.ID)
				}
			}
		}
	}
	if got, _ := q.Memory(nil, n, 10); len(got) != 0 {
		t.Errorf("%d entries behind the end", len(got))
	}
}
