package index_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/index"
)

// The benchmarks use keys and values of the sizes that references of waiting
// messages have, and the machine's own disk.
const (
	benchKey   = 22
	benchValue = 16
	benchCut   = 250_000
)

// fillCut puts n references into a cut, in order, from key number first on.
func fillCut(b *testing.B, c *index.Cut, first, n int) {
	b.Helper()
	var key [benchKey]byte
	var value [benchValue]byte
	rng := rand.New(rand.NewPCG(1, uint64(first)))
	for i := first; i < first+n; i++ {
		binary.BigEndian.PutUint64(key[:], uint64(i)*1000)
		binary.BigEndian.PutUint64(key[8:], rng.Uint64()>>20)
		binary.LittleEndian.PutUint64(value[:], rng.Uint64()>>32)
		if err := c.Set('r', key[:], value[:]); err != nil {
			b.Fatal(err)
		}
	}
}

func openBench(b *testing.B) *index.Index {
	b.Helper()
	x, err := index.Open(index.Options{FS: vfs.Default, Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := x.Close(); err != nil {
			b.Error(err)
		}
	})
	return x
}

// BenchmarkCut builds and installs a cut of 250,000 references.
func BenchmarkCut(b *testing.B) {
	x := openBench(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		c := x.NewCut()
		fillCut(b, c, n*benchCut, benchCut)
		if err := c.Install(); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*benchCut), "ns/ref")
	b.ReportMetric(float64(x.Metrics().InstalledBytes)/float64(n*benchCut), "B/ref")
}

// BenchmarkInstall is the atomic step alone, with its syncs, for a small cut.
func BenchmarkInstall(b *testing.B) {
	x := openBench(b)
	n := 0
	for b.Loop() {
		c := x.NewCut()
		fillCut(b, c, n, 1)
		if err := c.Install(); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

// BenchmarkScan reads references in order.
func BenchmarkScan(b *testing.B) {
	x := openBench(b)
	for i := range 4 {
		c := x.NewCut()
		fillCut(b, c, i*benchCut, benchCut)
		if err := c.Install(); err != nil {
			b.Fatal(err)
		}
	}
	it, err := x.NewIter('r', nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer it.Close()
	b.ReportAllocs()
	it.First()
	sum := 0
	for b.Loop() {
		if !it.Valid() {
			it.First()
		}
		sum += len(it.Key()) + len(it.Value())
		it.Next()
	}
	if sum == 0 {
		b.Error("nothing read")
	}
}

// BenchmarkGet reads one of a million references.
func BenchmarkGet(b *testing.B) {
	x := openBench(b)
	for i := range 4 {
		c := x.NewCut()
		fillCut(b, c, i*benchCut, benchCut)
		if err := c.Install(); err != nil {
			b.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(2, 2))
	var key [benchKey]byte
	var value []byte
	b.ReportAllocs()
	for b.Loop() {
		binary.BigEndian.PutUint64(key[:], rng.Uint64N(4*benchCut)*1000)
		var err error
		if value, _, err = x.Get(value[:0], 'r', key[:]); err != nil {
			b.Fatal(err)
		}
	}
}
