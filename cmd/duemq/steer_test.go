//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/duemq/duemq"
	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// recall is what case G7 is made of: 101 messages that fall due within one second,
// some seconds ahead, the 51st of which is cancelled 2 s after they were sent.
const (
	recalled   = 50
	recallable = 101
	recallWhen = 2 * time.Second
	recallSpan = 100 * time.Millisecond // ten dues to a second, each of ten messages
)

// recallDue is the due of a message of G7, which has the others with it.
func recallDue(second time.Time, i int) time.Time {
	return second.Add(time.Duration(i%10) * recallSpan)
}

// TestCaseRecall is case G7 over HTTP: 101 messages due in the same second, the
// 51st cancelled at +2 s by its handle. 100 are received, that one never is.
func TestCaseRecall(t *testing.T) {
	t.Parallel()
	r := newTrial(t, serve(t, t.TempDir()))
	start := time.Now()
	second := start.Add(5 * time.Second).Truncate(time.Second)
	msgs := make([]wire.Send, recallable)
	for i := range msgs {
		msgs[i] = at(recallDue(second, i))
	}
	sent := r.send(msgs)[recalled]
	r.none(start.Add(recallWhen))
	a, err := r.c.Cancel(t.Context(), sent.Handle)
	if err != nil || a.ID != sent.ID || a.State != wire.StateCancelled {
		t.Fatalf("cancel of %s: %+v, %v", sent.ID, a, err)
	}
	r.cancelled(sent.ID)
	r.all()
	r.none(second.Add(4 * time.Second))
	r.gone(sent.Handle)
}

// gone looks at a message that was cancelled, and cancels it once more.
func (r *trial) gone(handle string) {
	r.t.Helper()
	if m, err := r.c.Message(r.t.Context(), handle); err != nil || m.State != wire.StateCancelled {
		r.t.Errorf("looked at afterwards: %+v, %v; want it cancelled", m, err)
	}
	if _, err := r.c.Cancel(r.t.Context(), handle); client.CodeOf(err) != wire.CodeAlreadyCancelled {
		r.t.Errorf("cancelled again: %v, want %s", err, wire.CodeAlreadyCancelled)
	}
}

// TestCaseRecallLibrary is case G7 with the store in the process.
func TestCaseRecallLibrary(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	q := open(t, t.TempDir())
	start := time.Now()
	second := start.Add(5 * time.Second).Truncate(time.Second)
	msgs := make([]duemq.Message, recallable)
	for i := range msgs {
		msgs[i] = duemq.Message{Topic: "orders", At: recallDue(second, i)}
	}
	sent, err := q.SendBatch(ctx, msgs)
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Until(start.Add(recallWhen)))
	if err := q.Cancel(ctx, sent[recalled].Handle); err != nil {
		t.Fatal(err)
	}
	due := make(map[string]time.Time)
	for i, s := range sent {
		if i != recalled {
			due[s.ID] = recallDue(second, i)
		}
	}
	for m, err := range q.Receive(ctx, "orders", duemq.Group("g"), duemq.Max(recallable), duemq.Wait(time.Until(second.Add(4*time.Second)))) {
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		want, ok := due[m.ID]
		if late := now.Sub(want); !ok || late < 0 || late > punctual || m.VisibleAt.Before(want) {
			t.Errorf("message %s received at %v, visible %v, due %v; cancelled was %s", m.ID, now, m.VisibleAt, want, sent[recalled].ID)
		}
		delete(due, m.ID)
		if err := m.Ack(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if len(due) > 0 {
		t.Errorf("%d messages were not received", len(due))
	}
	if m, err := q.Get(ctx, sent[recalled].ID); err != nil || m.State != duemq.StateCancelled {
		t.Errorf("looked at afterwards: %+v, %v; want it cancelled", m, err)
	}
}

// open opens a store in this process until the test ends.
func open(t *testing.T, dir string, opts ...duemq.Option) *duemq.Queue {
	t.Helper()
	q, err := duemq.Open(t.Context(), dir, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

// TestCaseChain moves two messages twice, kills the server, cancels one of them by
// the handle that it was sent with, and kills the server again. The other one is
// received at its last due, once, and the cancelled one never.
func TestCaseChain(t *testing.T) {
	t.Parallel()
	ctx, data := t.Context(), t.TempDir()
	s := serve(t, data)
	r := newTrial(t, s)
	start := time.Now()
	due := start.Add(7 * time.Second).Truncate(time.Millisecond)
	sent := r.send([]wire.Send{at(start.Add(time.Hour)), at(start.Add(time.Hour))})
	for i := range sent {
		r.move(&sent[i], wire.Reschedule{After: "2h"})
		r.move(&sent[i], wire.Reschedule{At: at(due).At})
		r.due[sent[i].ID] = due
	}
	restart := func() {
		s.signal(syscall.SIGKILL)
		if _, err := s.wait(); err == nil {
			t.Error("killed, and it ended well")
		}
		s = serve(t, data)
		r.dial(s)
	}
	restart()
	m, err := r.c.Message(ctx, sent[0].Handle)
	if err != nil || m.ID != sent[0].ID || m.State != wire.StateWaiting || !m.DeliverAt.Time().Equal(due) {
		t.Fatalf("after a kill: %+v, %v; want it to wait until %v", m, err, due)
	}
	if a, err := r.c.Cancel(ctx, sent[0].Handle); err != nil || a.ID != sent[0].ID {
		t.Fatalf("cancel by the first handle: %+v, %v", a, err)
	}
	r.cancelled(sent[0].ID)
	restart()
	r.gone(sent[0].Handle)
	r.all()
	r.none(due.Add(2 * time.Second))
	r.gone(sent[0].Handle)
}

// move gives a message another due.
func (r *trial) move(m *wire.Receipt, to wire.Reschedule) {
	r.t.Helper()
	a, err := r.c.Reschedule(r.t.Context(), m.Handle, to)
	if err != nil || a.ID != m.ID || a.State != wire.StateWaiting {
		r.t.Fatalf("%s moved by %+v: %+v, %v", m.ID, to, a, err)
	}
}

// TestPauseAndResume pauses a topic by the command line. What falls due is held
// back, also by a server that was killed and started again, while another topic
// goes on; after resuming it is received, oldest due first.
func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	ctx, data := t.Context(), t.TempDir()
	s := serve(t, data)
	var ids []string
	for _, after := range []string{"1500ms", "1s", "500ms"} {
		ids = append([]string{strings.Fields(s.must("send", "orders", after, "--after", after, "--queue", "0"))[0]}, ids...)
	}
	if out := s.must("topic", "pause", "orders"); !strings.Contains(out, "paused") {
		t.Errorf("paused: %s", out)
	}
	r := newTrial(t, s)
	paused := time.Now()
	s.must("send", "others", "not held", "--after", "1s")
	if out := s.must("recv", "others", "--max", "1", "--wait", "10s"); !strings.Contains(out, "not held") {
		t.Errorf("of the other topic: %s", out)
	}
	r.none(paused.Add(2 * time.Second))
	s.signal(syscall.SIGKILL)
	if _, err := s.wait(); err == nil {
		t.Error("killed, and it ended well")
	}
	s = serve(t, data)
	r.dial(s)
	r.none(time.Now().Add(500 * time.Millisecond))
	if topic, err := r.c.Topic(ctx, "orders"); err != nil || !topic.Paused || topic.Held != 3 {
		t.Errorf("after a restart: %+v, %v; want it paused with 3 held back", topic, err)
	}
	if out := s.must("topic", "ls"); !strings.Contains(out, "paused") {
		t.Errorf("topic ls: %s", out)
	}
	if out := s.must("pending", "count", "--topic", "orders"); out != "3\n" {
		t.Errorf("%s wait, want the 3 that are held back", out)
	}
	resumed := time.Now()
	s.must("topic", "resume", "orders")
	for len(ids) > 0 {
		got, err := r.c.Receive(ctx, "orders", wire.Receive{Group: "g", Wait: wire.Duration(10 * time.Second)})
		if err != nil || len(got) != 1 {
			t.Fatalf("%d received, %v; %d are missing", len(got), err, len(ids))
		}
		if got[0].ID != ids[0] || got[0].VisibleAt.Time().Before(resumed.Truncate(time.Millisecond)) {
			t.Errorf("received %s, visible at %v; want %s, not before %v", got[0].ID, got[0].VisibleAt, ids[0], resumed)
		}
		if err := r.c.Ack(ctx, got[0].Lease); err != nil {
			t.Fatal(err)
		}
		ids = ids[1:]
	}
	r.none(time.Now().Add(200 * time.Millisecond))
}
