package broker

import "testing"

// TestLookingMakesNoLeases: leases are for who receives. There may be as many
// as groups times queues, so that looks must not fill memory with them.
func TestLookingMakesNoLeases(t *testing.T) {
	b := opened(t)
	for _, g := range []string{"g", "h"} {
		if _, err := b.Receive(t.Context(), ReceiveRequest{Topic: "other", Group: g}); err != nil {
			t.Fatal(err)
		}
	}
	count := func() (n int) {
		b.leases.Range(func(any, any) bool { n++; return true })
		return n
	}
	before := count()
	r, err := b.Send(t.Context(), []Message{{Topic: "orders", Body: []byte("x")}})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := b.Message(t.Context(), r[0].ID.String()); err != nil || v.State != StateReady {
		t.Fatalf("Message: %v, %v", v.State, err)
	}
	if _, err := b.Cancel(t.Context(), r[0].ID.String()); err == nil {
		t.Fatal("cancelled what is visible")
	}
	if after := count(); after != before {
		t.Errorf("%d leases after two looks, %d before", after, before)
	}
	receive(t, b, 1)
	if v, err := b.Message(t.Context(), r[0].ID.String()); err != nil || v.State != StateInflight || v.Attempt != 1 {
		t.Errorf("Message: %v, attempt %d, %v; want %v", v.State, v.Attempt, err, StateInflight)
	}
}
