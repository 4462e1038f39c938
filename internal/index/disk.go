package index

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the file system that Pebble sees. It adds one rule: after a final
// error nothing is changed any more.
//
// Pebble meets such an error by ending the process. If it went on instead and,
// say, the sync of a manifest had failed, it would remove the tables of that
// ingest, while the manifest on disk may well name them: the store would never
// open again. So for the disk the process has ended.
type disk struct {
	vfs.FS
	failure *failure
	bugs    Bugs
}

var _ vfs.FS = (*disk)(nil)

// alive refuses a change after a final error.
func (d *disk) alive(verb, name string) error {
	if err := d.failure.get(); err != nil {
		return fmt.Errorf("%s %s: %w", verb, name, err)
	}
	return nil
}

func (d *disk) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &diskFile{File: f, d: d}, nil
}

// Create makes a file.
//
// A marker names the manifest that is in force. Pebble makes both and then syncs
// their directory, so a power loss in between may keep the marker and lose the
// manifest, and the store cannot be opened any more. Here the manifest's entry
// is made durable first.
//
// A manifest gets its space at once, so that a full disk shows when a table is
// written, which is no harm, and not when the manifest is, which is final.
func (d *disk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.alive("create", name); err != nil {
		return nil, err
	}
	base := d.PathBase(name)
	if strings.HasPrefix(base, "marker.") {
		if err := d.syncDir(d.PathDir(name)); err != nil {
			return nil, err
		}
	}
	f, err := d.wrap(d.FS.Create(name, c))
	if err == nil && strings.HasPrefix(base, "MANIFEST-") {
		if err := f.Preallocate(0, manifestBytes); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, err
}

// Link gives a file a second name.
func (d *disk) Link(oldname, newname string) error {
	if err := d.alive("link", newname); err != nil {
		return err
	}
	return d.FS.Link(oldname, newname)
}

// OpenReadWrite opens a file for changes.
func (d *disk) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	if err := d.alive("open", name); err != nil {
		return nil, err
	}
	return d.wrap(d.FS.OpenReadWrite(name, c, o...))
}

// OpenDir opens a directory to sync it.
func (d *disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &diskDir{File: f, d: d, name: name}, nil
}

// syncDir makes the entries of a directory durable.
func (d *disk) syncDir(name string) error {
	f, err := d.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), d.failure.get())
}

// Remove removes a file.
func (d *disk) Remove(name string) error {
	if err := d.alive("remove", name); err != nil {
		return err
	}
	return d.FS.Remove(name)
}

// RemoveAll removes a folder.
func (d *disk) RemoveAll(name string) error {
	if err := d.alive("remove", name); err != nil {
		return err
	}
	return d.FS.RemoveAll(name)
}

// Rename renames a file.
func (d *disk) Rename(oldname, newname string) error {
	if err := d.alive("rename", newname); err != nil {
		return err
	}
	return d.FS.Rename(oldname, newname)
}

// ReuseForWrite renames a file and opens it for changes.
func (d *disk) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.alive("reuse", newname); err != nil {
		return nil, err
	}
	return d.wrap(d.FS.ReuseForWrite(oldname, newname, c))
}

// MkdirAll makes folders.
func (d *disk) MkdirAll(dir string, perm os.FileMode) error {
	if err := d.alive("mkdir", dir); err != nil {
		return err
	}
	return d.FS.MkdirAll(dir, perm)
}

// Lock locks a file against other processes. It is let go even after a final
// error, or the index could not be opened again.
func (d *disk) Lock(name string) (io.Closer, error) { return d.FS.Lock(name) }

// Unwrap gives the file system below.
func (d *disk) Unwrap() vfs.FS { return d.FS }

// diskFile is a file that may be written.
type diskFile struct {
	vfs.File
	d *disk
}

// Write appends.
func (f *diskFile) Write(p []byte) (int, error) {
	if err := f.d.failure.get(); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

// WriteAt writes at a place.
func (f *diskFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.d.failure.get(); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, off)
}

// diskDir is a directory. A failed sync of it is final: the entries that were
// to be made durable may be gone, and the kernel does not report it twice, so a
// second sync that succeeds would prove nothing.
type diskDir struct {
	vfs.File
	d    *disk
	name string
}

// Sync makes the directory's entries durable. Pebble hears of no failure, since
// it panics at some of them, on goroutines of its own. Whatever it builds on the
// lie goes no further than its memory: the disk takes no change any more, and
// the final error is what callers of the index get.
func (f *diskDir) Sync() error {
	if f.d.bugs.SkipDirSync || f.d.failure.happened() {
		return nil
	}
	f.synced(f.File.Sync())
	return nil
}

// synced notes how a sync went.
func (f *diskDir) synced(err error) {
	if err != nil {
		f.d.failure.set(fmt.Errorf("sync directory %s: %w", f.name, err))
	}
}
