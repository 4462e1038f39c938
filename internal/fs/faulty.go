package fs

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A Faulty stands before another file system. It numbers every operation that
// changes the disk, shows each to hooks, records them, and fails the ones that
// a [Fault] names. The log and Pebble run on it alike.
//
// It may be used by many goroutines at once if the file system under it may;
// then the numbers depend on how they are scheduled, and hooks run concurrently.
type Faulty struct {
	base FS

	mu        sync.Mutex
	before    func(Op)
	after     func(Op, error)
	ops       int
	fault     Fault
	matched   int
	fired     int
	recording bool
	list      []Op
	inodes    inodes
}

var _ FS = (*Faulty)(nil)

// NewFaulty stands before base, with no fault and no hooks.
func NewFaulty(base FS) *Faulty {
	f := &Faulty{base: base}
	if mem, ok := base.(*vfs.MemFS); ok {
		f.inodes.init(mem)
	}
	return f
}

// Hooks sets what is called before and after each operation that mutates; each
// may be nil. A crash at an operation is a CrashClone taken in a hook: in
// before, the operation has not happened. Hooks may use the file system under f
// but not f.
func (f *Faulty) Hooks(before func(Op), after func(Op, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

// Inject replaces the fault and begins to count its operations.
func (f *Faulty) Inject(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.matched, f.fired = fault, 0, 0
}

// Fired says how many operations the fault has failed.
func (f *Faulty) Fired() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}

// Ops says how many operations that mutate there were.
func (f *Faulty) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops
}

// Record begins a new list of the operations that mutate.
func (f *Faulty) Record() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recording, f.list = true, nil
}

// Recorded ends the list and gives it.
func (f *Faulty) Recorded() []Op {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.list
	f.recording, f.list = false, nil
	return list
}

// enter numbers op, shows it to the hook and says whether it is to fail.
func (f *Faulty) enter(op *Op) (Fault, bool) {
	f.mu.Lock()
	if op.Kind.Mutates() {
		f.ops++
		op.Number = f.ops
		if f.recording {
			f.list = append(f.list, *op)
		}
	}
	fault, fails := f.fault, f.failsLocked(*op)
	before := f.before
	f.mu.Unlock()
	if before != nil && op.Kind.Mutates() {
		before(*op)
	}
	return fault, fails
}

func (f *Faulty) failsLocked(op Op) bool {
	if f.fault.At == 0 {
		return false
	}
	if f.fault.Match == nil && !op.Kind.Mutates() || f.fault.Match != nil && !f.fault.Match(op) {
		return false
	}
	f.matched++
	if f.matched == f.fault.At || f.matched > f.fault.At && f.fault.Forever {
		f.fired++
		return true
	}
	return false
}

// leave shows op's outcome to the hook and hands it on.
func (f *Faulty) leave(op Op, err error) error {
	f.mu.Lock()
	after := f.after
	f.mu.Unlock()
	if after != nil && op.Kind.Mutates() {
		after(op, err)
	}
	return err
}

// do runs act as op, or fails it.
func (f *Faulty) do(op Op, act func() error) error {
	if fault, fails := f.enter(&op); fails {
		return f.leave(op, fault.cause())
	}
	return f.leave(op, act())
}

func (f Fault) cause() error {
	if f.Err != nil {
		return f.Err
	}
	return syscall.EIO
}

// open runs act as op and wraps the file that it gives.
func (f *Faulty) open(op Op, act func() (File, error)) (File, error) {
	name := op.Path
	if op.To != "" {
		name = op.To
	}
	var file File
	err := f.do(op, func() error {
		var err error
		if file, err = act(); err != nil {
			return err
		}
		if op.Kind == OpReuse {
			f.inodes.rename(op.Path, op.To)
		}
		file = &faultyFile{File: file, fs: f, node: f.inodes.open(name, op.Kind == OpCreate), dir: op.Kind == OpOpenDir}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

// Create implements vfs.FS.
func (f *Faulty) Create(name string, category vfs.DiskWriteCategory) (File, error) {
	return f.open(Op{Kind: OpCreate, Path: name}, func() (File, error) { return f.base.Create(name, category) })
}

// Open implements vfs.FS.
func (f *Faulty) Open(name string, opts ...vfs.OpenOption) (File, error) {
	return f.open(Op{Kind: OpOpen, Path: name}, func() (File, error) { return f.base.Open(name, opts...) })
}

// OpenReadWrite implements vfs.FS.
func (f *Faulty) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (File, error) {
	return f.open(Op{Kind: OpOpenWrite, Path: name}, func() (File, error) {
		return f.base.OpenReadWrite(name, category, opts...)
	})
}

// OpenDir implements vfs.FS.
func (f *Faulty) OpenDir(name string) (File, error) {
	return f.open(Op{Kind: OpOpenDir, Path: name}, func() (File, error) { return f.base.OpenDir(name) })
}

// ReuseForWrite implements vfs.FS.
func (f *Faulty) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (File, error) {
	return f.open(Op{Kind: OpReuse, Path: oldname, To: newname}, func() (File, error) {
		f.inodes.linking.Lock()
		defer f.inodes.linking.Unlock()
		return f.base.ReuseForWrite(oldname, newname, category)
	})
}

// Link implements vfs.FS.
func (f *Faulty) Link(oldname, newname string) error {
	return f.do(Op{Kind: OpLink, Path: oldname, To: newname}, func() error {
		f.inodes.linking.Lock()
		defer f.inodes.linking.Unlock()
		return f.base.Link(oldname, newname)
	})
}

// Remove implements vfs.FS.
func (f *Faulty) Remove(name string) error {
	return f.do(Op{Kind: OpRemove, Path: name}, func() error { return f.base.Remove(name) })
}

// RemoveAll implements vfs.FS.
func (f *Faulty) RemoveAll(name string) error {
	return f.do(Op{Kind: OpRemoveAll, Path: name}, func() error { return f.base.RemoveAll(name) })
}

// Rename implements vfs.FS.
func (f *Faulty) Rename(oldname, newname string) error {
	return f.do(Op{Kind: OpRename, Path: oldname, To: newname}, func() error {
		if err := f.base.Rename(oldname, newname); err != nil {
			return err
		}
		f.inodes.rename(oldname, newname)
		return nil
	})
}

// MkdirAll implements vfs.FS.
func (f *Faulty) MkdirAll(dir string, perm os.FileMode) error {
	return f.do(Op{Kind: OpMkdir, Path: dir}, func() error { return f.base.MkdirAll(dir, perm) })
}

// Lock implements vfs.FS.
func (f *Faulty) Lock(name string) (io.Closer, error) {
	var lock io.Closer
	err := f.do(Op{Kind: OpLock, Path: name}, func() (err error) {
		f.inodes.linking.Lock()
		defer f.inodes.linking.Unlock()
		lock, err = f.base.Lock(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// List implements vfs.FS.
func (f *Faulty) List(dir string) ([]string, error) {
	var names []string
	err := f.do(Op{Kind: OpList, Path: dir}, func() (err error) {
		names, err = f.base.List(dir)
		return err
	})
	return names, err
}

// Stat implements vfs.FS.
func (f *Faulty) Stat(name string) (vfs.FileInfo, error) {
	var info vfs.FileInfo
	err := f.do(Op{Kind: OpStat, Path: name}, func() (err error) {
		info, err = f.base.Stat(name)
		return err
	})
	return info, err
}

// PathBase implements vfs.FS.
func (f *Faulty) PathBase(path string) string { return f.base.PathBase(path) }

// PathJoin implements vfs.FS.
func (f *Faulty) PathJoin(elem ...string) string { return f.base.PathJoin(elem...) }

// PathDir implements vfs.FS.
func (f *Faulty) PathDir(path string) string { return f.base.PathDir(path) }

// GetDiskUsage implements vfs.FS.
func (f *Faulty) GetDiskUsage(path string) (vfs.DiskUsage, error) { return f.base.GetDiskUsage(path) }

// Unwrap implements vfs.FS.
func (f *Faulty) Unwrap() FS { return f.base }

// errNoCrash is what CrashClone says over a disk that cannot crash.
var errNoCrash = errors.New("crash clone: the disk under the fault wrapper is not one of NewMem")

// CrashClone is the disk as a power cut now could have left it: everything
// synced, and of the rest what cfg decides, less what [Fault.Lose] lost. The
// base must be a [NewMem] disk.
func (f *Faulty) CrashClone(cfg vfs.CrashCloneCfg) (*vfs.MemFS, error) {
	return f.inodes.crashClone(cfg)
}
