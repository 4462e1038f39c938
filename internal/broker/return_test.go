package broker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/record"
)

// opened gives a broker in memory whose clock stands still.
func opened(t testing.TB) *Broker {
	t.Helper()
	b, err := Open(t.Context(), Options{Engine: engine.Options{
		FS: fs.NewMem(), Dir: "data", Clock: clock.NewFake(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)),
		Rand: strings.NewReader("sixteen bytes id"), SegmentBytes: 1 << 20, CacheBytes: 1 << 20,
	}})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// leased opens a broker, sends n messages and leases them all.
func leased(t *testing.T, n int) (*Broker, []Delivery) {
	t.Helper()
	b := opened(t)
	for range n {
		if _, err := b.Send(t.Context(), []Message{{Topic: "orders", Body: []byte("x")}}); err != nil {
			t.Fatalf("Send: %v", err)
		}
	}
	return b, receive(t, b, n)
}

func receive(t *testing.T, b *Broker, n int) []Delivery {
	t.Helper()
	got, err := b.Receive(t.Context(), ReceiveRequest{Topic: "orders", Group: "g", Max: n + 1})
	if err != nil || len(got) != n {
		t.Fatalf("Receive: %d messages, %v; want %d", len(got), err, n)
	}
	return got
}

// TestReturnedWasNeverDelivered: what a receiver fetched and never looked at
// goes to the next one as if for the first time.
func TestReturnedWasNeverDelivered(t *testing.T) {
	b, first := leased(t, 3)
	b.Return([]string{first[1].Lease, first[2].Lease, "no lease"})
	again := receive(t, b, 2)
	for i, d := range again {
		if d.Attempt != 1 {
			t.Errorf("message %d given again after a return: attempt %d, want 1", i, d.Attempt)
		}
	}
	errs, err := b.Ack(t.Context(), []string{first[0].Lease, again[0].Lease, again[1].Lease})
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Errorf("Ack: %v", err)
	}
	b.Return([]string{first[0].Lease})
	receive(t, b, 0)
}

// TestAckOfAnEndedContext: the lease must not end without the command that
// finishes the message, or nobody would ever see it again.
func TestAckOfAnEndedContext(t *testing.T) {
	b, got := leased(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Ack(ctx, []string{got[0].Lease}); !errors.Is(err, context.Canceled) {
		t.Fatalf("Ack with an ended context: %v, want %v", err, context.Canceled)
	}
	if errs, err := b.Ack(t.Context(), []string{got[0].Lease}); err != nil || errs[0] != nil {
		t.Fatalf("Ack after that: %v, %v; want the lease to hold", errs, err)
	}
	v, err := b.Message(t.Context(), got[0].ID.String())
	if err != nil || v.State != StateAcked {
		t.Errorf("state %s, %v; want %s", v.State, err, StateAcked)
	}
}

// TestUndelayedNeverWaited: a message without a delay is delivered from the
// beginning, also while nothing that waited was delivered yet.
func TestUndelayedNeverWaited(t *testing.T) {
	b, got := leased(t, 1)
	if _, err := b.Cancel(t.Context(), got[0].ID.String()); !errors.Is(err, ErrDelivered) {
		t.Errorf("Cancel: %v, want %v", err, ErrDelivered)
	}
	if _, err := b.DeliverNow(t.Context(), got[0].ID.String()); !errors.Is(err, ErrDelivered) {
		t.Errorf("DeliverNow: %v, want %v", err, ErrDelivered)
	}
}

// TestForgedLeaseIsRefused: an acknowledgement of what a group cannot have been
// given would skip messages.
func TestForgedLeaseIsRefused(t *testing.T) {
	b := opened(t)
	msgs := make([]Message, group.MaxInflight+2)
	for i := range msgs {
		msgs[i] = Message{Topic: "t", HasQueue: true}
	}
	if _, err := b.Send(t.Context(), msgs); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Receive(t.Context(), ReceiveRequest{Topic: "t", Group: "g"}); err != nil {
		t.Fatal(err)
	}
	q := b.e.TopicNamed("t").FirstQueue
	for offset, want := range map[record.Offset]error{group.MaxInflight - 1: nil, group.MaxInflight: ErrInvalid} {
		errs, err := b.Ack(t.Context(), []string{lease{"g", q, offset, 1}.String()})
		if err != nil || !errors.Is(errs[0], want) {
			t.Errorf("lease of offset %d: %v, %v; want %v", offset, errs, err, want)
		}
	}
}

func TestListingEndsWithItsContext(t *testing.T) {
	b := opened(t)
	if _, err := b.Send(t.Context(), []Message{{Topic: "t", Delay: engine.Delay{Kind: engine.DelayAfter, Value: 1000}}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Pending(ctx, Filter{}, "", 0); !errors.Is(err, context.Canceled) {
		t.Errorf("Pending: %v", err)
	}
	if _, err := b.Count(ctx, Filter{From: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("Count: %v", err)
	}
}
