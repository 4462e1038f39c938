package log

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// originSource is a log of several segments, and where its last one begins.
func originSource(t *testing.T) (list []*record.Batch, pos []uint64, origin Start) {
	t.Helper()
	l := mustOpen(t, testOptions(fs.NewMem()), Start{})
	for i := range uint64(40) {
		list = append(list, testBatch(i+1, 5000, 1))
	}
	pos = mustAppend(t, l, list...)
	segments := l.Segments()
	last := segments[len(segments)-1]
	if last.Base == 0 {
		t.Fatal("the source has one segment only")
	}
	mustSync(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return list, pos, Start{Position: last.Base, Index: last.First - 1}
}

// holdsFrom says how a log that begins behind origin differs from the end of
// list up to its own last batch.
func holdsFrom(l *Log, origin Start, list []*record.Batch, pos []uint64) error {
	if l.FirstIndex() != origin.Index+1 || l.FirstPosition() != origin.Position {
		return fmt.Errorf("log begins with batch %d at %d, want %d at %d", l.FirstIndex(), l.FirstPosition(), origin.Index+1, origin.Position)
	}
	got, err := replay(l, Start{})
	if err != nil {
		return err
	}
	if uint64(len(got)) != l.LastIndex()-origin.Index {
		return fmt.Errorf("%d batches behind %d, and the last one is %d", len(got), origin.Index, l.LastIndex())
	}
	for i := range got {
		at := origin.Index + uint64(i)
		if got[i].pos != pos[at] {
			return fmt.Errorf("batch %d at position %d, want %d", at+1, got[i].pos, pos[at])
		}
		if err := same(&got[i].batch, list[at]); err != nil {
			return err
		}
	}
	return nil
}

// TestOrigin copies the end of one log into another that begins there, and
// crashes that before every operation: the positions are those of the source.
func TestOrigin(t *testing.T) {
	list, pos, origin := originSource(t)
	tail := list[origin.Index:]
	mem := fs.NewMem()
	faulty := fs.NewFaulty(mem)
	o := testOptions(faulty)
	o.Origin = origin
	look := func(op fs.Op) {
		for _, percent := range []int{0, 50, 100} {
			disk := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(uint64(op.Number), 5))})
			again := o
			again.FS = disk
			l, err := Open(again, Start{})
			if err == nil {
				err = holdsFrom(l, origin, list, pos)
			}
			if err == nil {
				rest := list[l.LastIndex():]
				err = errors.Join(l.Append(rest, make([]uint64, len(rest))), holdsFrom(l, origin, list, pos), l.Close())
			}
			if err != nil {
				t.Errorf("crash with %d %% before %s: %v", percent, op, err)
			}
		}
	}
	faulty.Hooks(look, nil)
	l := mustOpen(t, o, origin)
	for _, b := range tail {
		mustAppend(t, l, b)
		mustSync(t, l)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	faulty.Hooks(nil, nil)
	report, err := Verify(o, nil)
	if err != nil || len(report.Damage) > 0 || report.Batches != uint64(len(tail)) {
		t.Errorf("verify: %d batches, damage %v, %v", report.Batches, report.Damage, err)
	}
}

// TestOriginTruncated takes away everything that a log with an origin holds, at
// every operation on the way, and writes other and smaller batches there.
func TestOriginTruncated(t *testing.T) {
	list, _, origin := originSource(t)
	mem := fs.NewMem()
	faulty := fs.NewFaulty(mem)
	o := testOptions(faulty)
	o.Origin = origin
	l := mustOpen(t, o, origin)
	mustAppend(t, l, list[origin.Index:]...)
	mustSync(t, l)
	other := make([]*record.Batch, 3)
	for i := range other {
		other[i] = testBatch(origin.Index+1+uint64(i), 300, 2)
	}
	look := func(op fs.Op) {
		again := o
		disk := mem.CrashClone(vfs.CrashCloneCfg{})
		again.FS = disk
		l, err := Open(again, Start{})
		if err == nil {
			err = l.TruncateSuffix(origin.Index + 1)
		}
		if err == nil && (l.LastIndex() != origin.Index || l.End().Position != origin.Position) {
			err = fmt.Errorf("truncated log ends at %+v, want %+v", l.End(), origin)
		}
		if err == nil {
			err = errors.Join(l.Append(other, make([]uint64, len(other))), l.Sync())
		}
		again.FS = disk.CrashClone(vfs.CrashCloneCfg{})
		if err == nil {
			l, err = Open(again, Start{})
		}
		if err == nil && l.LastIndex() != origin.Index+uint64(len(other)) {
			err = fmt.Errorf("log ends with batch %d", l.LastIndex())
		}
		if err != nil {
			t.Errorf("crash before %s: %v", op, err)
		}
	}
	faulty.Hooks(look, nil)
	if err := l.TruncateSuffix(origin.Index + 1); err != nil {
		t.Fatal(err)
	}
	at := mustAppend(t, l, other...)
	mustSync(t, l)
	faulty.Hooks(nil, nil)
	if at[0] != origin.Position+HeaderBytes {
		t.Errorf("first batch at %d, want %d", at[0], origin.Position+HeaderBytes)
	}
	if err := l.TruncateSuffix(origin.Index); !errors.Is(err, ErrRemoved) {
		t.Errorf("truncation below the origin: %v, want ErrRemoved", err)
	}
}

// TestOriginRefused wants the beginning of a segment, and a log that is there
// already stays where it begins.
func TestOriginRefused(t *testing.T) {
	mem := fs.NewMem()
	for _, bad := range []Start{{Position: 48, Index: 3}, {Position: MinSegmentBytes}, {Index: 3}} {
		o := testOptions(mem)
		o.Origin = bad
		if _, err := Open(o, Start{}); err == nil {
			t.Errorf("opened with origin %+v", bad)
		}
	}
	o := testOptions(mem)
	l := mustOpen(t, o, Start{})
	mustAppend(t, l, testBatch(1, 300, 1))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	o.Origin = Start{Position: MinSegmentBytes, Index: 7}
	if l = mustOpen(t, o, Start{}); l.FirstIndex() != 1 || l.LastIndex() != 1 {
		t.Errorf("log of one batch holds %d to %d after an opening with an origin", l.FirstIndex(), l.LastIndex())
	}
	if _, err := Open(testOptions(fs.NewMem()), o.Origin); err == nil {
		t.Error("opened an empty folder from a place behind batch 7")
	}
}
