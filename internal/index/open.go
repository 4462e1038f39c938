package index

import (
	"errors"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// open makes the folders, takes the lock, clears away what earlier processes
// left, and opens Pebble.
func (x *Index) open() (err error) {
	for _, dir := range []string{x.dir, x.tables, x.cutsDir} {
		if err := x.makeDir(dir); err != nil {
			return err
		}
	}
	if x.lock, err = pebble.LockDirectory(x.tables, x.disk); err != nil {
		return err
	}
	x.opts.Lock = x.lock
	if err := x.clear(); err != nil {
		return errors.Join(err, x.lock.Close())
	}
	if x.db, err = pebble.Open(x.tables, x.opts); err != nil {
		return errors.Join(err, x.lock.Close())
	}
	return nil
}

// makeDir makes dir and sees to it that a power loss does not take it away.
func (x *Index) makeDir(dir string) error {
	if err := x.disk.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return x.disk.syncDir(x.disk.PathDir(dir))
}

// clear removes the cuts that were being built when an earlier process ended,
// which are worth nothing, for the log still holds them, and Pebble's
// write-ahead logs. Those are empty, since nothing but ingests ever writes; yet
// Pebble would replay and flush them, and so write to the manifest in the
// background at every start.
func (x *Index) clear() error {
	return errors.Join(
		x.removeFiles(x.cutsDir, func(string) bool { return true }),
		x.removeFiles(x.tables, func(name string) bool { return strings.HasSuffix(name, ".log") }),
	)
}

func (x *Index) removeFiles(dir string, which func(name string) bool) error {
	names, err := x.disk.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !which(name) {
			continue
		}
		if err := x.disk.Remove(x.disk.PathJoin(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
