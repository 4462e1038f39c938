package duemq_test

import (
	"testing"
	"time"

	"github.com/duemq/duemq"
)

// openDisk opens a queue in a temporary folder on the machine's disk.
func openDisk(b *testing.B, opts ...duemq.Option) *duemq.Queue {
	b.Helper()
	q, err := duemq.Open(b.Context(), b.TempDir(), opts...)
	if err != nil {
		b.Fatalf("Open: %v", err)
	}
	b.Cleanup(func() {
		if err := q.Close(); err != nil {
			b.Errorf("Close: %v", err)
		}
	})
	return q
}

// BenchmarkSend is one message a call of 256 bytes, synced, from 256 goroutines
// for each core.
func BenchmarkSend(b *testing.B) {
	q := openDisk(b)
	body := make([]byte, 256)
	b.SetParallelism(256)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := q.Send(b.Context(), topic, body, duemq.After(time.Hour)); err != nil {
				b.Errorf("Send: %v", err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

// BenchmarkSendBatch is 1,000 messages a call, synced, from 4 goroutines for
// each core.
func BenchmarkSendBatch(b *testing.B) {
	q := openDisk(b)
	const each = 1000
	b.SetParallelism(4)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		msgs := make([]duemq.Message, each)
		for i := range msgs {
			msgs[i] = duemq.Message{Topic: topic, Body: make([]byte, 256), After: time.Hour}
		}
		for p.Next() {
			if _, err := q.SendBatch(b.Context(), msgs); err != nil {
				b.Errorf("SendBatch: %v", err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)*each/b.Elapsed().Seconds(), "msg/s")
}

// BenchmarkReceive is messages received in batches and acknowledged, by one
// goroutine.
func BenchmarkReceive(b *testing.B) {
	q := openDisk(b)
	msgs := make([]duemq.Message, 1000)
	for i := range msgs {
		msgs[i] = duemq.Message{Topic: topic, Body: make([]byte, 256)}
	}
	for n := 0; n < b.N; n += len(msgs) {
		if _, err := q.SendBatch(b.Context(), msgs[:min(len(msgs), b.N-n)]); err != nil {
			b.Fatalf("SendBatch: %v", err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		got, err := q.ReceiveBatch(b.Context(), topic, duemq.Max(1000))
		if err != nil {
			b.Fatalf("ReceiveBatch: %v", err)
		}
		if err := q.AckAll(b.Context(), got); err != nil {
			b.Fatalf("AckAll: %v", err)
		}
		n += len(got)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}
