package index

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// bytesPerSync is how much of a table is written before the kernel is asked to
// start writing it back, so that the sync at the end, and with it the log's
// sync beside it, does not have to wait for the whole.
const bytesPerSync = 512 << 10

// A table is one space's part of a cut under construction.
type table struct {
	fs   vfs.FS
	path string
	file *tableFile
	w    *sstable.Writer

	keys    int
	last    []byte // the last key, with its space in front
	lastEnd []byte // where the last range ended, with its space in front
	sum     []byte // a buffer
}

func newTable(x *Index, cut uint64, s Space) (*table, error) {
	path := x.disk.PathJoin(x.cutsDir, fmt.Sprintf("%d-%02x.sst", cut, byte(s)))
	f, err := x.disk.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("index %s: cut: %w", x.dir, err)
	}
	f = vfs.NewSyncingFile(f, vfs.SyncingFileOptions{NoSyncOnClose: true, BytesPerSync: bytesPerSync})
	file := &tableFile{f: f, buf: bufio.NewWriterSize(f, 64<<10), skipSync: x.bugs.SkipTableSync}
	t := &table{fs: x.disk, path: path, file: file, last: []byte{byte(s)}}
	t.w = sstable.NewWriter(file, x.opts.MakeWriterOptions(0, x.db.TableFormat()))
	return t, nil
}

func (t *table) empty() bool { return t.keys == 0 && t.lastEnd == nil }

func (t *table) bytes() int64 {
	if t.w == nil {
		return t.file.written
	}
	return int64(t.w.Raw().EstimatedSize())
}

// finish writes out what is buffered and makes the table's bytes durable. Its
// name is made so by the ingest.
func (t *table) finish() error {
	w := t.w
	t.w = nil
	return w.Close()
}

// discard ends the writer, if it is still at work, and removes the file. A file
// that cannot be removed is left to the next Open.
func (t *table) discard() {
	if t.w != nil {
		t.file.dead = true
		_ = t.w.Close() // errDiscarded, without syncing
		t.w = nil
	}
	_ = t.fs.Remove(t.path) // after an install Pebble has removed it
}

// errDiscarded tells a table's writer that its work is not wanted any more.
var errDiscarded = errors.New("table discarded")

// tableFile is the file under a table's writer, which writes to it from a
// goroutine of its own, one call at a time.
type tableFile struct {
	f        vfs.File
	buf      *bufio.Writer
	written  int64
	dead     bool // do not bother to finish
	skipSync bool // seeded bug
}

var _ objstorage.Writable = (*tableFile)(nil)

// Write appends.
func (f *tableFile) Write(p []byte) error {
	n, err := f.buf.Write(p)
	f.written += int64(n)
	return err
}

// Finish makes the bytes durable and closes the file.
func (f *tableFile) Finish() error {
	if f.dead {
		f.Abort()
		return errDiscarded
	}
	err := f.buf.Flush()
	if err == nil && !f.skipSync {
		err = f.f.Sync()
	}
	return errors.Join(err, f.f.Close())
}

// Abort closes the file as it is.
func (f *tableFile) Abort() { _ = f.f.Close() }
