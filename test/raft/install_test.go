package raft

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
)

// shoot takes a snapshot on a node. Raft deletes all it may up to there.
func (c *cluster) shoot(n *node) {
	c.t.Helper()
	c.settle() // not before a change of members is applied
	c.must("snapshot", n, n.raft.Snapshot())
}

// TestSnapshotHides takes snapshots: raft sees nothing of the log any more, the
// log keeps all of it, and a node that comes back goes on from the snapshot.
func TestSnapshotHides(t *testing.T) {
	t.Parallel()
	c := newCluster(t, inMemory)
	l := c.load(8)
	l.more(t, 150)
	c.settle()
	for _, n := range c.alive(true) {
		c.shoot(n)
		if first, last := n.store.visible(); first <= last && first <= n.shots.index() {
			t.Errorf("%s: raft sees %d to %d with a snapshot at %d", n.id, first, last, n.shots.index())
		}
		if first := n.store.current().FirstIndex(); first != 1 {
			t.Errorf("%s: the log begins with entry %d", n.id, first)
		}
	}
	n := c.leader()
	n = c.revive(n, c.crashAt(n, l, 20, 50, 3))
	if s, _ := n.machine.at(); s.Index < n.shots.index() || n.shots.index() == 0 {
		t.Errorf("%s begins with the state of entry %d, its snapshot is of %d", n.id, s.Index, n.shots.index())
	}
	l.more(t, 20)
	l.end()
	for id, h := range c.check(c.settle(), l) {
		if h.first != 1 {
			t.Errorf("%s: the log begins with entry %d", id, h.first)
		}
	}
}

// trimmed has everybody take a snapshot and remove the segments before it.
func trimmed(c *cluster, l *load) {
	c.t.Helper()
	l.more(c.t, 400)
	c.settle()
	for _, n := range c.alive(true) {
		c.shoot(n)
		if err := n.store.trim(); err != nil {
			c.t.Fatal(err)
		}
		if n.store.current().FirstPosition() == 0 {
			c.t.Fatalf("%s: nothing was trimmed", n.id)
		}
	}
}

// TestNewNodeBySnapshot joins a node that nobody can give the whole log any
// more. It gets a snapshot, its log begins with that one's segment, and every
// entry stands where it does on the others.
func TestNewNodeBySnapshot(t *testing.T) {
	t.Parallel()
	c := newCluster(t, inMemory)
	l := c.load(9)
	trimmed(c, l)
	l.allow(600)
	n := c.join(inMemory(), "n4")
	if n.machine.restores() != 1 {
		t.Errorf("%d snapshots taken over, want 1", n.machine.restores())
	}
	c.revive(n, c.crashAt(n, l, 9, 50, 4))
	l.more(t, 20)
	l.end()
	all := c.check(c.settle(), l)
	if all["n4"].first == 1 {
		t.Error("the new node has the whole log")
	}
}

// TestNewNodeBySeed joins a node that was given a copy of the segments and the
// snapshot beforehand. Raft has nothing to install, and what it deletes of the
// log later stays.
func TestNewNodeBySeed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, inMemory)
	l := c.load(10)
	trimmed(c, l)
	l.allow(600)
	d := inMemory()
	if err := seed(c.leader(), d, "n4"); err != nil {
		t.Fatal(err)
	}
	n := c.join(d, "n4")
	first := n.store.current().FirstIndex()
	c.shoot(n)
	l.more(t, 20)
	l.end()
	all := c.check(c.settle(), l)
	if n.machine.restores() != 0 {
		t.Error("the seeded node was given a snapshot")
	}
	if h := all["n4"]; h.first != first || first == 1 {
		t.Errorf("the seeded log began with entry %d and begins with %d", first, h.first)
	}
}

// seed copies what a node has up to its snapshot to the disk of a node to be.
// The bytes around the batches are made anew: they belong to the store.
func seed(from *node, d *disk, id raft.ServerID) error {
	m, theirs := from.shots.last(), from.store.current()
	segment := theirs.Segments()[0]
	m.Folder = firstFolder
	o := logOptions(d, id, m.Folder)
	o.Origin = log.Start{Position: segment.Base, Index: segment.First - 1}
	if err := d.make(); err != nil {
		return err
	}
	ours, err := log.Open(o, log.Start{})
	if err != nil {
		return err
	}
	for i := segment.First; i <= m.Meta.Index; i++ {
		_, b, err := theirs.Get(i)
		if err != nil {
			return err
		}
		if err := ours.Append([]*record.Batch{&b}, make([]uint64, 1)); err != nil {
			return err
		}
	}
	shots, err := openSnapshots(d, o)
	return errors.Join(err, ours.Close(), shots.publish(&m))
}

// TestLaggingNode lets a node fall behind what raft sees on the leader, and gives
// it a snapshot. Within the snapshot's segment it goes on with what it has, and
// raft's deletion of all that takes nothing away. Further behind it begins anew
// with that segment, at the same positions.
func TestLaggingNode(t *testing.T) {
	t.Parallel()
	for name, far := range map[string]bool{"near": false, "far": true} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, inMemory)
			l := c.load(11)
			l.more(t, 100)
			for c.leader().store.current().End().Position%log.MinSegmentBytes > log.MinSegmentBytes/2 {
				l.more(t, 1)
			}
			c.settle()
			n := c.follower()
			c.isolate(n)
			if far {
				l.more(t, 300)
			}
			leader := c.leader()
			c.settle()
			c.shoot(leader)
			c.heal(n)
			c.settle()
			if n.machine.restores() == 0 {
				t.Error("no snapshot was taken over")
			}
			// The next life finds the folder that the snapshot named.
			c.revive(n, c.crashAt(n, l, 4, 50, 5))
			l.more(t, 20)
			l.end()
			h := c.check(c.settle(), l)[n.id]
			if (h.first == 1) == far {
				t.Errorf("%s: the log begins with entry %d", n.id, h.first)
			}
		})
	}
}
