package dedupe

import (
	"bytes"
	"math"
	"testing"

	"github.com/duemq/duemq/internal/record"
)

var sampleStored = []stored{
	{},
	{Entry{ID: 4096, Print: math.MaxUint64, Until: 1_796_115_600_000, Ref: record.Ref{ID: 4096, Size: 300, Queue: 7, Kind: record.KindMessage}}, 1_796_115_600_000},
	{Entry{ID: math.MaxUint64, Until: 5, Ref: record.Ref{
		Due: math.MaxInt64, ID: 1, Size: math.MaxUint32, Queue: math.MaxUint32, Tag: math.MaxUint32, Kind: record.KindCheck, Level: 18,
	}}, math.MaxInt64},
}

func TestStoredRoundTrip(t *testing.T) {
	for _, want := range sampleStored {
		got, err := decodeStored(appendStored(nil, want))
		if err != nil || got != want {
			t.Errorf("%+v became %+v, %v", want, got, err)
		}
	}
}

func FuzzDecodeStored(f *testing.F) {
	for _, s := range sampleStored {
		f.Add(appendStored(nil, s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := decodeStored(src)
		if err != nil {
			return
		}
		if s.filed < s.entry.Until || s.entry.Until < 0 {
			t.Fatalf("%+v is filed under %d", s.entry, s.filed)
		}
		if again, err := decodeStored(appendStored(nil, s)); err != nil || again != s {
			t.Errorf("%+v became %+v, %v", s, again, err)
		}
	})
}

func FuzzDecodeFiled(f *testing.F) {
	f.Add(appendFiled(nil, 1_796_115_600_000, record.Hash{1, 2}))
	f.Add(appendFiled(nil, math.MaxInt64, record.Hash{}))
	f.Fuzz(func(t *testing.T, key []byte) {
		at, h, err := decodeFiled(key)
		if err == nil && (at < 0 || !bytes.Equal(appendFiled(nil, at, h), key)) {
			t.Errorf("%x became %d %x", key, at, h)
		}
	})
}
