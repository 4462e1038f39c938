package group

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/duemq/duemq/internal/record"
)

// TestAckAgainstSet acknowledges random ranges and compares with a set.
func TestAckAgainstSet(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p, set := &Progress{}, map[record.Offset]bool{}
		const limit = 120
		for range 60 {
			from := record.Offset(rng.IntN(limit))
			r := record.OffsetRange{From: from, To: from + record.Offset(1+rng.IntN(12))}
			want := uint64(0)
			for o := r.From; o < min(r.To, limit); o++ {
				if !set[o] {
					set[o] = true
					want++
				}
			}
			if got := p.Ack([]record.OffsetRange{r}, limit); got != want {
				t.Fatalf("seed %d: %v gave %d fresh offsets, want %d", seed, r, got, want)
			}
			for o := range record.Offset(limit) {
				if p.Finished(o) != set[o] {
					t.Fatalf("seed %d: offset %d finished %v", seed, o, p.Finished(o))
				}
			}
			for i, a := range p.Acked {
				if a.From >= a.To || a.From <= p.Base && i == 0 || i > 0 && a.From <= p.Acked[i-1].To {
					t.Fatalf("seed %d: ranges %v above base %d", seed, p.Acked, p.Base)
				}
			}
		}
	}
}

// TestLeasesAgainstModel leases, finishes, extends and returns at random.
func TestLeasesAgainstModel(t *testing.T) {
	type held struct {
		until   int64
		attempt uint32
	}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		l, p := &Leases{}, &Progress{}
		out := map[record.Offset]held{}
		done := map[record.Offset]bool{}
		now, next := int64(1000), record.Offset(0)
		for range 200 {
			now += int64(rng.IntN(20))
			next += record.Offset(rng.IntN(4))
			switch rng.IntN(3) {
			case 0:
				until := now + int64(10+rng.IntN(50))
				for _, g := range l.Grant(p, 0, next, Ask{Limit: 1 + rng.IntN(5), Now: now, Until: until}) {
					if h, leased := out[g.Offset]; done[g.Offset] || (leased && h.until > now) || g.Offset >= next {
						t.Fatalf("seed %d at %d: %v granted (held %+v, done %v)", seed, now, g, h, done[g.Offset])
					}
					out[g.Offset] = held{until, g.Attempt}
				}
			case 1:
				for o, h := range out {
					if st := l.Finish(o, h.attempt); st == Holds {
						done[o] = true
						delete(out, o)
						p.Ack([]record.OffsetRange{{From: o, To: o + 1}}, next)
					}
					break
				}
			case 2:
				for o, h := range out {
					if st := l.Extend(o, h.attempt, now+30); st != Holds {
						t.Fatalf("seed %d: extend of %d: %v", seed, o, st)
					}
					out[o] = held{now + 30, h.attempt}
					break
				}
			}
		}
		// What is neither finished nor held comes in the end, each once.
		var got []record.Offset
		for _, g := range l.Grant(p, 0, next, Ask{Limit: MaxInflight, Now: now + 1000, Until: now + 2000}) {
			got = append(got, g.Offset)
		}
		slices.Sort(got)
		if want := int(next) - len(done); len(got) != want || len(slices.Compact(got)) != want {
			t.Fatalf("seed %d: %d offsets in the end, want %d", seed, len(got), want)
		}
	}
}

func TestLeasesAreBounded(t *testing.T) {
	l, p := &Leases{}, &Progress{}
	if got := len(l.Grant(p, 0, 1<<40, Ask{Limit: 1 << 30, Until: 10})); got != MaxInflight {
		t.Errorf("%d leases, limit %d", got, MaxInflight)
	}
	if !l.Blocked() {
		t.Error("not blocked by a full window")
	}
}

func FuzzRestoreProgress(f *testing.F) {
	p := &Progress{Base: 7, Pulled: 9, Acked: []record.OffsetRange{{From: 10, To: 12}, {From: 20, To: 21}}}
	f.Add(place{0, 3}.key(), p.encode())
	f.Fuzz(func(t *testing.T, key, value []byte) {
		s := NewSet()
		s.Make(record.Group{Name: "g"})
		if s.RestoreProgress(key, value) != nil {
			return
		}
		for q, p := range s.Get(0).queues {
			again := NewSet()
			again.Make(record.Group{Name: "g"})
			if err := again.RestoreProgress(place{0, q}.key(), p.encode()); err != nil {
				t.Errorf("%+v does not survive: %v", p, err)
			}
		}
	})
}

func FuzzRestoreGroup(f *testing.F) {
	f.Add(record.AppendGroup(nil, &record.Group{Number: 2, Name: "billing", Start: record.StartEarliest}))
	f.Fuzz(func(t *testing.T, value []byte) {
		s := NewSet()
		if s.RestoreGroup(value) == nil && len(s.All()) != 1 {
			t.Errorf("%d groups out of one", len(s.All()))
		}
	})
}
