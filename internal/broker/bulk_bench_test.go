package broker

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
)

// BenchmarkBulk cancels and shifts messages on a disk in memory; one
// round is one message.
func BenchmarkBulk(b *testing.B) {
	for _, kind := range []BulkKind{BulkCancel, BulkReschedule} {
		b.Run(string(kind), func(b *testing.B) {
			br, err := Open(b.Context(), Options{Engine: engine.Options{
				FS: fs.NewMem(), Dir: "data", Clock: clock.Real(), Rand: rand.NewChaCha8([32]byte{}), Sync: engine.SyncInterval,
			}})
			if err != nil {
				b.Fatal(err)
			}
			defer br.Close()
			msgs := make([]Message, 10_000)
			for i := range msgs {
				msgs[i] = Message{Topic: "t", Body: make([]byte, 100), Delay: after(time.Hour + time.Duration(i)*time.Second)}
			}
			for left := b.N; left > 0; left -= len(msgs) {
				if _, err := br.Send(b.Context(), msgs[:min(left, len(msgs))]); err != nil {
					b.Fatal(err)
				}
			}
			r := Bulk{Kind: kind}
			if kind == BulkReschedule {
				r.By = time.Hour
			}
			b.ResetTimer()
			op, err := br.StartBulk(b.Context(), r)
			if err == nil {
				op, err = br.WaitOperation(b.Context(), op.ID)
			}
			if err != nil || op.Done != uint64(b.N) {
				b.Fatalf("%+v, %v", op, err)
			}
		})
	}
}
