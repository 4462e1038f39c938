package fs

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const cat = vfs.WriteCategoryUnspecified

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// touch writes a file through every call that the log and Pebble use.
func touch(f FS) error {
	if err := f.MkdirAll("d", 0o755); err != nil {
		return err
	}
	dir, err := f.OpenDir("d")
	if err != nil {
		return err
	}
	file, err := f.Create("d/a", cat)
	if err != nil {
		return err
	}
	if err := file.Preallocate(0, 8192); err != nil {
		return err
	}
	if _, err := file.Write([]byte("hello ")); err != nil {
		return err
	}
	if _, err := file.Write([]byte("world")); err != nil {
		return err
	}
	if _, err := file.WriteAt([]byte("W"), 6); err != nil {
		return err
	}
	if err := errors.Join(file.SyncData(), f.Rename("d/a", "d/b")); err != nil {
		return err
	}
	// The open file goes by its new name.
	if _, err := file.WriteAt([]byte("!"), 11); err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close(), dir.Sync(), dir.Close()); err != nil {
		return err
	}
	return errors.Join(f.Link("d/b", "d/c"), f.Remove("d/b"))
}

func TestOperationsByName(t *testing.T) {
	f := NewFaulty(NewMem())
	f.Record()
	must(t, touch(f))
	file, err := f.ReuseForWrite("d/c", "d/e", cat)
	must(t, err, file.Close())
	file, err = f.OpenReadWrite("d/e", cat)
	must(t, err)
	_, err = file.SyncTo(4)
	must(t, err, file.Close())
	lock, err := f.Lock("d/LOCK")
	must(t, err, lock.Close(), f.RemoveAll("d"))
	var lines []string
	for i, op := range f.Recorded() {
		if op.Number != i+1 {
			t.Errorf("operation %d has number %d", i+1, op.Number)
		}
		lines = append(lines, op.String())
	}
	want := `mkdir d
create d/a
preallocate d/a 0+8192
write d/a 0+6
write d/a 6+5
write d/a 6+1
sync d/a
rename d/a d/b
write d/b 11+1
sync d/b
sync-dir d
link d/b d/c
remove d/b
reuse d/c d/e
open-write d/e
sync d/e
lock d/LOCK
remove-all d`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("operations:\n%s\nwant:\n%s", got, want)
	}
	if f.Ops() != len(lines) || len(f.Recorded()) != 0 {
		t.Errorf("%d operations counted, %d listed", f.Ops(), len(lines))
	}
}

// TestFailEach fails each operation in turn, once and from then on, with each
// kind of error.
func TestFailEach(t *testing.T) {
	whole := NewFaulty(NewMem())
	must(t, touch(whole))
	for n := 1; n <= whole.Ops(); n++ {
		for _, forever := range []bool{false, true} {
			f := NewFaulty(NewMem())
			f.Inject(Fault{At: n, Forever: forever, Err: syscall.ENOSPC})
			if err := touch(f); !errors.Is(err, syscall.ENOSPC) || f.Fired() == 0 {
				t.Errorf("fault at %d: %v, fired %d times", n, err, f.Fired())
			}
			err := f.MkdirAll("later", 0o755)
			if forever != (err != nil) {
				t.Errorf("fault at %d, forever %v, then mkdir: %v", n, forever, err)
			}
			f.Inject(Fault{})
			must(t, f.MkdirAll("d", 0o755))
		}
	}
}

func TestDefaultErrorAndReads(t *testing.T) {
	f := NewFaulty(NewMem())
	must(t, touch(f))
	f.Inject(Fault{At: 2, Match: func(o Op) bool { return o.Kind == OpRead && o.Path == "d/c" }})
	file, err := f.Open("d/c")
	must(t, err)
	buf := make([]byte, 3)
	if _, err := file.ReadAt(buf, 6); err != nil || string(buf) != "Wor" {
		t.Errorf("first read: %q, %v", buf, err)
	}
	if _, err := file.Read(buf); !errors.Is(err, syscall.EIO) {
		t.Errorf("second read: %v, want EIO", err)
	}
	if _, err := file.ReadAt(buf, 100); !errors.Is(err, io.EOF) {
		t.Errorf("third read: %v, want EOF", err)
	}
	ops := f.Ops()
	_, err = f.List("d")
	must(t, err)
	_, err = f.Stat("d")
	must(t, err)
	if f.Ops() != ops {
		t.Error("looking was counted as changing")
	}
}

func TestShortWrite(t *testing.T) {
	f := NewFaulty(NewMem())
	file, err := f.Create("a", cat)
	must(t, err)
	f.Inject(Fault{At: 1, Short: true, Err: syscall.ENOSPC})
	n, err := file.Write([]byte("0123456789"))
	if n != 5 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("short write: %d, %v", n, err)
	}
	n, err = file.Write([]byte("x"))
	must(t, err)
	data := make([]byte, 6)
	_, err = file.ReadAt(data, 0)
	if n != 1 || err != nil || string(data) != "01234x" {
		t.Errorf("file holds %q, %v", data, err)
	}
}

// TestCrashInHooks takes the disk before and after a sync.
func TestCrashInHooks(t *testing.T) {
	mem := NewMem()
	f := NewFaulty(mem)
	var seen []string
	look := func(when string, op Op) {
		if op.Kind != OpSyncDir {
			return
		}
		disk := mem.CrashClone(vfs.CrashCloneCfg{})
		names, err := disk.List("")
		if err != nil {
			t.Error(err)
		}
		seen = append(seen, fmt.Sprintf("%s %v %v", when, op, names))
	}
	f.Hooks(func(op Op) { look("before", op) }, func(op Op, err error) {
		look("after", op)
		if err != nil {
			t.Errorf("%v: %v", op, err)
		}
	})
	file, err := f.Create("a", cat)
	must(t, err, file.Close())
	dir, err := f.OpenDir("")
	must(t, err, dir.Sync(), dir.Close())
	if got, want := fmt.Sprint(seen), "[before sync-dir  [] after sync-dir  [a]]"; got != want {
		t.Errorf("seen %s, want %s", got, want)
	}
}

// survivor is what a power cut leaves of file a.
func survivor(t *testing.T, f *Faulty, percent int) string {
	t.Helper()
	disk, err := f.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(1, 2))})
	must(t, err)
	file, err := disk.Open("a")
	must(t, err)
	data, err := io.ReadAll(file)
	must(t, err, file.Close())
	return strings.TrimRight(string(data), "\x00")
}

// TestLostSync is Linux after a failed write-back: what was written stays
// readable, later syncs succeed, and a power cut shows that it is gone, until it
// has been written again and synced.
func TestLostSync(t *testing.T) {
	f := NewFaulty(NewMem())
	file, err := f.Create("a", cat)
	must(t, err)
	dir, err := f.OpenDir("")
	must(t, err, dir.Sync())
	write := func(s string) {
		t.Helper()
		_, err := file.WriteAt([]byte(s), 0)
		must(t, err)
	}
	write("first")
	must(t, file.Sync())
	write("other")
	f.Inject(Fault{At: 1, Lose: true})
	if err := file.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("sync: %v", err)
	}
	must(t, file.Sync(), file.Sync())
	if got := survivor(t, f, 100); got != "first" {
		t.Errorf("after a lost sync: %q", got)
	}
	buf := make([]byte, 5)
	if _, err := file.ReadAt(buf, 0); err != nil || string(buf) != "other" {
		t.Errorf("without a power cut: %q, %v", buf, err)
	}
	write("third")
	if got := survivor(t, f, 0); got != "first" {
		t.Errorf("written again, not synced: %q", got)
	}
	must(t, file.Sync())
	if got := survivor(t, f, 0); got != "third" {
		t.Errorf("written again and synced: %q", got)
	}
}

// TestLostSyncOfNewFile loses blocks that the disk never had.
func TestLostSyncOfNewFile(t *testing.T) {
	f := NewFaulty(NewMem())
	file, err := f.Create("b", cat)
	must(t, err)
	_, err = file.Write([]byte(strings.Repeat("x", 3*blockBytes)))
	must(t, err)
	f.Inject(Fault{At: 1, Lose: true})
	if err := file.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	must(t, file.Sync(), f.Rename("b", "a"))
	dir, err := f.OpenDir("")
	must(t, err, dir.Sync())
	if got := survivor(t, f, 0); got != "" {
		t.Errorf("%d bytes survived", len(got))
	}
}

func TestCrashCloneNeedsMem(t *testing.T) {
	if _, err := NewFaulty(Real()).CrashClone(vfs.CrashCloneCfg{}); !errors.Is(err, errNoCrash) {
		t.Errorf("crash clone of a real disk: %v", err)
	}
}

// TestRealDisk runs the same calls on the machine's disk.
func TestRealDisk(t *testing.T) {
	dir := t.TempDir()
	f := NewFaulty(Real())
	file, err := f.Create(f.PathJoin(dir, "a"), cat)
	must(t, err)
	_, err = file.Write([]byte("hello"))
	must(t, err, file.Sync(), file.Close())
	if usage, err := f.GetDiskUsage(dir); err != nil || usage.TotalBytes == 0 {
		t.Errorf("disk usage: %+v, %v", usage, err)
	}
	if f.PathBase(f.PathDir(f.PathJoin(dir, "a"))) != Real().PathBase(dir) || f.Unwrap() != Real() {
		t.Error("paths are not those of the file system under it")
	}
}

// TestPebble puts a database on the wrapper and crashes it at each operation:
// what it promised is there. While it is being made it gets no random half of
// its folder: a marker without its manifest does not open.
func TestPebble(t *testing.T) {
	options := func(f FS) *pebble.Options {
		o := &pebble.Options{FS: f, Logger: quiet{}}
		o.EnsureDefaults()
		return o
	}
	const keys = 5
	fill := func(f FS, synced *int) error {
		db, err := pebble.Open("db", options(f))
		if err != nil {
			return err
		}
		for i := range keys {
			if err := db.Set([]byte{byte(i)}, []byte("value"), pebble.Sync); err != nil {
				return errors.Join(err, db.Close())
			}
			*synced = i + 1
		}
		return db.Close()
	}
	check := func(disk FS, synced int) error {
		db, err := pebble.Open("db", options(disk))
		if err != nil {
			return err
		}
		for i := range synced {
			_, closer, err := db.Get([]byte{byte(i)})
			if err != nil {
				return errors.Join(fmt.Errorf("key %d of %d: %w", i, synced, err), db.Close())
			}
			must(t, closer.Close())
		}
		return db.Close()
	}
	mem := NewMem()
	f := NewFaulty(mem)
	synced := 0
	f.Hooks(func(op Op) {
		promised := synced
		disk := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: min(promised, 1) * 50, RNG: rand.New(rand.NewPCG(uint64(op.Number), 1))})
		if err := check(disk, promised); err != nil {
			t.Errorf("crash before %v: %v", op, err)
		}
	}, nil)
	must(t, fill(f, &synced))
	if synced != keys {
		t.Fatalf("%d keys", synced)
	}
}

// quiet swallows Pebble's log, and its wish to end the process.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// TestCloneBesideLinks clones the disk while files are linked.
func TestCloneBesideLinks(t *testing.T) {
	f := NewFaulty(NewMem())
	file, err := f.Create("a", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	const n = 20_000
	wg.Go(func() {
		for i := range n {
			if err := f.Link("a", fmt.Sprintf("b%d", i%2)); err != nil && !errors.Is(err, os.ErrExist) {
				t.Errorf("Link: %v", err)
				return
			}
			if err := f.Remove(fmt.Sprintf("b%d", (i+1)%2)); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("Remove: %v", err)
				return
			}
		}
	})
	wg.Go(func() {
		for range n / 10 {
			if _, err := f.CrashClone(vfs.CrashCloneCfg{}); err != nil {
				t.Errorf("CrashClone: %v", err)
				return
			}
		}
	})
	wg.Wait()
}

// TestLostSyncBesideLinks loses syncs while files are linked: what is lost is
// read from a clone too.
func TestLostSyncBesideLinks(t *testing.T) {
	f := NewFaulty(NewMem())
	f.Inject(Fault{At: 1, Forever: true, Lose: true, Match: func(op Op) bool { return op.Kind == OpSync }})
	file, err := f.Create("a", cat)
	must(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 20_000 {
			if err := f.Link("a", fmt.Sprintf("b%d", i%2)); err != nil && !errors.Is(err, os.ErrExist) {
				t.Errorf("Link: %v", err)
				return
			}
			if err := f.Remove(fmt.Sprintf("b%d", (i+1)%2)); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("Remove: %v", err)
				return
			}
		}
	})
	wg.Go(func() {
		for range 2000 {
			if _, err := file.WriteAt([]byte("x"), 0); err != nil {
				t.Errorf("WriteAt: %v", err)
				return
			}
			if err := file.Sync(); !errors.Is(err, syscall.EIO) {
				t.Errorf("Sync: %v", err)
				return
			}
		}
	})
	wg.Wait()
	must(t, file.Close())
}
