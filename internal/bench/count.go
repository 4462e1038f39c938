//go:build linux

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/duemq/duemq/internal/broker"
)

// countMonth fills a month with messages and counts it minute by minute, six days
// at a time since an answer has no more than 10,000 buckets, and then one hour of
// it.
func countMonth(dir string, n int, out report) error {
	const month, most = 30 * 24 * time.Hour, 6 * 24 * time.Hour
	b, err := open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	from := time.Now().Add(time.Hour).Truncate(time.Hour)
	if err := fill(b, load{n: n, size: 64, senders: 4, batch: 1000}, byTime(time.Hour, month-2*time.Hour)); err != nil {
		return err
	}
	if err := b.Cut(); err != nil {
		return err
	}
	minutes := func() error {
		var total int64
		for at := from; at.Before(from.Add(month)); at = at.Add(most) {
			r := broker.TimelineRequest{
				Topic: topic, From: at.UnixMilli(), To: min(at.Add(most).UnixMilli(), from.Add(month).UnixMilli()), Step: time.Minute,
			}
			got, err := b.Timeline(context.Background(), r)
			if err != nil {
				return err
			}
			total += got.Total
		}
		if total != int64(n) {
			return fmt.Errorf("%d messages in the month, want %d", total, n)
		}
		return nil
	}
	hour := func() error {
		f := broker.Filter{Topic: topic, From: from.Add(240 * time.Hour).UnixMilli(), To: from.Add(241 * time.Hour).UnixMilli()}
		_, err := b.Count(context.Background(), f)
		return err
	}
	if err := repeat(10, minutes, out, "43,200 minutes of a month"); err != nil {
		return err
	}
	if err := repeat(100, hour, out, "one hour"); err != nil {
		return err
	}
	return b.Close()
}

// repeat reports how long something takes the first time, and usually.
func repeat(times int, do func() error, out report, name string) error {
	took := make([]float64, times)
	for i := range took {
		began := time.Now()
		if err := do(); err != nil {
			return err
		}
		took[i] = time.Since(began).Seconds() * 1e3
	}
	out.of(name+", the first time", took[0], "ms")
	slices.Sort(took)
	out.of(name+fmt.Sprintf(", median of %d", times), percentile(took, 0.50), "ms")
	return nil
}
