package group

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/duemq/duemq/internal/record"
)

// store is what the index keeps of the groups, by space of the state.
type store struct{ groups, progress map[string][]byte }

func (s *store) install(f *Frozen) {
	for _, c := range []struct {
		to      map[string][]byte
		changes []State
	}{{s.groups, f.Groups}, {s.progress, f.Progress}} {
		for _, st := range c.changes {
			if st.Value == nil {
				delete(c.to, string(st.Key))
				continue
			}
			c.to[string(st.Key)] = st.Value
		}
	}
}

func (s *store) restore(t *testing.T) *Set {
	t.Helper()
	set := NewSet()
	for _, k := range slices.Sorted(maps.Keys(s.groups)) {
		if err := set.RestoreGroup(s.groups[k]); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(s.progress)) {
		if err := set.RestoreProgress([]byte(k), s.progress[k]); err != nil {
			t.Fatal(err)
		}
	}
	return set
}

// digest is the whole state of a set.
func digest(s *Set) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "next %d\n", s.NextNumber())
	for _, g := range s.All() {
		g.Hash(func(p []byte) { fmt.Fprintf(&b, "%x\n", p) })
	}
	return b.String()
}

// history runs random commands through a set that is cut, abandoned and
// restored, and one that never is.
type history struct {
	t      *testing.T
	rng    *rand.Rand
	live   *Set
	ref    *Set
	disk   store
	done   []func(*Set)
	frozen *Frozen
	at     int // commands in the frozen cut
	cutAt  int // commands in the newest cut
}

func (h *history) do(fn func(*Set)) {
	fn(h.live)
	fn(h.ref)
	h.done = append(h.done, fn)
}

func (h *history) command() {
	switch h.rng.IntN(20) {
	case 0, 1:
		n, name := h.ref.NextNumber(), fmt.Sprint("g", h.rng.IntN(9))
		if h.rng.IntN(4) == 0 && n > 0 { // others attributes, or of one that has ended
			n = record.GroupNumber(h.rng.IntN(int(n)))
			if g := h.ref.Get(n); g != nil {
				name = g.Name
			}
		}
		g := record.Group{Number: n, Name: name, Start: record.StartPolicy(1 + h.rng.IntN(2))}
		h.do(func(s *Set) { s.Make(g) })
	case 2:
		n := record.GroupNumber(h.rng.IntN(int(h.ref.NextNumber()) + 2))
		h.do(func(s *Set) { s.End(n) })
	case 3:
		first, n := record.QueueNumber(1+h.rng.IntN(6)), uint32(h.rng.IntN(3))
		h.do(func(s *Set) { s.Forget(first, n) })
	default:
		n, q := record.GroupNumber(h.rng.IntN(int(h.ref.NextNumber())+1)), record.QueueNumber(1+h.rng.IntN(6))
		from := record.Offset(h.rng.IntN(4))
		fn, _ := change(h.rng, 60)
		h.do(func(s *Set) {
			if g := s.Get(n); g != nil {
				fn(s.Begin(g, q, from))
			}
		})
	}
}

func (h *history) cut() {
	switch h.rng.IntN(10) {
	case 0, 1:
		if h.frozen == nil {
			h.frozen, h.at = h.live.Freeze(), len(h.done)
			h.inOrder(h.frozen)
		}
	case 2, 3:
		h.install()
	case 4:
		if h.frozen != nil {
			h.live.Abandon(h.frozen)
			h.frozen = nil
		}
	case 5:
		h.frozen = nil
		h.live = h.disk.restore(h.t)
		for _, fn := range h.done[h.cutAt:] {
			fn(h.live)
		}
	}
}

func (h *history) install() {
	if h.frozen != nil {
		h.disk.install(h.frozen)
		h.frozen, h.cutAt = nil, h.at
	}
}

// inOrder: a table takes each key once, in order.
func (h *history) inOrder(f *Frozen) {
	h.t.Helper()
	for _, states := range [][]State{f.Groups, f.Progress} {
		for i := 1; i < len(states); i++ {
			if bytes.Compare(states[i-1].Key, states[i].Key) >= 0 {
				h.t.Fatalf("key %x after %x", states[i].Key, states[i-1].Key)
			}
		}
	}
}

func TestSetOverCuts(t *testing.T) {
	for seed := range uint64(150) {
		h := &history{
			t: t, rng: rand.New(rand.NewPCG(seed, 4)), live: NewSet(), ref: NewSet(),
			disk: store{map[string][]byte{}, map[string][]byte{}},
		}
		for step := range 200 {
			h.command()
			h.cut()
			if got, want := digest(h.live), digest(h.ref); got != want {
				t.Fatalf("seed %d step %d: with cuts\n%s\nwithout\n%s", seed, step, got, want)
			}
		}
		// The last cut leaves nothing of what ended.
		h.install()
		h.frozen, h.at = h.live.Freeze(), len(h.done)
		h.install()
		if got, want := digest(h.disk.restore(t)), digest(h.ref); got != want {
			t.Fatalf("seed %d: restored\n%s\nwant\n%s", seed, got, want)
		}
		queues := 0
		for _, g := range h.ref.All() {
			queues += len(g.Queues())
		}
		delete(h.disk.groups, "")
		if len(h.disk.groups) != h.ref.Len() || len(h.disk.progress) != queues {
			t.Fatalf("seed %d: the index keeps %d groups in %d queues, want %d in %d",
				seed, len(h.disk.groups), len(h.disk.progress), h.ref.Len(), queues)
		}
	}
}

// TestNumbersAreNotUsedAgain: neither at once nor after a restart.
func TestNumbersAreNotUsedAgain(t *testing.T) {
	s := NewSet()
	s.Make(record.Group{Number: 0, Name: "a"})
	s.Make(record.Group{Number: 1, Name: "b"})
	s.End(1)
	if g := s.Make(record.Group{Number: 1, Name: "b"}); g != nil || s.Named("b") != nil {
		t.Errorf("group %v has the number of one that ended", g)
	}
	disk := store{map[string][]byte{}, map[string][]byte{}}
	disk.install(s.Freeze())
	again := disk.restore(t)
	if again.NextNumber() != 2 || again.Get(1) != nil || again.Len() != 1 {
		t.Errorf("after a restart: next number %d, %d groups; want 2, 1", again.NextNumber(), again.Len())
	}
	if g := again.Make(record.Group{Number: 2, Name: "b"}); g == nil || again.Named("b") != g {
		t.Errorf("the name of a group that ended is not free: %v", g)
	}
}

// TestProgressBytes holds the value of a progress to its page in docs/formats:
// the first form is that of stores in which nothing was ever leased.
func TestProgressBytes(t *testing.T) {
	plain := &Progress{Base: 7, Leased: 7, Pulled: 9, Acked: []record.OffsetRange{{From: 10, To: 12}}}
	full := &Progress{
		Base: 7, Leased: 300, Pulled: 9, Skipped: 5, Acked: []record.OffsetRange{{From: 10, To: 12}},
		tries: []Try{{8, 2, 0}, {13, 3, 1000}},
	}
	const ack = "02858080000000010a02"
	for p, want := range map[*Progress]string{
		plain: "0709" + ack,
		full:  "0709" + ack + "05" + "a502" + "02" + "010200" + "0403e807",
	} {
		if got := hex.EncodeToString(p.encode()); got != want {
			t.Errorf("%+v is %s, want %s", p, got, want)
		}
	}
}

// TestRestoreRefuses what no cut can have written.
func TestRestoreRefuses(t *testing.T) {
	acked := []record.OffsetRange{{From: 10, To: 12}}
	for name, p := range map[string]*Progress{
		"range at the base":       {Base: 10, Leased: 10, Acked: acked},
		"range below the base":    {Base: 11, Leased: 11, Acked: acked},
		"adjacent ranges":         {Acked: []record.OffsetRange{{From: 10, To: 12}, {From: 12, To: 13}}},
		"try of a finished one":   {Acked: acked, tries: []Try{{11, 2, 0}}},
		"try beyond the window":   {tries: []Try{{MaxInflight, 2, 0}}},
		"leased behind the base":  {Base: 10, Leased: 9},
		"tries out of order":      {tries: []Try{{5, 2, 0}, {4, 2, 0}}},
		"try twice":               {tries: []Try{{5, 2, 0}, {5, 2, 0}}},
		"try beyond all offsets":  {Base: 1<<64 - 2, Leased: 1<<64 - 2, tries: []Try{{4, 2, 0}}},
		"tries beyond the window": {tries: slices.Repeat([]Try{{5, 2, 0}}, MaxInflight+1)},
	} {
		s := NewSet()
		s.Make(record.Group{Name: "g"})
		if err := s.RestoreProgress(place{0, 3}.key(), p.encode()); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := NewSet()
	s.Make(record.Group{Name: "g"})
	good := StartAt(3).encode()
	for name, kv := range map[string][2][]byte{
		"short key":     {{0, 0, 0, 0}, good},
		"unknown group": {place{1, 3}.key(), good},
		"cut short":     {place{0, 3}.key(), good[:len(good)-1]},
		"left over":     {place{0, 3}.key(), append((&Progress{Skipped: 1}).encode(), 0)},
	} {
		if err := s.RestoreProgress(kv[0], kv[1]); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	twice := record.AppendGroup(nil, &record.Group{Number: 4, Name: "g"})
	if err := s.RestoreGroup(twice); !errors.Is(err, record.ErrCorrupt) {
		t.Errorf("two groups of one name: %v", err)
	}
}

func FuzzRestoreProgress(f *testing.F) {
	for _, p := range []*Progress{
		{Base: 7, Leased: 7, Pulled: 9, Acked: []record.OffsetRange{{From: 10, To: 12}, {From: 20, To: 21}}},
		{Base: 7, Leased: 30, Skipped: 3, Acked: []record.OffsetRange{{From: 10, To: 12}}, tries: []Try{{8, 2, 0}, {40, 1, 1_796_115_600_000}}},
		{Base: 1<<64 - 9, Leased: 1<<64 - 1, tries: []Try{{1<<64 - 3, 1<<32 - 1, -1}}},
	} {
		f.Add(place{0, 3}.key(), p.encode())
	}
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
			if got := again.Get(0).Progress(q); !bytes.Equal(got.encode(), p.encode()) {
				t.Errorf("%+v became %+v", p, got)
			}
			use(t, p)
		}
	})
}

// use does to a restored progress whatever can be done: it may not panic, and
// what comes of it must be restorable.
func use(t *testing.T, p *Progress) {
	t.Helper()
	next := p.Base + 100
	l := &Leases{}
	grants := l.Grant(p, 0, next, Ask{Limit: 10, Now: 1, Until: 9, Unix: 5})
	for _, g := range grants {
		if p.Finished(g.Offset) || g.Offset >= next {
			t.Errorf("%+v granted of %+v", g, p)
		}
	}
	p.Lease([]record.LeaseRun{{From: p.Base, To: next, Attempt: 2}}, next)
	p.Release([]record.Released{{Offset: p.Base, Attempt: 9, Due: 3}}, next)
	p.Ack([]record.OffsetRange{{From: p.Base + 1, To: p.Base + 5}}, next)
	p.Clip(p.Base + 2)
	if decodeProgress(p.encode()) == nil {
		t.Errorf("%+v cannot be restored", p)
	}
}

func FuzzRestoreGroup(f *testing.F) {
	f.Add(record.AppendGroup(nil, &record.Group{Number: 2, Name: "billing", Start: record.StartEarliest}))
	f.Add(record.AppendEndGroup(nil, &record.EndGroup{Number: 2}))
	f.Fuzz(func(t *testing.T, value []byte) {
		s := NewSet()
		if s.RestoreGroup(value) != nil {
			return
		}
		if n := s.Len(); n > 1 || n != len(s.All()) || s.NextNumber() == 0 {
			t.Errorf("%d groups out of one, next number %d", n, s.NextNumber())
		}
	})
}

// TestRename: the name that a group had is free.
func TestRename(t *testing.T) {
	s := NewSet()
	s.Make(record.Group{Number: 0, Name: "a"})
	s.Make(record.Group{Number: 0, Name: "b"})
	if s.Named("a") != nil || s.Named("b") == nil || s.Len() != 1 {
		t.Errorf("a %v, b %v, %d groups", s.Named("a"), s.Named("b"), s.Len())
	}
}
