package raft

import (
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"
)

// TestLeaderKilled kills the leader under load, again and again, each time in
// the middle of something: before some change of its disk, with some part of
// what was not synced. It comes back with what the disk has left and under the
// same name, for it was never removed from the group.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	c := newCluster(t, inMemory)
	l := c.load(1)
	killLeaders(c, l, 6)
	l.end()
	for _, h := range c.check(c.settle(), l) {
		h.allKinds(t)
	}
}

func killLeaders(c *cluster, l *load, rounds int) {
	c.t.Helper()
	rng := rand.New(rand.NewPCG(uint64(rounds), 2))
	for range rounds {
		n := c.leader()
		d := c.crashAt(n, l, 5+rng.IntN(60), rng.IntN(101), rng.Uint64())
		l.more(c.t, 10)
		c.revive(n, d)
		l.more(c.t, 10)
	}
}

// TestAllKilled cuts the power of all nodes at once under load and leaves them
// only what they had synced. What was acknowledged is there.
func TestAllKilled(t *testing.T) {
	t.Parallel()
	c := newCluster(t, inMemory)
	l := c.load(2)
	for round := range 2 {
		l.allow(250)
		l.more(t, 50+30*round)
		nodes := c.alive(true)
		for _, n := range nodes {
			n.disk.cut(0, 0)
		}
		disks := make([]*disk, len(nodes))
		for i, n := range nodes {
			disks[i] = c.bury(n)
		}
		for i, n := range nodes {
			c.revive(n, disks[i])
		}
		l.more(t, 10)
	}
	l.end()
	c.check(c.settle(), l)
}

// TestRealDisks kills leaders on the machine's own file system, as kill -9 does:
// nothing is closed and what was written is there.
func TestRealDisks(t *testing.T) {
	t.Parallel()
	dir, n := t.TempDir(), 0
	c := newCluster(t, func() *disk {
		n++
		return realDisk(filepath.Join(dir, strconv.Itoa(n)))
	})
	l := c.load(3)
	killLeaders(c, l, 2)
	l.end()
	c.check(c.settle(), l)
}
