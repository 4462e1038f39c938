package log

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/duemq/duemq/internal/record"
)

func TestMarks(t *testing.T) {
	var m marks
	for _, c := range []struct {
		start uint64
		want  string
	}{
		{0, "[{1 0}]"},
		{128, "[{1 0} {2 128}]"},
		{900, "[{1 0} {2 128} {3 900}]"},
		{900, "[{1 0} {2 128} {4 900}]"}, // opened twice, nothing between
		{500, "[{1 0} {2 128} {5 500}]"}, // truncated below the last mark
		{0, "[{6 0}]"},
		{70, "[{6 0} {7 70}]"},
	} {
		if m = m.add(c.start); fmt.Sprint(m) != c.want {
			t.Fatalf("add(%d): %v, want %s", c.start, m, c.want)
		}
	}
}

func TestEpochAt(t *testing.T) {
	m := marks{{3, 100}, {5, 200}, {9, 400}}
	for pos, want := range map[uint64]uint64{0: 0, 99: 0, 100: 3, 199: 3, 200: 5, 399: 5, 400: 9, 1 << 60: 9} {
		if got := m.epochAt(pos); got != want {
			t.Errorf("epochAt(%d) = %d, want %d", pos, got, want)
		}
	}
	for first, want := range map[uint64]string{
		0: "[{3 100} {5 200} {9 400}]", 199: "[{3 100} {5 200} {9 400}]",
		200: "[{5 200} {9 400}]", 1000: "[{9 400}]",
	} {
		p := m.prune(first)
		if fmt.Sprint(p) != want {
			t.Errorf("prune(%d) = %v, want %s", first, p, want)
		}
		for pos := first; pos < 500; pos += 7 {
			if p.epochAt(pos) != m.epochAt(pos) {
				t.Errorf("prune(%d) changes the epoch at %d", first, pos)
			}
		}
	}
}

func TestMarksRefused(t *testing.T) {
	good := encodeMarks(testID, marks{{1, 0}, {2, 128}})
	for name, src := range map[string][]byte{
		"empty":         nil,
		"cut short":     good[:len(good)-1],
		"one too many":  append(bytes.Clone(good), 0),
		"no marks":      encodeMarks(testID, nil),
		"falling epoch": encodeMarks(testID, marks{{2, 0}, {1, 128}}),
		"falling start": encodeMarks(testID, marks{{1, 128}, {2, 128}}),
		"epoch zero":    encodeMarks(testID, marks{{0, 0}}),
	} {
		if _, _, err := decodeMarks(src); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
	}
}

func FuzzMarks(f *testing.F) {
	f.Add(encodeMarks(testID, marks{{1, 0}, {2, 128}, {7, 1 << 40}}))
	f.Fuzz(func(t *testing.T, src []byte) {
		id, m, err := decodeMarks(src)
		if err != nil {
			return
		}
		if got := encodeMarks(id, m); !bytes.Equal(got, src) {
			t.Errorf("decoded %v, which encodes to %x, not %x", m, got, src)
		}
	})
}
