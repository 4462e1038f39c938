package log

import (
	"errors"
	"slices"
	"testing"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// salvaged is what Salvage says of each place: the index of a batch, with a
// minus where it is damaged and 0 where there is none to be believed.
func salvaged(t *testing.T, l *Log, from, to uint64) (found []int) {
	t.Helper()
	err := l.Salvage(from, to, func(_ uint64, b *record.Batch, err error) error {
		switch {
		case err == nil:
			found = append(found, int(b.Index))
		case b != nil:
			found = append(found, -int(b.Index))
		default:
			found = append(found, 0)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestSalvageGoesOnBehindDamage flips bytes in a batch and in a local part of
// the first segment and demands everything else.
func TestSalvageGoesOnBehindDamage(t *testing.T) {
	mem := fs.NewMem()
	l := mustOpen(t, testOptions(mem), Start{})
	var list []*record.Batch
	for i := range uint64(30) {
		list = append(list, testBatch(i+1, 5000, 1))
		mustAppend(t, l, list[i])
	}
	mustSync(t, l)
	pos := positions(list, MinSegmentBytes)
	second := uint64(MinSegmentBytes)
	first := slices.IndexFunc(pos, func(p uint64) bool { return p >= second })
	if first < 8 {
		t.Fatalf("%d batches in the first segment", first)
	}
	var whole []int
	for i := range first {
		whole = append(whole, i+1)
	}
	if got := salvaged(t, l, 0, second); !slices.Equal(got, whole) {
		t.Fatalf("salvaged %v, want %v", got, whole)
	}
	for _, at := range []uint64{pos[2] + LocalBytes + record.BatchHeader + 100, pos[5] + 4} {
		if err := flipBit(mem, segmentPath(mem, 0), int64(at)*8); err != nil {
			t.Fatal(err)
		}
	}
	want := slices.Clone(whole)
	want[2], want[5] = -3, 0
	if got := salvaged(t, l, 0, second); !slices.Equal(got, want) {
		t.Errorf("salvaged %v, want %v", got, want)
	}
	if got := salvaged(t, l, second, 2*second); len(got) == 0 || got[0] != first+1 {
		t.Errorf("the second segment gives %v", got)
	}
	stop := errors.New("enough")
	if err := l.Salvage(0, second, func(uint64, *record.Batch, error) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("salvage ends with %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
