package group

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/duemq/duemq/internal/record"
)

// held is how an offset stands in the model of leases.
type held struct {
	attempt     uint32
	until       int64 // monotonic ms
	held, prior bool
	running     bool // leased, not only waiting
	done        bool
}

// model is leases as one would write them down: every offset in a map, every
// answer from all of them.
type model struct {
	base record.Offset
	at   map[record.Offset]*held
}

// get is how an offset stands; one that was not seen since the start stands as
// what was written down of it says.
func (m *model) get(o record.Offset, n *naive, shift int64) *held {
	h := m.at[o]
	if h == nil {
		try := n.tries[o]
		h = &held{attempt: n.attempts(o), done: n.finished(o)}
		h.held = h.attempt > 0 && try.Due == 0
		if try.Due > 0 {
			h.until = try.Due - shift
		}
	}
	return h
}

func (m *model) grant(n *naive, low, next record.Offset, ask Ask) (dst []Grant) {
	m.base = max(n.base, low)
	shift := ask.Unix - ask.Now
	limit := ask.Limit
	if ask.Max > 0 {
		running := 0
		for o, h := range m.at {
			if o >= m.base && h.running && !h.done && h.until > ask.Now {
				running++
			}
		}
		limit = min(limit, ask.Max-running)
	}
	for o := m.base; o < next && len(dst) < limit; o++ {
		h := m.get(o, n, shift)
		if n.finished(o) && (ask.Ordered || h.until <= ask.Now) {
			h.done = true // by a lease from before the start
		}
		if h.done {
			continue
		}
		if h.until > ask.Now {
			if ask.Ordered {
				break
			}
			continue
		}
		*h = held{attempt: h.attempt + 1, until: ask.Until, held: true, prior: h.held, running: true}
		m.at[o] = h
		dst = append(dst, Grant{o, h.attempt})
	}
	return dst
}

// probe says whether a grant at an instant would have something.
func (m *model) probe(n *naive, low, next record.Offset, ask Ask) bool {
	c := &model{at: map[record.Offset]*held{}}
	for o, h := range m.at {
		copied := *h
		c.at[o] = &copied
	}
	return len(c.grant(n, low, next, ask)) > 0
}

// standing is how a lease stands that was given since the start.
func (m *model) standing(g Grant) (*held, Standing) {
	h := m.at[g.Offset]
	switch {
	case g.Offset < m.base, h.done:
		return h, Finished
	case !h.held || h.attempt != g.Attempt:
		return h, Lost
	}
	return h, Holds
}

// leasing is a history of leases beside their model.
type leasing struct {
	t         *testing.T
	rng       *rand.Rand
	l         *Leases
	m         *model
	p         *Progress
	n         *naive
	now       int64
	low, next record.Offset
	most      int
	ordered   bool
	given     []Grant // since the start
}

const shift = 1_000_000 // what Unix time is ahead of monotonic time, ms

func (s *leasing) ask(limit int) Ask {
	return Ask{
		Limit: limit, Now: s.now, Until: s.now + int64(10+s.rng.IntN(50)), Unix: s.now + shift,
		Max: s.most, Ordered: s.ordered,
	}
}

func (s *leasing) grant() {
	s.t.Helper()
	ask := s.ask(1 + s.rng.IntN(6))
	got, want := s.l.Grant(s.p, s.low, s.next, ask), s.m.grant(s.n, s.low, s.next, ask)
	if !slices.Equal(got, want) {
		s.t.Fatalf("at %d, %+v: granted %v, want %v", s.now, ask, got, want)
	}
	s.given = append(s.given, got...)
	if len(got) == 0 {
		s.sleeps(ask)
	}
	if s.rng.IntN(8) > 0 { // else a crash comes before it is written
		runs := Runs(got)
		s.p.Lease(runs, s.next)
		s.n.lease(runs, s.next)
	}
}

// sleeps demands that a waiter that sleeps until Next misses nothing.
func (s *leasing) sleeps(ask Ask) {
	s.t.Helper()
	at, ok := s.l.Next()
	if ok && at <= s.now {
		s.t.Fatalf("at %d nothing is there, but the next instant is %d", s.now, at)
	}
	for ; ask.Now < s.now+200 && (!ok || ask.Now < at); ask.Now, ask.Unix = ask.Now+1, ask.Unix+1 {
		if s.m.probe(s.n, s.low, s.next, ask) {
			s.t.Fatalf("at %d: something is there from %d on, the next instant is %d, %v", s.now, ask.Now, at, ok)
		}
	}
}

// handle does something with a lease that was given, maybe long ago.
func (s *leasing) handle() {
	s.t.Helper()
	if len(s.given) == 0 {
		return
	}
	g := s.given[len(s.given)-1-s.rng.IntN(min(len(s.given), 12))]
	h, want := s.m.standing(g)
	var got Standing
	switch s.rng.IntN(6) {
	case 0, 1, 2:
		if got = s.l.Finish(g.Offset, g.Attempt); want == Holds {
			h.done = true
			if s.rng.IntN(8) > 0 {
				r := []record.OffsetRange{{From: g.Offset, To: g.Offset + 1}}
				s.p.Ack(r, s.next)
				s.n.ack(r, s.next)
			}
		}
	case 3:
		until := s.now + int64(s.rng.IntN(40))
		if got = s.l.Back(g.Offset, g.Attempt, until); want == Holds {
			*h = held{attempt: g.Attempt, until: until}
			r := []record.Released{{Offset: g.Offset, Attempt: g.Attempt, Due: until + shift}}
			s.p.Release(r, s.next)
			s.n.release(r, s.next)
		}
	case 4:
		until := s.now + int64(s.rng.IntN(40))
		if got = s.l.Extend(g.Offset, g.Attempt, until); want == Holds {
			h.until, h.running = until, true
		}
	default:
		if got = s.l.Return(g.Offset, g.Attempt); want == Holds {
			*h = held{attempt: g.Attempt - 1, held: h.prior}
		}
	}
	if got != want {
		s.t.Fatalf("at %d: lease %v stands %v, want %v", s.now, g, got, want)
	}
}

// rare is what happens seldom: a restart, retention, another start.
func (s *leasing) rare() {
	switch s.rng.IntN(6) {
	case 3, 4: // acknowledged by a lease from before the start
		r := []record.OffsetRange{{From: s.m.base + record.Offset(s.rng.IntN(4))}}
		r[0].To = r[0].From + 1
		s.p.Ack(r, s.next)
		s.n.ack(r, s.next)
	case 0:
		s.l, s.given = &Leases{}, nil
		s.m.at = map[record.Offset]*held{}
		s.now += int64(s.rng.IntN(30))
	case 1:
		s.low += record.Offset(s.rng.IntN(4))
		s.low = min(s.low, s.next)
		if s.rng.IntN(2) == 0 {
			s.p.Clip(s.low)
			s.n.clip(s.low)
		}
	case 2:
		to := record.Offset(s.rng.IntN(int(s.next) + 1))
		behind := to < s.m.base
		s.p.Reset(to)
		s.n.reset(to)
		s.m.at, s.given = map[record.Offset]*held{}, nil
		s.low = min(s.low, to)
		if !behind || s.rng.IntN(2) == 0 { // a base that falls is noticed
			s.l.Reset()
		}
	}
}

func (s *leasing) step() {
	s.t.Helper()
	s.now += int64(s.rng.IntN(15))
	s.next += record.Offset(s.rng.IntN(3))
	switch k := s.rng.IntN(40); {
	case k < 12:
		s.grant()
	case k < 39:
		s.handle()
	default:
		s.rare()
		s.grant()
	}
	if len(s.given) > 0 {
		g := s.given[s.rng.IntN(len(s.given))]
		h := s.m.at[g.Offset]
		inflight, attempts := s.l.Standing(g.Offset, s.now)
		if want := h.held && !h.done && h.until > s.now; g.Offset >= s.m.base && (inflight != want || attempts != h.attempt) {
			s.t.Fatalf("at %d: offset %d in flight %v, attempt %d; want %v, %d", s.now, g.Offset, inflight, attempts, want, h.attempt)
		}
	}
}

// TestLeasesAgainstModel leases, finishes, gives back, extends and returns at
// random, over restarts, retention and groups that are set back, and compares
// every answer with the model's.
func TestLeasesAgainstModel(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 2))
		s := &leasing{
			t: t, rng: rng, l: &Leases{}, m: &model{at: map[record.Offset]*held{}}, p: StartAt(0), n: newNaive(0),
			now: 1000, most: []int{0, 0, 1, 3}[rng.IntN(4)], ordered: rng.IntN(3) == 0,
		}
		ok := t.Run("", func(t *testing.T) {
			s.t = t
			for range 250 {
				s.step()
			}
			// What is not finished comes in the end, each once.
			s.now, s.most, s.ordered = s.now+1000, 0, false
			ask := s.ask(MaxInflight)
			got, want := s.l.Grant(s.p, s.low, s.next, ask), s.m.grant(s.n, s.low, s.next, ask)
			if !slices.Equal(got, want) {
				t.Fatalf("in the end %v, want %v", got, want)
			}
		})
		if !ok {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestOrderedNeverOvertakes has two clients of an ordered group take, fail,
// forget and finish: whatever is given, everything before it is finished or
// stands before it in the same answer.
func TestOrderedNeverOvertakes(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		l, p := &Leases{}, StartAt(0)
		const next = 60
		done := map[record.Offset]bool{}
		now := int64(1)
		for len(done) < next {
			now += int64(rng.IntN(30))
			if rng.IntN(20) == 0 {
				l = &Leases{}
			}
			got := l.Grant(p, 0, next, Ask{Limit: 1 + rng.IntN(5), Now: now, Until: now + 20, Unix: now, Ordered: true})
			p.Lease(Runs(got), next)
			first := record.Offset(0)
			for done[first] {
				first++
			}
			for _, g := range got {
				for done[first] {
					first++
				}
				if g.Offset != first {
					t.Fatalf("seed %d: %v given while %d is not finished", seed, got, first)
				}
				first++
			}
			for i, g := range got { // handled in order, up to the first that fails
				if rng.IntN(4) == 0 {
					l.Back(g.Offset, g.Attempt, now+25)
					p.Release([]record.Released{{Offset: g.Offset, Attempt: g.Attempt, Due: now + 25}}, next)
					for _, g := range got[i+1:] {
						if rng.IntN(2) == 0 { // else its lease ends by itself
							l.Return(g.Offset, g.Attempt)
						}
					}
					break
				}
				if rng.IntN(9) == 0 {
					break
				}
				if st := l.Finish(g.Offset, g.Attempt); st != Holds {
					t.Fatalf("seed %d: %v stands %v", seed, g, st)
				}
				done[g.Offset] = true
				p.Ack([]record.OffsetRange{{From: g.Offset, To: g.Offset + 1}}, next)
			}
		}
	}
}

func TestLeasesAreBounded(t *testing.T) {
	l, p := &Leases{}, StartAt(0)
	if got := len(l.Grant(p, 0, 1<<40, Ask{Limit: 1 << 30, Until: 10})); got != MaxInflight {
		t.Errorf("%d leases, limit %d", got, MaxInflight)
	}
	if !l.Blocked() {
		t.Error("a full window blocks nothing")
	}
	// What waits for its back-off does not count against Max, but fills the window.
	for o := range record.Offset(MaxInflight) {
		if st := l.Back(o, 1, 100); st != Holds {
			t.Fatalf("offset %d stands %v", o, st)
		}
	}
	ask := Ask{Limit: 5, Max: 3, Now: 50, Until: 70}
	if got := l.Grant(p, 0, 1<<40, ask); len(got) != 0 || !l.Blocked() {
		t.Errorf("%v beyond the window, blocked %v", got, l.Blocked())
	}
	ask.Now, ask.Until = 100, 120
	if got := l.Grant(p, 0, 1<<40, ask); len(got) != 3 || !l.Blocked() {
		t.Errorf("%v of 3, blocked %v", got, l.Blocked())
	}
	if at, ok := l.Next(); !ok || at != 120 {
		t.Errorf("next instant %d, %v; want the end of a lease, 120", at, ok)
	}
}

// TestAttemptsSurvive: what was leased and not acknowledged before a crash is
// there again, counts one more, and keeps its back-off.
func TestAttemptsSurvive(t *testing.T) {
	p := StartAt(0)
	p.Lease([]record.LeaseRun{{From: 0, To: 4, Attempt: 1}, {From: 1, To: 2, Attempt: 2}}, 9)
	p.Release([]record.Released{{Offset: 2, Attempt: 1, Due: 10_500}}, 9)
	p.Ack([]record.OffsetRange{{From: 3, To: 4}}, 9)
	l := &Leases{}
	ask := Ask{Limit: 9, Now: 7, Until: 600, Unix: 10_000}
	want := []Grant{{0, 2}, {1, 3}, {4, 1}, {5, 1}, {6, 1}, {7, 1}, {8, 1}}
	if got := l.Grant(p, 0, 9, ask); !slices.Equal(got, want) {
		t.Errorf("granted %v, want %v", got, want)
	}
	if at, ok := l.Next(); !ok || at != 507 {
		t.Errorf("next instant %d, %v; want 507", at, ok)
	}
	ask.Now, ask.Unix = 507, 10_500
	if got := l.Grant(p, 0, 9, ask); !slices.Equal(got, []Grant{{2, 2}}) {
		t.Errorf("at its due: %v, want offset 2, attempt 2", got)
	}
	if st := l.Finish(9, 1); st != Unknown {
		t.Errorf("what was never leased stands %v", st)
	}
}

// TestReturnRestores: who had a message whose lease ended keeps it when it was
// given to another who never saw it.
func TestReturnRestores(t *testing.T) {
	l, p := &Leases{}, StartAt(0)
	l.Grant(p, 0, 1, Ask{Limit: 1, Now: 1, Until: 5})
	again := l.Grant(p, 0, 1, Ask{Limit: 1, Now: 6, Until: 9})
	if st := l.Finish(0, 1); st != Lost {
		t.Fatalf("while another has it: %v, want %v", st, Lost)
	}
	l.Return(0, again[0].Attempt)
	if st := l.Finish(0, 1); st != Holds {
		t.Errorf("after the other returned it: %v, want %v", st, Holds)
	}
}

func TestRuns(t *testing.T) {
	got := Runs([]Grant{{1, 1}, {2, 1}, {3, 2}, {5, 2}, {6, 2}})
	want := []record.LeaseRun{{From: 1, To: 3, Attempt: 1}, {From: 3, To: 4, Attempt: 2}, {From: 5, To: 7, Attempt: 2}}
	if !slices.Equal(got, want) {
		t.Errorf("runs %v, want %v", got, want)
	}
}

// TestNextFollows what happens to leases between two grants.
func TestNextFollows(t *testing.T) {
	l, p := &Leases{}, StartAt(0)
	l.Grant(p, 0, 4, Ask{Limit: 4, Now: 1, Until: 100})
	for _, step := range []struct {
		what string
		do   func() Standing
		want int64
	}{
		{"a grant", func() Standing { return Holds }, 100},
		{"a longer lease", func() Standing { return l.Extend(0, 1, 200) }, 100},
		{"a shorter lease", func() Standing { return l.Extend(1, 1, 80) }, 80},
		{"a back-off", func() Standing { return l.Back(2, 1, 60) }, 60},
		{"a return", func() Standing { return l.Return(3, 1) }, 0},
	} {
		if st := step.do(); st != Holds {
			t.Fatalf("%s: %v", step.what, st)
		}
		if at, ok := l.Next(); !ok || at != step.want {
			t.Errorf("after %s: %d, %v; want %d", step.what, at, ok, step.want)
		}
	}
	// As many run as may: a back-off that ends makes no room, a lease that does.
	l.Grant(p, 0, 4, Ask{Limit: 4, Max: 1, Now: 2, Until: 100})
	if at, ok := l.Next(); !ok || at != 80 {
		t.Errorf("while as many run as may: %d, %v; want 80", at, ok)
	}
	l.Reset()
	if at, ok := l.Next(); ok {
		t.Errorf("after a reset: %d", at)
	}
}
