//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// sendBatches sends 256 B messages in batches, and then runs a loop that only
// writes and syncs as many bytes in writes of the same size.
func sendBatches(dir string, n int, d delayer, out report) error {
	const size = 256
	b, err := open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	before := b.Stats()
	began := time.Now()
	if err := fill(b, load{n: n, size: size, senders: 16, batch: 1000}, d); err != nil {
		return err
	}
	took := time.Since(began)
	after := b.Stats()
	if err := b.Close(); err != nil {
		return err
	}
	syncs := after.Syncs - before.Syncs
	bytes := int64(after.LogBytes - before.LogBytes)
	raw, err := rawLoop(filepath.Join(dir, "raw"), bytes, bytes/max(syncs, 1))
	if err != nil {
		return err
	}
	out.of("rate", float64(n)/took.Seconds(), "msg/s")
	whole, err := rawLoop(filepath.Join(dir, "raw-batch"), bytes, bytes/int64(max(n/1000, 1)))
	if err != nil {
		return err
	}
	out.of("of a raw loop that syncs each batch of 1,000", whole.Seconds()/took.Seconds(), "")
	out.of("of a raw loop with as many syncs", raw.Seconds()/took.Seconds(), "")
	out.of("messages a sync", float64(n)/float64(syncs), "")
	return nil
}

// rawLoop writes bytes in writes of one size, each followed by fdatasync, into
// a file made for it in the same way as a segment.
func rawLoop(name string, bytes, size int64) (time.Duration, error) {
	const segment = 64 << 20
	buf := body(int(size))
	var f *os.File
	var err error
	began := time.Now()
	for done, at, files := int64(0), int64(segment), 0; done < bytes; done, at = done+size, at+size {
		if at+size > segment {
			if f != nil {
				if err := f.Close(); err != nil {
					return 0, err
				}
			}
			files++
			if f, err = preallocated(fmt.Sprintf("%s-%d", name, files), segment); err != nil {
				return 0, err
			}
			at = 0
		}
		if _, err := f.WriteAt(buf, at); err != nil {
			return 0, err
		}
		if err := fdatasync(f); err != nil {
			return 0, err
		}
	}
	took := time.Since(began)
	return took, f.Close()
}

func sendSingles(dir string, n int, d delayer, out report) error {
	const senders = 256
	b, err := open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := fill(b, load{n: n, size: 256, senders: senders, batch: 1}, d); err != nil {
		return err
	}
	took := time.Since(began)
	s := b.Stats()
	out.of("rate", float64(n)/took.Seconds(), "msg/s")
	out.of("messages a sync", float64(n)/float64(s.Syncs), "")
	out.of("mean fdatasync", s.SyncTime.Seconds()*1e3/float64(s.Syncs), "ms")
	return b.Close()
}
