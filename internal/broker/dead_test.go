package broker

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/record"
)

// bury makes n dead letters of group g, with bodies 0, 1, 2 ...
func (s *stand) bury(n int) []View {
	s.t.Helper()
	s.send(numbered("orders", n, func(int) Delay { return Delay{} })...)
	for _, d := range s.take(ReceiveRequest{Max: n}) {
		if _, err := s.b.Bury(s.t.Context(), d.Lease, "r"); err != nil {
			s.t.Fatalf("Bury: %v", err)
		}
	}
	all := s.dead()
	if len(all) != n || s.group("g").Dead != int64(n) {
		s.t.Fatalf("%d dead letters listed, %d counted, want %d", len(all), s.group("g").Dead, n)
	}
	return all
}

func (s *stand) redrive(r RedriveRequest) Operation {
	s.t.Helper()
	r.Group = "g"
	op, err := s.b.Redrive(s.t.Context(), r)
	if err != nil {
		s.t.Fatalf("Redrive: %v", err)
	}
	return op
}

// TestRedrive: to this group alone, with attempts from the beginning and the
// same bytes; a dry run only counts.
func TestRedrive(t *testing.T) {
	s := newStand(t)
	all := s.bury(20)
	s.take(ReceiveRequest{Group: "h"}) // so that it has seen everything
	if op := s.redrive(RedriveRequest{DryRun: true}); op.Matched != 20 || len(op.Samples) != 3 || op.State != OperationDryRun || op.ID != "" {
		t.Errorf("dry run: %+v", op)
	}
	ids := []string{all[3].ID.String(), all[1].ID.String(), all[3].ID.String()}
	if op := s.redrive(RedriveRequest{DryRun: true, IDs: ids}); op.Matched != 2 || len(op.Samples) != 2 {
		t.Errorf("dry run of some: %+v", op)
	}
	op := s.redrive(RedriveRequest{IDs: ids})
	if op = s.finish(op.ID, 2); op.Matched != 2 || op.Kind != "redrive" {
		t.Errorf("%+v", op)
	}
	got := s.take(ReceiveRequest{})
	s.wantBodies(got, "1", "3")
	for _, d := range got {
		if d.Attempt != 1 || d.Topic != "orders" || d.OriginTopic != "orders" || d.Group != "g" || d.Reason != "" || d.Origin == 0 {
			t.Errorf("redriven: %+v", d.View)
		}
	}
	if v := s.look(all[1].ID); v.State != StateAcked {
		t.Errorf("the dead letter is %s, want %s", v.State, StateAcked)
	}
	s.none(ReceiveRequest{Group: "h"})
	if n := s.group("g").Dead; n != 18 || len(s.dead()) != 18 {
		t.Errorf("%d dead letters left, want 18", n)
	}
	s.ack(got[0])
	s.configureAttempts(1)
	if r := s.nack(got[1]); !r.Dead {
		t.Errorf("a redriven message that fails again: %+v, want it dead", r)
	}
	if last := s.dead()[18]; string(last.Body) != "3" || last.Origin != got[1].Origin || last.Attempt != 1 {
		t.Errorf("dead again: %+v", last)
	}
	s.finish(s.redrive(RedriveRequest{}).ID, 19)
	s.kill()
	if got := s.take(ReceiveRequest{}); len(got) != 19 || len(s.dead()) != 0 {
		t.Errorf("%d messages received after a crash, %d dead, want 19 and 0", len(got), len(s.dead()))
	}
	if op, err := s.b.Operation(op.ID); err != nil || op.Done != 2 || op.State != OperationDone {
		t.Errorf("the first operation now: %+v, %v", op, err)
	}
}

func (s *stand) configureAttempts(n int) {
	s.t.Helper()
	if _, err := s.b.UpdateGroup(s.t.Context(), "g", GroupConfig{MaxAttempts: n}); err != nil {
		s.t.Fatal(err)
	}
}

// TestRedriveLater: with a delay, for a group that begins with the latest too.
func TestRedriveLater(t *testing.T) {
	s := newStand(t)
	s.configure(GroupConfig{Start: StartLatest})
	s.none(ReceiveRequest{})
	s.bury(3)
	s.finish(s.redrive(RedriveRequest{Delay: after(time.Hour)}).ID, 3)
	s.step(time.Hour - time.Millisecond)
	s.none(ReceiveRequest{})
	s.step(time.Millisecond)
	s.wantBodies(s.take(ReceiveRequest{}), "0", "1", "2")
}

// until lets time pass until something has come about.
func (s *stand) until(step time.Duration, done func() bool) {
	s.t.Helper()
	for range 100_000 {
		if done() {
			return
		}
		s.step(step)
		runtime.Gosched()
	}
	s.t.Fatal("it never comes about")
}

// TestRedriveRate: no more than so many a second, and a restart in the middle
// goes on with exact counts.
func TestRedriveRate(t *testing.T) {
	s := newStand(t)
	s.bury(50)
	op := s.redrive(RedriveRequest{Rate: 10})
	count := func() uint64 {
		t.Helper()
		done := func() uint64 {
			now, err := s.b.Operation(op.ID)
			if err != nil {
				t.Fatal(err)
			}
			return now.Done
		}
		for {
			before, left, after := done(), s.group("g").Dead, done()
			if before != after {
				continue // it went on between the looks
			}
			if int64(after)+left != 50 {
				t.Errorf("%d done and %d left of 50", after, left)
			}
			return after
		}
	}
	began := s.now()
	for range 20 {
		s.step(100 * time.Millisecond)
		if done, limit := count(), uint64(s.now()-began)/100+2; done > limit {
			t.Fatalf("%d redriven after %d ms", done, s.now()-began)
		}
	}
	s.kill()
	s.until(10*time.Millisecond, func() bool { return count() == 50 })
	s.finish(op.ID, 50)
	if took := s.now() - began; took < 4500 {
		t.Errorf("50 at 10 a second in %d ms", took)
	}
	if got := s.take(ReceiveRequest{}); len(got) != 50 {
		t.Errorf("received %d, want each of 50 once", len(got))
	}
}

// TestRedriveStops: what it did stays done and counted.
func TestRedriveStops(t *testing.T) {
	s := newStand(t)
	s.bury(30)
	op := s.redrive(RedriveRequest{Rate: 1})
	s.until(50*time.Millisecond, func() bool { return s.group("g").Dead < 28 })
	if err := s.b.StopOperation(t.Context(), op.ID); err != nil {
		t.Fatal(err)
	}
	op, err := s.b.WaitOperation(t.Context(), op.ID)
	if err != nil || op.State != OperationStopped || op.Done < 3 || op.Done > 7 {
		t.Fatalf("%+v, %v", op, err)
	}
	s.finish(s.redrive(RedriveRequest{}).ID, 30-op.Done)
	if again, err := s.b.Operation(op.ID); err != nil || again.Done != op.Done {
		t.Errorf("after another redrive the stopped one says %d, not %d; %v", again.Done, op.Done, err)
	}
	if got := s.take(ReceiveRequest{}); len(got) != 30 {
		t.Errorf("received %d, want 30", len(got))
	}
}

// TestRetriesEndWithTheirTopic: a topic of that name gets none of what was to be
// redelivered of the one before; the dead letters stay.
func TestRetriesEndWithTheirTopic(t *testing.T) {
	for _, purge := range []bool{false, true} {
		s := newStand(t)
		all := s.bury(2)
		s.finish(s.redrive(RedriveRequest{IDs: []string{all[0].ID.String()}, Delay: after(time.Minute)}).ID, 1)
		end := s.b.DeleteTopic
		if purge {
			end = s.b.PurgeTopic
		}
		if _, _, err := end(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		s.send(order("new"))
		s.step(time.Hour)
		s.wantBodies(s.take(ReceiveRequest{}), "new")
		s.finish(s.redrive(RedriveRequest{}).ID, 1)
		s.wantBodies(s.take(ReceiveRequest{}), "1")
	}
}

// TestReceiverOutlivesAPurge: it goes on with what comes afterwards, and ends
// when the topic does.
func TestReceiverOutlivesAPurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubble(t)
		if _, err := s.b.CreateGroup(t.Context(), "g", GroupConfig{Start: StartLatest}); err != nil {
			t.Fatal(err)
		}
		s.send(order("old"))
		type answer struct {
			got []Delivery
			err error
		}
		came := make(chan answer, 1)
		wait := func() {
			go func() {
				got, err := s.b.Receive(t.Context(), ReceiveRequest{Topic: "orders", Group: "g", Wait: time.Minute})
				came <- answer{got, err}
			}()
			synctest.Wait()
		}
		wait()
		if _, _, err := s.b.PurgeTopic(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.send(order("new"))
		if a := <-came; a.err != nil || len(a.got) != 1 || string(a.got[0].Body) != "new" {
			t.Errorf("after a purge: %q, %v", bodies(a.got), a.err)
		}
		wait()
		if _, _, err := s.b.DeleteTopic(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		if a := <-came; !errors.Is(a.err, ErrTopicUnknown) || len(a.got) > 0 {
			t.Errorf("after a deletion: %q, %v; want %v", bodies(a.got), a.err, ErrTopicUnknown)
		}
	})
}

func TestPurgeDead(t *testing.T) {
	s := newStand(t)
	s.configure(GroupConfig{})
	if n, err := s.b.PurgeDead(t.Context(), "g", nil); n != 0 || err != nil {
		t.Errorf("of none: %d, %v", n, err)
	}
	all := s.bury(10)
	ids := []string{all[0].ID.String(), all[9].ID.String()}
	for _, want := range []int{2, 0} {
		if n, err := s.b.PurgeDead(t.Context(), "g", ids); n != want || err != nil {
			t.Errorf("of two: %d, %v; want %d", n, err, want)
		}
	}
	if left := s.dead(); len(left) != 8 || left[0].ID != all[1].ID {
		t.Errorf("%d left", len(left))
	}
	if op := s.redrive(RedriveRequest{IDs: ids, DryRun: true}); op.Matched != 0 {
		t.Errorf("a redrive of what is purged: %+v", op)
	}
	if n, err := s.b.PurgeDead(t.Context(), "g", nil); n != 8 || err != nil {
		t.Errorf("of all: %d, %v; want 8", n, err)
	}
	s.kill()
	if len(s.dead()) != 0 || s.group("g").Dead != 0 {
		t.Errorf("after a crash %d are left", s.group("g").Dead)
	}
	s.none(ReceiveRequest{})
}

func TestDeadRefusals(t *testing.T) {
	s := newStand(t)
	s.bury(1)
	alive := s.send(order("x"))[0]
	lease := s.one(ReceiveRequest{}).Lease
	unknown := []string{alive.ID.String()}
	for what, c := range map[string]struct{ err, want error }{
		"limit":       {third(s.b.DeadLetters(t.Context(), "g", "", MaxPage+1)), ErrInvalid},
		"cursor":      {third(s.b.DeadLetters(t.Context(), "g", "nonsense", 0)), ErrInvalid},
		"rate":        {second(s.b.Redrive(t.Context(), RedriveRequest{Group: "g", Rate: -1})), ErrInvalid},
		"delay":       {second(s.b.Redrive(t.Context(), RedriveRequest{Group: "g", Delay: after(400 * 24 * time.Hour)})), ErrDelayTooLong},
		"too far":     {second(s.b.Redrive(t.Context(), RedriveRequest{Group: "g", Delay: Delay{Kind: engine.DelayAt, Value: 1 << 60}})), ErrDelayTooLong},
		"no ids":      {second(s.b.Redrive(t.Context(), RedriveRequest{Group: "g", IDs: []string{}})), ErrInvalid},
		"purge none":  {second(s.b.PurgeDead(t.Context(), "g", []string{})), ErrInvalid},
		"alive":       {second(s.b.Redrive(t.Context(), RedriveRequest{Group: "g", IDs: unknown})), ErrUnknown},
		"purge alive": {second(s.b.PurgeDead(t.Context(), "g", unknown)), ErrUnknown},
		"no id":       {second(s.b.PurgeDead(t.Context(), "g", []string{"x"})), ErrInvalid},
		"many":        {second(s.b.PurgeDead(t.Context(), "g", make([]string, MaxPage+1))), ErrInvalid},
		"reason":      {second(s.b.Bury(t.Context(), lease, strings.Repeat("x", MaxReason+1))), ErrInvalid},
		"no lease":    {second(s.b.Bury(t.Context(), "x", "")), ErrInvalid},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", what, c.err, c.want)
		}
	}
	if page, next, err := s.b.DeadLetters(t.Context(), "g", "", 1); len(page) != 1 || next != "" || err != nil {
		t.Errorf("%d, %q, %v; want the only one and no next page", len(page), next, err)
	}
	if got := s.pull(PullRequest{Topic: "%DLQ%g", Max: 10}, 1, "0"); got.Messages[0].Group != "g" || got.Messages[0].Reason != "r" {
		t.Errorf("pulled %+v", got.Messages[0])
	}
}

// TestManyDead: more messages than one pass buries are all buried, and the good
// one among them is received.
func TestManyDead(t *testing.T) {
	s := newStand(t)
	s.configure(GroupConfig{MaxAttempts: 1, Invisible: time.Second})
	n := 3*passDead + 1
	s.send(numbered("orders", n, func(int) Delay { return Delay{} })...)
	s.take(ReceiveRequest{Max: n})
	s.step(time.Second)
	s.send(order("good"))
	var got []Delivery
	for range 10 {
		got = append(got, s.take(ReceiveRequest{Max: n + 1})...)
	}
	s.wantBodies(got, "good")
	if all := s.dead(); len(all) != n {
		t.Errorf("%d dead letters, want %d", len(all), n)
	}
}

// TestNoTwoPairsShareARetryTopic: names hold every character that may separate
// them but one.
func TestNoTwoPairsShareARetryTopic(t *testing.T) {
	seen := make(map[string]string)
	for _, p := range [][2]string{{"a", "b_c"}, {"a_b", "c"}, {"a%", "b"}, {"a", "%b"}} {
		name := retryTopic(p[0], p[1])
		pair := fmt.Sprint(p)
		if other, ok := seen[name]; ok {
			t.Errorf("%s and %s share %s", other, pair, name)
		}
		seen[name] = pair
		if g, topic, ok := parseRetry(name); !ok || g != p[0] || topic != p[1] {
			t.Errorf("%s is %q and %q", name, g, topic)
		}
	}
}

// FuzzDeadCursor: a cursor is refused, or it is the one that its own offset
// makes.
func FuzzDeadCursor(f *testing.F) {
	f.Add("")
	f.Add(appendDeadCursor(0))
	f.Add(appendDeadCursor(1<<62 - 1))
	f.Add(appendDeadCursor(1 << 62))
	f.Fuzz(func(t *testing.T, s string) {
		o, err := parseDeadCursor(s)
		if err != nil {
			refused(t, s, err)
			return
		}
		if again, err := parseDeadCursor(appendDeadCursor(o)); err != nil || again != o || o >= record.Offset(1)<<62 {
			t.Fatalf("%q is %d, whose text is %d, %v", s, o, again, err)
		}
	})
}
