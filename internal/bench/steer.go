//go:build linux

package main

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/record"
)

// steer cancels and reschedules messages by their ids, with as many callers as
// send single messages in the same run. To find a message is to read the batch
// of the log that it is in, so there are two kinds: sent in batches, from all
// over the store, and those single ones.
func steer(dir string, z sizes, out report) error {
	const callers = 256
	b, err := open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	batched, err := sendForIDs(b, load{n: z.Waiting, size: 256, senders: 4, batch: 1000})
	if err != nil {
		return err
	}
	if err := b.Cut(); err != nil {
		return err
	}
	n := min(z.Steer, z.Waiting) / 2
	began := time.Now()
	single, err := sendForIDs(b, load{n: 2 * n, size: 256, senders: callers, batch: 1})
	if err != nil {
		return err
	}
	sends := float64(2*n) / time.Since(began).Seconds()
	out.of("single sends", sends, "msg/s")
	for k, v := range verbs(b) {
		for _, s := range []struct {
			name string
			ids  []record.ID
		}{{"sent singly", single}, {"sent in batches of 1,000", batched}} {
			stride := len(s.ids) / n
			began := time.Now()
			err := together(n, callers, func(ctx context.Context, i int) error { return v.do(ctx, s.ids[i*stride+k].String()) })
			if err != nil {
				return err
			}
			rate := float64(n) / time.Since(began).Seconds()
			out.of(v.name+" of what was "+s.name, rate, "msg/s")
			out.of(v.name+" of what was "+s.name+", of single sends", rate/sends, "")
		}
	}
	return b.Close()
}

// A verb is what is done to a message by its id.
type verb struct {
	name string
	do   func(ctx context.Context, id string) error
}

func verbs(b *broker.Broker) []verb {
	return []verb{
		{"cancels", func(ctx context.Context, id string) error {
			_, err := b.Cancel(ctx, id)
			return err
		}},
		{"reschedules", func(ctx context.Context, id string) error {
			_, err := b.Reschedule(ctx, id, engine.Delay{Kind: engine.DelayAfter, Value: (40 * 24 * time.Hour).Milliseconds()})
			return err
		}},
	}
}

// sendForIDs sends a load that waits for hours to weeks, and gives its ids.
func sendForIDs(b *broker.Broker, l load) ([]record.ID, error) {
	ids := make([]record.ID, l.n)
	l.seen = func(i int, r *broker.Receipt) { ids[i] = r.ID }
	return ids, fill(b, l, byTime(2*time.Hour, 28*24*time.Hour))
}

// together has callers do n things, each one at a time. The first error ends it.
func together(n, callers int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := c; i < n && ctx.Err() == nil; i += callers {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
