package group

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/duemq/duemq/internal/record"
)

// naive is a progress as one would write it down: a set and a map.
type naive struct {
	base, pulled, leased record.Offset
	skipped              uint64
	done                 map[record.Offset]bool
	tries                map[record.Offset]Try
}

func newNaive(from record.Offset) *naive {
	return &naive{
		base: from, pulled: from, leased: from,
		done: map[record.Offset]bool{}, tries: map[record.Offset]Try{},
	}
}

func (n *naive) finished(o record.Offset) bool { return o < n.base || n.done[o] }

func (n *naive) settle() {
	for n.done[n.base] {
		n.base++
	}
	n.leased = max(n.leased, n.base)
	for o := range n.tries {
		if n.finished(o) {
			delete(n.tries, o)
		}
	}
}

func (n *naive) ack(ranges []record.OffsetRange, limit record.Offset) (fresh uint64) {
	for _, r := range ranges {
		for o := r.From; o < min(r.To, limit); o++ {
			if !n.finished(o) {
				n.done[o] = true
				fresh++
			}
		}
	}
	n.settle()
	return fresh
}

func (n *naive) attempts(o record.Offset) uint32 {
	switch {
	case n.finished(o):
		return 0
	case o < n.leased:
		return max(n.tries[o].Attempt, 1)
	}
	return n.tries[o].Attempt
}

func (n *naive) lease(runs []record.LeaseRun, limit record.Offset) {
	for _, r := range runs {
		for o := r.From; o < min(r.To, limit, n.base+MaxInflight); o++ {
			switch {
			case r.Attempt <= 1:
				n.leased = max(n.leased, o+1)
			case !n.finished(o) && n.attempts(o) < r.Attempt:
				n.tries[o] = Try{Offset: o, Attempt: r.Attempt}
			}
		}
	}
}

func (n *naive) release(entries []record.Released, limit record.Offset) {
	for _, e := range entries {
		if e.Offset < min(limit, n.base+MaxInflight) && !n.finished(e.Offset) && n.attempts(e.Offset) <= e.Attempt {
			n.tries[e.Offset] = Try(e)
		}
	}
}

func (n *naive) clip(low record.Offset) {
	if low <= n.base {
		return
	}
	for o := n.base; o < low; o++ {
		if !n.done[o] && o >= n.pulled {
			n.skipped++
		}
	}
	n.base, n.pulled = low, max(n.pulled, low)
	n.settle()
}

func (n *naive) reset(to record.Offset) {
	skipped := n.skipped
	*n = *newNaive(to)
	n.skipped = skipped
}

// compare demands that a progress says what the naive one says.
func (n *naive) compare(t *testing.T, p *Progress, limit record.Offset) {
	t.Helper()
	if p.Base != n.base || p.Pulled != n.pulled || p.Leased != n.leased || p.Skipped != n.skipped {
		t.Fatalf("base %d pulled %d leased %d skipped %d, want %d %d %d %d",
			p.Base, p.Pulled, p.Leased, p.Skipped, n.base, n.pulled, n.leased, n.skipped)
	}
	for o := range limit + 3 {
		if p.Finished(o) != n.finished(o) || p.Attempts(o) != n.attempts(o) {
			t.Fatalf("offset %d finished %v after %d attempts, want %v, %d", o, p.Finished(o), p.Attempts(o), n.finished(o), n.attempts(o))
		}
	}
	var want []Try
	for o := range limit {
		if try, ok := n.tries[o]; ok {
			want = append(want, try)
		}
	}
	if got := p.Tries(); !slices.Equal(got, want) {
		t.Fatalf("tries %v, want %v", got, want)
	}
	end := p.Base
	for _, a := range p.Acked {
		if a.From <= end || a.To <= a.From {
			t.Fatalf("ranges %v above base %d", p.Acked, p.Base)
		}
		end = a.To
	}
}

// ranges are a few offsets in order, as a command has them.
func ranges(rng *rand.Rand, limit int) (rs []record.OffsetRange) {
	at := record.Offset(rng.IntN(limit))
	for range 1 + rng.IntN(4) {
		to := at + record.Offset(1+rng.IntN(8))
		rs = append(rs, record.OffsetRange{From: at, To: to})
		at = to + record.Offset(rng.IntN(4))
	}
	return rs
}

// change is one random command, for a progress and for the naive one.
func change(rng *rand.Rand, limit int) (func(*Progress), func(*naive)) {
	next := record.Offset(limit)
	switch rng.IntN(12) {
	case 0, 1, 2:
		rs := ranges(rng, limit)
		return func(p *Progress) { p.Ack(rs, next) }, func(n *naive) { n.ack(rs, next) }
	case 3, 4, 5, 6:
		var runs []record.LeaseRun
		for _, r := range ranges(rng, limit) {
			runs = append(runs, record.LeaseRun{From: r.From, To: r.To, Attempt: uint32(rng.IntN(4))})
		}
		return func(p *Progress) { p.Lease(runs, next) }, func(n *naive) { n.lease(runs, next) }
	case 7, 8, 9:
		var entries []record.Released
		for range rng.IntN(6) { // in any order, some twice
			entries = append(entries, record.Released{
				Offset: record.Offset(rng.IntN(limit + 2)), Attempt: uint32(rng.IntN(4)), Due: int64(rng.IntN(100)),
			})
		}
		return func(p *Progress) { p.Release(entries, next) }, func(n *naive) { n.release(entries, next) }
	case 10:
		if rng.IntN(4) == 0 {
			to := record.Offset(rng.IntN(limit))
			return func(p *Progress) { p.Reset(to) }, func(n *naive) { n.reset(to) }
		}
		to := record.Offset(rng.IntN(limit))
		return func(p *Progress) { p.Pulled = to }, func(n *naive) { n.pulled = to }
	default:
		low := record.Offset(rng.IntN(limit / 2))
		return func(p *Progress) { p.Clip(low) }, func(n *naive) { n.clip(low) }
	}
}

func TestProgressAgainstNaive(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		from := record.Offset(rng.IntN(5))
		p, n := StartAt(from), newNaive(from)
		const limit = 90
		for step := range 60 {
			if rng.IntN(3) == 0 { // the answer counts as well
				rs := ranges(rng, limit)
				if got, want := p.Ack(rs, limit), n.ack(rs, limit); got != want {
					t.Fatalf("seed %d step %d: %v gave %d fresh offsets, want %d", seed, step, rs, got, want)
				}
			} else {
				act, simple := change(rng, limit)
				act(p)
				simple(n)
			}
			n.compare(t, p, limit)
			low := record.Offset(rng.IntN(limit))
			base, skipped := p.Behind(low)
			again := *p
			again.Acked = slices.Clone(p.Acked)
			again.Clip(low)
			if again.Base != base || again.Skipped != skipped {
				t.Fatalf("seed %d step %d: behind %d: %d, %d; clipped: %d, %d", seed, step, low, base, skipped, again.Base, again.Skipped)
			}
			n.compare(t, p, limit) // Behind changed nothing
			if t.Failed() {
				t.Fatalf("seed %d step %d", seed, step)
			}
		}
	}
}

// TestTriesAreBounded: a command may name anything, the window stays.
func TestTriesAreBounded(t *testing.T) {
	p := StartAt(3)
	p.Lease([]record.LeaseRun{{From: 0, To: 1 << 40, Attempt: 2}}, 1<<50)
	p.Release([]record.Released{{Offset: 3 + MaxInflight, Attempt: 7}}, 1<<50)
	if n := len(p.Tries()); n != MaxInflight || p.Attempts(3+MaxInflight) != 0 {
		t.Errorf("%d tries, limit %d", n, MaxInflight)
	}
	p.Lease([]record.LeaseRun{{From: 0, To: 1 << 40, Attempt: 1}}, 1<<50)
	if p.Leased != 3+MaxInflight {
		t.Errorf("leased up to %d, base 3", p.Leased)
	}
	p = StartAt(1<<64 - 5) // where sums wrap around
	p.Lease([]record.LeaseRun{{From: 0, To: 1<<64 - 1, Attempt: 2}}, 1<<64-1)
	if n := len(p.Tries()); n != 4 {
		t.Errorf("%d tries at the end of the numbers, want 4", n)
	}
}

// TestLateRelease: what names an older attempt must not make a message that
// somebody else has wait.
func TestLateRelease(t *testing.T) {
	p := StartAt(0)
	p.Lease([]record.LeaseRun{{From: 0, To: 2, Attempt: 1}}, 2)
	p.Lease([]record.LeaseRun{{From: 0, To: 1, Attempt: 2}}, 2)
	p.Release([]record.Released{{Offset: 0, Attempt: 1, Due: 50}, {Offset: 1, Attempt: 1, Due: 60}}, 2)
	want := []Try{{0, 2, 0}, {1, 1, 60}}
	if got := p.Tries(); !slices.Equal(got, want) {
		t.Errorf("tries %v, want %v", got, want)
	}
	p.Lease([]record.LeaseRun{{From: 1, To: 2, Attempt: 2}}, 2)
	if got := p.Tries(); got[1] != (Try{1, 2, 0}) {
		t.Errorf("leased again: %v; the back-off is over", got[1])
	}
}

// TestPulledIsNotSkipped: who pulls acknowledges nothing, and what it pulled
// was not taken from it.
func TestPulledIsNotSkipped(t *testing.T) {
	p := StartAt(0)
	p.Pulled = 40
	if base, skipped := p.Behind(50); base != 50 || skipped != 10 {
		t.Errorf("behind: base %d, %d skipped; want 50, 10", base, skipped)
	}
	p.Clip(50)
	p.Clip(60)
	if p.Pulled != 60 || p.Skipped != 20 {
		t.Errorf("pulled %d, %d skipped; want 60, 20", p.Pulled, p.Skipped)
	}
}
