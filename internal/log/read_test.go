package log

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// TestReadsOfEveryBatch asks for each batch by index, by position and in raw
// bytes, with the index that writing left behind, with none, and with one that
// begins in the middle.
func TestReadsOfEveryBatch(t *testing.T) {
	mem := fs.NewMem()
	l := mustOpen(t, testOptions(mem), Start{})
	var list []*record.Batch
	var middle Start
	for i := range uint64(90) {
		b := testBatch(i+1, 150+int(i*i%9000), 1)
		if i == 2 {
			b.Extensions = []byte("extended")
		}
		list = append(list, b)
		mustAppend(t, l, b)
		if i == 40 {
			mustSync(t, l)
			middle = l.End()
		}
	}
	checkReads(t, l, list)
	for _, s := range l.now().segments {
		s.index.forget()
	}
	checkReads(t, l, list)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, from := range []Start{{}, middle, l.End()} {
		l := mustOpen(t, testOptions(mem), from)
		checkReads(t, l, list)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func checkReads(t *testing.T, l *Log, list []*record.Batch) {
	t.Helper()
	pos := positions(list, MinSegmentBytes)
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(list)) {
		b := list[i]
		at, got, err := l.Get(b.Index)
		if err != nil || at != pos[i] {
			t.Fatalf("Get(%d) = position %d, %v, want %d", b.Index, at, err, pos[i])
		}
		if err := same(&got, b); err != nil {
			t.Error(err)
		}
		raw, err := record.AppendBatch(nil, b)
		if err != nil {
			t.Fatal(err)
		}
		dst, err := l.ReadAt([]byte("before"), pos[i]+LocalBytes, len(raw))
		if err != nil || !bytes.Equal(dst, append([]byte("before"), raw...)) {
			t.Errorf("ReadAt of batch %d: %v", b.Index, err)
		}
		for _, in := range []uint64{0, LocalBytes, uint64(LocalBytes + len(raw) - 1)} {
			at, got, err := l.Locate(pos[i] + in)
			if err != nil || at != pos[i] || got.Index != b.Index {
				t.Errorf("Locate(%d + %d) = %d, batch %d, %v", pos[i], in, at, got.Index, err)
			}
			at, n, err := l.Enclosing(pos[i] + in)
			if err != nil || at != pos[i] || n < len(raw) || n >= len(raw)+Align {
				t.Errorf("Enclosing(%d + %d) = %d and %d bytes of %d, %v", pos[i], in, at, n, len(raw), err)
			}
		}
	}
}

func TestReadsRefused(t *testing.T) {
	l := mustOpen(t, testOptions(fs.NewMem()), Start{})
	if l.FirstIndex() != 1 || l.LastIndex() != 0 || l.FirstPosition() != 0 {
		t.Errorf("an empty log holds %d to %d", l.FirstIndex(), l.LastIndex())
	}
	if n := len(mustReplay(t, l, Start{})); n != 0 {
		t.Errorf("an empty log replays %d batches", n)
	}
	for i := range uint64(4) {
		mustAppend(t, l, testBatch(i+1, 40000, 1))
		mustSync(t, l)
	}
	end := l.End()
	if err := l.RemoveBefore(2*MinSegmentBytes + 500); err != nil {
		t.Fatal(err)
	}
	if l.FirstIndex() != 3 || l.LastIndex() != 4 || l.FirstPosition() != 2*MinSegmentBytes {
		t.Errorf("log holds %d to %d from %d", l.FirstIndex(), l.LastIndex(), l.FirstPosition())
	}
	get := func(i uint64) error { _, _, err := l.Get(i); return err }
	locate := func(p uint64) error { _, _, err := l.Locate(p); return err }
	read := func(p uint64, n int) error {
		dst, err := l.ReadAt([]byte("x"), p, n)
		if string(dst) != "x" {
			t.Errorf("ReadAt(%d, %d) failed and gave %d bytes", p, n, len(dst))
		}
		return err
	}
	from := func(s Start) error { _, err := replay(l, s); return err }
	const first = 2 * MinSegmentBytes
	for name, c := range map[string]struct{ err, want error }{
		"get 0":                    {get(0), ErrRange},
		"get removed":              {get(2), ErrRemoved},
		"get beyond":               {get(5), ErrRange},
		"locate removed":           {locate(HeaderBytes), ErrRemoved},
		"locate a header":          {locate(first + 5), ErrRange},
		"locate between segments":  {locate(first + 50000), ErrRange},
		"locate the end":           {locate(end.Position), ErrRange},
		"locate far beyond":        {locate(1 << 60), ErrRange},
		"read removed":             {read(HeaderBytes, 10), ErrRemoved},
		"read a header":            {read(first, 10), ErrRange},
		"read less than nothing":   {read(first+HeaderBytes, -1), ErrRange},
		"read between segments":    {read(first+50000, 10), ErrRange},
		"read across the end":      {read(end.Position-5, 10), ErrRange},
		"read beyond":              {read(end.Position+1, 0), ErrRange},
		"read beyond all segments": {read(1<<60, 10), ErrRange},
		"read too much":            {read(end.Position-5, 1<<60), ErrRange},
		"replay removed":           {from(Start{HeaderBytes, 1, 1}), ErrRemoved},
		"replay beyond":            {from(Start{end.Position + 160, 5, 1}), ErrRange},
		"replay far beyond":        {from(Start{1 << 60, 5, 1}), ErrRange},
		"replay a wrong place":     {from(Start{first + HeaderBytes + 16, 3, 1}), record.ErrCorrupt},
		"replay a wrong end":       {from(Start{end.Position, 4, end.Checksum + 1}), record.ErrCorrupt},
		"replay another index":     {from(Start{end.Position, 3, end.Checksum}), record.ErrCorrupt},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
	stop := errors.New("stop")
	if err := l.Replay(Start{}, func(uint64, *record.Batch) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("Replay hides the callback's error: %v", err)
	}
}

func TestAfter(t *testing.T) {
	l := mustOpen(t, testOptions(fs.NewMem()), Start{})
	var ends []Start
	var pos []uint64
	for i, size := range []int{300, 50000, 40000, 200} {
		pos = append(pos, mustAppend(t, l, testBatch(uint64(i+1), size, 1))...)
		ends = append(ends, l.End())
	}
	for i := range pos {
		if got, err := l.After(pos[i]); err != nil || got != ends[i] {
			t.Errorf("After(%d) = %+v, %v, want %+v", pos[i], got, err, ends[i])
		}
	}
	for at, want := range map[uint64]error{pos[0] + 16: record.ErrCorrupt, ends[3].Position: record.ErrCorrupt, 1 << 50: ErrRange} {
		if _, err := l.After(at); !errors.Is(err, want) {
			t.Errorf("After(%d): %v, want %v", at, err, want)
		}
	}
}

// TestReadErrors: a disk that cannot read, a file that is gone or cut, a bit
// that changed: each says where.
func TestReadErrors(t *testing.T) {
	mem := fs.NewMem()
	f := fs.NewFaulty(mem)
	l := mustOpen(t, testOptions(f), Start{})
	pos := mustAppend(t, l, testBatch(1, 40000, 1), testBatch(2, 40000, 1), testBatch(3, 300, 1))
	path := segmentPath(mem, 0)
	f.Inject(fs.Fault{At: 1, Forever: true, Match: func(o fs.Op) bool { return o.Kind == fs.OpRead }})
	if _, err := l.ReadAt(nil, pos[0], 100); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), path) {
		t.Errorf("ReadAt on a bad disk: %v", err)
	}
	if _, _, err := l.Get(1); !errors.Is(err, syscall.EIO) {
		t.Errorf("Get on a bad disk: %v", err)
	}
	if _, err := replay(l, Start{}); !errors.Is(err, syscall.EIO) {
		t.Errorf("Replay on a bad disk: %v", err)
	}
	f.Inject(fs.Fault{})
	if _, err := l.ReadAt(nil, pos[0], 100); err != nil {
		t.Errorf("ReadAt on a disk that came back: %v", err)
	}
	if err := flipBit(mem, path, int64(pos[0]+5000)*8); err != nil {
		t.Fatal(err)
	}
	var d *DamageError
	if _, _, err := l.Get(1); !errors.As(err, &d) || d.File != path || d.Offset != int64(pos[0]) {
		t.Errorf("Get of a damaged batch: %v", err)
	}
	if _, b, err := l.Get(2); err != nil || b.Index != 2 {
		t.Errorf("Get of the batch behind: %v", err)
	}
	writeFile(t, mem, "elsewhere", "short")
	l.now().segments[0].mu.Lock()
	l.now().segments[0].closeLocked()
	l.now().segments[0].mu.Unlock()
	if err := mem.Rename("elsewhere", path); err != nil {
		t.Fatal(err)
	}
	if _, err := l.ReadAt(nil, pos[0], 100); !errors.As(err, &d) || d.File != path {
		t.Errorf("ReadAt in a file cut short: %v", err)
	}
	l.now().segments[0].mu.Lock()
	l.now().segments[0].closeLocked()
	l.now().segments[0].mu.Unlock()
	if err := mem.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := l.ReadAt(nil, pos[0], 100); !errors.As(err, &d) || d.File != path {
		t.Errorf("ReadAt in a file that is gone: %v", err)
	}
}

// TestManySegments reads more segments than files may be open.
func TestManySegments(t *testing.T) {
	const count = maxHandles + 20
	l := mustOpen(t, Options{FS: vfs.NewMem(), Dir: testDir, StoreID: testID, SegmentBytes: MinSegmentBytes}, Start{})
	b := testBatch(1, 34000, 1)
	for i := range uint64(count) {
		b.Index = i + 1
		mustAppend(t, l, b)
	}
	open := func() (n int) {
		for _, s := range l.now().segments {
			if s.file != nil {
				n++
			}
		}
		return n
	}
	for range 2 {
		for i := range uint64(count) {
			if _, got, err := l.Get(i + 1); err != nil || got.Index != i+1 {
				t.Fatalf("Get(%d): %v", i+1, err)
			}
		}
		if n := open(); n > maxHandles || n < maxHandles/2 {
			t.Errorf("%d files are open, want about %d", n, maxHandles)
		}
	}
	if err := l.RemoveBefore(l.End().Position); err != nil {
		t.Fatal(err)
	}
	if n := len(l.handles.open); n > 1 {
		t.Errorf("%d files of removed segments are counted as open", n)
	}
}

// TestReadersBesideTheAppender reads everything while it is written, rolled and
// removed. What a reader gets is whole, or it is told that it is gone.
func TestReadersBesideTheAppender(t *testing.T) {
	o := testOptions(vfs.NewMem())
	l := mustOpen(t, o, Start{})
	var stop atomic.Bool
	var read atomic.Int64
	var wg sync.WaitGroup
	for r := range 3 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(r), 1))
			for !stop.Load() {
				if err := readOne(l, rng, &read); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := uint64(1); i <= 1500 || read.Load() < 300; i++ {
		mustAppend(t, l, testBatch(i, 200+int(i*37%5000), 1))
		if i%10 == 0 {
			mustSync(t, l)
		}
		if i%50 == 0 {
			if err := l.RemoveBefore(l.End().Position - min(l.End().Position, 3*MinSegmentBytes)); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop.Store(true)
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func readOne(l *Log, rng *rand.Rand, read *atomic.Int64) error {
	first, last := l.FirstIndex(), l.LastIndex()
	if last < first {
		return nil
	}
	index := first + rng.Uint64N(last-first+1)
	pos, b, err := l.Get(index)
	if errors.Is(err, ErrRemoved) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get %d of %d to %d: %w", index, first, last, err)
	}
	if err := same(&b, testBatch(index, 200+int(index*37%5000), 1)); err != nil {
		return err
	}
	read.Add(1)
	raw, err := l.ReadAt(nil, pos+LocalBytes, b.Size())
	if err == nil {
		_, _, err = record.DecodeBatch(raw)
	}
	if err == nil {
		_, _, err = l.Locate(pos + 10)
	}
	if err == nil && rng.IntN(50) == 0 {
		err = l.Replay(Start{}, func(uint64, *record.Batch) error { return nil })
	}
	if err != nil && !errors.Is(err, ErrRemoved) {
		return fmt.Errorf("read of batch %d at %d: %w", index, pos, err)
	}
	return nil
}

// TestAllocations: the paths of each message take no memory once warm.
func TestAllocations(t *testing.T) {
	l := mustOpen(t, Options{FS: fs.Real(), Dir: t.TempDir(), StoreID: testID}, Start{})
	batches := []*record.Batch{testBatch(1, 3000, 1), testBatch(2, 500, 1)}
	positions := make([]uint64, 2)
	appendAndSync := func() {
		batches[0].Index, batches[1].Index = l.LastIndex()+1, l.LastIndex()+2
		if err := errors.Join(l.Append(batches, positions), l.Sync()); err != nil {
			t.Fatal(err)
		}
	}
	for range 50 { // the index's slice grows too
		appendAndSync()
	}
	if n := testing.AllocsPerRun(20, appendAndSync); n > 0 {
		t.Errorf("Append and Sync: %v allocations", n)
	}
	dst := make([]byte, 0, 1000)
	if n := testing.AllocsPerRun(100, func() {
		var err error
		if dst, err = l.ReadAt(dst[:0], positions[0]+100, 1000); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("ReadAt: %v allocations", n)
	}
}
