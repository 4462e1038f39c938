package raft

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
)

// An entry is one entry of one replica: where it stands and its replicated part.
type entry struct {
	pos uint64
	raw []byte
}

// A holding is what a node's disk holds when it has stopped.
type holding struct {
	id      raft.ServerID
	first   uint64 // index of the first entry kept
	entries map[uint64]entry
	kinds   map[record.EntryType]int
	state   state
	kept    map[string]int // markers in what the log keeps
	stale   map[string]int // in the rest of its files: truncated or torn
	other   map[string]int // in any other file
	bytes   int
}

var bodyMarker = regexp.MustCompile(`<body [0-9a-f]{16}>`)

// check stops all nodes and proves that they hold the same up to index: entries,
// positions, state, and each body once. It gives the holdings, by node.
func (c *cluster) check(index uint64, l *load) map[raft.ServerID]*holding {
	c.t.Helper()
	all := map[raft.ServerID]*holding{}
	var most *holding
	for _, n := range c.alive(true) {
		h, err := n.holding()
		if err != nil {
			c.t.Fatalf("%s: %v", n.id, err)
		}
		all[n.id] = h
		if most == nil || h.first < most.first {
			most = h
		}
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		h := all[id]
		if err := h.equals(most, index); err != nil {
			c.t.Errorf("%s and %s: %v", id, most.id, err)
		}
		if err := h.bodies(l, index); err != nil {
			c.t.Errorf("%s: %v", id, err)
		}
		c.t.Logf("%s: entries %d to %d, by type %v, %d bytes, %d stale copies of bodies", id, h.first, index, h.kinds, h.bytes, len(h.stale))
	}
	return all
}

// allKinds proves that a node's entries are of all types.
func (h *holding) allKinds(t *testing.T) {
	t.Helper()
	for kind := record.EntryCommands; kind <= record.EntryBarrier; kind++ {
		if h.kinds[kind] == 0 {
			t.Errorf("%s: no entry of type %d was tried", h.id, kind)
		}
	}
}

// holding stops a node and reads its disk.
func (n *node) holding() (*holding, error) {
	if err := n.halt(); err != nil {
		return nil, err
	}
	h := &holding{
		id: n.id, entries: map[uint64]entry{}, kinds: map[record.EntryType]int{},
		kept: map[string]int{}, stale: map[string]int{}, other: map[string]int{},
	}
	var err error
	if h.state, err = n.machine.at(); err != nil {
		return nil, err
	}
	l := n.store.current()
	h.first = l.FirstIndex()
	if err := h.replay(l); err != nil {
		return nil, err
	}
	segments := l.Segments()
	if err := n.stop(); err != nil {
		return nil, err
	}
	folder := n.shots.last().Folder
	if err := h.verify(logOptions(n.disk, n.id, folder)); err != nil {
		return nil, err
	}
	err = h.search(n.disk, n.disk.dir, n.disk.path(folder), segments)
	return h, err
}

func (h *holding) replay(l *log.Log) error {
	return l.Replay(log.Start{}, func(pos uint64, b *record.Batch) error {
		raw, err := record.AppendBatch(nil, b)
		h.entries[b.Index] = entry{pos, raw}
		h.kinds[b.Type]++
		h.bytes += len(raw)
		return err
	})
}

// verify reads the closed log as `verify` on the command line does.
func (h *holding) verify(o log.Options) error {
	report, err := log.Verify(o, nil)
	if err != nil {
		return err
	}
	if len(report.Damage) > 0 || report.Torn > 0 || report.Batches != uint64(len(h.entries)) {
		return fmt.Errorf("verify: %d batches of %d, %d torn bytes, damage %v", report.Batches, len(h.entries), report.Torn, report.Damage)
	}
	return nil
}

// search counts the markers in every file of the disk.
func (h *holding) search(d *disk, dir, logDir string, segments []log.Segment) error {
	names, err := d.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := d.PathJoin(dir, name)
		info, err := d.Stat(path)
		if err != nil {
			return err
		}
		if info.IsDir() {
			if err := h.search(d, path, logDir, segments); err != nil {
				return err
			}
			continue
		}
		raw, err := d.read(path)
		if err != nil {
			return err
		}
		if dir != logDir {
			count(raw, h.other)
			continue
		}
		kept := keptBytes(name, segments)
		count(raw[:kept], h.kept)
		count(raw[kept:], h.stale)
	}
	return nil
}

// keptBytes is how much of a file of the log is a segment's header and batches.
func keptBytes(name string, segments []log.Segment) int64 {
	for _, s := range segments {
		if name == fmt.Sprintf("%020d.seg", s.Base) {
			return s.Bytes
		}
	}
	return 0
}

func count(raw []byte, into map[string]int) {
	for _, m := range bodyMarker.FindAll(raw, -1) {
		into[string(m)]++
	}
}

// equals says how a node differs from one that holds at least as much.
func (h *holding) equals(o *holding, index uint64) error {
	if h.state.Index < index || h.state != o.state {
		return fmt.Errorf("state after entry %d is %x, after entry %d it is %x; want both after %d",
			h.state.Index, h.state.Hash[:4], o.state.Index, o.state.Hash[:4], index)
	}
	for i := h.first; i <= index; i++ {
		a, ok := h.entries[i]
		b, too := o.entries[i]
		if !ok || !too || a.pos != b.pos || !bytes.Equal(a.raw, b.raw) {
			return fmt.Errorf("entry %d: %d bytes at %d and %d bytes at %d", i, len(a.raw), a.pos, len(b.raw), b.pos)
		}
	}
	if h.first != 1 {
		return nil
	}
	var again state
	for i := uint64(1); i <= index; i++ {
		b, _, err := record.DecodeBatch(h.entries[i].raw)
		if err != nil {
			return err
		}
		if err := again.add(h.entries[i].pos, &b); err != nil {
			return err
		}
	}
	if again != h.state {
		return fmt.Errorf("the log folds to %x, the state is %x", again.Hash[:4], h.state.Hash[:4])
	}
	return nil
}

// bodies says what is wrong with the messages up to index: one that was
// acknowledged must stand in its entry, and every one in the log must stand on
// the disk once, in what the log keeps.
func (h *holding) bodies(l *load, index uint64) error {
	inLog := map[string]bool{}
	for _, e := range h.entries {
		for _, m := range bodyMarker.FindAll(e.raw, -1) {
			inLog[string(m)] = true
		}
	}
	for m := range inLog {
		if h.kept[m] != 1 || !l.proposed[m] {
			return fmt.Errorf("%s stands %d times in what the log keeps, proposed: %v", m, h.kept[m], l.proposed[m])
		}
	}
	for m := range h.kept {
		if !inLog[m] {
			return fmt.Errorf("%s stands in what the log keeps, but in no entry", m)
		}
	}
	if len(h.other) > 0 {
		return fmt.Errorf("%d bodies stand in other files than the log's", len(h.other))
	}
	for m, at := range l.acked {
		if at < h.first {
			continue
		}
		if at > index || !bytes.Contains(h.entries[at].raw, []byte(m)) {
			return fmt.Errorf("%s was acknowledged as entry %d of %d and is not there", m, at, index)
		}
	}
	return nil
}
