package engine

import (
	"errors"
	"testing"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// TestStoreFileMissing: without its STORE file a log is refused, nothing is
// written, and with the file back all is as it was.
func TestStoreFileMissing(t *testing.T) {
	disk := fs.NewMem()
	o := options(disk, clock.NewFake(testStart))
	e := open(t, o)
	tp := topic(t, e, "t", 1)
	send(t, e, tp, "kept", Delay{})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := disk.Rename("data/STORE", "data/aside"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), o); !errors.Is(err, record.ErrCorrupt) {
		t.Fatalf("Open without STORE: %v", err)
	}
	if _, err := disk.Stat("data/STORE"); err == nil {
		t.Fatal("a new STORE was written beside the old log")
	}
	if err := disk.Rename("data/aside", "data/STORE"); err != nil {
		t.Fatal(err)
	}
	e = open(t, o)
	if got := shown(t, e, e.TopicNamed("t")); got != 1 {
		t.Errorf("%d messages", got)
	}
}
