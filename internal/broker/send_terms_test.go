package broker

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/record"
)

// TestIdempotency: who sends under the same key again adds nothing, until the
// window is over and the message is delivered.
func TestIdempotency(t *testing.T) {
	s := newStand(t)
	m := Message{Topic: "t", Idempotency: "k", Key: "a", Body: []byte("one"), Delay: after(time.Hour)}
	first := s.send(m)[0]
	if first.Repeat {
		t.Fatalf("the first: %+v", first)
	}
	again := func(when string, m Message, state State) {
		t.Helper()
		r := s.send(m)[0]
		if !r.Repeat || r.ID != first.ID || r.State != state {
			t.Errorf("%s: %+v, want a repeat of %v, %s", when, r, first.ID, state)
		}
	}
	again("at once", m, StateWaiting)
	other := m
	other.Body = []byte("two")
	if r, err := s.b.Send(t.Context(), []Message{other}); err != nil || !errors.Is(r[0].Err, ErrMismatch) {
		t.Errorf("another body: %+v, %v", r, err)
	}
	other = m
	other.Delay = after(2 * time.Hour)
	if r, err := s.b.Send(t.Context(), []Message{other}); err != nil || !errors.Is(r[0].Err, ErrMismatch) {
		t.Errorf("another delay: %+v, %v", r, err)
	}
	other = m
	other.Topic = "u"
	if r := s.send(other); r[0].Repeat {
		t.Errorf("another topic: %+v", r)
	}
	s.crash()
	again("after a crash", m, StateWaiting)
	s.step(2 * time.Hour)
	s.reopen()
	r := s.send(m)[0]
	if !r.Repeat || r.ID != first.ID || !r.Ready || r.State != StateReady || r.Due != first.Due {
		t.Errorf("after delivery: %+v, want a repeat that is ready", r)
	}
	s.wantVisible("t", "one")
	s.step(21*time.Hour + 59*time.Minute)
	again("within the window", m, StateReady)
	s.step(time.Minute)
	if r := s.send(m)[0]; r.Repeat || r.ID == first.ID {
		t.Errorf("after the window: %+v, want a new message", r)
	}
}

// TestIdempotencyOutlastsTheWindow: as long as the message waits, its key counts.
func TestIdempotencyOutlastsTheWindow(t *testing.T) {
	s := newStand(t)
	m := Message{Topic: "t", Idempotency: "k", Delay: after(30 * 24 * time.Hour)}
	first := s.send(m)[0]
	s.step(29 * 24 * time.Hour)
	if err := s.b.Cut(); err != nil {
		t.Fatal(err)
	}
	if r := s.send(m)[0]; !r.Repeat || r.ID != first.ID {
		t.Errorf("while it waits: %+v", r)
	}
	if _, err := s.b.Shift(t.Context(), first.ID.String(), 48*time.Hour); err != nil {
		t.Fatal(err)
	}
	s.step(2 * 24 * time.Hour)
	if r := s.send(m)[0]; !r.Repeat || r.ID != first.ID {
		t.Errorf("while it waits for a later due: %+v", r)
	}
	s.step(24 * time.Hour)
	if r := s.send(m)[0]; r.Repeat {
		t.Errorf("after delivery: %+v", r)
	}
}

// TestIdempotentSendersAtOnce: of many who send under one key at once, and twice
// in one batch, one is the first.
func TestIdempotentSendersAtOnce(t *testing.T) {
	s := newStand(t)
	m := Message{Topic: "t", Idempotency: "k", Body: []byte("once")}
	var wg sync.WaitGroup
	var firsts atomic.Int64
	ids := make([]record.ID, 8)
	for i := range ids {
		wg.Go(func() {
			r, err := s.b.Send(t.Context(), []Message{m, m})
			if err != nil || r[0].Err != nil || r[1].Err != nil || !r[1].Repeat || r[0].ID != r[1].ID {
				t.Errorf("Send: %+v, %v", r, err)
				return
			}
			ids[i] = r[0].ID
			if !r[0].Repeat {
				firsts.Add(1)
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("ids %v, want one", ids)
			break
		}
	}
	if firsts.Load() != 1 {
		t.Errorf("%d were the first", firsts.Load())
	}
	s.wantVisible("t", "once")
}

// TestNames: a message takes the place of the one that waits under its name.
func TestNames(t *testing.T) {
	s := newStand(t)
	msg := func(body string, d time.Duration) Message {
		return Message{Topic: "t", Name: "order 7", Body: []byte(body), Delay: after(d)}
	}
	find := func(want record.ID, state State) {
		t.Helper()
		if v, err := s.b.MessageByName(t.Context(), "t", "order 7"); err != nil || v.ID != want || v.State != state {
			t.Errorf("by name: %v %s, %v; want %v %s", v.ID, v.State, err, want, state)
		}
	}
	if _, err := s.b.MessageByName(t.Context(), "t", "order 7"); !errors.Is(err, ErrTopicUnknown) {
		t.Errorf("before there is a topic: %v", err)
	}
	one := s.send(msg("one", time.Hour))[0]
	if _, err := s.b.MessageByName(t.Context(), "t", "order 8"); !errors.Is(err, ErrUnknown) {
		t.Errorf("another name: %v", err)
	}
	find(one.ID, StateWaiting)
	s.crash()
	two := s.send(msg("two", time.Minute))[0]
	if two.Replaced != one.ID || two.Repeat {
		t.Errorf("second: %+v, want it to take the place of %v", two, one.ID)
	}
	if v, err := s.b.Message(t.Context(), one.ID.String()); err != nil || v.State != StateCancelled {
		t.Errorf("first: %s, %v; want it cancelled", v.State, err)
	}
	find(two.ID, StateWaiting)
	s.step(time.Minute)
	s.wantVisible("t", "two")
	if _, err := s.b.MessageByName(t.Context(), "t", "order 7"); !errors.Is(err, ErrUnknown) {
		t.Errorf("after delivery: %v", err)
	}
	three := s.send(msg("three", time.Hour))[0]
	if three.Replaced != 0 {
		t.Errorf("after delivery: %+v", three)
	}
	if _, err := s.b.Cancel(t.Context(), three.ID.String()); err != nil {
		t.Fatal(err)
	}
	find(three.ID, StateCancelled)
	if four := s.send(msg("four", time.Hour))[0]; four.Replaced != 0 {
		t.Errorf("after a cancel: %+v", four)
	}
	s.step(2 * time.Hour)
	s.wantVisible("t", "two", "four")
}

// TestNameReplacesHeldAndHalf: a name is taken from whoever has not been seen.
func TestNameReplacesHeldAndHalf(t *testing.T) {
	s := newStand(t)
	m := Message{Topic: "t", Name: "n", Body: []byte("one")}
	half := m
	half.Half = "p"
	first := s.send(half)[0]
	s.b.PauseTopic(t.Context(), "t")
	second := s.send(m)[0]
	third := s.send(m)[0]
	if second.Replaced != first.ID || second.State != StatePaused || third.Replaced != second.ID {
		t.Errorf("replaced %v and %v, want %v and %v", second.Replaced, third.Replaced, first.ID, second.ID)
	}
	if got := s.b.Transactions(""); len(got) != 0 {
		t.Errorf("transactions: %+v", got)
	}
	s.b.ResumeTopic(t.Context(), "t")
	s.step(time.Hour)
	s.wantVisible("t", "one")
}

func TestTermsAreChecked(t *testing.T) {
	s := newStand(t)
	long := strings.Repeat("x", MaxName+1)
	for _, m := range []Message{{Topic: "t", Idempotency: long}, {Topic: "t", Name: long}, {Topic: "t", Half: "no group"}} {
		if r, err := s.b.Send(t.Context(), []Message{m}); err != nil || !errors.Is(r[0].Err, ErrInvalid) {
			t.Errorf("%+v: %+v, %v", m, r, err)
		}
	}
	s.send(Message{Topic: "t", Idempotency: long[1:], Name: long[1:]})
}

// TestHashesStay: the hashes are in stores; other bytes would forget every key.
func TestHashesStay(t *testing.T) {
	m := Message{Key: "k", Tag: "t", Properties: []record.Property{{Name: "a", Value: "b"}}, Body: []byte("body"), Delay: Delay{Kind: DelayAt, Value: 7}}
	got := fmt.Sprintf("%x %x %016x", hashOf(3, hashOnce, "k"), hashOf(3, hashName, "k"), m.print())
	if want := hashesGolden; got != want {
		t.Errorf("hashes %s, want %s", got, want)
	}
}

const hashesGolden = "4dbd32cae50fe6bc2df16c42921665a3 3c8a87691832eeba0109d09bd3061c66 f48b77433fd3f1d3"
