package broker

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

func (s *stand) pull(r PullRequest, next record.Offset, want ...string) PullResult {
	s.t.Helper()
	if r.Topic == "" {
		r.Topic = "orders"
	}
	got, err := s.b.Pull(s.t.Context(), r)
	if err != nil {
		s.t.Fatalf("Pull %+v: %v", r, err)
	}
	var all []string
	for _, v := range got.Messages {
		all = append(all, string(v.Body))
	}
	if !slices.Equal(all, want) || got.Next != next {
		s.t.Errorf("Pull %+v: %q and next %d, want %q and %d", r, all, got.Next, want, next)
	}
	return got
}

// TestPull: by offset, count, size and tag, without anybody's progress.
func TestPull(t *testing.T) {
	s := newStand(t)
	s.send(tagged("a"), tagged("b"), tagged("a"), tagged("c"))
	s.pull(PullRequest{}, 1, "a")
	got := s.pull(PullRequest{Offset: 1, Max: 10}, 4, "b", "a", "c")
	if v := got.Messages[0]; v.Offset != 1 || !v.HasOffset || v.State != StateReady || v.VisibleAt == 0 || got.Low != 0 || got.High != 4 || got.Moved {
		t.Errorf("%+v of %+v", v, got)
	}
	s.pull(PullRequest{Max: 10, MaxBytes: 1}, 1, "a")
	s.pull(PullRequest{Max: 10, Tags: "c||a"}, 4, "a", "a", "c")
	s.pull(PullRequest{Max: 1, Tags: "c"}, 4, "c")
	s.pull(PullRequest{Max: 10, Tags: "nothing"}, 4)
	s.pull(PullRequest{Offset: 4}, 4)
	if got := s.pull(PullRequest{Offset: 9}, 4); !got.Moved || got.Skipped != 0 {
		t.Errorf("beyond the end: %+v, want it moved", got)
	}
	for what, err := range map[string]error{
		"queue": second(s.b.Pull(t.Context(), PullRequest{Topic: "orders", Queue: 1})),
		"max":   second(s.b.Pull(t.Context(), PullRequest{Topic: "orders", Max: MaxReceive + 1})),
		"wait":  second(s.b.Pull(t.Context(), PullRequest{Topic: "orders", Wait: -1})),
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want %v", what, err, ErrInvalid)
		}
	}
	if _, err := s.b.Pull(t.Context(), PullRequest{Topic: "nowhere"}); !errors.Is(err, ErrTopicUnknown) {
		t.Errorf("unknown topic: %v", err)
	}
}

// TestPositions: what a pull consumer commits is there after a crash and counts
// as finished; before that its group's start is.
func TestPositions(t *testing.T) {
	s := newStand(t)
	s.send(order("0"), order("1"))
	s.step(time.Minute)
	at := s.now()
	s.send(order("2"), order("3"))
	s.configure(GroupConfig{Start: StartAt, StartTime: at})
	position := func(want record.Offset) {
		t.Helper()
		got, err := s.b.Position("g", "orders")
		if err != nil || !maps.Equal(got, map[int]record.Offset{0: want}) {
			t.Errorf("Position: %v, %v; want %d", got, err, want)
		}
	}
	position(2)
	if err := s.b.Commit(t.Context(), "g", "orders", map[int]record.Offset{0: 3}); err != nil {
		t.Fatal(err)
	}
	s.kill()
	position(3)
	if g := s.group("g").Topics[0]; g.Lag != 1 || g.Queues[0].Pulled != 3 {
		t.Errorf("%+v, want lag 1", g)
	}
	if err := s.b.Commit(t.Context(), "g", "orders", map[int]record.Offset{1: 3}); !errors.Is(err, ErrInvalid) {
		t.Errorf("Commit of another queue: %v", err)
	}
	if o, err := s.b.SearchOffset("orders", 0, at); err != nil || o != 2 {
		t.Errorf("SearchOffset: %d, %v; want 2", o, err)
	}
}

// TestPullWaits: on the bell, until its time is over, and not for what does not
// match.
func TestPullWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubble(t)
		s.send(tagged("a"))
		began := time.Now()
		m := tagged("b")
		m.Delay = after(5 * time.Second)
		s.send(m)
		s.pull(PullRequest{Tags: "b", Wait: time.Minute}, 2, "b")
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("waited %v, want 5s", took)
		}
		began = time.Now()
		s.pull(PullRequest{Offset: 2, Wait: 7 * time.Second}, 2)
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("waited %v for nothing, want 7s", took)
		}
	})
}

// keeping opens a stand whose broker keeps what is visible for an hour, in small
// segments.
func keeping(t *testing.T) *stand {
	t.Helper()
	s := newStand(t)
	s.b.Close()
	s.disk = fs.NewFaulty(fs.NewMem())
	b, err := Open(t.Context(), Options{Queues: 1, Engine: engine.Options{
		FS: s.disk, Dir: "data", Clock: s.clock, Rand: rand.NewChaCha8([32]byte{}), SegmentBytes: 64 << 10, CacheBytes: 1 << 20,
		Retention: engine.Retention{Time: time.Hour},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.b = b
	return s
}

// trim lets retention take what is older than an hour.
func (s *stand) trim() {
	s.t.Helper()
	s.until(10*time.Millisecond, func() bool { return s.b.e.Kept().Trim > 0 })
}

// fill sends n messages of a kilobyte.
func (s *stand) fill(n int) {
	s.t.Helper()
	for range n {
		s.send(Message{Topic: "orders", Body: make([]byte, 1000)})
	}
}

// TestRetentionClips: a consumer slower than retention goes on with what is kept,
// and sees how much it missed. Its leases are gone.
func TestRetentionClips(t *testing.T) {
	s := keeping(t)
	s.fill(100)
	got := s.take(ReceiveRequest{Max: 10, Invisible: MaxInvisible})
	if err := s.b.Commit(t.Context(), "puller", "orders", map[int]record.Offset{0: 5}); err != nil {
		t.Fatal(err)
	}
	s.ack(got[0])
	s.step(2 * time.Hour)
	s.fill(100)
	s.trim()
	low, next, err := s.b.e.Bounds(s.b.e.TopicNamed("orders").First())
	if err != nil || low == 0 || next != 200 {
		t.Fatalf("bounds %d to %d, %v", low, next, err)
	}
	if q := s.group("g").Topics[0].Queues[0]; q.Low != low || q.Base != low || q.Skipped != uint64(low)-1 || q.Lag != int64(next-low) || q.Inflight != 0 {
		t.Errorf("queue %+v, want it moved to %d with %d skipped", q, low, low-1)
	}
	if q := s.group("puller").Topics[0].Queues[0]; q.Skipped != uint64(low)-5 || q.Pulled != low {
		t.Errorf("queue %+v, want it moved to %d with %d skipped", q, low, low-5)
	}
	if _, err := s.b.Nack(t.Context(), got[1].Lease, nil); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("Nack of what is gone: %v, want %v", err, ErrLeaseLost)
	}
	if _, err := s.b.Bury(t.Context(), got[1].Lease, ""); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("Bury of what is gone: %v, want %v", err, ErrLeaseLost)
	}
	s.ack(got[2]) // it was worked on; nothing is to be said
	if d := s.take(ReceiveRequest{Max: 1}); d[0].Offset != low || d[0].Attempt != 1 {
		t.Errorf("offset %d at attempt %d, want %d at 1", d[0].Offset, d[0].Attempt, low)
	}
	pulled, err := s.b.Pull(t.Context(), PullRequest{Topic: "orders", Offset: 5})
	if err != nil || !pulled.Moved || pulled.Skipped != uint64(low)-5 || pulled.Low != low || pulled.Next != low+1 || len(pulled.Messages) != 1 {
		t.Errorf("Pull: %+v, %v", pulled, err)
	}
}

// TestLongBackoff: a back-off beyond what is kept sends the message again, for
// this group alone, and its attempts go on.
func TestLongBackoff(t *testing.T) {
	s := keeping(t)
	s.configure(GroupConfig{MaxAttempts: 4, Backoff: []time.Duration{time.Second, 3 * time.Hour}})
	sent := s.send(order("x"))[0]
	s.nack(s.one(ReceiveRequest{}))
	s.step(time.Second)
	r := s.nack(s.one(ReceiveRequest{}))
	if r.Due != s.now()+(3*time.Hour).Milliseconds() {
		t.Fatalf("nack: %+v", r)
	}
	s.step(time.Minute)
	s.fill(100)
	s.ack(s.take(ReceiveRequest{Max: MaxReceive})...)
	s.step(3*time.Hour - time.Minute - time.Millisecond)
	s.none(ReceiveRequest{})
	s.step(time.Millisecond)
	d := s.one(ReceiveRequest{})
	if d.Attempt != 3 || d.Topic != "orders" || d.Origin != sent.ID || d.OriginTopic != "orders" || d.Group != "g" || string(d.Body) != "x" || d.ID == sent.ID {
		t.Errorf("delivery %+v", d)
	}
	if v := s.look(d.ID); v.Topic != "orders" || v.State != StateInflight || v.Attempt != 3 || v.Origin != sent.ID {
		t.Errorf("looked at: %+v", v)
	}
	if got := s.take(ReceiveRequest{Group: "h"}); len(got) != 100 && len(got) != 101 {
		t.Errorf("another group has %d messages, want those of the topic only", len(got))
	}
	zero := time.Duration(0)
	if r, err := s.b.Nack(t.Context(), d.Lease, &zero); err != nil || r.Dead {
		t.Fatalf("Nack: %+v, %v", r, err)
	}
	if d = s.one(ReceiveRequest{}); d.Attempt != 4 {
		t.Errorf("attempt %d, want 4", d.Attempt)
	}
	if r := s.nack(d); !r.Dead {
		t.Errorf("nack of the last attempt: %+v", r)
	}
	if all := s.dead(); len(all) != 1 || all[0].Origin != sent.ID || all[0].OriginTopic != "orders" || all[0].Attempt != 4 {
		t.Errorf("dead letters %+v", all)
	}
}
