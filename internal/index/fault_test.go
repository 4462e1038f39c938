package index_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/duemq/duemq/internal/index"
)

// faulty fails operations on request.
type faulty struct {
	mu    sync.Mutex
	armed bool
	when  func(n int, op errorfs.Op) bool
	err   error
	n     int // operations since it was armed
	hits  int
	last  errorfs.Op // the one that failed last
}

func (f *faulty) wrap(fs vfs.FS) vfs.FS { return errorfs.Wrap(fs, f) }

// MaybeError implements errorfs.Injector. Reads of installed tables are spared:
// Pebble does them in the background too, where they would hit by chance.
func (f *faulty) MaybeError(op errorfs.Op) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	background := op.Kind.ReadOrWrite() == errorfs.OpIsRead && strings.HasSuffix(op.Path, ".sst") &&
		strings.Contains(op.Path, "tables")
	if !f.armed || background {
		return nil
	}
	f.n++
	if !f.when(f.n, op) {
		return nil
	}
	f.hits++
	f.last = op
	return &vfsError{op: fmt.Sprint(op.Kind), path: op.Path, err: f.err}
}

// String implements errorfs.Injector.
func (f *faulty) String() string { return "faulty" }

type vfsError struct {
	op, path string
	err      error
}

func (e *vfsError) Error() string {
	return "operation " + e.op + " on " + e.path + ": " + e.err.Error()
}
func (e *vfsError) Unwrap() error { return e.err }

func (f *faulty) arm(err error, when func(n int, op errorfs.Op) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed, f.err, f.when, f.n, f.hits = true, err, when, 0, 0
}

// disarm ends the faults and says how many there were.
func (f *faulty) disarm() (hits int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = false
	return f.hits
}

// faultyInstall installs a third generation with a fault, and checks what the
// index promises of that. It says whether the fault was reached, and whether it
// was final.
func faultyInstall(t *testing.T, fault error, when func(n int, op errorfs.Op) bool) (hit, final bool) {
	mem := vfs.NewMem()
	f := &faulty{}
	x, err := index.Open(index.Options{FS: f.wrap(mem), Dir: "idx"})
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 2; n++ {
		if err := generation(x, n).Install(); err != nil {
			t.Fatal(err)
		}
	}
	f.arm(fault, when)
	err = generation(x, 3).Install()
	hit = f.disarm() > 0
	where := fmt.Sprintf("fault at %d on %s", f.last.Kind, f.last.Path)

	low, high := 3, 3 // what a restart may find
	switch final = x.Err() != nil; {
	case final:
		if err != nil {
			low = 2
		}
		wantFinal(t, x, where)
	case err != nil:
		if !errors.Is(err, fault) {
			t.Errorf("%s: Install: %v, want %v inside", where, err, fault)
		}
		if n, err := digest(x); n != 2 || err != nil {
			t.Errorf("%s: holds generation %d, %v after an install that failed", where, n, err)
		}
		if err := generation(x, 3).Install(); err != nil {
			t.Errorf("%s: the next install: %v", where, err)
		}
	}
	if n, err := digest(x); !final && (n != 3 || err != nil) {
		t.Errorf("%s: holds generation %d, %v", where, n, err)
	}
	if err := x.Close(); err != nil && !final {
		t.Errorf("%s: Close: %v", where, err)
	}
	n, err := reopen(mem)
	if err != nil || n < low || n > high {
		t.Errorf("%s: generation %d, %v after reopening, want %d to %d", where, n, err, low, high)
	}
	x = open(t, mem)
	if err := generation(x, n+1).Install(); err != nil {
		t.Errorf("%s: install after reopening: %v", where, err)
	}
	if again, err := digest(x); again != n+1 || err != nil {
		t.Errorf("%s: generation %d, %v after reopening and one more", where, again, err)
	}
	return hit, final
}

// wantFinal checks that nothing works any more, and that every answer says why.
func wantFinal(t *testing.T, x *index.Index, where string) {
	t.Helper()
	_, _, getErr := x.Get(nil, 'r', nil)
	_, iterErr := x.NewIter('r', nil, nil)
	for name, err := range map[string]error{
		"Get": getErr, "NewIter": iterErr, "Excise": x.Excise('r', nil, nil),
		"Install": generation(x, 9).Install(),
	} {
		if !errors.Is(err, x.Err()) {
			t.Errorf("%s: %s after a final error: %v", where, name, err)
		}
	}
	if m := x.Metrics(); m != (index.Metrics{}) {
		t.Errorf("%s: Metrics after a final error: %+v", where, m)
	}
}

// A fault at any operation of an install, once or from then on, leaves the index
// usable with its old contents, or is final; a restart finds it whole.
func TestFaultAnywhereInInstall(t *testing.T) {
	for _, fault := range []error{syscall.ENOSPC, syscall.EIO} {
		for name, when := range map[string]func(at int) func(int, errorfs.Op) bool{
			"once":         func(at int) func(int, errorfs.Op) bool { return func(n int, _ errorfs.Op) bool { return n == at } },
			"from then on": func(at int) func(int, errorfs.Op) bool { return func(n int, _ errorfs.Op) bool { return n >= at } },
		} {
			t.Run(fmt.Sprintf("%v %s", fault, name), func(t *testing.T) {
				finals := 0
				at := 1
				for ; ; at++ {
					hit, final := faultyInstall(t, fault, when(at))
					if !hit {
						break
					}
					if final {
						finals++
					}
				}
				t.Logf("%d faults, %d of them final", at-1, finals)
				if at < 50 || finals == 0 || finals > at/2 {
					t.Errorf("%d faults, %d final: is it still the test it was?", at-1, finals)
				}
			})
		}
	}
}

// After these faults nobody knows what a restart will find, so they are final.
func TestFinalFaults(t *testing.T) {
	for name, at := range map[string]func(op errorfs.Op) bool{
		"write of the manifest": func(op errorfs.Op) bool {
			return op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, "MANIFEST")
		},
		"sync of the manifest": func(op errorfs.Op) bool {
			return op.Kind == errorfs.OpFileSync && strings.Contains(op.Path, "MANIFEST")
		},
		"sync of the directory": func(op errorfs.Op) bool {
			return op.Kind == errorfs.OpFileSync && op.Path == "idx/tables"
		},
	} {
		t.Run(name, func(t *testing.T) {
			hit, final := faultyInstall(t, syscall.EIO, func(_ int, op errorfs.Op) bool { return at(op) })
			if !hit || !final {
				t.Errorf("reached %v, final %v", hit, final)
			}
		})
	}
}

// A manifest that has grown is begun anew. Power losses and faults on the way
// are the same as everywhere. Long keys make it grow fast, for it holds the
// first and the last key of each table.
func TestManifestRotation(t *testing.T) {
	grow := func(x *index.Index, fill byte) error {
		c := x.NewCut()
		c.Set('z', bytes.Repeat([]byte{fill}, 300_000), nil)
		return c.Install()
	}
	manifests := func(fs vfs.FS) (names []string) {
		all, _ := fs.List("idx/tables")
		for _, name := range all {
			if strings.HasPrefix(name, "MANIFEST-") {
				names = append(names, name)
			}
		}
		return names
	}
	// full says whether the next cut has to begin a new one.
	full := func(fs vfs.FS) bool {
		names := manifests(fs)
		info, err := fs.Stat("idx/tables/" + names[len(names)-1])
		return err == nil && info.Size() >= 1<<20
	}
	t.Run("power loss", func(t *testing.T) {
		for i := range 3 {
			c, fs := newCrasher([]int{0, 30, 70}[i%3], uint64(i))
			x := open(t, fs)
			if err := generation(x, 1).Install(); err != nil {
				t.Fatal(err)
			}
			fill := byte('a')
			for ; !full(fs) && fill < 'z'; fill++ {
				if err := grow(x, fill); err != nil {
					t.Fatal(err)
				}
			}
			before := fmt.Sprint(manifests(fs))
			clones := c.during(func() {
				if err := grow(x, fill); err != nil {
					t.Fatal(err)
				}
			})
			if fmt.Sprint(manifests(fs)) == before {
				t.Fatalf("no new manifest: %v", before)
			}
			for _, cl := range clones {
				if n, err := reopen(cl.fs); n != 1 || err != nil {
					t.Errorf("%d %% kept, %s: generation %d, %v", c.keep, cl.when, n, err)
				}
			}
		}
	})
	t.Run("fault", func(t *testing.T) {
		for at := range 30 {
			mem := vfs.NewMem()
			f := &faulty{}
			x, err := index.Open(index.Options{FS: f.wrap(mem), Dir: "idx"})
			if err != nil {
				t.Fatal(err)
			}
			if err := generation(x, 1).Install(); err != nil {
				t.Fatal(err)
			}
			fill := byte('a')
			for ; !full(mem) && fill < 'z'; fill++ {
				if err := grow(x, fill); err != nil {
					t.Fatal(err)
				}
			}
			f.arm(syscall.EIO, func(n int, op errorfs.Op) bool { return n > at })
			err = grow(x, fill)
			if hits := f.disarm(); hits == 0 || err == nil && x.Err() != nil {
				t.Errorf("%d faults, Install: %v, failed with %v", hits, err, x.Err())
			}
			_ = x.Close()
			if n, err := reopen(mem); n != 1 || err != nil {
				t.Errorf("fault at %d on %s: generation %d, %v", f.last.Kind, f.last.Path, n, err)
			}
		}
	})
}

// A full disk lets reads through and fails writes until there is room, except to
// the manifest, whose space is taken beforehand.
func TestDiskFullAndRoomAgain(t *testing.T) {
	f := &faulty{}
	x := open(t, f.wrap(vfs.NewMem()))
	for n := 1; n <= 3; n++ {
		if err := generation(x, n).Install(); err != nil {
			t.Fatal(err)
		}
		f.arm(syscall.ENOSPC, func(_ int, op errorfs.Op) bool {
			return (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpCreate) && !strings.Contains(op.Path, "MANIFEST")
		})
		for range 3 {
			if err := generation(x, n+1).Install(); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("Install on a full disk: %v", err)
			}
			if got, err := digest(x); got != n || err != nil {
				t.Errorf("generation %d, %v on a full disk, want %d", got, err, n)
			}
		}
		f.disarm()
	}
}

// Compactions that fail are reported, do no harm and are given up until later:
// the disk may stay full for long. When there is room they catch up.
func TestFailedCompactions(t *testing.T) {
	var log syncBuffer
	mem := vfs.NewMem()
	f := &faulty{}
	x, err := index.Open(index.Options{
		FS: f.wrap(mem), Dir: "idx", Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	f.arm(syscall.ENOSPC, func(_ int, op errorfs.Op) bool {
		return op.Kind == errorfs.OpCreate && strings.Contains(op.Path, "tables") // not the tables of cuts
	})
	for i := range 100 {
		overlapping(t, x, i)
	}
	if got := len(list(t, x, 'r')); got != 100 {
		t.Errorf("%d keys after 100 cuts", got)
	}
	for lost := int64(0); lost == 0; lost = x.Metrics().CompactionsLost {
		runtime.Gosched() // the compaction runs in the background
	}
	hits := f.disarm()
	warned := strings.Count(log.String(), "background work failed")
	if hits > 200 || warned == 0 || warned > hits {
		t.Errorf("%d failed operations and %d warnings in 100 cuts", hits, warned)
	}
	if err := x.Close(); err != nil || x.Err() != nil {
		t.Fatalf("Close: %v, failed with %v", err, x.Err())
	}
	x = open(t, mem)
	for x.Metrics().ReadAmp > 24 {
		runtime.Gosched()
	}
	if got := len(list(t, x, 'r')); got != 100 {
		t.Errorf("%d keys after compaction", got)
	}
}

// overlapping installs a table that covers all others, as random delays do.
func overlapping(t testing.TB, x *index.Index, n int) {
	t.Helper()
	install(t, x, func(c *index.Cut) {
		c.DeleteRange('r', nil, []byte("+"))
		c.Set('r', fmt.Appendf(nil, "%06d", n), bytes.Repeat([]byte{byte(n)}, 100))
		c.DeleteRange('r', []byte("~"), nil)
	})
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// A byte that has changed on disk is an error of class ErrCorrupt, final, and
// never a wrong value.
func TestCorruptTable(t *testing.T) {
	mem := vfs.NewMem()
	x, err := index.Open(index.Options{FS: mem, Dir: "idx"})
	if err != nil {
		t.Fatal(err)
	}
	if err := generation(x, 1).Install(); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := mem.List("idx/tables")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			flip(t, mem, "idx/tables/"+name, 20)
		}
	}
	var log syncBuffer
	x, err = index.Open(index.Options{FS: mem, Dir: "idx", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	_, err = digest(x)
	if !errors.Is(err, index.ErrCorrupt) || !errors.Is(x.Err(), index.ErrCorrupt) {
		t.Errorf("read of corrupt tables: %v; the index says %v", err, x.Err())
	}
	if err := generation(x, 2).Install(); !errors.Is(err, index.ErrCorrupt) {
		t.Errorf("Install: %v", err)
	}
	if !strings.Contains(log.String(), "index failed") || !strings.Contains(log.String(), ".sst") {
		t.Errorf("the log does not name the file: %s", log.String())
	}
	_ = x.Close() // must return; what it says of a corrupt index is Pebble's affair
}

// flip changes one byte of a file.
func flip(t *testing.T, fs vfs.FS, name string, at int64) {
	t.Helper()
	f, err := fs.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x40
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// A fault at any operation of Open is an error, and the next Open works.
func TestFaultAnywhereInOpen(t *testing.T) {
	for at := 1; ; at++ {
		mem := vfs.NewMem()
		if at%2 == 0 {
			x, err := index.Open(index.Options{FS: mem, Dir: "idx"})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(generation(x, 1).Install(), x.Close()); err != nil {
				t.Fatal(err)
			}
		}
		f := &faulty{}
		f.arm(syscall.EIO, func(n int, _ errorfs.Op) bool { return n == at })
		x, err := index.Open(index.Options{FS: f.wrap(mem), Dir: "idx"})
		hits := f.disarm()
		if err == nil {
			_ = x.Close()
		}
		if n, err := reopen(mem); err != nil || n != 1-at%2 {
			t.Errorf("fault at %d on %s: generation %d, %v at the next Open", f.last.Kind, f.last.Path, n, err)
		}
		if hits == 0 {
			t.Logf("%d faults", at-1)
			if at < 40 {
				t.Error("is it still the test it was?")
			}
			return
		}
	}
}
