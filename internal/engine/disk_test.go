package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// TestDiskFullRefusesMessages: while the disk is full messages are refused and
// everything else goes on; when there is room again they are taken.
func TestDiskFullRefusesMessages(t *testing.T) {
	disk := fs.NewMem()
	usage := func(free uint64) {
		disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: free, TotalBytes: 1 << 30, UsedBytes: 1<<30 - free})
	}
	usage(1 << 29)
	c := clock.NewFake(testStart)
	e := open(t, options(disk, c)) // segments of 1 MiB: a twentieth counts
	tp := topic(t, e, "t", 1)
	try := func() error {
		s := []Send{{Message: record.Message{Body: []byte("x")}, Topic: tp.Number, Turn: tp}}
		if err := e.Send(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return s[0].Err
	}
	waits := send(t, e, tp, "waits", Delay{DelayAfter, 3_600_000})
	_, cancelled, err := e.Find(send(t, e, tp, "is cancelled", Delay{DelayAfter, 3_600_000}).ID)
	if err != nil {
		t.Fatal(err)
	}
	usage(1<<30/20 + 1)
	pass(t, e, c, 2)
	if err := try(); err != nil {
		t.Errorf("above the mark: %v", err)
	}
	usage(1<<30/20 - 1)
	// The look is a goroutine's: it has come when a message is refused.
	for end := 0; try() == nil; end++ {
		if end == 1000 {
			t.Fatal("messages are taken on a full disk")
		}
		pass(t, e, c, 1)
	}
	if err := try(); !errors.Is(err, ErrDiskFull) {
		t.Errorf("below the mark: %v", err)
	}
	if out, err := e.Cancel(t.Context(), cancelled); err != nil || out.Verdict != timeline.Done {
		t.Errorf("cancel on a full disk: %+v, %v", out, err)
	}
	before := shown(t, e, tp)
	c.Advance(time.Duration(waits.Due-e.Now()) * time.Millisecond)
	settle(t, e)
	if after := shown(t, e, tp); after != before+1 {
		t.Errorf("%d messages became visible on a full disk, want the 1 that was due", after-before)
	}
	usage(1 << 29)
	for end := 0; try() != nil; end++ {
		if end == 1000 {
			t.Fatal("messages are refused although there is room")
		}
		pass(t, e, c, 1)
	}
}
