package log

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/record"
)

// BenchmarkAppendSync appends a batch and syncs, beside a loop that does
// nothing but write as many bytes and sync them, turn by turn in the same
// folder: raw/log is how much of the disk's own speed is left.
func BenchmarkAppendSync(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) { benchAppend(b, size) })
	}
}

func benchAppend(b *testing.B, size int) {
	dir := b.TempDir()
	o := Options{FS: vfs.Default, Dir: dir + "/log", StoreID: testID, Preallocate: true}
	l := mustOpen(b, o, Start{})
	raw, err := vfs.Default.Create(dir+"/raw", category)
	if err != nil {
		b.Fatal(err)
	}
	frame := make([]byte, size)
	batch := testBatch(1, size, 1)
	batches, positions := []*record.Batch{batch}, make([]uint64, 1)
	var inLog, inRaw time.Duration
	var off int64
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		batch.Index = l.LastIndex() + 1
		start := time.Now()
		if err := l.Append(batches, positions); err != nil {
			b.Fatal(err)
		}
		if err := l.Sync(); err != nil {
			b.Fatal(err)
		}
		inLog += time.Since(start)
		start = time.Now()
		if err := writeAt(raw, frame, off); err != nil {
			b.Fatal(err)
		}
		if err := raw.SyncData(); err != nil {
			b.Fatal(err)
		}
		inRaw += time.Since(start)
		off += int64(size)
		if off >= 256<<20 { // neither side fills the disk
			off = 0
			if err := l.RemoveBefore(l.End().Position); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(inLog.Microseconds())/float64(b.N), "log-us/op")
	b.ReportMetric(float64(inRaw.Microseconds())/float64(b.N), "raw-us/op")
	b.ReportMetric(float64(inRaw)/float64(inLog), "raw/log")
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkAppend is what the log itself costs: encoding, checksums and one
// write into the page cache.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			l := mustOpen(b, Options{FS: vfs.Default, Dir: b.TempDir(), StoreID: testID, Bugs: Bugs{SkipSync: true}}, Start{})
			batch := testBatch(1, size, 1)
			batches, positions := []*record.Batch{batch}, make([]uint64, 1)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				batch.Index = l.LastIndex() + 1
				if err := l.Append(batches, positions); err != nil {
					b.Fatal(err)
				}
				if batch.Index%(256<<20/uint64(size)) == 0 {
					if err := l.RemoveBefore(l.End().Position); err != nil {
						b.Fatal(err)
					}
				}
			}
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// benchLog is a log on the machine's disk with about total bytes in batches of
// this size.
func benchLog(b *testing.B, total, size int) (*Log, Options) {
	o := Options{FS: vfs.Default, Dir: b.TempDir(), StoreID: testID}
	l := mustOpen(b, o, Start{})
	for i := range total / size {
		mustAppend(b, l, testBatch(uint64(i+1), size, 1))
	}
	mustSync(b, l)
	return l, o
}

// BenchmarkReplay reads and verifies a log that is in the page cache.
func BenchmarkReplay(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			const total = 128 << 20
			l, _ := benchLog(b, total, size)
			b.SetBytes(total)
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Replay(Start{}, func(uint64, *record.Batch) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkOpen opens a log of 128 MiB: from its beginning, which verifies all,
// and from its end, which proves that a batch ends there.
func BenchmarkOpen(b *testing.B) {
	l, o := benchLog(b, 128<<20, 1<<10)
	end := l.End()
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	for name, from := range map[string]Start{"all": {}, "end": end} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := mustOpen(b, o, from).Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRead reads 300 bytes at random places, and whole batches by index.
func BenchmarkRead(b *testing.B) {
	l, _ := benchLog(b, 128<<20, 1<<10)
	last := l.LastIndex()
	b.Run("ReadAt", func(b *testing.B) {
		var dst []byte
		span := DefaultSegmentBytes - HeaderBytes - 2000
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i++
			var err error
			if dst, err = l.ReadAt(dst[:0], uint64(HeaderBytes+i*7919%span), 300); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Get", func(b *testing.B) {
		b.ReportAllocs()
		i := uint64(0)
		for b.Loop() {
			i++
			if _, _, err := l.Get(1 + i*7919%last); err != nil {
				b.Fatal(err)
			}
		}
	})
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}
