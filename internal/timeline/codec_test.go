package timeline

import (
	"bytes"
	"math"
	"testing"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

var sampleRefs = []record.Ref{
	{Due: 1, ID: 128, Size: 1, Queue: 1, Kind: record.KindMessage},
	{Due: 1_796_115_600_000, ID: 1 << 40, Size: record.MaxBatch, Queue: math.MaxUint32, Tag: 7, Kind: record.KindRetry, Level: Levels},
	{Due: math.MaxInt64, ID: math.MaxUint64, Size: 300, Queue: 9, Tag: math.MaxUint32, Kind: 255},
}

func TestRefRoundTrip(t *testing.T) {
	var last []byte
	for _, want := range sampleRefs {
		key := appendRefKey(nil, want.Key())
		got, err := decodeRef(key, appendRefValue(nil, &want))
		if err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
		if bytes.Compare(last, key) >= 0 {
			t.Errorf("key %x does not stand behind %x", key, last)
		}
		last = key
	}
}

func FuzzDecodeRef(f *testing.F) {
	for _, r := range sampleRefs {
		f.Add(appendRefKey(nil, r.Key()), appendRefValue(nil, &r))
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		r, err := decodeRef(key, value)
		if err != nil {
			return
		}
		again, err := decodeRef(appendRefKey(nil, r.Key()), appendRefValue(nil, &r))
		if err != nil || again != r {
			t.Errorf("%+v became %+v, %v", r, again, err)
		}
	})
}

func FuzzDecodeOutcome(f *testing.F) {
	f.Add(appendOutcome(nil, Outcome{State: Moved, Due: 1_796_115_600_000, At: 300}))
	f.Add(appendOutcome(nil, Outcome{State: Cancelled, Due: 1, At: 1 << 40, Stamp: 1_796_115_600_000}))
	f.Fuzz(func(t *testing.T, src []byte) {
		o, err := decodeOutcome(src)
		if err != nil {
			return
		}
		if again, err := decodeOutcome(appendOutcome(nil, o)); err != nil || again != o {
			t.Errorf("%+v became %+v, %v", o, again, err)
		}
	})
}

// noSource is an index without keys.
type noSource struct{}

func (noSource) NewIter(index.Space, []byte, []byte) (*index.Iter, error) {
	return nil, index.ErrClosed
}

func (noSource) Get([]byte, index.Space, []byte) ([]byte, bool, error) { return nil, false, nil }

func FuzzDecodeState(f *testing.F) {
	t := New(noSource{}, 1000)
	t.Add(record.Ref{Due: 2000, ID: 128, Size: 9, Queue: 1, Kind: record.KindMessage, Level: 3}, 1000, 128, false)
	t.Add(record.Ref{Due: 3000, ID: 256, Size: 9, Queue: 1, Kind: record.KindMessage}, 1000, 256, false)
	t.PopDue(2500, 10, func(*record.Ref) {})
	f.Add(t.encodeState())
	t.Rebase(1500, 512)
	f.Add(t.encodeState())
	f.Fuzz(func(t *testing.T, src []byte) {
		a, b := New(noSource{}, 0), New(noSource{}, 0)
		if a.decodeState(src) != nil {
			return
		}
		state := a.encodeState()
		if err := b.decodeState(state); err != nil || !bytes.Equal(b.encodeState(), state) {
			t.Errorf("state %x became %x, %v", state, b.encodeState(), err)
		}
	})
}

// TestPopAllocatesNothing: moving what is due to its queue is the hot path.
func TestPopAllocatesNothing(t *testing.T) {
	tl := New(noSource{}, 0)
	const n = 20_000
	for i := range n {
		r := record.Ref{Due: int64(i/7 + 1), ID: record.ID(128 + i), Size: 9, Queue: 1, Kind: record.KindMessage, Level: uint8(i % 2)}
		tl.Add(r, 0, r.ID, false)
	}
	var last record.Key
	stamp := int64(0)
	pop := func(r *record.Ref) {
		if r.Key().Compare(last) <= 0 {
			t.Errorf("%v popped after %v", r.Key(), last)
		}
		last = r.Key()
	}
	if got := testing.AllocsPerRun(20, func() {
		stamp += 50
		tl.PopDue(stamp, 10_000, pop)
		tl.Next()
	}); got > 0 {
		t.Errorf("%v allocations to pop what is due in 50 ms", got)
	}
}
