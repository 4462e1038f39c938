package raft

import (
	"fmt"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/log"
)

// BenchmarkGetLog reads entries as a leader does for each follower that it sends
// to, beside the log's own read that is under it.
func BenchmarkGetLog(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10, 256 << 10} {
		o := log.Options{FS: fs.Real(), Dir: b.TempDir(), StoreID: storeID("bench")}
		l, err := log.Open(o, log.Start{})
		if err != nil {
			b.Fatal(err)
		}
		s := &store{log: l, power: &power{}, bell: newBell(), newest: func() uint64 { return 0 }, failed: make(chan struct{})}
		const entries = 100
		if err := s.StoreLogs(commands(1, entries, 1, size)); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("GetLog/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			var entry raft.Log
			for i := 0; b.Loop(); i++ {
				if err := s.GetLog(uint64(i%entries)+1, &entry); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("Get/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for i := 0; b.Loop(); i++ {
				if _, _, err := l.Get(uint64(i%entries) + 1); err != nil {
					b.Fatal(err)
				}
			}
		})
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
