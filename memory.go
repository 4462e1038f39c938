package duemq

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/fs"
)

// A Memory is a disk in memory that outlives the queues opened on it, for tests:
// [WithMemory]. It is safe for concurrent use.
type Memory struct{ disk *vfs.MemFS }

// NewMemory makes an empty one.
func NewMemory() *Memory { return &Memory{disk: fs.NewMem()} }

// AfterPowerCut copies the disk as a power cut would leave it now: without
// anything that was not synced, file names included. The queue that is open on
// the original does not notice.
func (m *Memory) AfterPowerCut() *Memory {
	return &Memory{disk: m.disk.CrashClone(vfs.CrashCloneCfg{})}
}
