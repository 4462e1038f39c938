package broker

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// take receives what there is for group g of the topic "orders".
func (s *stand) take(r ReceiveRequest) []Delivery {
	s.t.Helper()
	if r.Topic == "" {
		r.Topic = "orders"
	}
	if r.Group == "" {
		r.Group = "g"
	}
	if r.Max == 0 {
		r.Max = 100
	}
	got, err := s.b.Receive(s.t.Context(), r)
	if err != nil {
		s.t.Fatalf("Receive %+v: %v", r, err)
	}
	return got
}

// one receives exactly one message.
func (s *stand) one(r ReceiveRequest) Delivery {
	s.t.Helper()
	got := s.take(r)
	if len(got) != 1 {
		s.t.Fatalf("received %d messages, want 1", len(got))
	}
	return got[0]
}

func (s *stand) none(r ReceiveRequest) {
	s.t.Helper()
	if got := s.take(r); len(got) > 0 {
		s.t.Fatalf("received %q at attempt %d, want nothing", bodies(got), got[0].Attempt)
	}
}

func (s *stand) ack(ds ...Delivery) {
	s.t.Helper()
	leases := make([]string, len(ds))
	for i := range ds {
		leases[i] = ds[i].Lease
	}
	errs, err := s.b.Ack(s.t.Context(), leases)
	if err := errors.Join(append(errs, err)...); err != nil {
		s.t.Fatalf("Ack: %v", err)
	}
}

// nack gives a message back for the group's own back-off.
func (s *stand) nack(d Delivery) NackResult {
	s.t.Helper()
	r, err := s.b.Nack(s.t.Context(), d.Lease, nil)
	if err != nil {
		s.t.Fatalf("Nack: %v", err)
	}
	return r
}

func (s *stand) group(name string) GroupInfo {
	s.t.Helper()
	g, err := s.b.Group(name)
	if err != nil {
		s.t.Fatalf("Group: %v", err)
	}
	return g
}

func (s *stand) configure(c GroupConfig) {
	s.t.Helper()
	if _, err := s.b.CreateGroup(s.t.Context(), "g", c); err != nil {
		s.t.Fatalf("CreateGroup: %v", err)
	}
}

func (s *stand) look(id record.ID) View {
	s.t.Helper()
	v, err := s.b.Message(s.t.Context(), id.String())
	if err != nil {
		s.t.Fatalf("Message: %v", err)
	}
	return v
}

// dead lists the dead letters of group g.
func (s *stand) dead() []View {
	s.t.Helper()
	var all []View
	for cursor := ""; ; {
		page, next, err := s.b.DeadLetters(s.t.Context(), "g", cursor, 7)
		if err != nil {
			s.t.Fatalf("DeadLetters: %v", err)
		}
		all = append(all, page...)
		if cursor = next; cursor == "" {
			return all
		}
	}
}

// kill ends the process: what was written is there, synced or not.
func (s *stand) kill() {
	s.t.Helper()
	clone, err := s.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		s.t.Fatal(err)
	}
	s.b.Close()
	s.open(clone)
}

// bubble opens a broker on the clock of a test's bubble.
func bubble(t *testing.T) *stand {
	t.Helper()
	time.Sleep(time.Until(standStart)) // the bubble begins before 2020, which no broker believes
	b, err := Open(t.Context(), Options{Queues: 1, Engine: engine.Options{
		FS: fs.NewMem(), Dir: "data", Clock: clock.Real(), Rand: rand.NewChaCha8([32]byte{}), SegmentBytes: 256 << 10, CacheBytes: 1 << 20,
	}})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { b.Close() })
	return &stand{t: t, b: b}
}

func bodies(ds []Delivery) []string {
	out := make([]string, len(ds))
	for i := range ds {
		out[i] = string(ds[i].Body)
	}
	return out
}

func (s *stand) wantBodies(ds []Delivery, want ...string) {
	s.t.Helper()
	if got := bodies(ds); !slices.Equal(got, want) {
		s.t.Errorf("received %q, want %q", got, want)
	}
}

func order(body string) Message {
	return Message{Topic: "orders", Key: "k-" + body, Body: []byte(body)}
}

// TestLadder: a message that fails each time comes at 0, 10, 40 and 100 s, the
// delay levels from the third on, and then is a dead letter. Nothing of that is
// early, and it goes on where it was after a crash.
func TestLadder(t *testing.T) {
	s := newStand(t)
	s.configure(GroupConfig{MaxAttempts: 4})
	sent := s.send(Message{
		Topic: "orders", Key: "k", Tag: "t", Body: []byte("x"), Properties: []record.Property{{Name: "p", Value: "v"}},
	})[0]
	began := s.now()
	var last NackResult
	for i, at := range []time.Duration{0, 10 * time.Second, 40 * time.Second, 100 * time.Second} {
		if i > 0 {
			if want := began + at.Milliseconds(); last.Due != want || last.Dead {
				t.Fatalf("nack %d: %+v, want due %d", i, last, want)
			}
			if v := s.look(sent.ID); v.State != StateRetrying || v.NextAttempt != last.Due || v.Attempt != i {
				t.Errorf("while it waits: %s, next %d, attempt %d; want %s, %d, %d", v.State, v.NextAttempt, v.Attempt, StateRetrying, last.Due, i)
			}
			if i == 2 {
				s.kill()
			}
			s.step(time.Duration(last.Due-s.now()-1) * time.Millisecond)
			s.none(ReceiveRequest{})
			if g := s.group("g").Topics[0]; g.Retrying != 1 || g.Lag != 1 || g.Inflight != 0 {
				t.Errorf("while it waits: %+v", g)
			}
			s.step(time.Millisecond)
		}
		d := s.one(ReceiveRequest{})
		if d.Attempt != i+1 || d.ID != sent.ID {
			t.Fatalf("delivery %d: attempt %d of %v, want %v", i+1, d.Attempt, d.ID, sent.ID)
		}
		last = s.nack(d)
	}
	if !last.Dead || last.DeadID == 0 {
		t.Fatalf("the fourth nack: %+v, want it dead", last)
	}
	s.step(24 * time.Hour)
	s.none(ReceiveRequest{})
	all := s.dead()
	if len(all) != 1 {
		t.Fatalf("%d dead letters, want 1", len(all))
	}
	v := all[0]
	if v.ID != last.DeadID || v.Origin != sent.ID || v.OriginTopic != "orders" || v.Group != "g" || v.Topic != "%DLQ%g" ||
		v.Attempt != 4 || v.Reason != reasonUsedUp || v.State != StateDead ||
		string(v.Body) != "x" || v.Key != "k" || v.Tag != "t" || len(v.Properties) != 1 {
		t.Errorf("dead letter %+v", v)
	}
	if v := s.look(last.DeadID); v.State != StateDead {
		t.Errorf("looked at by its id: %s, want %s", v.State, StateDead)
	}
	if v := s.look(sent.ID); v.State != StateAcked {
		t.Errorf("the message: %s, want %s", v.State, StateAcked)
	}
	if g := s.group("g"); g.Dead != 1 || g.Topics[0].Lag != 0 {
		t.Errorf("group %+v, want 1 dead and no lag", g)
	}
}

// TestOwnBackoff: the list's last step repeats, and an explicit delay goes before
// it.
func TestOwnBackoff(t *testing.T) {
	s := newStand(t)
	s.configure(GroupConfig{Backoff: []time.Duration{time.Second, 5 * time.Second}})
	s.send(order("x"))
	for i, want := range []time.Duration{time.Second, 5 * time.Second, 5 * time.Second} {
		if got := s.nack(s.one(ReceiveRequest{})).Due - s.now(); got != want.Milliseconds() {
			t.Errorf("nack %d: after %d ms, want %v", i+1, got, want)
		}
		s.step(want)
	}
	d, zero := s.one(ReceiveRequest{}), time.Duration(0)
	if r, err := s.b.Nack(t.Context(), d.Lease, &zero); err != nil || r.Due != s.now() {
		t.Errorf("Nack for no time: %+v, %v", r, err)
	}
	if d := s.one(ReceiveRequest{}); d.Attempt != 5 {
		t.Errorf("attempt %d, want 5", d.Attempt)
	}
	if _, err := s.b.Nack(t.Context(), d.Lease, nil); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("Nack of the lease before: %v, want %v", err, ErrLeaseLost)
	}
}

// TestPoison: a message that takes its consumer and the broker down at each
// receive, before anything else is written, is a dead letter after its attempts.
func TestPoison(t *testing.T) {
	s := newStand(t)
	s.configure(GroupConfig{MaxAttempts: 5})
	s.send(order("poison"))
	for i := range 5 {
		if d := s.one(ReceiveRequest{}); d.Attempt != i+1 {
			t.Fatalf("after %d crashes: attempt %d", i, d.Attempt)
		}
		s.kill()
	}
	s.send(order("good"))
	s.wantBodies(s.take(ReceiveRequest{}), "good")
	all := s.dead()
	if len(all) != 1 || string(all[0].Body) != "poison" || all[0].Attempt != 5 {
		t.Fatalf("dead letters %+v, want the poison after 5 attempts", all)
	}
}

// TestExpiry: a lease that runs out is given again at once, and counts. What it
// named does not hold any more then.
func TestExpiry(t *testing.T) {
	s := newStand(t)
	s.configure(GroupConfig{MaxAttempts: 2, Invisible: time.Minute})
	s.send(order("x"))
	first := s.one(ReceiveRequest{})
	s.step(time.Minute - time.Millisecond)
	s.none(ReceiveRequest{})
	s.step(time.Millisecond)
	second := s.one(ReceiveRequest{})
	if second.Attempt != 2 {
		t.Fatalf("attempt %d, want 2", second.Attempt)
	}
	if errs, err := s.b.Ack(t.Context(), []string{first.Lease}); err != nil || !errors.Is(errs[0], ErrLeaseLost) {
		t.Errorf("Ack by the first lease: %v, %v", errs, err)
	}
	s.step(time.Minute)
	s.none(ReceiveRequest{})
	if all := s.dead(); len(all) != 1 || all[0].Attempt != 2 {
		t.Errorf("dead letters %+v, want it after 2 attempts", all)
	}
}

// TestLeasesOutliveARestart: acks, nacks and burials by leases from before hold
// while nobody else has the message, and dead letters are made once.
func TestLeasesOutliveARestart(t *testing.T) {
	s := newStand(t)
	s.send(order("0"), order("1"), order("2"), order("3"))
	got := s.take(ReceiveRequest{})
	s.kill()
	s.ack(got[0])
	due := s.nack(got[1]).Due
	id, err := s.b.Bury(t.Context(), got[2].Lease, "broken")
	if err != nil {
		t.Fatalf("Bury: %v", err)
	}
	if _, err := s.b.Bury(t.Context(), got[2].Lease, "broken"); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("Bury again: %v, want %v", err, ErrLeaseLost)
	}
	if _, err := s.b.Nack(t.Context(), got[1].Lease, nil); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("Nack again: %v, want %v", err, ErrLeaseLost)
	}
	if err := s.b.Extend(t.Context(), got[3].Lease, time.Minute); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("Extend: %v, want %v", err, ErrLeaseLost)
	}
	s.wantBodies(s.take(ReceiveRequest{}), "3")
	s.step(time.Duration(due-s.now()) * time.Millisecond)
	if d := s.one(ReceiveRequest{}); string(d.Body) != "1" || d.Attempt != 2 {
		t.Errorf("received %q at attempt %d, want 1 at 2", d.Body, d.Attempt)
	}
	if all := s.dead(); len(all) != 1 || all[0].ID != id || all[0].Reason != "broken" || all[0].Attempt != 1 {
		t.Errorf("dead letters %+v", all)
	}
}

// TestOrdered: one queue gives nothing while something before is held or waits,
// and an ack wakes who waits.
func TestOrdered(t *testing.T) {
	s := newStand(t)
	s.configure(GroupConfig{MaxAttempts: 2})
	s.send(order("0"), order("1"), order("2"), order("3"))
	ask := ReceiveRequest{Ordered: true, Max: 2}
	got := s.take(ask)
	s.wantBodies(got, "0", "1")
	s.none(ask)
	s.ack(got[1])
	s.none(ask)
	due := s.nack(got[0]).Due
	s.none(ask)
	s.step(time.Duration(due-s.now()) * time.Millisecond)
	got = s.take(ask)
	s.wantBodies(got, "0", "2")
	s.nack(got[0]) // for the second time: dead, and no more in the way
	s.ack(got[1])
	s.wantBodies(s.take(ask), "3")
	if all := s.dead(); len(all) != 1 || string(all[0].Body) != "0" {
		t.Errorf("dead letters %+v, want 0", all)
	}
}

// TestWaitersWake: an ack, a nack and the end of a back-off reach a receiver
// that waits because of order or of the limit in flight.
func TestWaitersWake(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := bubble(t)
			b := s.b
			s.configure(GroupConfig{InflightMax: 1})
			s.send(order("0"), order("1"))
			ask := ReceiveRequest{Ordered: ordered, Max: 1, Wait: time.Minute, Invisible: time.Hour}
			first := s.one(ask)
			came := make(chan Delivery, 1)
			wait := func() {
				go func() {
					got, err := b.Receive(t.Context(), ReceiveRequest{Topic: "orders", Group: "g", Ordered: ordered, Wait: time.Minute, Invisible: time.Hour})
					if err != nil || len(got) != 1 {
						t.Errorf("Receive: %d, %v", len(got), err)
						got = make([]Delivery, 1)
					}
					came <- got[0]
				}()
				synctest.Wait()
			}
			wait()
			began := time.Now()
			if d := 5 * time.Second; ordered {
				if _, err := b.Nack(t.Context(), first.Lease, &d); err != nil {
					t.Fatal(err)
				}
				if got := <-came; string(got.Body) != "0" || time.Since(began) != d {
					t.Errorf("received %q after %v, want 0 after its back-off", got.Body, time.Since(began))
				} else {
					first = got
				}
				wait()
			}
			began = time.Now()
			s.ack(first)
			if got := <-came; string(got.Body) != "1" || time.Since(began) > 20*time.Millisecond {
				t.Errorf("received %q after %v, want 1 at once", got.Body, time.Since(began))
			}
		})
	}
}

// TestInflightMax: a queue gives no more than the limit at once, whoever asks.
func TestInflightMax(t *testing.T) {
	s := newStand(t)
	s.configure(GroupConfig{InflightMax: 3})
	s.send(numbered("orders", 10, func(int) Delay { return Delay{} })...)
	got := s.take(ReceiveRequest{})
	if len(got) != 3 {
		t.Fatalf("received %d, want 3", len(got))
	}
	s.none(ReceiveRequest{})
	s.nack(got[0]) // what waits for its back-off is not in flight
	s.wantBodies(s.take(ReceiveRequest{}), "3")
	s.ack(got[1:]...)
	s.wantBodies(s.take(ReceiveRequest{}), "4", "5")
	if g := s.group("g").Topics[0]; g.Inflight != 3 || g.Retrying != 1 || g.Lag != 8 {
		t.Errorf("%+v, want 3 in flight, 1 retrying, lag 8", g)
	}
}

// TestMaxBytes: what does not fit is not leased, and one message always fits.
func TestMaxBytes(t *testing.T) {
	s := newStand(t)
	big := func() Message { return Message{Topic: "orders", Body: make([]byte, 1000)} }
	s.send(big(), big(), big())
	if got := s.take(ReceiveRequest{MaxBytes: 10}); len(got) != 1 {
		t.Errorf("%d messages in 10 bytes, want 1", len(got))
	}
	got := s.take(ReceiveRequest{MaxBytes: 2500})
	if len(got) != 2 || got[0].Attempt != 1 || got[1].Attempt != 1 {
		t.Errorf("%d messages in 2500 bytes, want 2, for the first time", len(got))
	}
}

// TestFailedNote: when it cannot be written down that messages are delivered,
// nobody has them.
func TestFailedNote(t *testing.T) {
	s := newStand(t)
	s.send(order("x"))
	s.one(ReceiveRequest{Group: "other"}) // so that the group is there
	s.one(ReceiveRequest{Group: "g"})
	s.step(time.Minute)
	s.disk.Inject(fs.Fault{At: 1, Forever: true})
	if got, err := s.b.Receive(t.Context(), ReceiveRequest{Topic: "orders", Group: "g"}); err == nil || len(got) > 0 {
		t.Errorf("Receive on a failing disk: %d messages, %v; want none and an error", len(got), err)
	}
}
