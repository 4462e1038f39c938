//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/engine"
)

// besideLead is how long topic Y is sent before X falls due.
const besideLead = 1500 * time.Millisecond

// besideWindow is how long after that Y is looked at: the burst is a part of it
// that counts.
func besideWindow(z sizes) time.Duration { return z.Steady * 2 / 5 }

// A herd is what is done about the burst of topic X.
type herd struct {
	name   string
	before func(b *broker.Broker, n int) error                // it is sent; nil: nothing
	after  func(b *broker.Broker, n int, due time.Time) error // it was sent, and before it falls due
}

// herdOver is how long a burst takes that is held back, or spread.
const herdOver = 10 * time.Second

// herds has the ways of meeting a burst.
func herds() []herd {
	return []herd{
		{name: "beside X"},
		{name: "beside X with a max_rate", before: func(b *broker.Broker, n int) error {
			if _, err := b.CreateTopic(context.Background(), "X", 0, nil); err != nil {
				return err
			}
			rate := strconv.Itoa(max(n/int(herdOver/time.Second), 1))
			_, err := b.UpdateTopic(context.Background(), "X", map[string]string{engine.RateAttribute: rate})
			return err
		}},
		{name: "beside X spread over 10 s", after: spread},
	}
}

// spread moves what waits of topic X apart.
func spread(b *broker.Broker, n int, due time.Time) error {
	op, err := b.StartBulk(context.Background(), broker.Bulk{
		Kind: broker.BulkSpread, Filter: broker.Filter{Topic: "X"},
		SpreadFrom: due.UnixMilli(), SpreadOver: herdOver.Milliseconds(),
	})
	if err != nil {
		return err
	}
	if op, err = b.WaitOperation(context.Background(), op.ID); err != nil {
		return err
	}
	if op.State != broker.OperationDone || op.Done != uint64(n) {
		return fmt.Errorf("spread is %s, %d messages moved, want %d: %s", op.State, op.Done, n, op.Error)
	}
	return nil
}

// besideBurst measures the lateness of topic Y alone, and then while topic X's
// messages fall due all at once.
func besideBurst(dir string, z sizes, out report) error {
	store := filepath.Join(dir, "alone")
	b, c, err := openAt(store, time.Now(), nil)
	if err != nil {
		return err
	}
	alone, err := steadyY(b, c, c.Now().Time().Add(besideLead), besideWindow(z))
	if err != nil {
		return err
	}
	if err := b.Close(); err != nil {
		return err
	}
	alone.of(out, "Y alone")
	early := alone.early
	for i, h := range herds() {
		got, err := besideHerd(filepath.Join(dir, strconv.Itoa(i)), z, h, out)
		if err != nil {
			return fmt.Errorf("%s: %w", h.name, err)
		}
		got.of(out, "Y "+h.name)
		out.of("Y "+h.name+", p99, of that of Y alone", got.p99/alone.p99, "")
		early += got.early
	}
	out.of("early", float64(early), "")
	return nil
}

// besideHerd fills a store with a burst of topic X, opens it shortly before that
// falls due, and measures topic Y.
func besideHerd(store string, z sizes, h herd, out report) (lag, error) {
	n := z.Waiting
	due := time.Now().Add(2 * time.Hour).Truncate(time.Millisecond)
	b, err := open(store, nil)
	if err != nil {
		return lag{}, err
	}
	if h.before != nil {
		if err := h.before(b, n); err != nil {
			return lag{}, err
		}
	}
	x := load{n: n, size: 256, senders: 4, batch: 1000, topic: func(int) string { return "X" }}
	if err := fill(b, x, at(due)); err != nil {
		return lag{}, err
	}
	if h.after != nil {
		began := time.Now()
		if err := h.after(b, n, due); err != nil {
			return lag{}, err
		}
		out.of("X spread", float64(n)/time.Since(began).Seconds(), "msg/s")
	}
	if err := b.Close(); err != nil {
		return lag{}, err
	}
	b, c, err := openAt(store, due.Add(-besideLead), nil)
	if err != nil {
		return lag{}, err
	}
	if c.Now().Time().After(due) {
		return lag{}, fmt.Errorf("the store took longer than %v to open: the burst was over", besideLead)
	}
	got, err := steadyY(b, c, due, besideWindow(z))
	if err != nil {
		return got, err
	}
	if h.before == nil && h.after == nil {
		err = visible(b, "X", n)
	} else if c.Now().Time().Before(due.Add(herdOver * 9 / 10)) {
		counts, cerr := b.Counts("X")
		if err = cerr; err == nil && counts.Visible >= uint64(n) {
			err = fmt.Errorf("all %d messages of X are visible long before %v are over", n, herdOver)
		}
	}
	return got, errors.Join(err, b.Close())
}

// steadyY sends topic Y around an instant of the broker's clock, and tells how
// late what was due in the window after it arrived.
func steadyY(b *broker.Broker, c clock.Clock, from time.Time, window time.Duration) (lag, error) {
	arrivals, err := steady{
		topic: "Y", rate: 2000, lasts: from.Sub(c.Now().Time()) + window, clock: c,
		delay: byTime(20*time.Millisecond, 180*time.Millisecond),
	}.run(b)
	if err != nil {
		return lag{}, err
	}
	end := from.Add(window).UnixMilli()
	in := arrivals[:0]
	for _, a := range arrivals {
		if a.due >= from.UnixMilli() && a.due < end {
			in = append(in, a)
		}
	}
	return lagOf(in), nil
}
