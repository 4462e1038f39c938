package group

import (
	"testing"

	"github.com/duemq/duemq/internal/record"
)

// each reports what one grant costs.
func each(b *testing.B, grants int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(grants), "ns/grant")
}

// BenchmarkGrantFresh leases 8,000 offsets that were never seen.
func BenchmarkGrantFresh(b *testing.B) {
	for b.Loop() {
		l, p := &Leases{}, StartAt(0)
		for range 8 {
			l.Grant(p, 0, 1<<40, Ask{Limit: 1000, Until: 10})
		}
	}
	each(b, 8000)
}

// BenchmarkGrantSteady leases, finishes and acknowledges 32 at a time: a
// consumer that keeps up.
func BenchmarkGrantSteady(b *testing.B) {
	l, p := &Leases{}, StartAt(0)
	for b.Loop() {
		got := l.Grant(p, 0, 1<<60, Ask{Limit: 32, Until: 10})
		for _, g := range got {
			l.Finish(g.Offset, g.Attempt)
		}
		p.Ack([]record.OffsetRange{{From: got[0].Offset, To: got[0].Offset + 32}}, 1<<60)
	}
	each(b, 32)
}

// BenchmarkGrantAgain leases a full window whose leases ended, 32 at a time.
func BenchmarkGrantAgain(b *testing.B) {
	l, p := &Leases{}, StartAt(0)
	now := int64(1)
	l.Grant(p, 0, 1<<40, Ask{Limit: MaxInflight, Now: now, Until: now + 1})
	for b.Loop() {
		now += 10
		for range MaxInflight / 32 {
			l.Grant(p, 0, 1<<40, Ask{Limit: 32, Now: now, Until: now + 5})
		}
	}
	each(b, MaxInflight/32*32)
}

// BenchmarkGrantRestored leases a window that a restart left full of attempts,
// with every second offset acknowledged.
func BenchmarkGrantRestored(b *testing.B) {
	p := StartAt(0)
	p.Lease([]record.LeaseRun{{From: 0, To: MaxInflight, Attempt: 2}}, 1<<40)
	for o := record.Offset(1); o < MaxInflight; o += 2 {
		p.Ack([]record.OffsetRange{{From: o, To: o + 1}}, 1<<40)
	}
	for b.Loop() {
		l := &Leases{}
		for range 5 {
			l.Grant(p, 0, 1<<40, Ask{Limit: 1000, Until: 10})
		}
	}
	each(b, 5000)
}

// BenchmarkRetries leases a full window a second time, 32 at a time, gives it
// back and acknowledges it: what a consumer that fails once costs the applier.
func BenchmarkRetries(b *testing.B) {
	entries := make([]record.Released, 32)
	for b.Loop() {
		p := StartAt(0)
		for at := record.Offset(0); at < MaxInflight-32; at += 32 {
			p.Lease([]record.LeaseRun{{From: at, To: at + 32, Attempt: 1}}, 1<<40)
			for i := range entries {
				entries[i] = record.Released{Offset: at + record.Offset(i), Attempt: 1, Due: 9}
			}
			p.Release(entries, 1<<40)
		}
		for at := record.Offset(0); at < MaxInflight-32; at += 32 {
			p.Lease([]record.LeaseRun{{From: at, To: at + 32, Attempt: 2}}, 1<<40)
		}
		for at := record.Offset(0); at < MaxInflight-32; at += 32 {
			p.Ack([]record.OffsetRange{{From: at, To: at + 32}}, 1<<40)
		}
	}
	each(b, 3*MaxInflight)
}
