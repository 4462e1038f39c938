package raft

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// A cluster is the nodes of one group that are alive.
type cluster struct {
	t     *testing.T
	bell  *bell
	net   *network
	stamp int64

	mu    sync.Mutex // the load reads these, the test changes them
	nodes map[raft.ServerID]*node
	apart map[raft.ServerID]bool
}

func voters(ids ...raft.ServerID) []raft.Server {
	list := make([]raft.Server, len(ids))
	for i, id := range ids {
		list[i] = raft.Server{ID: id, Address: raft.ServerAddress(id)}
	}
	return list
}

// emptyCluster has no nodes yet.
func emptyCluster(t *testing.T) *cluster {
	c := &cluster{
		t: t, bell: newBell(), net: newNetwork(), nodes: map[raft.ServerID]*node{}, apart: map[raft.ServerID]bool{}, stamp: 1000,
	}
	t.Cleanup(c.stop)
	return c
}

// newCluster starts n1, n2 and n3, each on a new disk.
func newCluster(t *testing.T, newDisk func() *disk) *cluster {
	t.Helper()
	c := emptyCluster(t)
	members := voters("n1", "n2", "n3")
	for _, m := range members {
		c.start(newDisk(), m.ID, members)
	}
	return c
}

func inMemory() *disk { return memoryDisk(fs.NewMem()) }

// start begins a life of a node on a disk.
func (c *cluster) start(d *disk, id raft.ServerID, members []raft.Server) *node {
	c.t.Helper()
	n, err := openNode(d, id, c.bell)
	if err != nil {
		c.t.Fatalf("open %s: %v", id, err)
	}
	if err := n.run(c.t, c.net, c.bell, members); err != nil {
		c.t.Fatalf("start %s: %v", id, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[id] = n
	return n
}

// alive are the nodes that live, by name; those that are isolated too if asked
// for.
func (c *cluster) alive(isolated bool) []*node {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*node
	for _, n := range c.nodes {
		if isolated || !c.apart[n.id] {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b *node) int { return strings.Compare(string(a.id), string(b.id)) })
	return list
}

// stop ends all lives in good order.
func (c *cluster) stop() {
	for _, n := range c.alive(true) {
		if err := n.stop(); err != nil {
			c.t.Errorf("stop %s: %v", n.id, err)
		}
	}
}

// bury ends the life of a node whose power was cut and gives the disk that is
// left.
func (c *cluster) bury(n *node) *disk {
	c.t.Helper()
	if err := n.stop(); err != nil {
		c.t.Errorf("crash of %s: %v", n.id, err)
	}
	c.mu.Lock()
	delete(c.nodes, n.id)
	c.mu.Unlock()
	return n.disk.next(c.t)
}

// revive begins the next life of a node on the disk that the last one left. What
// raft was told to be there must be there.
func (c *cluster) revive(last *node, d *disk) *node {
	c.t.Helper()
	n := c.start(d, last.id, nil)
	if got, want := n.recovered, last.store.promise(); got < want {
		c.t.Errorf("%s: log ends with entry %d after a crash, but %d was promised", n.id, got, want)
	}
	return n
}

// isolate takes a node off the network, heal brings it back.
func (c *cluster) isolate(n *node) {
	c.mu.Lock()
	c.apart[n.id] = true
	c.mu.Unlock()
	c.net.part(n.address())
}

func (c *cluster) heal(n *node) {
	c.mu.Lock()
	delete(c.apart, n.id)
	c.mu.Unlock()
	c.net.join(n.address())
}

// leader waits for a node that leads and has applied everything before its term.
func (c *cluster) leader() *node {
	c.t.Helper()
	var leader *node
	c.bell.await(c.t, "a leader", func() bool {
		for _, n := range c.alive(false) {
			if n.raft.State() == raft.Leader && n.answer(n.raft.Barrier(patience)) == nil {
				leader = n
				return true
			}
		}
		return false
	})
	return leader
}

// must fails the test unless a node's future comes true.
func (c *cluster) must(what string, n *node, f raft.Future) {
	c.t.Helper()
	if err := n.answer(f); err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
}

// tick makes the data of a command entry without commands.
func (c *cluster) tick() []byte {
	c.stamp++
	return appendProposal(nil, &record.Batch{Stamp: c.stamp, Limit: 20000})
}

// settle waits until every node that can be reached has applied everything, and
// gives the index up to which all are equal then.
func (c *cluster) settle() uint64 {
	c.t.Helper()
	var index uint64
	c.bell.await(c.t, "a last entry", func() bool {
		n := c.leader()
		f := n.raft.Apply(c.tick(), patience)
		if n.answer(f) != nil {
			return false
		}
		index = f.Index()
		return true
	})
	for _, n := range c.alive(false) {
		c.bell.await(c.t, fmt.Sprintf("%s applies entry %d", n.id, index), func() bool {
			s, err := n.machine.at()
			if err != nil {
				c.t.Fatalf("%s: %v", n.id, err)
			}
			return s.Index >= index
		})
	}
	return index
}

// crashAt cuts a node's power before its n-th change of the disk from now, under
// load, and gives the disk that is left.
func (c *cluster) crashAt(n *node, l *load, op, percent int, seed uint64) *disk {
	c.t.Helper()
	return c.crashed(n, l, n.disk.cutAt(op, percent, seed))
}

// crashed waits for a power cut, with as much load as it takes.
func (c *cluster) crashed(n *node, l *load, cut <-chan struct{}) *disk {
	c.t.Helper()
	l.free(true)
	defer l.free(false)
	select {
	case <-cut:
	case <-time.After(patience):
		c.t.Fatalf("%s does not change its disk for %v", n.id, patience)
	}
	return c.bury(n)
}
