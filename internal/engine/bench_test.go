package engine

import (
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

func benchEngine(b *testing.B, mod func(*Options)) (*Engine, *Topic) {
	b.Helper()
	o := Options{FS: fs.Real(), Dir: b.TempDir(), Clock: clock.Real(), Rand: rand.Reader}
	if mod != nil {
		mod(&o)
	}
	e, err := Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	tp, err := e.MakeTopic(b.Context(), "bench", 8, nil)
	if err != nil {
		b.Fatal(err)
	}
	return e, tp
}

// BenchmarkSendBatch sends 256 B messages, 1000 a call, from two senders.
func BenchmarkSendBatch(b *testing.B) {
	for _, d := range []struct {
		name  string
		delay Delay
	}{
		{"level", Delay{DelayLevel, 18}},
		{"any", Delay{DelayAfter, 7_000_000}},
		{"none", Delay{}},
	} {
		b.Run(d.name, func(b *testing.B) {
			e, tp := benchEngine(b, nil)
			body := make([]byte, 256)
			b.SetBytes(256)
			b.ReportAllocs()
			b.ResetTimer()
			began := time.Now()
			var wg sync.WaitGroup
			const senders, batch = 2, 1000
			for w := range senders {
				wg.Go(func() {
					for n := w * batch; n < b.N; n += senders * batch {
						s := make([]Send, min(batch, b.N-n))
						for i := range s {
							s[i] = Send{Message: record.Message{Body: body}, Topic: tp.Number, Turn: tp, Delay: d.delay}
							if d.delay.Kind == DelayAfter {
								s[i].Delay.Value += int64(i*7919) % 3_000_000
							}
						}
						if err := e.Send(b.Context(), s); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "msg/s")
		})
	}
}

// BenchmarkSendSingles sends 256 B messages one a call from 256 senders.
func BenchmarkSendSingles(b *testing.B) {
	e, tp := benchEngine(b, nil)
	body := make([]byte, 256)
	b.ReportAllocs()
	b.ResetTimer()
	began := time.Now()
	var wg sync.WaitGroup
	const senders = 256
	for w := range senders {
		wg.Go(func() {
			s := make([]Send, 1)
			for n := w; n < b.N; n += senders {
				s[0] = Send{Message: record.Message{Body: body}, Topic: tp.Number, Turn: tp, Delay: Delay{DelayLevel, 18}}
				if err := e.Send(b.Context(), s); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "msg/s")
	_ = fmt.Sprint()
}
