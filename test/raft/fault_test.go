package raft

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/duemq/duemq/internal/fs"
)

func ofSegment(k fs.Kind) func(fs.Op) bool {
	return func(op fs.Op) bool { return op.Kind == k && strings.HasSuffix(op.Path, ".seg") }
}

// TestFailedStoreStopsNode fails one sync or one write under load. Raft alone
// would step down, stay and try again, on a disk of which nobody knows what it
// holds. The node must stop instead, touch its log no more, and be found whole
// when it is started again; the others go on.
func TestFailedStoreStopsNode(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]fs.Fault{
		"lost sync":   {At: 4, Match: ofSegment(fs.OpSync), Lose: true},
		"short write": {At: 4, Match: ofSegment(fs.OpWrite), Short: true, Err: syscall.ENOSPC},
	} {
		for _, leader := range []bool{true, false} {
			t.Run(name+map[bool]string{true: "/leader", false: "/follower"}[leader], func(t *testing.T) {
				c := newCluster(t, inMemory)
				l := c.load(7)
				n := c.leader()
				if !leader {
					n = c.follower()
				}
				var after atomic.Int64
				n.disk.Hooks(nil, func(op fs.Op, _ error) {
					if n.disk.Fired() > 0 && strings.HasSuffix(op.Path, ".seg") {
						after.Add(1)
					}
				})
				n.disk.Inject(fault)
				l.free(true)
				c.bell.await(t, "the node stops", func() bool { return n.raft.State() == raft.Shutdown })
				l.free(false)
				l.more(t, 20)
				if got := after.Load(); got != 1 {
					t.Errorf("%d operations on the log from the failed one on, want no more than that", got)
				}
				n.disk.cut(0, 0)
				c.revive(n, c.bury(n))
				l.more(t, 20)
				l.end()
				c.check(c.settle(), l)
			})
		}
	}
}

// follower is one that does not lead.
func (c *cluster) follower() *node {
	leader := c.leader()
	for _, n := range c.alive(false) {
		if n != leader {
			return n
		}
	}
	c.t.Fatal("one node only")
	return nil
}
