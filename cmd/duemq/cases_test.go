//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// punctual is how late a message may be received that falls due while the server
// runs, in the worst case of a busy machine.
const punctual = 1500 * time.Millisecond

// A trial is one case against real processes, with real time: what was sent and
// acknowledged, and how late it may be received.
type trial struct {
	t        *testing.T
	c        *client.Client // of the server that runs now
	levels   []time.Duration
	ready    time.Time     // when that server was ready
	bound    time.Duration // from the due, if that is after ready
	overdue  time.Duration // from ready, if the due is before
	due      map[string]time.Time
	accepted int
	worst    time.Duration
}

// newTrial makes a trial of a server.
func newTrial(t *testing.T, s *server) *trial {
	t.Helper()
	r := &trial{t: t, bound: punctual, overdue: punctual, due: make(map[string]time.Time)}
	r.dial(s)
	return r
}

// dial talks to a server from now on, which has just become ready.
func (r *trial) dial(s *server) {
	r.t.Helper()
	r.ready = time.Now()
	c, err := client.New(s.url, client.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(c.Close)
	r.c = c
}

// send sends a batch, all of which must be accepted and wait until the due that
// was asked for: as it was said if that was an instant, else counted from a moment
// between question and answer. It gives their receipts.
func (r *trial) send(msgs []wire.Send) []wire.Receipt {
	r.t.Helper()
	before := time.Now()
	reply, err := r.c.Batch(r.t.Context(), msgs)
	after := time.Now()
	if err != nil || reply.Accepted != len(msgs) || len(reply.Results) != len(msgs) {
		r.t.Fatalf("batch of %d: %d accepted, %v", len(msgs), reply.Accepted, err)
	}
	receipts := make([]wire.Receipt, 0, len(msgs))
	for i, result := range reply.Results {
		receipts = append(receipts, *result.Receipt)
		earliest, latest := r.asked(&msgs[i], before, after)
		due := result.Receipt.DeliverAt.Time()
		if result.Receipt.State != wire.StateWaiting || due.Before(earliest) || due.After(latest) {
			r.t.Errorf("%+v: receipt %+v, want it to wait until %v", msgs[i], result.Receipt, earliest)
		}
		r.due[result.Receipt.ID] = due
	}
	if r.accepted += len(msgs); len(r.due) != r.accepted {
		r.t.Errorf("%d distinct ids of %d messages", len(r.due), r.accepted)
	}
	return receipts
}

// cancelled has a message never be received from now on.
func (r *trial) cancelled(id string) {
	delete(r.due, id)
	r.accepted--
}

// asked gives the dues that a message may have which was sent between two
// instants. The server counts milliseconds and rounds up.
func (r *trial) asked(m *wire.Send, before, after time.Time) (earliest, latest time.Time) {
	r.t.Helper()
	if m.At != "" {
		due, err := wire.ParseInstant(m.At, nil)
		if err != nil {
			r.t.Fatal(err)
		}
		return due, due
	}
	level, err := strconv.Atoi(string(m.Level))
	if err != nil {
		r.t.Fatal(err)
	}
	delay := r.levels[level-1]
	return before.Add(delay), after.Add(delay + time.Millisecond)
}

// none waits until an instant with a receiver that must get nothing.
func (r *trial) none(until time.Time) {
	r.t.Helper()
	got, err := r.c.Receive(r.t.Context(), "orders", wire.Receive{Group: "g", Wait: wire.Duration(max(0, time.Until(until)))})
	if err != nil || len(got) > 0 {
		r.t.Fatalf("received %+v, %v; want nothing yet", got, err)
	}
}

// all receives and acknowledges what was sent: each message once, none before
// its due and none late. Then nothing is left.
func (r *trial) all() {
	r.t.Helper()
	end := r.ready.Add(r.overdue)
	for _, due := range r.due {
		if due = due.Add(r.bound); due.After(end) {
			end = due
		}
	}
	for len(r.due) > 0 && time.Now().Before(end) {
		got, err := r.c.Receive(r.t.Context(), "orders", wire.Receive{Group: "g", Max: 1000, Wait: wire.Duration(max(0, time.Until(end)))})
		at := time.Now()
		if err != nil {
			r.t.Fatalf("receive: %v", err)
		}
		var leases []string
		for i := range got {
			r.received(&got[i], at)
			leases = append(leases, got[i].Lease)
		}
		if len(leases) == 0 {
			continue
		}
		if a, err := r.c.AckAll(r.t.Context(), leases); err != nil || a.Refused > 0 {
			r.t.Fatalf("ack of %d: %d refused, %v", len(leases), a.Refused, err)
		}
	}
	if len(r.due) > 0 {
		r.t.Fatalf("%d of %d messages were not received", len(r.due), r.accepted)
	}
	r.none(time.Now().Add(200 * time.Millisecond))
	if n, err := r.c.Count(r.t.Context(), wire.PendingQuery{}); n != 0 || err != nil {
		r.t.Errorf("%d wait, %v; want nothing left", n, err)
	}
	r.t.Logf("%d messages, received %v late at most", r.accepted, r.worst)
}

// received judges one message, received at an instant.
func (r *trial) received(m *wire.Message, at time.Time) {
	r.t.Helper()
	due, ok := r.due[m.ID]
	if !ok {
		r.t.Errorf("message %s: received twice, or never acknowledged to its sender", m.ID)
		return
	}
	delete(r.due, m.ID)
	from, bound := due, r.bound
	if due.Before(r.ready) {
		from, bound = r.ready, r.overdue
	}
	late := at.Sub(from)
	r.worst = max(r.worst, late)
	switch {
	case at.Before(due), m.VisibleAt.Time().Before(due):
		r.t.Errorf("message %s: early, received at %v and visible at %v, due %v", m.ID, at, m.VisibleAt, due)
	case late > bound:
		r.t.Errorf("message %s: received %v after %v, want %v at most", m.ID, late, from, bound)
	case !m.DeliverAt.Time().Equal(due) || m.Attempt != 1:
		r.t.Errorf("message %s: due %v and attempt %d, want %v and 1", m.ID, m.DeliverAt, m.Attempt, due)
	}
}

// at has a message delivered at an instant, cut to the millisecond.
func at(due time.Time) wire.Send {
	return wire.Send{Topic: "orders", At: strconv.FormatInt(due.UnixMilli(), 10)}
}

// seeded gives the random numbers of a case, and a length of time between two.
func seeded(seed uint64) func(from, to time.Duration) time.Duration {
	rng := rand.New(rand.NewPCG(seed, 0))
	return func(from, to time.Duration) time.Duration { return from + time.Duration(rng.Int64N(int64(to-from))) }
}

// TestCaseLevelsShort is case G1 in its short form: one message of each of the
// levels 1, 2 and 3 of RocketMQ's table, in one burst, while a consumer waits.
// Each is received once, at its delay of 1, 5 and 10 s.
func TestCaseLevelsShort(t *testing.T) {
	t.Parallel()
	r := newTrial(t, serve(t, t.TempDir()))
	r.levels = []time.Duration{time.Second, 5 * time.Second, 10 * time.Second}
	var msgs []wire.Send
	for level := range r.levels {
		msgs = append(msgs, wire.Send{Topic: "orders", Level: wire.Level(strconv.Itoa(level + 1))})
	}
	r.send(msgs)
	r.all()
}

// TestCasePrecision is case G4: 400 messages for instants between 1 and 6 s from
// now, 100 of them on an exact second. 400 distinct receipts, none before its due
// and none more than 1.5 s after it.
func TestCasePrecision(t *testing.T) {
	t.Parallel()
	r := newTrial(t, serve(t, t.TempDir()))
	between, now := seeded(4), time.Now()
	msgs := make([]wire.Send, 400)
	for i := range msgs {
		due := now.Add(between(time.Second, 6*time.Second))
		if i%4 == 0 {
			due = now.Add(between(2*time.Second, 6*time.Second)).Truncate(time.Second)
		}
		msgs[i] = at(due)
	}
	r.send(msgs)
	r.all()
}

// TestCaseCrashWithPending is case G11: 2,000 messages for instants and 2,000 of
// levels, due 4 to 9 s from now and all acknowledged; the process is killed after
// 2 s and started again at once. 4,000 distinct receipts, none before its due,
// none twice, all within 2 s of their due or of the server's being ready.
func TestCaseCrashWithPending(t *testing.T) {
	t.Parallel()
	data, table := t.TempDir(), "4s 5s 6s 7s 8s 9s"
	s := serve(t, data, "--levels", table)
	r := newTrial(t, s)
	r.bound, r.overdue = 2*time.Second, 2*time.Second
	for d := 4 * time.Second; d <= 9*time.Second; d += time.Second {
		r.levels = append(r.levels, d)
	}
	between, start := seeded(11), time.Now()
	for range 8 {
		msgs := make([]wire.Send, 500)
		for i := range msgs {
			if i%2 == 0 {
				msgs[i] = at(start.Add(between(4*time.Second, 9*time.Second)))
			} else {
				msgs[i] = wire.Send{Topic: "orders", Level: wire.Level(strconv.Itoa(1 + i/2%len(r.levels)))}
			}
		}
		r.send(msgs)
	}
	r.none(start.Add(2 * time.Second))
	s.signal(syscall.SIGKILL)
	if _, err := s.wait(); err == nil {
		t.Error("killed, and it ended well")
	}
	r.dial(serve(t, data, "--levels", table))
	r.all()
}

// TestCaseDueWhileDown is case G12: 500 messages due 2 to 5 s from now and one due
// in 12 s; the process ends after 1 s and is started at 7 s. The 500 are received
// within 5 s of its being ready, each once, and the one at its due.
func TestCaseDueWhileDown(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(fmt.Sprint(sig), func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			s := serve(t, data)
			r := newTrial(t, s)
			r.overdue = 5 * time.Second
			between, start := seeded(12), time.Now()
			msgs := []wire.Send{at(start.Add(12 * time.Second))}
			for range 500 {
				msgs = append(msgs, at(start.Add(between(2*time.Second, 5*time.Second))))
			}
			r.send(msgs)
			r.none(start.Add(time.Second))
			s.signal(sig)
			if _, err := s.wait(); (err == nil) != (sig == syscall.SIGTERM) {
				t.Errorf("ended with %v after %v\n%s", err, sig, &s.stderr)
			}
			<-time.After(time.Until(start.Add(7 * time.Second)))
			r.dial(serve(t, data))
			r.all()
		})
	}
}
