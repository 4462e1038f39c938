package duemq

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/fs"
)

// A Memory is a disk in memory that outlives the queues opened on it, for tests:
// [WithMemory]. It is safe for concurrent use.
type Memory struct {
	disk  *vfs.MemFS
	front *fs.Faulty // what queues see: the disk, or its failures
}

// NewMemory makes an empty one.
func NewMemory() *Memory { return memoryOf(fs.NewMem()) }

func memoryOf(disk *vfs.MemFS) *Memory { return &Memory{disk: disk, front: fs.NewFaulty(disk)} }

// AfterPowerCut copies the disk as a power cut would leave it now: without
// anything that was not synced, file names included. The queue that is open on
// the original does not notice. The copy is sound, also if the original fails.
func (m *Memory) AfterPowerCut() *Memory {
	return memoryOf(m.disk.CrashClone(vfs.CrashCloneCfg{}))
}

// Fail has every write and every sync fail from now on, as a broken disk does.
// Reading goes on.
func (m *Memory) Fail() {
	m.front.Inject(fs.Fault{At: 1, Forever: true, Match: func(op fs.Op) bool {
		return op.Kind == fs.OpWrite || op.Kind == fs.OpSync || op.Kind == fs.OpSyncDir
	}})
}
