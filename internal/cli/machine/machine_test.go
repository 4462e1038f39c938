package machine

import (
	"slices"
	"testing"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
)

func TestProcess(t *testing.T) {
	for p, want := range map[Process]string{{812, "postgres"}: "postgres (process 812)", {812, ""}: "process 812"} {
		if got := p.String(); got != want {
			t.Errorf("%+v is written %q, want %q", p, got, want)
		}
	}
}

func TestSyncLatency(t *testing.T) {
	disk := fs.NewMem()
	if err := disk.MkdirAll("data", 0o755); err != nil {
		t.Fatal(err)
	}
	took, err := SyncLatency(disk, clock.Real(), "data", 10)
	if err != nil {
		t.Fatalf("SyncLatency: %v", err)
	}
	if len(took) != 10 || !slices.IsSorted(took) || took[0] < 0 {
		t.Errorf("took %v, want 10 of them, sorted", took)
	}
	if names, err := disk.List("data"); err != nil || len(names) != 0 {
		t.Errorf("left behind: %v (%v)", names, err)
	}
	if _, err := SyncLatency(disk, clock.Real(), "nowhere", 1); err == nil {
		t.Error("no error in a folder that is not there")
	}
}

func TestSyncLatencyFails(t *testing.T) {
	for _, kind := range []fs.Kind{fs.OpWrite, fs.OpSync} {
		mem := fs.NewMem()
		disk := fs.NewFaulty(mem)
		disk.Inject(fs.Fault{At: 3, Forever: true, Match: func(op fs.Op) bool { return op.Kind == kind }})
		if _, err := SyncLatency(disk, clock.Real(), "", 10); err == nil {
			t.Errorf("%v fails and nothing is said", kind)
		}
	}
}
