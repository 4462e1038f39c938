package group

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/duemq/duemq/internal/record"
)

// TestLocksAgainstMap locks, renews, unlocks and lets locks end at random.
func TestLocksAgainstMap(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 5))
		var l Locks
		want := map[place]lock{}
		now := int64(0)
		for range 500 {
			now += int64(rng.IntN(4))
			at := place{record.GroupNumber(rng.IntN(3)), record.QueueNumber(rng.IntN(3))}
			client := fmt.Sprint("c", rng.IntN(3))
			h, ok := want[at]
			live := ok && h.until > now
			switch rng.IntN(4) {
			case 0, 1:
				until := now + int64(rng.IntN(30))
				free := !live || h.client == client
				if got := l.Lock(at.group, at.queue, client, now, until); got != free {
					t.Fatalf("seed %d at %d: %s locks %v: %v, held by %+v", seed, now, client, at, got, h)
				}
				if free {
					want[at] = lock{client, until}
				}
			case 2:
				if got := l.Unlock(at.group, at.queue, client); live && got != (h.client == client) {
					t.Fatalf("seed %d at %d: %s unlocks %v: %v, held by %+v", seed, now, client, at, got, h)
				}
				if h.client == client {
					delete(want, at)
				}
			default:
				got, ok := l.Holder(at.group, at.queue, now)
				if ok != live || (live && got != h.client) {
					t.Fatalf("seed %d at %d: %v held by %q, %v; want %+v", seed, now, at, got, ok, h)
				}
			}
		}
	}
}

// TestExpiredLocksAreSwept: clients that go away leave nothing for ever.
func TestExpiredLocksAreSwept(t *testing.T) {
	var l Locks
	for i := range 10_000 {
		l.Lock(0, record.QueueNumber(i), "gone", int64(i), int64(i)+100)
		if n := len(l.held); n > 2*(100+sweepCalls) {
			t.Fatalf("%d locks are kept, 100 are held", n)
		}
	}
}
