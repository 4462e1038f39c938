package index_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/index"
)

func TestSumBytes(t *testing.T) {
	for _, c := range []struct {
		sum   int64
		bytes string
	}{
		{0, "\x00"},
		{-1, "\x01"},
		{1, "\x02"},
		{63, "\x7e"},
		{64, "\x80\x01"},
		{-64, "\x7f"},
		{math.MaxInt64, "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
		{math.MinInt64, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
	} {
		if got := index.AppendSum(nil, c.sum); string(got) != c.bytes {
			t.Errorf("AppendSum(%d) = %x, want %x", c.sum, got, c.bytes)
		}
	}
}

func FuzzSum(f *testing.F) {
	for _, seed := range []string{"", "\x00", "\x02\x00", "\x80\x00", "\x80", "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x02"} {
		f.Add([]byte(seed), int64(len(seed)))
	}
	f.Fuzz(func(t *testing.T, value []byte, sum int64) {
		back, err := index.Sum(index.AppendSum(nil, sum))
		if err != nil || back != sum {
			t.Fatalf("%d comes back as %d, %v", sum, back, err)
		}
		got, err := index.Sum(value)
		if err != nil {
			if !errors.Is(err, index.ErrCorrupt) {
				t.Fatalf("error of class %v", err)
			}
			return
		}
		if again := index.AppendSum(nil, got); !bytes.Equal(again, value) {
			t.Fatalf("%x is read as %d, which is written as %x", value, got, again)
		}
	})
}

// Whoever Adds to what is no sum hears of it and gets no number.
func TestAddToWhatIsNoSum(t *testing.T) {
	x := open(t, vfs.NewMem())
	install(t, x, func(c *index.Cut) { set(c, 'c', "k=not a sum") })
	install(t, x, func(c *index.Cut) { c.Add('c', []byte("k"), 1) })
	if value, ok, err := x.Get(nil, 'c', []byte("k")); err == nil {
		t.Errorf("Get = %q, %v", value, ok)
	}
	it := newIter(t, x, 'c', nil, nil)
	if it.First() || it.Error() == nil {
		t.Errorf("the iterator shows %q, error %v", it.Key(), it.Error())
	}
	if err := it.Close(); err == nil {
		t.Error("Close of the iterator hides the error")
	}
}
