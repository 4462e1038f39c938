package raft

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/duemq/duemq/internal/record"
)

// change asks whoever leads for a change of members until it is agreed on. The
// changes that the tests make may be asked for twice.
func (c *cluster) change(what string, ask func(r *raft.Raft) raft.IndexFuture) {
	c.t.Helper()
	for {
		n := c.leader()
		err := n.answer(ask(n.raft))
		switch {
		case err == nil:
			return
		case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipLost):
		default:
			c.t.Fatalf("%s: %v", what, err)
		}
	}
}

// join makes a new node a member without a vote, waits until it has applied what
// the others have, and gives it its vote.
func (c *cluster) join(d *disk, id raft.ServerID) *node {
	c.t.Helper()
	n := c.start(d, id, nil)
	c.change("add "+string(id), func(r *raft.Raft) raft.IndexFuture { return r.AddNonvoter(id, n.address(), 0, patience) })
	c.settle()
	c.change("promote "+string(id), func(r *raft.Raft) raft.IndexFuture { return r.AddVoter(id, n.address(), 0, patience) })
	return n
}

func (c *cluster) remove(id raft.ServerID) {
	c.t.Helper()
	c.change("remove "+string(id), func(r *raft.Raft) raft.IndexFuture { return r.RemoveServer(id, 0, patience) })
}

// suffrage is who may vote, as the leader knows it.
func (c *cluster) suffrage() map[raft.ServerID]raft.ServerSuffrage {
	c.t.Helper()
	n := c.leader()
	f := n.raft.GetConfiguration()
	c.must("configuration", n, f)
	all := map[raft.ServerID]raft.ServerSuffrage{}
	for _, s := range f.Configuration().Servers {
		all[s.ID] = s.Suffrage
	}
	return all
}

// TestMembers changes the group under load. A machine that is lost with its disk
// comes back under a name that the group has never known, because raft's leader
// may mistake late answers to the old name for the new node's. So the entries of
// configuration stand in everybody's log, also in that of the one who joined.
func TestMembers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, inMemory)
	l := c.load(6)
	l.allow(200)
	l.more(t, 50)
	c.join(inMemory(), "n4")

	lost := c.alive(true)[0]
	lost.disk.cut(50, 1)
	c.bury(lost) // and its disk with it
	c.remove(lost.id)
	c.join(inMemory(), "n5")
	l.more(t, 20)

	n := c.leader()
	c.revive(n, c.crashAt(n, l, 7, 30, 9))
	l.more(t, 20)
	l.end()
	index := c.settle()
	members := c.suffrage()
	for _, id := range []raft.ServerID{"n2", "n3", "n4", "n5"} {
		if s, ok := members[id]; !ok || s != raft.Voter {
			t.Errorf("%s has suffrage %v, member: %v", id, s, ok)
		}
	}
	if len(members) != 4 {
		t.Errorf("members are %v", members)
	}
	for id, h := range c.check(index, l) {
		h.allKinds(t)
		if h.first != 1 || h.kinds[3] < 6 { // the first one, two members added and promoted, one removed
			t.Errorf("%s: log begins with entry %d and holds %d configurations", id, h.first, h.kinds[3])
		}
	}
}

// alone writes messages into a node's log as a broker without a group does, in
// term 1 and without raft, and then leaves what raft needs to start on it: a
// snapshot of it all, with the node as only member, and the term.
func alone(d *disk, id raft.ServerID, l *load, messages uint64) error {
	n, err := openNode(d, id, l.bell)
	if err != nil {
		return err
	}
	s := n.store.current()
	for i := uint64(1); i <= messages; i++ {
		marker, entry := l.message(0)
		entry.Index, entry.Term = i, 1
		b, err := toBatch(&entry)
		if err == nil {
			err = s.Append([]*record.Batch{b}, make([]uint64, 1))
		}
		if err != nil {
			return err
		}
		l.acked[marker] = i
	}
	if err := s.Sync(); err != nil {
		return err
	}
	m := manifest{Folder: firstFolder, Meta: raft.SnapshotMeta{
		Version: 1, ID: "alone", Index: messages, Term: 1,
		Configuration: raft.Configuration{Servers: voters(id)}, ConfigurationIndex: messages,
	}}
	if err := m.State.fold(s, messages); err != nil {
		return err
	}
	return errors.Join(n.shots.publish(&m), n.stable.SetUint64([]byte("CurrentTerm"), 1), n.stop())
}

// TestOneBecomesThree starts raft on the log of a broker that was alone and adds
// two members. Nothing is written anew: each entry stays where it is, and the new
// ones get it from there.
func TestOneBecomesThree(t *testing.T) {
	t.Parallel()
	c := emptyCluster(t)
	l := c.load(12)
	d := inMemory()
	if err := alone(d, "n1", l, 150); err != nil {
		t.Fatal(err)
	}
	c.start(d, "n1", nil)
	l.more(t, 20)
	c.join(inMemory(), "n2")
	c.join(inMemory(), "n3")
	n := c.leader()
	c.revive(n, c.crashAt(n, l, 9, 50, 6))
	l.more(t, 20)
	l.end()
	for id, h := range c.check(c.settle(), l) {
		if h.first != 1 {
			t.Errorf("%s: the log begins with entry %d", id, h.first)
		}
	}
}
