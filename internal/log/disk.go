package log

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// category is what Pebble's statistics call the log's writes.
const category vfs.DiskWriteCategory = "duemq-log"

// tempSuffix ends the name of a file that is not yet what its name will say.
// Whatever carries it when the log opens is left over and removed.
const tempSuffix = ".new"

// A disk is one folder and what the log does to its entries. The folder stays
// open, so that syncing it needs no new descriptor.
type disk struct {
	fs     vfs.FS
	dir    string
	handle vfs.File
	skip   bool // seeded bug: directory entries are not synced
}

// open makes the folder, with its parents, and opens it.
func (d *disk) open() error {
	if err := makeDir(d.fs, d.dir); err != nil {
		return err
	}
	var err error
	if d.handle, err = d.fs.OpenDir(d.dir); err != nil {
		return fmt.Errorf("folder of the log: %w", err)
	}
	return nil
}

func (d *disk) close() error {
	if d.handle == nil {
		return nil
	}
	err := d.handle.Close()
	d.handle = nil
	return err
}

func (d *disk) path(name string) string { return d.fs.PathJoin(d.dir, name) }

// sync makes created, renamed and removed names durable.
func (d *disk) sync() error {
	if d.skip {
		return nil
	}
	if err := d.handle.Sync(); err != nil {
		return fmt.Errorf("sync of folder %s: %w", d.dir, err)
	}
	return nil
}

// replace makes name hold data, durably when it returns. A crash leaves the old
// file or the new one, both whole.
func (d *disk) replace(name string, data []byte) error {
	temp := d.path(name + tempSuffix)
	file, err := d.fs.Create(temp, category)
	if err != nil {
		return fmt.Errorf("%s: %w", temp, err)
	}
	if err := fill(file, data); err != nil {
		return fmt.Errorf("%s: %w", temp, err)
	}
	if err := d.fs.Rename(temp, d.path(name)); err != nil {
		return fmt.Errorf("%s: %w", temp, err)
	}
	return d.sync()
}

// fill writes data at the beginning of file, syncs it and closes it.
func fill(file vfs.File, data []byte) error {
	if err := writeAt(file, data, 0); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := file.Sync(); err != nil {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}

// writeAt writes all of p or fails.
func writeAt(file vfs.File, p []byte, off int64) error {
	n, err := file.WriteAt(p, off)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return err
}

// readSmall reads a whole file that must not be larger than limit.
func readSmall(fs vfs.FS, name string, limit int64) ([]byte, error) {
	file, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if int64(len(data)) > limit {
		return nil, &DamageError{File: name, Offset: limit, Reason: "file is too long"}
	}
	return data, nil
}

// makeDir makes dir and its missing parents, from the top, each durable before
// the next, so that a power cut does not take the folder away with all in it.
func makeDir(fs vfs.FS, dir string) error {
	missing, err := missingDirs(fs, dir)
	if err != nil {
		return err
	}
	for _, made := range slices.Backward(missing) {
		if err := fs.MkdirAll(made, 0o755); err != nil {
			return fmt.Errorf("folder %s: %w", made, err)
		}
		if err := syncDir(fs, fs.PathDir(made)); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return nil
	}
	// It was there; whether its entry was ever synced is unknown. A parent that
	// we may not read was made by somebody else.
	if err := syncDir(fs, fs.PathDir(dir)); err != nil && !errors.Is(err, os.ErrPermission) {
		return err
	}
	return nil
}

// missingDirs lists dir and its parents as far as they do not exist, the
// deepest first.
func missingDirs(fs vfs.FS, dir string) ([]string, error) {
	var missing []string
	for at := dir; ; at = fs.PathDir(at) {
		_, err := fs.Stat(at)
		if err == nil {
			return missing, nil
		}
		if !errors.Is(err, os.ErrNotExist) || at == fs.PathDir(at) {
			return nil, fmt.Errorf("folder %s: %w", at, err)
		}
		missing = append(missing, at)
	}
}

func syncDir(fs vfs.FS, dir string) error {
	handle, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("folder %s: %w", dir, err)
	}
	if err := handle.Sync(); err != nil {
		return errors.Join(fmt.Errorf("sync of folder %s: %w", dir, err), handle.Close())
	}
	return handle.Close()
}
