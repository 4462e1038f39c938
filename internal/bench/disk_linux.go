//go:build linux

package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func fdatasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

func preallocated(name string, size int64) (*os.File, error) {
	f, err := os.Create(name) //nolint:gosec // in the folder that the user gave
	if err != nil {
		return nil, err
	}
	if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
