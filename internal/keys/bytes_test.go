package keys

import (
	"bytes"
	"math"
	"testing"
)

func FuzzDecodeRow(f *testing.F) {
	f.Add(appendRow(nil, 20788, Sum([]byte("order-1")), 4096))
	f.Add(appendRow(nil, carried, math.MaxUint64, math.MaxUint64))
	f.Fuzz(func(t *testing.T, key []byte) {
		bucket, hash, id, err := decodeRow(key)
		if err == nil && !bytes.Equal(appendRow(nil, bucket, hash, id), key) {
			t.Errorf("%x became %d %x %v", key, bucket, hash, id)
		}
	})
}

func FuzzDecodeQueue(f *testing.F) {
	f.Add(appendQueue(nil, 0))
	f.Add(appendQueue(nil, math.MaxUint32))
	f.Fuzz(func(t *testing.T, value []byte) {
		q, err := decodeQueue(value)
		if err != nil {
			return
		}
		if again, err := decodeQueue(appendQueue(nil, q)); err != nil || again != q {
			t.Errorf("%d became %d, %v", q, again, err)
		}
	})
}

func FuzzSums(f *testing.F) {
	f.Add([]byte("order-1  alice order-1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := Sums(nil, text)
		if len(got) > MaxKeys {
			t.Fatalf("%d hashes", len(got))
		}
		want := map[uint64]bool{}
		for key := range bytes.SplitSeq(text, []byte{' '}) {
			if len(key) > 0 && len(want) < MaxKeys {
				want[Sum(key)] = true
			}
		}
		for _, h := range got {
			if !want[h] {
				t.Errorf("%x is no key's hash, or is there twice", h)
			}
			delete(want, h)
		}
		if len(want) > 0 {
			t.Errorf("hashes left out: %v", want)
		}
	})
}
