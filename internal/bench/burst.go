//go:build linux

package main

import (
	"path/filepath"
	"time"

	"github.com/duemq/duemq/internal/broker"
)

// burstAnyTime has messages fall due at one instant, hours after they were sent.
func burstAnyTime(dir string, n int, out report) error {
	const soon = 500 * time.Millisecond
	due := time.Now().Add(2 * time.Hour)
	b, err := later(filepath.Join(dir, "store"), load{n: n, size: 256, senders: 4, batch: 1000}, at(due), due.Add(-soon))
	if err != nil {
		return err
	}
	if err := visible(b, topic, 1); err != nil {
		return err
	}
	began := time.Now()
	if err := visible(b, topic, n); err != nil {
		return err
	}
	out.of("visible", float64(n)/time.Since(began).Seconds(), "msg/s")
	return take(b, n, out)
}

// burstLevel has four consumers receive a level's messages, which fell due in a
// row while the store was closed.
func burstLevel(dir string, n int, out report) error {
	b, err := later(filepath.Join(dir, "store"), load{n: n, size: 256, senders: 4, batch: 1000}, byLevel(18), time.Now().Add(3*time.Hour))
	if err != nil {
		return err
	}
	if err := visible(b, topic, n); err != nil {
		return err
	}
	return take(b, n, out)
}

// later fills a store and opens it again at another instant.
func later(store string, l load, d delayer, then time.Time) (*broker.Broker, error) {
	b, err := open(store, nil)
	if err != nil {
		return nil, err
	}
	if err := fill(b, l, d); err != nil {
		return nil, err
	}
	if err := b.Close(); err != nil {
		return nil, err
	}
	b, _, err = openAt(store, then, nil)
	return b, err
}

// take has four consumers receive n visible messages, each lease written before
// a message is handed out, and acknowledge them.
func take(b *broker.Broker, n int, out report) error {
	began := time.Now()
	if err := drain(b, taking{n: n, consumers: 4, most: 1000}); err != nil {
		return err
	}
	out.of("received (leases written) and acked by 4 consumers", float64(n)/time.Since(began).Seconds(), "msg/s")
	return b.Close()
}
