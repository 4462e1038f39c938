package broker

import (
	"context"
	"io"

	"github.com/duemq/duemq/internal/engine"
)

// BackupInfo says what a backup holds.
type BackupInfo = engine.BackupInfo

// Backup writes a copy of the store to w while the broker goes on; see
// [engine.Engine.Backup].
func (b *Broker) Backup(ctx context.Context, w io.Writer, progress func(done, total int64)) (BackupInfo, error) {
	return b.e.Backup(ctx, w, progress)
}
