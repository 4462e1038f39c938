//go:build linux

package main

import (
	"path/filepath"
	"strconv"
	"time"

	"github.com/duemq/duemq/internal/broker"
)

// bytesWritten counts every byte that a store writes for messages that are
// sent, delivered after a second and acknowledged.
func bytesWritten(dir string, size, n int, d delayer, out report) error {
	b, err := open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	before, log := written(), b.Stats().LogBytes
	done := make(chan error, 1)
	go func() { done <- drain(b, taking{n: n, consumers: 2, most: 1000}) }()
	if err := fill(b, load{n: n, size: size, senders: 2, batch: 1000}, d); err != nil {
		return err
	}
	if err := <-done; err != nil {
		return err
	}
	if err := b.Cut(); err != nil {
		return err
	}
	bodies := float64(n * size)
	out.of("all bytes per body byte", (written()-before)/bodies, "")
	out.of("log bytes per body byte, all of a record included", float64(b.Stats().LogBytes-log)/bodies, "")
	return b.Close()
}

// indexCost sends the same messages with cuts and with none, all in memory.
func indexCost(dir, kind string, n int, out report) error {
	var used [2]time.Duration
	for i, commands := range []uint64{250_000, 1 << 60} {
		b, err := open(filepath.Join(dir, strconv.Itoa(i)), func(o *broker.Options) {
			o.Engine.CutCommands, o.Engine.CutBytes = commands, 1<<60
			o.Engine.CutEvery = time.Hour
			if i == 0 {
				o.Engine.CutEvery = 0
			}
		})
		if err != nil {
			return err
		}
		before := cpu()
		if err := fill(b, load{n: n, size: 256, senders: 4, batch: 1000}, waitDelay(kind)); err != nil {
			return err
		}
		used[i] = cpu() - before
		if err := b.Close(); err != nil {
			return err
		}
	}
	out.of("CPU with the index", used[0].Seconds()/float64(n)*1e6, "s per million")
	out.of("CPU in memory only", used[1].Seconds()/float64(n)*1e6, "s per million")
	return nil
}
