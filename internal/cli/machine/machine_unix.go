//go:build unix

package machine

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// LockHolder finds the process that holds the lock on a file. The caller does
// not hold it itself: closing the file, as this does, would let go of it.
func LockHolder(path string) (p Process, ok bool) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return p, false
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil || lock.Type == unix.F_UNLCK {
		return p, false
	}
	if lock.Pid <= 0 { // held in another container, or by another machine
		return p, false
	}
	return Process{PID: int(lock.Pid), Name: name(int(lock.Pid))}, true
}

// OpenFiles is how many files this process may have open.
func OpenFiles() (n uint64, ok bool) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false
	}
	return uint64(limit.Cur), true //nolint:unconvert // signed on some systems
}
