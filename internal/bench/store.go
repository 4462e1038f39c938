//go:build linux

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"math"
	mrand "math/rand/v2"
	"sync"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
)

const topic = "bench"

// open opens a store on the real disk with the defaults of serve.
func open(dir string, mod func(*broker.Options)) (*broker.Broker, error) {
	o := broker.Options{Engine: engine.Options{FS: fs.Real(), Dir: dir, Clock: clock.Real(), Rand: rand.Reader}}
	if mod != nil {
		mod(&o)
	}
	return broker.Open(context.Background(), o)
}

// A shifted clock is the real one, off by so much. Opening a store under it goes
// where its messages fall due without waiting for that.
type shifted struct {
	clock.Clock
	by time.Duration
}

// Now reads both clocks; the wall clock is off.
func (c shifted) Now() clock.Reading {
	r := c.Clock.Now()
	r.Wall += int64(c.by)
	return r
}

// openAt opens a store so that it is that instant now.
func openAt(dir string, now time.Time, mod func(*broker.Options)) (*broker.Broker, shifted, error) {
	c := shifted{clock.Real(), time.Until(now)}
	b, err := open(dir, func(o *broker.Options) {
		o.Engine.Clock = c
		if mod != nil {
			mod(o)
		}
	})
	return b, c, err
}

// A delayer says when the i-th message is due.
type delayer func(i int) engine.Delay

func byLevel(level int64) delayer {
	return func(int) engine.Delay { return engine.Delay{Kind: engine.DelayLevel, Value: level} }
}

// byTime spreads dues over a window, from a distance on.
func byTime(from, window time.Duration) delayer {
	rng := mrand.New(mrand.NewPCG(1, 1))
	offsets := make([]int64, 1<<16)
	for i := range offsets {
		offsets[i] = from.Milliseconds() + rng.Int64N(window.Milliseconds())
	}
	return func(i int) engine.Delay {
		return engine.Delay{Kind: engine.DelayAfter, Value: offsets[i%len(offsets)]}
	}
}

func at(due time.Time) delayer {
	return func(int) engine.Delay { return engine.Delay{Kind: engine.DelayAt, Value: due.UnixMilli()} }
}

// body is incompressible, as far as the disk is concerned.
func body(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

// A load is messages of one size, sent by several senders batch by batch.
type load struct {
	n, size, senders, batch int

	distinct bool // bodies differ, so that nothing that packs them gains by it

	topic func(i int) string                   // nil: topic
	seen  func(i int, receipt *broker.Receipt) // of the i-th message; nil: nobody looks
}

// fill sends a load.
func fill(b *broker.Broker, l load, d delayer) error {
	n, senders, batch := l.n, l.senders, l.batch
	payload, more := body(l.size), 0
	if l.distinct {
		more = 4 << 20
		payload = body(l.size + more)
	}
	var wg sync.WaitGroup
	errs := make(chan error, senders)
	for w := range senders {
		wg.Go(func() {
			for from := w * batch; from < n; from += senders * batch {
				msgs := make([]broker.Message, min(batch, n-from))
				for i := range msgs {
					at := (from + i) * 10_007 % (more + 1)
					msgs[i] = broker.Message{Topic: topic, Body: payload[at : at+l.size], Delay: d(from + i)}
					if l.topic != nil {
						msgs[i].Topic = l.topic(from + i)
					}
				}
				receipts, err := send(b, msgs)
				if err != nil {
					errs <- err
					return
				}
				for i := range receipts {
					if l.seen != nil {
						l.seen(from+i, &receipts[i])
					}
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

func send(b *broker.Broker, msgs []broker.Message) ([]broker.Receipt, error) {
	receipts, err := b.Send(context.Background(), msgs)
	if err != nil {
		return nil, err
	}
	for i := range receipts {
		if receipts[i].Err != nil {
			return nil, receipts[i].Err
		}
	}
	return receipts, nil
}

// A taking is consumers that receive and acknowledge n messages of a topic.
type taking struct {
	topic           string // "": topic
	n               int
	consumers, most int
	seen            func([]broker.Delivery) // nil: nobody looks
}

// drain has consumers receive and acknowledge until all were received.
func drain(b *broker.Broker, t taking) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var mu sync.Mutex
	left := t.n
	var wg sync.WaitGroup
	errs := make(chan error, t.consumers)
	for range t.consumers {
		wg.Go(func() {
			for {
				mu.Lock()
				done := left <= 0
				mu.Unlock()
				if done {
					return
				}
				got, err := b.Receive(ctx, broker.ReceiveRequest{Topic: cmp.Or(t.topic, topic), Group: "g", Max: t.most, Wait: 200 * time.Millisecond})
				if err == nil && len(got) > 0 {
					if t.seen != nil {
						t.seen(got)
					}
					leases := make([]string, len(got))
					for i := range got {
						leases[i] = got[i].Lease
					}
					_, err = b.Ack(ctx, leases)
				}
				if err != nil {
					errs <- err
					return
				}
				mu.Lock()
				left -= len(got)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// visible waits until n messages of the topic have become visible.
func visible(b *broker.Broker, topic string, n int) error {
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		c, err := b.Counts(topic)
		if err != nil {
			return err
		}
		if c.Visible >= uint64(n) {
			return nil
		}
	}
	return fmt.Errorf("fewer than %d messages became visible in 5 minutes", n)
}

// percentile of sorted values.
func percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))]
}
