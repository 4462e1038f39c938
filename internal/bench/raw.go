//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// files is the files of a folder and what lies in it, in the order of names.
func files(root string) (names []string, err error) {
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error { //nolint:gosec // in the folder that the user gave
		if err == nil && d.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

// evict has the machine forget what it holds of files in memory, so that they
// are read from the disk. They must have been synced.
func evict(root string) error {
	names, err := files(root)
	if err != nil {
		return err
	}
	for _, name := range names {
		f, err := os.Open(name) //nolint:gosec // in the folder that the user gave
		if err != nil {
			return err
		}
		err = errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
		if err != nil {
			return err
		}
	}
	return nil
}

// rawCopy copies so many bytes of a file, or of a folder's files, into a new
// file and syncs it: what a disk and a loop can do.
func rawCopy(from, to string, bytes int64) (time.Duration, error) {
	if err := evict(from); err != nil {
		return 0, err
	}
	names, err := files(from)
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 1<<20)
	began := time.Now()
	dst, err := os.Create(to) //nolint:gosec // in the folder that the user gave
	if err != nil {
		return 0, err
	}
	left := bytes
	for _, name := range names {
		if left == 0 {
			break
		}
		n, err := appendFile(dst, name, left, buf)
		if err != nil {
			return 0, errors.Join(err, dst.Close())
		}
		left -= n
	}
	if left > 0 {
		return 0, errors.Join(io.ErrUnexpectedEOF, dst.Close())
	}
	if err := errors.Join(fdatasync(dst), dst.Close()); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// appendFile copies up to so many bytes of a file, by reads and writes of buf.
func appendFile(dst io.Writer, name string, most int64, buf []byte) (int64, error) {
	f, err := os.Open(name) //nolint:gosec // in the folder that the user gave
	if err != nil {
		return 0, err
	}
	// Neither side may hand the copy to the kernel: a product reads and writes too.
	n, err := io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{io.LimitReader(f, most)}, buf)
	return n, errors.Join(err, f.Close())
}

// A spot is a place in a file.
type spot struct {
	file *os.File
	at   int64
}

// rawReads reads n pieces of files, at places in order or in none, with some
// readers, and says how many a second. What a machine holds of them in memory it
// forgets before.
func rawReads(names []string, n, size, readers int, ordered bool) (rate float64, err error) {
	spots, end, err := openSpots(names, n, int64(size))
	defer func() { err = errors.Join(err, end()) }()
	if err != nil {
		return 0, err
	}
	if !ordered {
		rng := rand.New(rand.NewPCG(2, 2))
		rng.Shuffle(n, func(i, j int) { spots[i], spots[j] = spots[j], spots[i] })
	}
	var wg sync.WaitGroup
	errs := make([]error, readers)
	began := time.Now()
	for r := range readers {
		wg.Go(func() {
			buf := make([]byte, size)
			for i := r * n / readers; i < (r+1)*n/readers && errs[r] == nil; i++ {
				_, errs[r] = spots[i].file.ReadAt(buf, spots[i].at)
			}
		})
	}
	wg.Wait()
	return float64(n) / time.Since(began).Seconds(), errors.Join(errs...)
}

// openSpots opens files and finds n spots in them, evenly apart, in order. end
// closes them.
func openSpots(names []string, n int, size int64) (spots []spot, end func() error, err error) {
	var opened []*os.File
	end = func() error {
		var errs []error
		for _, f := range opened {
			errs = append(errs, f.Close())
		}
		return errors.Join(errs...)
	}
	var whole int64
	lengths := make([]int64, 0, len(names))
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, end, err
		}
		opened = append(opened, f)
		info, err := f.Stat()
		if err != nil {
			return nil, end, err
		}
		lengths = append(lengths, max(info.Size()-size, 0))
		whole += lengths[len(lengths)-1]
	}
	if whole == 0 {
		return nil, end, fmt.Errorf("nothing to read in %d files", len(names))
	}
	at, file := int64(0), 0
	for i := range n {
		for next := int64(i) * whole / int64(n); at+lengths[file] <= next; file++ {
			at += lengths[file]
		}
		spots = append(spots, spot{opened[file], int64(i)*whole/int64(n) - at})
	}
	return spots, end, nil
}
