package keys_test

import (
	"fmt"
	"testing"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/keys"
	"github.com/duemq/duemq/internal/record"
)

// The benchmarks are of a broker that runs for a while: a million keys in the
// index, of ten days, and what comes between two cuts in memory.
const (
	benchStored = 1_000_000
	benchMemory = 250_000
)

func benchKey(i int) []byte { return fmt.Appendf(nil, "order-%09d", i) }

func fill(b *testing.B) (*index.Index, *keys.Index) {
	b.Helper()
	db := open(b)
	x := keys.New(db)
	for i := range benchStored {
		x.Add(benchKey(i), int64(10+i/(benchStored/10))*day, record.ID(i+1), 1)
		if (i+1)%benchMemory == 0 {
			cut(b, db, x)
		}
	}
	for i := range benchMemory {
		x.Add(benchKey(benchStored+i), 20*day, record.ID(benchStored+i+1), 1)
	}
	return db, x
}

// BenchmarkAdd adds one message of one key.
func BenchmarkAdd(b *testing.B) {
	x := keys.New(nil)
	key := benchKey(1)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		if n%benchMemory == 0 { // as a cut does
			x.Install(x.Freeze())
		}
		x.Add(key, day, record.ID(n), 1)
	}
}

// BenchmarkTake is what is done under the lock.
func BenchmarkTake(b *testing.B) {
	x := keys.New(nil)
	for i := range benchMemory {
		x.Add(benchKey(i), day, record.ID(i+1), 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		x.Take()
	}
}

// BenchmarkFind looks for messages that lie in memory, in the index, and nowhere.
func BenchmarkFind(b *testing.B) {
	_, x := fill(b)
	for name, first := range map[string]int{"memory": benchStored, "index": 0, "nowhere": 1 << 29} {
		b.Run(name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				found, _, err := x.Take().Find(string(benchKey(first+i*7919%benchMemory)), 0, 32)
				if err != nil || len(found) > 1 || len(found) == 0 && name != "nowhere" {
					b.Fatalf("%v, %v", found, err)
				}
				i++
			}
		})
	}
}

// BenchmarkCut writes 250,000 keys.
func BenchmarkCut(b *testing.B) {
	db := open(b)
	x := keys.New(db)
	n := 0
	for b.Loop() {
		for range benchMemory {
			n++
			x.Add(benchKey(n), 20*day, record.ID(n), 1)
		}
		cut(b, db, x)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/key")
}
