package log

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// TestAppendRefused: a run that cannot be written as a whole is not written at
// all, and the log goes on.
func TestAppendRefused(t *testing.T) {
	mem := fs.NewMem()
	f := fs.NewFaulty(mem)
	l := mustOpen(t, testOptions(f), Start{})
	mustAppend(t, l, testBatch(1, 300, 1))
	good, end, ops := testBatch(2, 300, 1), l.End(), f.Ops()
	odd := testBatch(3, 300, 1)
	odd.Flags = 1 << 9
	for name, c := range map[string]struct {
		run  []*record.Batch
		room int
		want error
	}{
		"gap":            {[]*record.Batch{testBatch(3, 300, 1)}, 1, ErrGap},
		"repetition":     {[]*record.Batch{testBatch(1, 300, 1)}, 1, ErrGap},
		"gap in the run": {[]*record.Batch{good, testBatch(4, 300, 1)}, 2, ErrGap},
		"too large":      {[]*record.Batch{good, testBatch(3, MinSegmentBytes, 1)}, 2, record.ErrTooLarge},
		"by one step":    {[]*record.Batch{good, testBatch(3, MinSegmentBytes-HeaderBytes+Align, 1)}, 2, record.ErrTooLarge},
		"unknown flag":   {[]*record.Batch{good, odd}, 2, record.ErrVersion},
		"no room":        {[]*record.Batch{good}, 0, nil},
	} {
		err := l.Append(c.run, make([]uint64, c.room))
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if l.End() != end || f.Ops() != ops {
			t.Errorf("%s: something was written", name)
		}
	}
	mustAppend(t, l, good)
	mustAppend(t, l) // an empty run is no work
	if n := len(mustReplay(t, l, Start{})); n != 2 {
		t.Errorf("log holds %d batches, want 2", n)
	}
}

// TestRareEntries appends what raft writes beside commands.
func TestRareEntries(t *testing.T) {
	l := mustOpen(t, testOptions(fs.NewMem()), Start{})
	list := []*record.Batch{
		{Type: record.EntryNoop, Index: 1, Term: 1},
		{Type: record.EntryConfiguration, Index: 2, Term: 1, Data: []byte("configuration"), Extensions: []byte("x")},
		{Type: record.EntryBarrier, Index: 3, Term: 2},
		{Type: record.EntryCommands, Flags: record.FlagRebase, Index: 4, Term: 2, Stamp: 5},
	}
	mustAppend(t, l, list...)
	for i, k := range mustReplay(t, l, Start{}) {
		if err := same(&k.batch, list[i]); err != nil {
			t.Error(err)
		}
	}
}

// TestOneWriteARun counts the operations of a group commit.
func TestOneWriteARun(t *testing.T) {
	f := fs.NewFaulty(fs.NewMem())
	l := mustOpen(t, testOptions(f), Start{})
	count := func(batches ...*record.Batch) string {
		f.Record()
		mustAppend(t, l, batches...)
		mustSync(t, l)
		mustSync(t, l) // nothing to do
		kinds := make(map[fs.Kind]int)
		for _, op := range f.Recorded() {
			kinds[op.Kind]++
		}
		return fmt.Sprint(kinds)
	}
	if got := count(testBatch(1, 20000, 1), testBatch(2, 20000, 1), testBatch(3, 300, 1)); got != "map[write:1 sync:1]" {
		t.Errorf("a run in one segment: %s", got)
	}
	// A roll: what fits and its sync, the new file with its header, the rest.
	if got := count(testBatch(4, 20000, 1), testBatch(5, 20000, 1)); got != "map[create:1 open-write:2 rename:1 write:3 sync:3 sync-dir:1]" {
		t.Errorf("a run over two segments: %s", got)
	}
}

// TestLongRun is written in several pieces, so that the buffer stays bounded.
func TestLongRun(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.SegmentBytes = 16 << 20
	l := mustOpen(t, o, Start{})
	var run []*record.Batch
	for i := range uint64(18) {
		run = append(run, testBatch(i+1, 1<<20, 1))
	}
	pos := mustAppend(t, l, run...)
	if !slices.Equal(pos, positions(run, 16<<20)) {
		t.Error("positions differ from the rule")
	}
	if cap(l.buffer) > 2*maxWrite+record.MaxBatch {
		t.Errorf("buffer of %d bytes", cap(l.buffer))
	}
	for i, k := range mustReplay(t, l, Start{}) {
		if err := same(&k.batch, run[i]); err != nil {
			t.Error(err)
		}
	}
}

// TestFullDiskAtRoll: without room for a new segment nothing of the run is
// written and nothing is lost; when there is room again the log goes on.
func TestFullDiskAtRoll(t *testing.T) {
	for _, kind := range []fs.Kind{fs.OpCreate, fs.OpPreallocate} {
		mem := fs.NewMem()
		f := fs.NewFaulty(mem)
		o := testOptions(f)
		o.Preallocate = true
		l := mustOpen(t, o, Start{})
		mustAppend(t, l, testBatch(1, 40000, 1))
		mustSync(t, l)
		run := []*record.Batch{testBatch(2, 20000, 1), testBatch(3, 20000, 1)}
		f.Inject(fs.Fault{At: 1, Forever: true, Err: syscall.ENOSPC, Match: ofKind(kind)})
		for range 2 {
			err := l.Append(run, make([]uint64, 2))
			if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrPoisoned) {
				t.Fatalf("%v fails: %v, want ENOSPC and no poison", kind, err)
			}
		}
		if l.LastIndex() != 1 {
			t.Errorf("%v fails: log ends with batch %d", kind, l.LastIndex())
		}
		// What needs no new segment goes on.
		mustAppend(t, l, testBatch(2, 500, 1))
		mustSync(t, l)
		f.Inject(fs.Fault{})
		mustAppend(t, l, testBatch(3, 40000, 1))
		mustSync(t, l)
		if names, err := mem.List(testDir); err != nil || slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, tempSuffix) }) {
			t.Errorf("%v fails: folder holds %v, %v", kind, names, err)
		}
		o.FS = mem.CrashClone(crashNothing)
		if n := mustOpen(t, o, Start{}).LastIndex(); n != 3 {
			t.Errorf("%v fails: after a crash the log ends with batch %d", kind, n)
		}
	}
}

// TestPreallocateUnsupported: a file system that cannot reserve is used anyway.
func TestPreallocateUnsupported(t *testing.T) {
	f := fs.NewFaulty(fs.NewMem())
	o := testOptions(f)
	o.Preallocate = true
	f.Inject(fs.Fault{At: 1, Forever: true, Err: syscall.ENOTSUP, Match: ofKind(fs.OpPreallocate)})
	l := mustOpen(t, o, Start{})
	mustAppend(t, l, testBatch(1, 60000, 1), testBatch(2, 60000, 1))
	if f.Fired() != 2 {
		t.Errorf("%d files were to be reserved, want 2", f.Fired())
	}
}

func TestClosed(t *testing.T) {
	l := mustOpen(t, testOptions(fs.NewMem()), Start{})
	mustAppend(t, l, testBatch(1, 300, 1))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"Append":         l.Append([]*record.Batch{testBatch(2, 300, 1)}, make([]uint64, 1)),
		"Sync":           l.Sync(),
		"TruncateSuffix": l.TruncateSuffix(1),
		"RemoveBefore":   l.RemoveBefore(1),
		"Close":          l.Close(),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s on a closed log: %v", name, err)
		}
	}
}
