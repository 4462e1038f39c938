package fs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Real is the machine's own file system. Its locks keep out other processes, and
// this one too under whatever path the folder is named; a bind mount and another
// spelling of a name on a disk that does not tell capitals apart go unnoticed
// within one process.
func Real() FS { return machineFS{vfs.Default} }

// A machineFS is Pebble's file system with locks for folders. Pebble's go by the name
// as it is written, and POSIX locks do not keep a process out of its own files:
// "data" and its absolute path would be two locks.
type machineFS struct{ FS }

// Lock locks the file, which is made when missing, until the Closer is closed.
func (m machineFS) Lock(name string) (io.Closer, error) {
	dir, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return m.FS.Lock(filepath.Join(dir, filepath.Base(name)))
}

// Unwrap gives Pebble's file system.
func (m machineFS) Unwrap() FS { return m.FS }

// Locked says of an error of Lock that somebody holds the lock, and not that the
// file could not be made or opened.
func Locked(err error) bool {
	_, unusable := errors.AsType[*os.PathError](err)
	return err != nil && !unusable
}
