package log

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

func ofKind(k fs.Kind) func(fs.Op) bool { return func(o fs.Op) bool { return o.Kind == k } }

var faults = map[string]fs.Fault{
	"error once":        {},
	"disk full forever": {Forever: true, Err: syscall.ENOSPC},
	"short write":       {Match: ofKind(fs.OpWrite), Short: true, Err: syscall.ENOSPC},
	"lost sync":         {Match: ofKind(fs.OpSync), Lose: true},
}

// TestFaultAtEveryOperation fails the first, second, ... operation until a
// workload gets through without meeting the fault.
func TestFaultAtEveryOperation(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			if err := faultSweep(Bugs{}, 6, 18, fault); err != nil {
				t.Error(err)
			}
		})
	}
}

func faultSweep(bugs Bugs, seed uint64, steps int, fault fs.Fault) error {
	for n := 1; ; n++ {
		fault.At = n
		fired, err := faultOnce(bugs, seed, steps, fault)
		if err != nil {
			return fmt.Errorf("seed %d, fault at %d: %w", seed, n, err)
		}
		if !fired {
			return nil
		}
	}
}

func faultOnce(bugs Bugs, seed uint64, steps int, fault fs.Fault) (fired bool, err error) {
	faulty := fs.NewFaulty(fs.NewMem())
	o := testOptions(faulty)
	o.Bugs, o.Preallocate, o.Spares = bugs, true, 1
	w := newWorkload(o, seed, 2, steps)
	faulty.Inject(fault)
	err = w.run()
	if faulty.Fired() == 0 {
		return false, err
	}
	cause := fault.Err
	if cause == nil {
		cause = syscall.EIO
	}
	if !errors.Is(err, cause) {
		return true, fmt.Errorf("an operation failed with %w and the log said: %w", cause, err)
	}
	if err := afterFault(w, faulty, errors.Is(err, ErrPoisoned)); err != nil {
		return true, err
	}
	for _, percent := range []int{0, 50, 100} {
		disk, err := faulty.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(seed, 9))})
		if err != nil {
			return true, err
		}
		if err := reopen(disk, o, w.model, seed); err != nil {
			return true, fmt.Errorf("crash with %d %% of what was not synced: %w", percent, err)
		}
	}
	// The process starts again on the same machine; what it finds it promises.
	faulty.Inject(fs.Fault{})
	if err := w.open(); err != nil {
		return true, err
	}
	disk, err := faulty.CrashClone(vfs.CrashCloneCfg{})
	if err != nil {
		return true, err
	}
	if err := reopen(disk, o, w.model, seed); err != nil {
		return true, fmt.Errorf("crash after another opening: %w", err)
	}
	return true, nil
}

// afterFault uses a log that met a fault: a poisoned one touches the disk no
// more, any other one goes on.
func afterFault(w *workload, faulty *fs.Faulty, poisoned bool) error {
	if w.log == nil || w.log.closed {
		return nil
	}
	ops := faulty.Ops()
	if poisoned {
		next := testBatch(w.log.LastIndex()+1, 100, 1)
		for name, err := range map[string]error{
			"Append":         w.log.Append([]*record.Batch{next}, make([]uint64, 1)),
			"Sync":           w.log.Sync(),
			"TruncateSuffix": w.log.TruncateSuffix(1),
			"RemoveBefore":   w.log.RemoveBefore(1 << 60),
			"Close":          w.log.Close(),
		} {
			if !errors.Is(err, ErrPoisoned) {
				return fmt.Errorf("%s on a poisoned log: %w", name, err)
			}
		}
		if n := faulty.Ops() - ops; n > 0 {
			return fmt.Errorf("a poisoned log did %d more operations", n)
		}
		return nil
	}
	faulty.Inject(fs.Fault{})
	if err := errors.Join(w.append(), w.sync(), w.close()); err != nil {
		return fmt.Errorf("the log was not poisoned, then: %w", err)
	}
	return nil
}
