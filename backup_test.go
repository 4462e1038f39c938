package duemq_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/duemq/duemq"
)

// TestBackup: a copy that was made while the queue went on holds what waits,
// under the same ids.
func TestBackup(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		send(t, q.Queue, "was received")
		take(t, q.Queue)
		waits := send(t, q.Queue, "waits", duemq.After(time.Minute))
		var copied bytes.Buffer
		var told int64
		if err := q.Backup(ctx, &copied, func(done, _ int64) { told = done }); err != nil {
			t.Fatalf("Backup: %v", err)
		}
		if told == 0 || told > int64(copied.Len()) {
			t.Errorf("told of %d bytes of %d", told, copied.Len())
		}
		send(t, q.Queue, "too late")
		m := duemq.NewMemory()
		if err := duemq.Restore(ctx, "", bytes.NewReader(copied.Bytes()), nil, duemq.WithMemory(m)); err != nil {
			t.Fatalf("Restore: %v", err)
		}
		if err := duemq.Restore(ctx, "", bytes.NewReader(copied.Bytes()), nil, duemq.WithMemory(m)); !errors.Is(err, duemq.ErrNotEmpty) {
			t.Errorf("Restore into a store: %v, want %v", err, duemq.ErrNotEmpty)
		}
		restored, err := duemq.Open(ctx, "", duemq.WithMemory(m))
		if err != nil {
			t.Fatalf("Open of what was restored: %v", err)
		}
		defer restored.Close()
		if n, err := restored.Count(ctx); n != 1 || err != nil {
			t.Errorf("%d wait in the copy, %v; want 1", n, err)
		}
		if err := restored.Cancel(ctx, waits.Handle); err != nil {
			t.Errorf("Cancel in the copy: %v", err)
		}
		if got := take(t, restored); len(got) != 0 {
			t.Errorf("received in the copy: %q", bodies(got))
		}
		cut := copied.Bytes()[:copied.Len()-10]
		if err := duemq.Restore(ctx, "x", bytes.NewReader(cut), nil, duemq.WithMemory(m)); !errors.Is(err, duemq.ErrIncomplete) {
			t.Errorf("Restore of a part: %v, want %v", err, duemq.ErrIncomplete)
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if err := q.Backup(ended, &copied, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("Backup with an ended context: %v", err)
		}
		full := errors.New("disk full")
		if err := q.Backup(ctx, failing{full}, nil); !errors.Is(err, full) {
			t.Errorf("Backup to a full disk: %v, want %v", err, full)
		}
		if err := duemq.Restore(ctx, "", &copied, nil, duemq.WithToken("x")); !errors.Is(err, duemq.ErrInvalid) {
			t.Errorf("Restore with an option of Dial: %v, want %v", err, duemq.ErrInvalid)
		}
	})
}

// failing fails every write.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
