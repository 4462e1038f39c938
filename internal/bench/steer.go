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

// steer cancels and reschedules messages by their ids, from all over the store,
// with as many callers as send single messages in the same run.
func steer(dir string, z sizes, out report) error {
	const callers = 256
	b, err := open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	ids := make([]record.ID, z.Waiting)
	l := load{n: z.Waiting, size: 256, senders: 4, batch: 1000, seen: func(i int, r *broker.Receipt) { ids[i] = r.ID }}
	if err := fill(b, l, byTime(2*time.Hour, 28*24*time.Hour)); err != nil {
		return err
	}
	if err := b.Cut(); err != nil {
		return err
	}
	n := min(z.Steer, z.Waiting/2)
	began := time.Now()
	if err := fill(b, load{n: n, size: 256, senders: callers, batch: 1}, far("any")); err != nil {
		return err
	}
	sends := float64(n) / time.Since(began).Seconds()
	out.of("single sends", sends, "msg/s")
	verbs := []struct {
		name string
		do   func(ctx context.Context, id string) error
	}{
		{"cancels", func(ctx context.Context, id string) error { _, err := b.Cancel(ctx, id); return err }},
		{"reschedules", func(ctx context.Context, id string) error {
			_, err := b.Reschedule(ctx, id, engine.Delay{Kind: engine.DelayAfter, Value: (40 * 24 * time.Hour).Milliseconds()})
			return err
		}},
	}
	stride := z.Waiting / n
	for k, v := range verbs {
		began := time.Now()
		err := together(n, callers, func(ctx context.Context, i int) error { return v.do(ctx, ids[i*stride+k].String()) })
		if err != nil {
			return err
		}
		rate := float64(n) / time.Since(began).Seconds()
		out.of(v.name, rate, "msg/s")
		out.of(v.name+", of single sends", rate/sends, "")
	}
	return b.Close()
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
