//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
)

// backUp copies a store into a file and makes a store of that again, each beside
// copying as many bytes from file to file. What is read lies on the disk and not
// in memory, what is written is synced.
func backUp(dir string, z sizes, out report) error {
	store, stream := filepath.Join(dir, "store"), filepath.Join(dir, "stream")
	b, err := open(store, nil)
	if err != nil {
		return err
	}
	if err := fill(b, load{n: z.Waiting, size: 256, senders: 4, batch: 1000, distinct: true}, waitDelay("any")); err != nil {
		return err
	}
	if err := b.Close(); err != nil {
		return err
	}
	bytes, took, err := writeBackup(store, stream)
	if err != nil {
		return err
	}
	raw, err := rawCopy(stream, filepath.Join(dir, "raw"), bytes)
	if err != nil {
		return err
	}
	mb := float64(bytes) / 1e6
	out.of("a copy", mb, "MB")
	out.of("raw copy from file to file", mb/raw.Seconds(), "MB/s")
	out.of("backup", mb/took.Seconds(), "MB/s")
	out.of("backup, of the raw copy", raw.Seconds()/took.Seconds(), "")
	back, err := readBackup(stream, filepath.Join(dir, "restored"), z.Waiting)
	if err != nil {
		return err
	}
	out.of("restore", mb/back.Seconds(), "MB/s")
	out.of("restore, of the raw copy", raw.Seconds()/back.Seconds(), "")
	return nil
}

func engineAt(dir string) engine.Options {
	return engine.Options{FS: fs.Real(), Dir: dir, Clock: clock.Real(), Rand: rand.Reader}
}

// writeBackup backs an open store up into a file.
func writeBackup(store, stream string) (bytes int64, took time.Duration, err error) {
	if err := evict(store); err != nil {
		return 0, 0, err
	}
	e, err := engine.Open(context.Background(), engineAt(store))
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	f, err := os.Create(stream) //nolint:gosec // in the folder that the user gave
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	info, err := e.Backup(context.Background(), f, nil)
	err = errors.Join(err, fdatasync(f), f.Close())
	return info.Bytes, time.Since(began), err
}

// readBackup restores a store, and then looks that everything waits in it.
func readBackup(stream, store string, waiting int) (took time.Duration, err error) {
	if err := evict(stream); err != nil {
		return 0, err
	}
	f, err := os.Open(stream) //nolint:gosec // in the folder that the user gave
	if err != nil {
		return 0, err
	}
	began := time.Now()
	_, err = engine.RestoreBackup(context.Background(), engineAt(store), f, nil)
	took = time.Since(began)
	if err := errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	e, err := engine.Open(context.Background(), engineAt(store))
	if err != nil {
		return 0, err
	}
	if c := e.Count(nil); c.Waiting != int64(waiting) {
		err = fmt.Errorf("%d messages wait in the restored store, want %d", c.Waiting, waiting)
	}
	return took, errors.Join(err, e.Close())
}
