package log

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strings"
	"syscall"
	"testing"

	"github.com/duemq/duemq/internal/fs"
)

// TestRecycle writes a log many times over its own removed segments. What a
// recycled file still holds is never taken for a batch: neither when it is read
// on nor after a crash that leaves the old bytes.
func TestRecycle(t *testing.T) {
	mem := fs.NewMem()
	o := testOptions(mem)
	l := mustOpen(t, o, Start{})
	// All batches have one size, so that old frames stand where new ones end.
	index := uint64(0)
	for range 200 {
		index++
		mustAppend(t, l, testBatch(index, 8000, 1))
		mustSync(t, l)
		if err := l.RemoveBefore(l.End().Position - min(l.End().Position, MinSegmentBytes)); err != nil {
			t.Fatal(err)
		}
		if index%7 == 0 {
			disk := mem.CrashClone(crashNothing)
			again := o
			again.FS = disk
			r := mustOpen(t, again, Start{})
			if r.LastIndex() != index || r.Recovered().Torn != 0 {
				t.Fatalf("after a crash the log ends with batch %d of %d, %d torn bytes", r.LastIndex(), index, r.Recovered().Torn)
			}
		}
	}
	// The file of the last segment is an old one, and full of old frames.
	raw, err := readSmall(mem, l.active().path, MinSegmentBytes)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(raw, []byte("DqL1")); n < 8 {
		t.Errorf("%d frames in a recycled file, want it full", n)
	}
	names, err := mem.List(testDir)
	if err != nil || len(names) > 6 {
		t.Errorf("folder holds %v, %v", names, err)
	}
}

// folder lists the log's folder, without the digits that do not matter.
func folder(t *testing.T, l *Log) string {
	t.Helper()
	names, err := l.disk.fs.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(names)
	for i, n := range names {
		if base, ok := parseName(strings.TrimSuffix(n, spareSuffix)+segmentSuffix, segmentSuffix); ok && strings.HasSuffix(n, spareSuffix) {
			names[i] = fmt.Sprintf("spare%d", base/MinSegmentBytes)
		} else if base, ok := parseName(n, segmentSuffix); ok {
			names[i] = fmt.Sprintf("seg%d", base/MinSegmentBytes)
		}
	}
	return strings.Join(names, " ")
}

func TestSpares(t *testing.T) {
	for spares, want := range map[int]string{
		0:  "spare0 spare1 seg4 MARKS",
		1:  "spare0 seg4 MARKS",
		3:  "spare0 spare1 spare2 seg4 MARKS",
		-1: "seg4 MARKS",
	} {
		mem := fs.NewMem()
		o := testOptions(mem)
		o.Spares = spares
		l := mustOpen(t, o, Start{})
		for i := range uint64(5) {
			mustAppend(t, l, testBatch(i+1, 40000, 1))
		}
		if err := l.RemoveBefore(3*MinSegmentBytes + 100); err != nil {
			t.Fatal(err)
		}
		if err := l.RemoveBefore(l.End().Position + 1<<40); err != nil {
			t.Fatal(err)
		}
		if got := folder(t, l); got != want {
			t.Errorf("spares %d: folder holds %s, want %s", spares, got, want)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		// With another setting, what is too much goes at the next opening.
		o.Spares = 1
		l = mustOpen(t, o, Start{})
		if n := strings.Count(folder(t, l), "spare"); n > 1 {
			t.Errorf("spares %d, then 1: folder holds %s", spares, folder(t, l))
		}
		if n := len(mustReplay(t, l, Start{})); n != 1 {
			t.Errorf("%d batches are left, want 1", n)
		}
	}
}

// TestRemoveFails: a file that cannot be moved away stays, and the log goes on.
func TestRemoveFails(t *testing.T) {
	f := fs.NewFaulty(fs.NewMem())
	l := mustOpen(t, testOptions(f), Start{})
	for i := range uint64(3) {
		mustAppend(t, l, testBatch(i+1, 40000, 1))
	}
	f.Inject(fs.Fault{At: 1, Match: ofKind(fs.OpRename)})
	if err := l.RemoveBefore(l.End().Position); !errors.Is(err, syscall.EIO) || errors.Is(err, ErrPoisoned) {
		t.Errorf("RemoveBefore: %v, want EIO and no poison", err)
	}
	if n := len(mustReplay(t, l, Start{})); n != 3 {
		t.Errorf("%d batches are left", n)
	}
	if err := l.RemoveBefore(l.End().Position); err != nil || l.FirstIndex() != 3 {
		t.Errorf("RemoveBefore again: %v, log begins with batch %d", err, l.FirstIndex())
	}
}

// TestTruncateSuffix cuts at every batch of a log and goes on with others.
func TestTruncateSuffix(t *testing.T) {
	sizes := []int{300, 40000, 30000, 200, 30000, MinSegmentBytes - HeaderBytes, 500}
	for from := uint64(1); from <= uint64(len(sizes)+2); from++ {
		mem := fs.NewMem()
		w := newWorkload(testOptions(mem), from, 1, 0)
		if err := w.open(); err != nil {
			t.Fatal(err)
		}
		h := w.model.now()
		for i, size := range sizes {
			h.list = append(h.list, testBatch(uint64(i+1), size, 1))
		}
		mustAppend(t, w.log, h.list...)
		if err := w.log.TruncateSuffix(from); err != nil {
			t.Fatal(err)
		}
		h.list = h.list[:min(int(from)-1, len(sizes))]
		if err := w.model.check(w.log); err != nil {
			t.Errorf("truncated from %d: %v", from, err)
		}
		if synced := w.log.Synced(); from <= uint64(len(sizes)) && synced != w.log.End().Position {
			t.Errorf("truncated from %d: synced to %d of %d", from, synced, w.log.End().Position)
		}
		// Smaller batches take the freed room, in the segment before if they fit.
		if err := errors.Join(w.append(), w.sync()); err != nil {
			t.Errorf("truncated from %d, then: %v", from, err)
		}
		if err := reopen(mem.CrashClone(crashNothing), testOptions(nil), w.model, 1); err != nil {
			t.Errorf("truncated from %d, then a crash: %v", from, err)
		}
	}
}

func TestTruncateRefused(t *testing.T) {
	l := mustOpen(t, testOptions(fs.NewMem()), Start{})
	for i := range uint64(4) {
		mustAppend(t, l, testBatch(i+1, 40000, 1))
	}
	if err := l.RemoveBefore(2 * MinSegmentBytes); err != nil {
		t.Fatal(err)
	}
	for _, from := range []uint64{0, 1, 2, 3} {
		if err := l.TruncateSuffix(from); !errors.Is(err, ErrRemoved) {
			t.Errorf("truncate from %d: %v, want ErrRemoved", from, err)
		}
	}
	if err := l.TruncateSuffix(4); err != nil || l.LastIndex() != 3 {
		t.Errorf("truncate from 4: %v, log ends with %d", err, l.LastIndex())
	}
}
