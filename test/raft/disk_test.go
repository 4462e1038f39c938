package raft

import (
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/log"
)

var errPower = errors.New("the power is gone")

// A power is on until it is cut. Whoever promises that something is on the disk
// asks for it last: if it is still on then, what was synced before is in the
// clone that is taken after the cut.
type power struct{ cut atomic.Bool }

func (p *power) gone() error {
	if p.cut.Load() {
		return errPower
	}
	return nil
}

// A disk is what one life of a node has under it: a disk in memory that knows
// what was synced, or a folder of the machine.
type disk struct {
	mem *vfs.MemFS // nil on a real disk
	*fs.Faulty
	dir   string
	power *power
	bugs  log.Bugs // seeded, for the exam

	mu   sync.Mutex
	left *vfs.MemFS // what the power cut left
}

// memoryDisk is a disk over mem.
func memoryDisk(mem *vfs.MemFS) *disk {
	return &disk{mem: mem, Faulty: fs.NewFaulty(mem), dir: "node", power: &power{}}
}

// realDisk is a folder of the machine.
func realDisk(dir string) *disk {
	return &disk{Faulty: fs.NewFaulty(fs.Real()), dir: filepath.Join(dir, "node"), power: &power{}}
}

// over is a disk like this one over mem, under new power.
func (d *disk) over(mem *vfs.MemFS) *disk {
	next := memoryDisk(mem)
	next.bugs = d.bugs
	return next
}

func (d *disk) path(name string) string { return d.PathJoin(d.dir, name) }

// cut takes the power away, with any part of what was not synced on the disk.
// From then on nothing that this node says is a promise. On a real disk it is
// the death of the process: what was written stays.
func (d *disk) cut(percent int, seed uint64) {
	if d.power.cut.Swap(true) || d.mem == nil {
		return
	}
	left, err := d.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(seed, 11))})
	if err != nil {
		panic(err) // the disk in memory can crash
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = left
}

// cutAt cuts the power before the n-th operation from now that changes the disk,
// and closes the channel then.
func (d *disk) cutAt(n, percent int, seed uint64) <-chan struct{} {
	done := make(chan struct{})
	var left atomic.Int64
	left.Store(int64(n))
	d.Hooks(func(fs.Op) {
		if left.Add(-1) == 0 {
			d.cut(percent, seed)
			close(done)
		}
	}, nil)
	return done
}

// next is the disk after the cut, under new power.
func (d *disk) next(t *testing.T) *disk {
	t.Helper()
	if d.power.gone() == nil {
		t.Fatal("the power was not cut")
	}
	if d.mem == nil {
		return realDisk(filepath.Dir(d.dir))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over(d.left)
}

// make makes the node's folder, durably.
func (d *disk) make() error {
	if err := d.MkdirAll(d.dir, 0o755); err != nil {
		return err
	}
	return d.syncFolder(d.PathDir(d.dir))
}

func (d *disk) syncFolder(dir string) error {
	folder, err := d.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

const category vfs.DiskWriteCategory = "raft-test"

// replace makes name hold data, durably when it returns: the old file or the new
// one, both whole, is what a crash leaves.
func (d *disk) replace(name string, data []byte) error {
	temp := d.path(name + ".new")
	file, err := d.Create(temp, category)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := d.Rename(temp, d.path(name)); err != nil {
		return err
	}
	if err := d.syncFolder(d.dir); err != nil {
		return err
	}
	return d.power.gone()
}

// read gives a whole file.
func (d *disk) read(path string) ([]byte, error) {
	file, err := d.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(file)
	return data, errors.Join(err, file.Close())
}
