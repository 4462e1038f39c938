package broker

import (
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
)

// TestBackoffIsNeverShort: what is given back comes at its due, not a fraction
// of a millisecond before, by whichever clock its end is counted: the monotonic
// one, or after a restart the wall clock.
func TestBackoffIsNeverShort(t *testing.T) {
	for name, pass := range map[string]func(*stand){"at once": func(*stand) {}, "after a restart": (*stand).reopen} {
		t.Run(name, func(t *testing.T) {
			s := &stand{t: t, clock: clock.NewFake(standStart.Add(700 * time.Microsecond))}
			s.open(fs.NewMem())
			t.Cleanup(func() { s.b.Close() })
			s.send(Message{Topic: "orders"})
			s.clock.Advance(600 * time.Microsecond)
			d, wait := s.one(ReceiveRequest{}), 5*time.Millisecond
			given := s.clock.Now().Time()
			r, err := s.b.Nack(t.Context(), d.Lease, &wait)
			due := time.UnixMilli(r.Due)
			if err != nil || due.Before(given.Add(wait)) {
				t.Fatalf("given back at %v for %v: due at %v, %v", given, wait, due, err)
			}
			pass(s)
			s.clock.Advance(due.Sub(given) - 1)
			s.none(ReceiveRequest{})
			s.clock.Advance(time.Millisecond)
			s.one(ReceiveRequest{})
		})
	}
}
