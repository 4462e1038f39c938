package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// segmentOps are the operations of a kind on the log's files.
func segmentOps(kind fs.Kind) func(fs.Op) bool {
	return func(op fs.Op) bool { return op.Kind == kind && strings.HasSuffix(op.Path, ".seg") }
}

// TestFailedEngineIsQuiet has the sync of a tick fail. What was due stays due,
// and no tick follows the one that failed.
func TestFailedEngineIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(testStart))
		disk := fs.NewFaulty(fs.NewMem())
		e := open(t, options(disk, clock.Real()))
		send(t, e, topic(t, e, "t", 1), "due", Delay{Kind: DelayAfter, Value: 100})
		disk.Inject(fs.Fault{At: 1, Forever: true, Match: segmentOps(fs.OpSync)})
		<-e.Failed()
		before := e.Stats()
		time.Sleep(time.Minute)
		after := e.Stats()
		if after.Ticks != before.Ticks || after.Wakeups > before.Wakeups+1 {
			t.Errorf("in a minute after the failure: %d ticks, %d wake-ups",
				after.Ticks-before.Ticks, after.Wakeups-before.Wakeups)
		}
		if err := e.Close(); !errors.Is(err, ErrFailed) {
			t.Errorf("Close: %v", err)
		}
	})
}

// TestCloseWhenTheLogCannotBeRead: the last cut reads where the log ends. If that
// fails there is no cut, and Close says so instead of waiting for it.
func TestCloseWhenTheLogCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(testStart))
		disk := fs.NewFaulty(fs.NewMem())
		e := open(t, options(disk, clock.Real()))
		send(t, e, topic(t, e, "t", 1), "waits", Delay{Kind: DelayAfter, Value: 100_000})
		disk.Inject(fs.Fault{At: 1, Forever: true, Match: segmentOps(fs.OpRead)})
		if err := e.Close(); !errors.Is(err, ErrFailed) {
			t.Errorf("Close: %v", err)
		}
		if disk.Fired() == 0 {
			t.Error("nothing was read")
		}
	})
}

// TestFolderThatCannotBeLocked is not in use by anybody, and nobody is told to
// stop a server that there is not.
func TestFolderThatCannotBeLocked(t *testing.T) {
	o := options(fs.Real(), clock.NewFake(testStart))
	o.Dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(o.Dir, "LOCK"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), o); err == nil || errors.Is(err, ErrInUse) {
		t.Errorf("Open: %v", err)
	}
}

// TestCallersThatLeave have a disk that hangs: however many give up, what they
// handed in stays bounded, and Close waits for the disk.
func TestCallersThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(testStart))
		disk := fs.NewFaulty(fs.NewMem())
		e := open(t, options(disk, clock.Real()))
		tp := topic(t, e, "t", 1)
		gate := make(chan struct{})
		disk.Hooks(func(op fs.Op) {
			if op.Kind == fs.OpSync && strings.HasSuffix(op.Path, ".seg") {
				<-gate
			}
		}, nil)
		const size = 100_000
		for range 2 * maxPending / size {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			s := []Send{{Message: record.Message{Body: make([]byte, size)}, Topic: tp.Number, Turn: tp}}
			if err := e.Send(ctx, s); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("Send: %v", err)
			}
			cancel()
		}
		close(gate)
		settle(t, e)
		if n := e.Count(tp).Visible; n == 0 || n > maxPending/size {
			t.Errorf("%d messages of %d bytes were held, room is for %d", n, size, maxPending/size)
		}
		if !e.room.TryAcquire(maxPending) {
			t.Error("room is not given back")
		}
	})
}

// TestDamagedIndexHasARemedy flips a byte in every table of the index: the
// engine refuses to open, and says what helps, which then does.
func TestDamagedIndexHasARemedy(t *testing.T) {
	o := options(fs.Real(), clock.NewFake(testStart))
	o.Dir = t.TempDir()
	e := open(t, o)
	send(t, e, topic(t, e, "t", 1), "waits", Delay{Kind: DelayAfter, Value: 1000})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(o.Dir, "index", "tables", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("tables %v, %v", tables, err)
	}
	for _, name := range tables {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/3] ^= 1 << 4
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(o.Dir, "index")
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "delete "+folder) {
		t.Fatalf("Open with a damaged index: %v", err)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if n := open(t, o).Recovered().Waiting; n != 1 {
		t.Errorf("%d wait, want 1", n)
	}
}
