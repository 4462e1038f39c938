package raft

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// strand isolates the leader, lets it append messages that it cannot replicate,
// and waits until the others have agreed on something else. It gives the old
// leader and the markers of the messages.
func (c *cluster) strand(l *load, size int) (old *node, lost []string) {
	c.t.Helper()
	for {
		old = c.leader()
		last, _ := old.store.LastIndex()
		c.isolate(old)
		const messages = 6
		for range messages {
			marker, entry := l.message(size)
			old.raft.ApplyLog(entry, patience)
			lost = append(lost, marker)
		}
		stored := func() bool {
			now, _ := old.store.LastIndex()
			return now >= last+messages
		}
		c.bell.await(c.t, "the isolated leader stores or steps down", func() bool {
			return stored() || old.raft.State() != raft.Leader
		})
		if stored() {
			c.leader()
			return old, lost
		}
		c.heal(old) // it noticed too soon, and what it stored may yet be agreed on
		lost = nil
	}
}

// noneOf proves that none of the markers is in what a log keeps.
func noneOf(t *testing.T, all map[raft.ServerID]*holding, lost []string) {
	t.Helper()
	for id, h := range all {
		for _, m := range lost {
			if h.kept[m] > 0 {
				t.Errorf("%s: %s was never acknowledged, was cut off, and is back", id, m)
			}
		}
	}
}

// TestIsolatedLeader lets leaders append what nobody else has. When they are
// back, they cut that off and write what the others agreed on in its place.
func TestIsolatedLeader(t *testing.T) {
	t.Parallel()
	c := newCluster(t, inMemory)
	l := c.load(4)
	var lost []string
	for _, size := range []int{100, 3000, 30000} { // within a segment, and over several
		l.allow(40)
		l.more(t, 20)
		old, markers := c.strand(l, size)
		lost = append(lost, markers...)
		l.allow(40)
		l.more(t, 20)
		before := old.store.truncations()
		c.heal(old)
		c.settle()
		if old.store.truncations() == before {
			t.Errorf("%s appended what nobody has, and cut nothing off", old.id)
		}
	}
	l.end()
	all := c.check(c.settle(), l)
	noneOf(t, all, lost)
}

// TestTruncationCrashes cuts the power of a node on its n-th change of the disk
// after it began to cut off what it alone has.
func TestTruncationCrashes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, inMemory)
	l := c.load(5)
	rng := rand.New(rand.NewPCG(5, 5))
	var lost []string
	for n := 1; n <= 11; n += 2 {
		l.allow(60)
		l.more(t, 5)
		old, markers := c.strand(l, []int{100, 30000}[rng.IntN(2)])
		lost = append(lost, markers...)
		l.more(t, 10)
		crash := make(chan (<-chan struct{}), 1)
		percent, seed := rng.IntN(101), rng.Uint64()
		old.store.onTruncate(func() {
			select {
			case crash <- old.disk.cutAt(n, percent, seed):
			default: // it began before
			}
		})
		c.heal(old)
		select {
		case cut := <-crash:
			c.revive(old, c.crashed(old, l, cut))
		case <-time.After(patience):
			t.Fatalf("%s cuts nothing off", old.id)
		}
		c.settle()
	}
	l.end()
	all := c.check(c.settle(), l)
	noneOf(t, all, lost)
}
