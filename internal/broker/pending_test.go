package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/record"
)

// TestKeySearchOverCuts: a message is found by each of its keys, in memory and
// in the index, while it waits and where it was moved to.
func TestKeySearchOverCuts(t *testing.T) {
	s := newStand(t)
	send := func(keys string, d time.Duration) record.ID {
		return s.send(Message{Topic: "t", Key: keys, Body: []byte(keys), Delay: after(d)})[0].ID
	}
	want := func(when, key string, ids ...record.ID) {
		t.Helper()
		var got []record.ID
		for _, v := range s.pending(Filter{Key: key}) {
			got = append(got, v.ID)
		}
		if !slices.Equal(got, ids) {
			t.Errorf("%s, key %q: %v, want %v", when, key, got, ids)
		}
		n, err := s.b.Count(t.Context(), Filter{Key: key})
		if err != nil || n != int64(len(ids)) {
			t.Errorf("%s, key %q: counted %d, %v; want %d", when, key, n, err, len(ids))
		}
	}
	cut := func() {
		t.Helper()
		if err := s.b.Cut(); err != nil {
			t.Fatal(err)
		}
	}
	a := send("order-7 user-1", 3*time.Hour)
	cut()
	b := send("order-8  user-1", 2*time.Hour)
	cut()
	c := send("user-1", time.Hour)
	send("user-10", time.Hour)
	want("at first", "user-1", c, b, a)
	want("at first", "order-7", a)
	want("at first", "order-8", b)
	want("at first", "order-7 user-1")
	want("at first", "order")
	if _, err := s.b.Shift(t.Context(), c.String(), 3*time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := s.b.Cancel(t.Context(), a.String()); err != nil {
		t.Fatal(err)
	}
	want("after a move and a cancel", "user-1", b, c)
	s.crash()
	want("after a crash", "user-1", b, c)
	s.step(2 * time.Hour)
	want("after delivery", "user-1", c)
	cut()
	s.reopen()
	want("after a restart", "user-1", c)
}

// TestKeySearchIsBounded: a key that everything has is no search.
func TestKeySearchIsBounded(t *testing.T) {
	s := newStand(t)
	msgs := make([]Message, MaxCandidates)
	for i := range msgs {
		msgs[i] = Message{Topic: "t", Key: "all"}
	}
	s.send(msgs...)
	if _, err := s.b.Pending(t.Context(), Filter{Key: "all"}, "", 1); err != nil {
		t.Errorf("%d messages: %v", MaxCandidates, err)
	}
	s.send(msgs[0])
	if _, err := s.b.Pending(t.Context(), Filter{Key: "all"}, "", 1); !errors.Is(err, ErrTooMany) {
		t.Errorf("one more: %v", err)
	}
	if _, err := s.b.StartBulk(t.Context(), Bulk{Kind: BulkCancel, Filter: Filter{Key: "all"}}); !errors.Is(err, ErrTooMany) {
		t.Errorf("one more, in bulk: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.b.Count(ctx, Filter{Key: "one"}); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

// TestFilters: each part of a filter selects alone and with the others, and a
// count says what the pages show.
func TestFilters(t *testing.T) {
	s := newStand(t)
	base := s.now()
	at := func(i int) Delay { return Delay{Kind: DelayAt, Value: base + int64(i+1)*10_000} }
	var ids []string
	for i := range 24 {
		topic, tag := []string{"t", "u"}[i%2], []string{"x", "y", "z"}[i%3]
		r := s.send(Message{Topic: topic, Tag: tag, Key: fmt.Sprint(i, " k", i%4), Delay: at(i)})
		ids = append(ids, r[0].ID.String())
	}
	if err := s.b.PauseTopic(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	s.step(60 * time.Second) // 0, 2, 4 are held back; 1, 3, 5 are delivered
	for i, f := range []Filter{
		{},
		{Topic: "t"},
		{Topic: "u"},
		{Tag: "x"},
		{Topic: "t", Tag: "y"},
		{State: StatePaused},
		{State: StateWaiting},
		{State: StatePaused, Topic: "u"},
		{Overdue: true},
		{Overdue: true, State: StateWaiting},
		{Key: "k2"},
		{Key: "k2", Topic: "t", From: base + 100_000},
		{Key: "k0", State: StatePaused},
		{Key: "k0", Tag: "x"},
		{IDs: ids[:9]},
		{IDs: ids[2:14], Tag: "z"},
		{IDs: ids, Key: "k1"},
		{IDs: ids, Overdue: true},
		{From: base + 30_000, To: base + 150_001},
		{From: base + 1, To: base + 120_000, State: StateWaiting},
		{From: base + 20_000, To: base + 60_000, State: StatePaused},
		{To: base + 50_000},
		{From: base + 50_001},
	} {
		want := s.brute(ids, f)
		if got := s.pending(f); !slices.Equal(keysOf(got), want) {
			t.Errorf("filter %d %+v: %q, want %q", i, f, keysOf(got), want)
		}
		if n, err := s.b.Count(t.Context(), f); err != nil || n != int64(len(want)) {
			t.Errorf("filter %d %+v: counted %d, %v; want %d", i, f, n, err, len(want))
		}
	}
}

// brute looks at every message.
func (s *stand) brute(ids []string, f Filter) (keys []string) {
	s.t.Helper()
	var found []View
	for _, id := range ids {
		v, err := s.b.Message(s.t.Context(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		if (v.State == StateWaiting || v.State == StatePaused) && s.selected(&v, f) {
			found = append(found, v)
		}
	}
	slices.SortStableFunc(found, func(a, b View) int { return int(a.Due - b.Due) })
	return slices.Clip(append(keys, keysOf(found)...))
}

func (s *stand) selected(v *View, f Filter) bool {
	switch {
	case f.Topic != "" && v.Topic != f.Topic, f.Tag != "" && v.Tag != f.Tag, f.State != "" && v.State != f.State:
		return false
	case v.Due < f.From, f.To != 0 && v.Due >= f.To, f.Overdue && v.Due > s.now():
		return false
	case f.Key != "" && !hasKey(v.Key, f.Key), len(f.IDs) > 0 && !slices.Contains(f.IDs, v.ID.String()):
		return false
	}
	return true
}

// TestPagesAreWhole: pages of any size make up the listing, by key too.
func TestPagesAreWhole(t *testing.T) {
	s := newStand(t)
	rng := rand.New(rand.NewPCG(4, 4))
	for i := range 60 {
		s.send(Message{Topic: "t", Key: fmt.Sprint("k", i%2), Delay: after(time.Duration(1+rng.IntN(20)) * time.Second)})
		if i%17 == 0 {
			if err := s.b.Cut(); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.b.PauseTopic(t.Context(), "t")
	s.step(8 * time.Second)
	for _, f := range []Filter{{}, {Key: "k1"}, {State: StatePaused}, {State: StateWaiting}} {
		want := s.pending(f)
		for _, limit := range []int{1, 7, 30} {
			var got []View
			cursor := ""
			for {
				page, err := s.b.Pending(t.Context(), f, cursor, limit)
				if err != nil || len(page.Messages) > limit {
					t.Fatalf("page: %d messages, %v", len(page.Messages), err)
				}
				got = append(got, page.Messages...)
				if cursor = page.Cursor; cursor == "" {
					break
				}
			}
			if !slices.EqualFunc(got, want, func(a, b View) bool { return a.ID == b.ID && a.State == b.State }) {
				t.Errorf("%+v by %d: %d messages, want %d", f, limit, len(got), len(want))
			}
		}
	}
}
