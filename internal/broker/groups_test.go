package broker

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/group"
)

func TestGroupConfig(t *testing.T) {
	s := newStand(t)
	c := GroupConfig{
		Start: StartLatest, MaxAttempts: 3, Backoff: []time.Duration{time.Second, 90 * time.Second},
		InflightMax: 7, Invisible: 5 * time.Minute,
	}
	made, err := s.b.CreateGroup(t.Context(), "g", c)
	if err != nil || !made.Config.equal(&c) {
		t.Fatalf("CreateGroup: %+v, %v", made, err)
	}
	if again, err := s.b.CreateGroup(t.Context(), "g", c); err != nil || !again.Config.equal(&c) {
		t.Errorf("CreateGroup again: %+v, %v", again, err)
	}
	if _, err := s.b.CreateGroup(t.Context(), "g", GroupConfig{}); !errors.Is(err, ErrExists) {
		t.Errorf("CreateGroup, otherwise: %v, want %v", err, ErrExists)
	}
	s.kill()
	if g := s.group("g"); !g.Config.equal(&c) {
		t.Errorf("after a restart: %+v, want %+v", g.Config, c)
	}
	changed, err := s.b.UpdateGroup(t.Context(), "g", GroupConfig{MaxAttempts: 4})
	if err != nil || changed.Config.MaxAttempts != 4 || changed.Config.Start != StartEarliest || changed.Config.Invisible != DefaultInvisible ||
		changed.Config.InflightMax != group.MaxInflight || len(changed.Config.Backoff) != 16 || changed.Config.Backoff[0] != 10*time.Second {
		t.Errorf("UpdateGroup: %+v, %v", changed.Config, err)
	}
	s.send(order("x"))
	s.take(ReceiveRequest{Group: "h"})
	list := s.b.GroupList()
	if len(list) != 2 || list[0].Name != "g" || list[1].Name != "h" || list[1].Topics != nil || list[1].Config.MaxAttempts != DefaultMaxAttempts {
		t.Errorf("GroupList: %+v", list)
	}
}

func TestGroupRefusals(t *testing.T) {
	s := newStand(t)
	for what, c := range map[string]GroupConfig{
		"start":     {Start: 9},
		"attempts":  {MaxAttempts: -1},
		"more":      {MaxAttempts: MaxAttempts + 1},
		"back-off":  {Backoff: []time.Duration{-1}},
		"long":      {Backoff: []time.Duration{MaxInvisible + 1}},
		"steps":     {Backoff: make([]time.Duration, MaxBackoffs+1)},
		"in flight": {InflightMax: group.MaxInflight + 1},
		"invisible": {Invisible: MaxInvisible + 1},
		"time":      {Start: StartAt, StartTime: -1},
	} {
		if _, err := s.b.CreateGroup(t.Context(), "g", c); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want %v", what, err, ErrInvalid)
		}
	}
	for name, want := range map[string]error{"": ErrInvalid, "a+b": ErrInvalid, strings.Repeat("x", 121): ErrInvalid, "%DLQ%": ErrForbidden} {
		if _, err := s.b.CreateGroup(t.Context(), name, GroupConfig{}); !errors.Is(err, want) {
			t.Errorf("CreateGroup %q: %v, want %v", name, err, want)
		}
		if _, err := s.b.Receive(t.Context(), ReceiveRequest{Topic: "orders", Group: name}); !errors.Is(err, want) {
			t.Errorf("Receive of group %q: %v, want %v", name, err, want)
		}
	}
	for what, err := range map[string]error{
		"Group":       second(s.b.Group("g")),
		"UpdateGroup": second(s.b.UpdateGroup(t.Context(), "g", GroupConfig{})),
		"DeleteGroup": s.b.DeleteGroup(t.Context(), "g"),
		"Reset":       second(s.b.Reset(t.Context(), "g", "orders", Position{Kind: PositionLatest}, false)),
		"DeadLetters": third(s.b.DeadLetters(t.Context(), "g", "", 0)),
		"Redrive":     second(s.b.Redrive(t.Context(), RedriveRequest{Group: "g"})),
		"PurgeDead":   second(s.b.PurgeDead(t.Context(), "g", nil)),
	} {
		if !errors.Is(err, ErrGroupUnknown) {
			t.Errorf("%s: %v, want %v", what, err, ErrGroupUnknown)
		}
	}
	for _, topic := range []string{"%RETRY%g+orders", "%DLQ%g", "SCHEDULE_TOPIC_XXXX"} {
		if _, err := s.b.Receive(t.Context(), ReceiveRequest{Topic: topic, Group: "g"}); !errors.Is(err, ErrForbidden) {
			t.Errorf("Receive of %s: %v, want %v", topic, err, ErrForbidden)
		}
		if r, err := s.b.Send(t.Context(), []Message{{Topic: topic}}); err != nil || !errors.Is(r[0].Err, ErrForbidden) {
			t.Errorf("Send to %s: %v, %v, want %v", topic, r, err, ErrForbidden)
		}
	}
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }

// TestStartPolicies: earliest has all, latest what comes after its first
// receive, a time what became visible from then on; and that stays so.
func TestStartPolicies(t *testing.T) {
	s := newStand(t)
	s.send(order("0"))
	s.step(time.Minute)
	from := s.now()
	s.send(order("1"))
	s.step(time.Minute)
	for name, c := range map[string]GroupConfig{"earliest": {}, "latest": {Start: StartLatest}, "time": {Start: StartAt, StartTime: from}} {
		if _, err := s.b.CreateGroup(t.Context(), name, c); err != nil {
			t.Fatal(err)
		}
	}
	s.wantBodies(s.take(ReceiveRequest{Group: "earliest"}), "0", "1")
	s.wantBodies(s.take(ReceiveRequest{Group: "time"}), "1")
	s.none(ReceiveRequest{Group: "latest"})
	s.send(order("2"))
	s.kill()
	s.send(order("3"))
	s.wantBodies(s.take(ReceiveRequest{Group: "latest"}), "2", "3")
	if v := s.look(s.send(order("4"))[0].ID); v.State != StateReady {
		t.Errorf("state %s, want %s", v.State, StateReady)
	}
}

// TestReset: in every direction, with attempts and leases forgotten, and a dry
// run that changes nothing.
func TestReset(t *testing.T) {
	s := newStand(t)
	s.send(order("0"), order("1"))
	s.step(time.Minute)
	at := s.now()
	s.send(order("2"), order("3"))
	got := s.take(ReceiveRequest{})
	s.ack(got[0], got[2])
	s.nack(got[1])
	dry, err := s.b.Reset(t.Context(), "g", "orders", Position{Kind: PositionEarliest}, true)
	if err != nil || len(dry) != 1 || dry[0].Base != 1 || dry[0].To != 0 || dry[0].Lag != 2 || dry[0].Next != 4 {
		t.Fatalf("dry run: %+v, %v", dry, err)
	}
	s.none(ReceiveRequest{})
	for _, c := range []struct {
		to   Position
		want []string
	}{
		{Position{Kind: PositionEarliest}, []string{"0", "1", "2", "3"}},
		{Position{PositionAt, at}, []string{"2", "3"}},
		{Position{PositionOffset, 1}, []string{"1", "2", "3"}},
		{Position{PositionOffset, 100}, nil},
		{Position{Kind: PositionLatest}, nil},
		{Position{PositionOffset, 3}, []string{"3"}},
	} {
		if _, err := s.b.Reset(t.Context(), "g", "orders", c.to, false); err != nil {
			t.Fatalf("Reset to %+v: %v", c.to, err)
		}
		got := s.take(ReceiveRequest{})
		s.wantBodies(got, c.want...)
		for _, d := range got {
			if d.Attempt != 1 {
				t.Errorf("after a reset to %+v: attempt %d, want 1", c.to, d.Attempt)
			}
		}
	}
	for _, to := range []Position{{}, {Kind: 9}, {PositionOffset, -1}} {
		if _, err := s.b.Reset(t.Context(), "g", "orders", to, true); !errors.Is(err, ErrInvalid) {
			t.Errorf("Reset to %+v: %v, want %v", to, err, ErrInvalid)
		}
	}
}

// TestDeleteGroup: with its positions, its dead letters and its retries; who has
// its name afterwards gets none of them.
func TestDeleteGroup(t *testing.T) {
	s := newStand(t)
	s.send(order("0"), order("1"))
	got := s.take(ReceiveRequest{})
	s.ack(got[0])
	if _, err := s.b.Bury(t.Context(), got[1].Lease, ""); err != nil {
		t.Fatal(err)
	}
	op, err := s.b.Redrive(t.Context(), RedriveRequest{Group: "g", Delay: after(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	s.finish(op.ID, 1)
	if err := s.b.DeleteGroup(t.Context(), "g"); err != nil {
		t.Fatalf("DeleteGroup: %v", err)
	}
	if list := s.b.TopicList(true); len(list) != 1 {
		t.Errorf("topics left: %+v", list)
	}
	if errs, err := s.b.Ack(t.Context(), []string{got[0].Lease}); err != nil || !errors.Is(errs[0], ErrInvalid) {
		t.Errorf("Ack for a deleted group: %v, %v", errs, err)
	}
	s.kill()
	s.wantBodies(s.take(ReceiveRequest{}), "0", "1")
	s.step(2 * time.Hour)
	if got := s.take(ReceiveRequest{}); !slices.Equal(bodies(got), []string{"0", "1"}) || len(s.dead()) != 0 {
		t.Errorf("the new group has %q and dead letters %+v", bodies(got), s.dead())
	}
}

// TestQueueLocks: one client at a time, renewed by itself, ended by time or by
// its word.
func TestQueueLocks(t *testing.T) {
	s := newStand(t)
	if _, err := s.b.CreateTopic(t.Context(), "orders", 4, nil); err != nil {
		t.Fatal(err)
	}
	lock := func(client string, want ...int) {
		t.Helper()
		held, err := s.b.LockQueues("g", client, "orders", []int{0, 1, 2}, 0)
		if err != nil || !slices.Equal(held, want) {
			t.Errorf("%s locks %v, %v; want %v", client, held, err, want)
		}
	}
	for _, g := range []string{"g", "h"} {
		if _, err := s.b.CreateGroup(t.Context(), g, GroupConfig{}); err != nil {
			t.Fatal(err)
		}
	}
	if held, err := s.b.LockQueues("g", "a", "orders", []int{1}, time.Hour); err != nil || len(held) != 1 {
		t.Fatalf("LockQueues: %v, %v", held, err)
	}
	lock("b", 0, 2)
	lock("a", 1)
	s.step(DefaultLock)
	lock("b", 0, 1, 2)
	lock("a")
	if err := s.b.UnlockQueues("g", "a", "orders", []int{0}); err != nil {
		t.Error(err)
	}
	lock("a")
	if err := s.b.UnlockQueues("g", "b", "orders", []int{0, 3}); err != nil {
		t.Error(err)
	}
	lock("a", 0)
	if held, err := s.b.LockQueues("h", "a", "orders", []int{1}, 0); err != nil || len(held) != 1 {
		t.Errorf("another group: %v, %v", held, err)
	}
	for what, err := range map[string]error{
		"client": second(s.b.LockQueues("g", "", "orders", nil, 0)),
		"queue":  second(s.b.LockQueues("g", "a", "orders", []int{4}, 0)),
		"time":   second(s.b.LockQueues("g", "a", "orders", nil, MaxLock+1)),
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want %v", what, err, ErrInvalid)
		}
	}
	if _, err := s.b.LockQueues("g", "a", "nowhere", nil, 0); !errors.Is(err, ErrTopicUnknown) {
		t.Errorf("unknown topic: %v", err)
	}
}
