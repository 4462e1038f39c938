package broker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
)

// TestHalfIsSeenByNobody: a half message is in no listing of what waits and is
// delivered to nobody, until it is committed; then its delay counts.
func TestHalfIsSeenByNobody(t *testing.T) {
	s := newStand(t)
	r := s.send(Message{Topic: "t", Key: "a", Half: "p", Body: []byte("a"), Delay: after(10 * time.Second)},
		Message{Topic: "t", Key: "b", Half: "p", Body: []byte("b")},
		Message{Topic: "t", Key: "c", Half: "q", Body: []byte("c")})
	for _, r := range r {
		if r.State != StateHalf || r.Ready || r.Due != 0 || r.Handle != "" {
			t.Errorf("receipt %+v", r)
		}
	}
	if got := s.pending(Filter{}); len(got) != 0 {
		t.Errorf("pending: %q", keysOf(got))
	}
	if got := s.pending(Filter{Key: "a"}); len(got) != 0 {
		t.Errorf("pending by key: %q", keysOf(got))
	}
	if v, err := s.b.Message(t.Context(), r[0].ID.String()); err != nil || v.State != StateHalf || v.Due != 0 {
		t.Errorf("message %+v, %v", v, err)
	}
	if c, err := s.b.Counts("t"); err != nil || c.Halves != 3 || c.Waiting != 0 {
		t.Errorf("counts %+v, %v", c, err)
	}
	if got := keysOf(s.b.Transactions("p")); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("transactions of p: %q", got)
	}
	if _, err := s.b.Reschedule(t.Context(), r[0].ID.String(), after(time.Second)); !errors.Is(err, ErrInvalid) {
		t.Errorf("Reschedule: %v", err)
	}
	if _, err := s.b.Shift(t.Context(), r[0].ID.String(), time.Second); !errors.Is(err, ErrInvalid) {
		t.Errorf("Shift: %v", err)
	}
	s.crash()
	s.step(5 * time.Second)
	a, err := s.b.EndTransaction(t.Context(), r[0].ID.String(), true)
	if err != nil || a.Due != s.now()+10_000 || a.Topic != "t" {
		t.Errorf("commit: %+v, %v; want it due 10 s later", a, err)
	}
	if _, err := s.b.EndTransaction(t.Context(), r[1].ID.String(), false); err != nil {
		t.Errorf("rollback: %v", err)
	}
	if a, err := s.b.Cancel(t.Context(), r[2].ID.String()); err != nil || a.ID != r[2].ID {
		t.Errorf("Cancel: %+v, %v; want a rollback", a, err)
	}
	for i := range 3 {
		if _, err := s.b.EndTransaction(t.Context(), r[i].ID.String(), true); !errors.Is(err, ErrTransactionEnded) {
			t.Errorf("commit of message %d again: %v", i, err)
		}
	}
	if _, err := s.b.EndTransaction(t.Context(), "00000000000000ff", true); !errors.Is(err, ErrUnknown) {
		t.Errorf("commit of nothing: %v", err)
	}
	if got := keysOf(s.pending(Filter{})); !slices.Equal(got, []string{"a"}) {
		t.Errorf("pending after the commit: %q", got)
	}
	s.step(9999 * time.Millisecond)
	s.wantVisible("t")
	s.step(time.Millisecond)
	s.wantVisible("t", "a")
	s.step(time.Hour)
	s.wantVisible("t", "a")
}

// TestChecks: the producer is asked after 6 s and then every 30 s, once each
// time, and after 15 times in vain the message is rolled back.
func TestChecks(t *testing.T) {
	s := newStand(t)
	r := s.send(Message{Topic: "t", Key: "a", Half: "p", Body: []byte("a")}, Message{Topic: "t", Half: "q"})
	ask := func() []string {
		t.Helper()
		got, err := s.b.Checks(t.Context(), "p", 10, 0)
		if err != nil {
			t.Fatalf("Checks: %v", err)
		}
		var out []string
		for _, c := range got {
			out = append(out, fmt.Sprint(c.Key, c.Checks, c.State, string(c.Body)))
		}
		return out
	}
	s.step(5999 * time.Millisecond)
	if got := ask(); got != nil {
		t.Errorf("before the first check: %q", got)
	}
	s.step(time.Millisecond)
	for n := 1; n <= engine.MaxChecks; n++ {
		if n == 7 {
			s.crash() // the check that somebody was handed is handed again
			if got := ask(); !slices.Equal(got, []string{"a6halfa"}) {
				t.Errorf("check 6 after a crash: %q", got)
			}
			s.step(30 * time.Second)
		} else if n > 1 {
			s.step(29 * time.Second)
			if got := ask(); got != nil {
				t.Errorf("1 s before check %d: %q", n, got)
			}
			s.step(time.Second)
		}
		if got := ask(); !slices.Equal(got, []string{fmt.Sprintf("a%dhalfa", n)}) {
			t.Errorf("check %d: %q", n, got)
		}
		if got := ask(); got != nil {
			t.Errorf("check %d again: %q", n, got)
		}
	}
	s.step(29 * time.Second)
	if got := s.b.Transactions("p"); len(got) != 1 {
		t.Errorf("before the end: %d transactions", len(got))
	}
	s.step(time.Second)
	if got := s.b.Transactions(""); len(got) != 0 {
		t.Errorf("after 15 checks in vain: %+v", got)
	}
	if _, err := s.b.EndTransaction(t.Context(), r[0].ID.String(), true); !errors.Is(err, ErrTransactionEnded) {
		t.Errorf("commit after that: %v", err)
	}
	s.step(time.Hour)
	s.wantVisible("t")
	if got := ask(); got != nil {
		t.Errorf("checks: %q", got)
	}
	if n := len(s.b.checks.handed); n > 1 {
		t.Errorf("%d checks remembered of what has ended", n)
	}
}

func TestChecksAreAskedRight(t *testing.T) {
	s := newStand(t)
	for _, c := range []struct {
		producer string
		most     int
		wait     time.Duration
	}{{"", 1, 0}, {"p", -1, 0}, {"p", MaxPage + 1, 0}, {"p", 1, MaxWait + 1}, {"p", 1, -1}} {
		if _, err := s.b.Checks(t.Context(), c.producer, c.most, c.wait); !errors.Is(err, ErrInvalid) {
			t.Errorf("Checks %+v: %v", c, err)
		}
	}
}

// TestChecksAreWaitedFor: who waits for checks is woken when one comes, and ends
// when the broker does.
func TestChecksAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(standStart)) // the bubble begins before 2020, which no broker believes
		b, err := Open(t.Context(), Options{Engine: engine.Options{
			FS: fs.NewMem(), Dir: "data", Clock: clock.Real(), Rand: strings.NewReader("sixteen bytes id"), SegmentBytes: 1 << 20,
		}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := b.Send(t.Context(), []Message{{Topic: "t", Half: "p"}, {Topic: "t", Half: "p"}}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []time.Duration{6 * time.Second, 6 * time.Second, 36 * time.Second} {
			got, err := b.Checks(t.Context(), "p", 1, MaxWait)
			if err != nil || len(got) != 1 || time.Since(began) != want {
				t.Errorf("after %v: %d checks, %v; want one after %v", time.Since(began), len(got), err, want)
			}
		}
		if got, err := b.Checks(t.Context(), "other", 1, time.Second); err != nil || len(got) != 0 {
			t.Errorf("of another producer: %+v, %v", got, err)
		}
		go func() {
			time.Sleep(time.Second)
			b.Drain()
		}()
		b.Checks(t.Context(), "p", 1, MaxWait)
		if _, err := b.Checks(t.Context(), "p", 1, MaxWait); !errors.Is(err, ErrDraining) {
			t.Errorf("when the broker stops: %v", err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestHalvesAreBounded: one more than MaxHalves is refused, and there is room
// again when one has ended.
func TestHalvesAreBounded(t *testing.T) {
	s := newStand(t)
	msgs := make([]Message, 10_000)
	for i := range msgs {
		msgs[i] = Message{Topic: "t", Half: "p"}
	}
	var last Receipt
	for range MaxHalves / len(msgs) {
		r := s.send(msgs...)
		last = r[len(r)-1]
	}
	if r, err := s.b.Send(t.Context(), msgs[:1]); err != nil || !errors.Is(r[0].Err, ErrFull) {
		t.Errorf("one more: %+v, %v", r, err)
	}
	if _, err := s.b.EndTransaction(t.Context(), last.ID.String(), false); err != nil {
		t.Fatal(err)
	}
	s.send(msgs[0])
}
