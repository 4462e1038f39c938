// Package machine asks the operating system what helps somebody whose server
// does not start or is not healthy: which process has a port or a lock, whether
// the clock is disciplined, how many files may be open, how long a disk takes
// to sync. Every question may go unanswered: the answer depends on the system
// and on permissions, and nothing but advice depends on it.
package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
)

// A Process is a running program.
type Process struct {
	PID  int
	Name string // empty if it is not known
}

// String gives "postgres (process 812)".
func (p Process) String() string {
	if p.Name == "" {
		return fmt.Sprintf("process %d", p.PID)
	}
	return fmt.Sprintf("%s (process %d)", p.Name, p.PID)
}

// A ClockState says how well the machine's clock is kept.
type ClockState struct {
	Synced   bool          // a time server disciplines it
	MaxError time.Duration // the kernel's bound, meaningful if Synced
}

// SyncLatency measures how long the disk under dir takes to make a small write
// durable: n writes of 4 KiB into one preallocated file, each followed by a
// sync of its data, as the log does it. The file is removed.
func SyncLatency(disk fs.FS, c clock.Clock, dir string, n int) (sorted []time.Duration, err error) {
	name := disk.PathJoin(dir, "doctor.tmp")
	file, err := disk.Create(name, "duemq-doctor")
	if err != nil {
		return nil, err
	}
	defer func() {
		cerr := file.Close()
		if rerr := disk.Remove(name); cerr == nil {
			cerr = rerr
		}
		if err == nil {
			err = cerr
		}
	}()
	const page = 4 << 10
	zeros := make([]byte, page)
	for i := range n {
		if _, err := file.WriteAt(zeros, int64(i)*page); err != nil {
			return nil, err
		}
	}
	if err := file.Sync(); err != nil {
		return nil, err
	}
	for i := range n {
		zeros[0] = byte(i + 1)
		began := c.Now().Mono
		if _, err := file.WriteAt(zeros, int64(i)*page); err != nil {
			return nil, err
		}
		if err := file.SyncData(); err != nil {
			return nil, err
		}
		sorted = append(sorted, time.Duration(c.Now().Mono-began))
	}
	slices.Sort(sorted)
	return sorted, nil
}
