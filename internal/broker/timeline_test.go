package broker

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestTimelineSums: whatever is asked, the buckets say what the pages show, and
// so do counts of ranges.
func TestTimelineSums(t *testing.T) {
	s := newStand(t)
	rng := rand.New(rand.NewPCG(1, 5))
	base := s.now()
	topics := []string{"a", "b", "c"}
	var sent []Receipt
	for i := range 400 {
		due := base + 1 + rng.Int64N(3*24*3_600_000)
		if i%5 == 0 {
			due = base + 60_000*(1+rng.Int64N(100)) // at the edge of a minute
		}
		r := s.send(Message{Topic: topics[rng.IntN(3)], Delay: Delay{Kind: DelayAt, Value: due}})
		sent = append(sent, r[0])
		if i%97 == 0 {
			if err := s.b.Cut(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 100 {
		ref := sent[rng.IntN(len(sent))].ID.String()
		if i%2 == 0 {
			s.b.Cancel(t.Context(), ref)
		} else {
			s.b.Shift(t.Context(), ref, time.Duration(rng.Int64N(int64(10*time.Hour))))
		}
	}
	s.b.PauseTopic(t.Context(), "b")
	s.step(5*time.Hour + 1234*time.Millisecond)
	all := s.pending(Filter{})
	for n := range 60 {
		r := TimelineRequest{Topic: append(topics, "")[n%4], Step: time.Duration(rng.IntN(200)) * time.Minute, ByTopic: n%3 == 0}
		if n%2 == 0 {
			r.From = base + rng.Int64N(4*24*3_600_000)
			r.To = r.From + 1 + rng.Int64N(2*24*3_600_000)
		}
		got, err := s.b.Timeline(t.Context(), r)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		s.checkTimeline(&r, &got, all)
		f := Filter{Topic: r.Topic, From: r.From, To: r.To}
		var want int64
		for _, v := range all {
			if s.selected(&v, f) {
				want++
			}
		}
		if n, err := s.b.Count(t.Context(), f); err != nil || n != want {
			t.Errorf("count %+v: %d, %v; want %d", f, n, err, want)
		}
	}
}

// checkTimeline compares an answer with everything that waits.
func (s *stand) checkTimeline(r *TimelineRequest, got *TimelineResult, all []View) {
	s.t.Helper()
	step := got.Step.Milliseconds()
	buckets := make(map[int64]*Bucket)
	var total, paused int64
	earliest, latest := int64(math.MaxInt64), int64(0)
	for _, v := range all {
		if r.Topic != "" && v.Topic != r.Topic {
			continue
		}
		if v.State == StatePaused {
			paused++
			continue
		}
		earliest, latest = min(earliest, v.Due), max(latest, v.Due)
		if v.Due < got.From || v.Due >= got.To {
			if r.From == 0 && r.To == 0 {
				s.t.Errorf("%+v: due %d is not in %d to %d", r, v.Due, got.From, got.To)
			}
			continue
		}
		total++
		from := got.From + (v.Due-got.From)/step*step
		if buckets[from] == nil {
			buckets[from] = &Bucket{Topics: make(map[string]int64)}
		}
		buckets[from].Count++
		buckets[from].Topics[v.Topic]++
	}
	if got.Total != total || got.Paused != paused || got.Overdue != 0 || len(got.Buckets) != len(buckets) ||
		got.Earliest != earliest/60_000*60_000 || got.Latest != latest/60_000*60_000 {
		s.t.Errorf("%+v: %+v\nwant total %d, paused %d, %d buckets, from %d to %d", r, got, total, paused, len(buckets), earliest, latest)
		return
	}
	for _, b := range got.Buckets {
		want := buckets[b.From]
		if want == nil || b.Count != want.Count || (b.Topics != nil) != r.ByTopic {
			s.t.Errorf("%+v: bucket %+v, want %+v", r, b, want)
			continue
		}
		for name, n := range b.Topics {
			if n != want.Topics[name] {
				s.t.Errorf("%+v: bucket %+v, want %+v", r, b, want)
			}
		}
	}
}

// TestTimelineSteps: a step that nobody chose is a round one, and begins at full
// hours and days.
func TestTimelineSteps(t *testing.T) {
	for minutes, want := range map[int64]int64{
		0: 1, 1: 1, 120: 1, 121: 5, 600: 5, 601: 15, 1800: 15, 1801: 60, 7200: 60, 7201: 360, 43_200: 360, 43_201: 1440,
		172_800: 1440, 172_801: 10_080, 120 * 10_080: 10_080, 120*10_080 + 1: 2 * 10_080,
	} {
		if got := stepFor(minutes); got != want {
			t.Errorf("step for %d minutes: %d, want %d", minutes, got, want)
		}
	}
	s := newStand(t)
	s.step(17 * time.Minute)
	empty, err := s.b.Timeline(t.Context(), TimelineRequest{})
	if err != nil || empty.Total != 0 || empty.Buckets != nil || empty.Earliest != 0 || empty.To-empty.From != 60_000 || empty.From != s.now() {
		t.Errorf("of nothing: %+v, %v", empty, err)
	}
	s.send(Message{Topic: "t", Delay: after(2 * time.Minute)}, Message{Topic: "t", Delay: after(11 * time.Hour)})
	got, err := s.b.Timeline(t.Context(), TimelineRequest{})
	if err != nil || got.Step != 15*time.Minute || got.From != standStart.Add(15*time.Minute).UnixMilli() || len(got.Buckets) != 2 {
		t.Errorf("of 11 hours: %+v, %v", got, err)
	}
}

// TestTimelineAfterAPurge: what is gone is counted no more.
func TestTimelineAfterAPurge(t *testing.T) {
	s := newStand(t)
	s.send(numbered("t", 5, func(int) Delay { return after(time.Hour) })...)
	s.send(numbered("u", 2, func(int) Delay { return after(2 * time.Hour) })...)
	if err := s.b.Cut(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.b.PurgeTopic(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	got, err := s.b.Timeline(t.Context(), TimelineRequest{ByTopic: true})
	if err != nil || got.Total != 2 || got.Earliest != s.now()+7_200_000 || len(got.Buckets) != 1 || got.Buckets[0].Topics["u"] != 2 {
		t.Errorf("after a purge: %+v, %v", got, err)
	}
	if n, err := s.b.Count(t.Context(), Filter{From: 1}); err != nil || n != 2 {
		t.Errorf("counted %d, %v; want 2", n, err)
	}
}

func TestTimelineIsChecked(t *testing.T) {
	s := newStand(t)
	s.send(Message{Topic: "t", Delay: after(300 * 24 * time.Hour)})
	for _, c := range []struct {
		r    TimelineRequest
		want error
	}{
		{TimelineRequest{Topic: "nobody"}, ErrTopicUnknown},
		{TimelineRequest{From: 10, To: 10}, ErrInvalid},
		{TimelineRequest{From: -1}, ErrInvalid},
		{TimelineRequest{Step: time.Second}, ErrInvalid},
		{TimelineRequest{Step: -time.Minute}, ErrInvalid},
		{TimelineRequest{From: s.now(), Step: time.Minute}, ErrTooMany},
		{TimelineRequest{From: math.MaxInt64 - 1, To: math.MaxInt64}, nil},
		{TimelineRequest{From: 1, To: math.MaxInt64}, nil},
	} {
		if _, err := s.b.Timeline(t.Context(), c.r); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.r, err, c.want)
		}
	}
}
