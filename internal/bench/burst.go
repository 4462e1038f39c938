//go:build linux

package main

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/duemq/duemq/internal/broker"
)

// lead is how long before the burst filling begins: room for 200,000 messages a
// second.
func lead(n int) time.Duration {
	return 300*time.Millisecond + time.Duration(n)*time.Second/200_000
}

// burstAnyTime has messages fall due at one instant.
func burstAnyTime(dir string, n int, out report) error {
	b, err := open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	due := time.Now().Add(lead(n))
	if err := fill(b, load{n: n, size: 256, senders: 4, batch: 1000}, at(due)); err != nil {
		return err
	}
	if time.Now().After(due) {
		return errors.New("sending took longer than the burst was away")
	}
	time.Sleep(time.Until(due))
	began := time.Now()
	if err := visible(b, topic, n); err != nil {
		return err
	}
	out.of("visible", float64(n)/time.Since(began).Seconds(), "msg/s")
	return take(b, n, out)
}

// burstLevel has the messages of a level become visible, as fast as they were
// sent, and then has them received.
func burstLevel(dir string, n int, out report) error {
	b, err := open(filepath.Join(dir, "store"), func(o *broker.Options) {
		o.Engine.Levels = []time.Duration{lead(n)}
	})
	if err != nil {
		return err
	}
	if err := fill(b, load{n: n, size: 256, senders: 4, batch: 1000}, byLevel(1)); err != nil {
		return err
	}
	if err := visible(b, topic, n); err != nil {
		return err
	}
	return take(b, n, out)
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
