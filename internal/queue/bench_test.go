package queue

import (
	"math/rand/v2"
	"testing"

	"github.com/duemq/duemq/internal/record"
)

// stored makes a set with one busy queue among others: epochs in the index with
// that many entries of the queue in each, one a millisecond, and as many in
// memory.
func stored(b *testing.B, epochs, count int) (*Set, *Queue) {
	b.Helper()
	x := openIndex(b)
	s := NewSet(x, Visible())
	q := s.Add(1, 1)
	s.Add(2, 1)
	for n := range epochs {
		fill(s, q, int64(1000+n*count), count)
		fill(s, s.Get(2), int64(1000+n*count), 1)
		cutNow(b, x, s, uint32(n+1), 0)
	}
	fill(s, q, int64(1000+epochs*count), count)
	return s, q
}

// BenchmarkMin asks as every read of bounds does, with a trim that stays.
func BenchmarkMin(b *testing.B) {
	s, q := stored(b, 10, 1000)
	for b.Loop() {
		if o, err := s.Min(q, 5500); err != nil || o != 4500 {
			b.Fatal(o, err)
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	const epochs, count = 500, 1000
	s, q := stored(b, epochs, count)
	rng := rand.New(rand.NewPCG(1, 2))
	search := func(from, below int64) func(b *testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				at := from + rng.Int64N(below-from)
				if o, err := s.Search(q, at); err != nil || o != record.Offset(at-1000) {
					b.Fatal(at, o, err)
				}
			}
		}
	}
	b.Run("memory", search(1000+epochs*count, 1000+(epochs+1)*count))
	b.Run("index", search(1001, 1000+epochs*count))
}

// BenchmarkDrop is the part of a cut that drops the oldest of many epochs, with
// many queues in each, that holds the engine's lock.
func BenchmarkDrop(b *testing.B) {
	const queues = 10_000
	x := openIndex(b)
	s := NewSet(x, Visible())
	for n := range record.QueueNumber(queues) {
		s.Add(n, 1)
	}
	number := uint32(0)
	step := func(trim int64) *Frozen {
		for _, q := range s.queues {
			s.Append(q, Entry{ID: 1, Size: 1}, int64(1000+number))
		}
		number++
		f := s.Freeze(number, trim)
		c := x.NewCut()
		if err := f.Write(c); err != nil {
			b.Fatal(err)
		}
		if err := c.Install(); err != nil {
			b.Fatal(err)
		}
		return f
	}
	for range 20 {
		s.Install(step(0))
	}
	for b.Loop() {
		b.StopTimer()
		f := step(int64(1000 + number - 19))
		b.StartTimer()
		s.Install(f)
	}
}
