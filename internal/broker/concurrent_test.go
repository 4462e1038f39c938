package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// fates is what every message of TestConcurrentUse has come to.
type fates struct {
	mu        sync.Mutex
	sent      map[record.ID]bool
	cancelled map[record.ID]bool
	received  map[record.ID]int
}

// TestConcurrentUse has senders, cancellers, movers, listers, cuts and receivers
// at one broker at the same time, under the real clock. Each message is received
// once or was cancelled, never both.
func TestConcurrentUse(t *testing.T) {
	b, err := Open(t.Context(), Options{Queues: 4, Engine: engine.Options{
		FS: fs.NewMem(), Dir: "data", Clock: clock.Real(), Rand: rand.NewChaCha8([32]byte{}),
		SegmentBytes: 1 << 20, CutCommands: 400,
	}})
	if err != nil {
		t.Fatal(err)
	}
	f := &fates{sent: make(map[record.ID]bool), cancelled: make(map[record.ID]bool), received: make(map[record.ID]int)}
	const senders, each = 4, 400
	ids := make(chan record.ID, senders*each)
	ctx, stop := context.WithCancel(t.Context())
	var side, work sync.WaitGroup
	for w := range senders {
		work.Go(func() { f.send(t, b, uint64(w), each, ids) })
	}
	side.Go(func() { f.steer(ctx, t, b, ids) })
	side.Go(func() {
		for ctx.Err() == nil {
			if _, err := b.Pending(ctx, Filter{Topic: "t"}, "", 50); err != nil && !errors.Is(err, ErrTopicUnknown) {
				t.Errorf("Pending: %v", err)
				return
			}
			if err := b.Cut(); err != nil {
				t.Errorf("Cut: %v", err)
				return
			}
		}
	})
	work.Wait()
	for range 3 {
		work.Go(func() { f.receive(t, b, senders*each) })
	}
	work.Wait()
	stop()
	side.Wait()
	for id := range f.sent {
		if n := f.received[id]; (n == 1) == f.cancelled[id] || n > 1 {
			t.Errorf("message %v: received %d times, cancelled %v", id, n, f.cancelled[id])
		}
	}
	if err := b.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func (f *fates) send(t *testing.T, b *Broker, seed uint64, n int, ids chan<- record.ID) {
	rng := rand.New(rand.NewPCG(seed, 7))
	for i := range n {
		d := engine.Delay{Kind: engine.DelayAfter, Value: rng.Int64N(400)}
		r, err := b.Send(context.Background(), []Message{{Topic: "t", Key: fmt.Sprint(seed, i), Delay: d, Body: make([]byte, 100)}})
		if err != nil || r[0].Err != nil {
			t.Errorf("Send: %v %v", err, r)
			return
		}
		f.mu.Lock()
		f.sent[r[0].ID] = true
		f.mu.Unlock()
		ids <- r[0].ID
	}
}

func (f *fates) steer(ctx context.Context, t *testing.T, b *Broker, ids <-chan record.ID) {
	rng := rand.New(rand.NewPCG(9, 9))
	for {
		var id record.ID
		select {
		case <-ctx.Done():
			return
		case id = <-ids:
		}
		var err error
		switch rng.IntN(3) {
		case 0:
			if _, err = b.Cancel(ctx, id.String()); err == nil {
				f.mu.Lock()
				f.cancelled[id] = true
				f.mu.Unlock()
			}
		case 1:
			_, err = b.Reschedule(ctx, id.String(), engine.Delay{Kind: engine.DelayAfter, Value: rng.Int64N(300)})
		}
		if err != nil && !errors.Is(err, ErrDelivered) && ctx.Err() == nil {
			t.Errorf("steer %v: %v", id, err)
			return
		}
	}
}

// receive takes messages until all that were not cancelled have been received.
func (f *fates) receive(t *testing.T, b *Broker, want int) {
	var idle atomic.Int32
	for {
		f.mu.Lock()
		done := len(f.received)+len(f.cancelled) >= want
		f.mu.Unlock()
		if done {
			return
		}
		got, err := b.Receive(context.Background(), ReceiveRequest{Topic: "t", Group: "g", Max: 32, Wait: 100 * time.Millisecond})
		if err != nil {
			t.Errorf("Receive: %v", err)
			return
		}
		if len(got) == 0 && idle.Add(1) > 200 {
			t.Errorf("nothing comes any more: %d received, %d cancelled, want %d", len(f.received), len(f.cancelled), want)
			return
		}
		var leases []string
		f.mu.Lock()
		for _, d := range got {
			f.received[d.ID]++
			leases = append(leases, d.Lease)
			if now := time.Now(); now.Before(time.UnixMilli(d.Due)) {
				t.Errorf("message %v received at %v, due %v", d.ID, now, time.UnixMilli(d.Due))
			}
		}
		f.mu.Unlock()
		if errs, err := b.Ack(context.Background(), leases); err != nil || errors.Join(errs...) != nil {
			t.Errorf("Ack: %v %v", err, errs)
			return
		}
	}
}
