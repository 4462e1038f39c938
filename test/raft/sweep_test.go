package raft

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
)

// command makes a command entry of about size bytes. Another term gives other
// bytes.
func command(index, term uint64, size int) *raft.Log {
	rng := rand.New(rand.NewPCG(index, term))
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(rng.Uint32())
	}
	m := record.Message{Queue: 1, Stored: int64(index), Born: int64(index), Body: body}
	b := record.Batch{Stamp: int64(index), Limit: 7, Data: record.AppendSend(nil, &m)}
	return &raft.Log{
		Index: index, Term: term, Data: appendProposal(nil, &b), Extensions: body[:index%5], AppendedAt: time.Unix(int64(index), int64(term)),
	}
}

func commands(from, to, term uint64, size int) []*raft.Log {
	var list []*raft.Log
	for i := from; i <= to; i++ {
		list = append(list, command(i, term, size))
	}
	return list
}

// holds says how the store's entries differ from a prefix of want that is at
// least as long as least.
func holds(s *store, want []*raft.Log, least int) error {
	last := s.current().LastIndex()
	if last < uint64(least) || last > uint64(len(want)) {
		return fmt.Errorf("log ends with entry %d, want %d to %d", last, least, len(want))
	}
	for i := range last {
		var got raft.Log
		if err := s.GetLog(i+1, &got); err != nil {
			return fmt.Errorf("entry %d: %w", i+1, err)
		}
		if err := sameLog(&got, want[i]); err != nil {
			return err
		}
	}
	return nil
}

// A truncation is raft's way to correct a follower: the old entries from cut on
// are deleted and new ones are stored in their place.
type truncation struct {
	mem   *vfs.MemFS
	disk  *disk
	old   []*raft.Log
	cut   int
	now   []*raft.Log // what the log is to hold in the end
	least int         // of now, once raft was told
	whole bool        // the deletion has returned
}

// run does it on a store.
func (x *truncation) run(s *store) error {
	if err := s.DeleteRange(uint64(x.cut), uint64(len(x.old))); err != nil {
		return err
	}
	x.whole, x.least = true, x.cut-1
	for _, l := range x.now[x.cut-1:] {
		if err := s.StoreLog(l); err != nil {
			return err
		}
		x.least++
	}
	return nil
}

// look opens what a power cut now would leave. It is the old log if the deletion
// has not returned, or a prefix of the new one; never one with the end of the
// other. Then another leader corrects it once more, and nothing comes back.
func (x *truncation) look(percent int) error {
	cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(uint64(x.disk.Ops()), 3))}
	mem := x.mem.CrashClone(cfg)
	n, err := openNode(x.disk.over(mem), "n1", newBell())
	if err != nil {
		return err
	}
	old := holds(n.store, x.old, len(x.old))
	if err := holds(n.store, x.now, x.least); err != nil && (x.whole || old != nil) {
		return errors.Join(err, old)
	}
	last, _ := n.store.LastIndex()
	again := slices.Concat(x.old[:x.cut-1], commands(uint64(x.cut), uint64(x.cut)+2, 9, 900))
	if last >= uint64(x.cut) {
		err = n.store.DeleteRange(uint64(x.cut), last)
	}
	if err == nil {
		err = n.store.StoreLogs(again[x.cut-1:])
	}
	if err != nil {
		return err
	}
	if n, err = openNode(x.disk.over(mem.CrashClone(vfs.CrashCloneCfg{})), "n1", newBell()); err != nil {
		return err
	}
	return holds(n.store, again, len(again))
}

// sweep crashes a truncation from entry cut, and new entries of about size bytes
// in its place, before each change of the disk.
func sweep(bugs log.Bugs, cut, size int) error {
	old := slices.Concat(commands(1, 12, 1, 12000), commands(13, 20, 2, 900))
	mem := fs.NewMem()
	d := memoryDisk(mem)
	d.bugs = bugs
	n, err := openNode(d, "n1", newBell())
	if err == nil {
		err = n.store.StoreLogs(old)
	}
	if err != nil {
		return err
	}
	x := &truncation{
		mem: mem, disk: d, old: old, cut: cut,
		now: slices.Concat(old[:cut-1], commands(uint64(cut), uint64(cut)+4, 3, size)),
	}
	d.Hooks(func(op fs.Op) {
		for _, percent := range []int{0, 40, 100} {
			if bad := x.look(percent); bad != nil {
				err = fmt.Errorf("crash with %d %% of what was not synced before %s: %w", percent, op, bad)
			}
		}
	}, nil)
	if err := x.run(n.store); err != nil {
		return err
	}
	d.Hooks(nil, nil)
	return errors.Join(err, x.look(0))
}

// TestTruncationAtEveryOperation cuts in the middle of a segment, at its
// beginning, and over several.
func TestTruncationAtEveryOperation(t *testing.T) {
	t.Parallel()
	for _, cut := range []int{2, 5, 6, 11, 14, 20} {
		for _, size := range []int{300, 25000} {
			if err := sweep(log.Bugs{}, cut, size); err != nil {
				t.Errorf("cut from entry %d, new entries of %d bytes: %v", cut, size, err)
			}
		}
	}
}

// TestExam is the exam of the sweep: it must find each of the faults that the
// log has a switch for and that it can meet.
func TestExam(t *testing.T) {
	t.Parallel()
	for name, bugs := range map[string]log.Bugs{
		"no sync":             {SkipSync: true},
		"no sync of folders":  {SkipDirSync: true},
		"no mark":             {SkipMark: true},
		"no mark and no sync": {SkipMark: true, SkipSync: true},
	} {
		if sweep(bugs, 6, 300) == nil && sweep(bugs, 14, 25000) == nil {
			t.Errorf("%s: nothing noticed", name)
		}
	}
}

// TestInstallAtEveryOperation crashes a node that takes over the snapshot of
// another, before each change of the disk. It has either the snapshot, with the
// log up to it at the positions of the other, or what it had before.
func TestInstallAtEveryOperation(t *testing.T) {
	t.Parallel()
	list := slices.Concat(commands(1, 12, 1, 12000), commands(13, 30, 2, 900))
	source := snapshotSource(t, list)
	for name, own := range map[string][]*raft.Log{
		"a new node":                             nil,
		"far behind":                             list[:3],
		"behind within the segment":              list[:25],
		"with a history of its own":              slices.Concat(list[:22], commands(23, 28, 1, 500)),
		"with a history that is longer":          slices.Concat(list[:22], commands(23, 40, 1, 500)),
		"with everything and more, all the same": slices.Concat(list[:30], commands(31, 33, 2, 500)),
	} {
		t.Run(name, func(t *testing.T) {
			mem := fs.NewMem()
			d := memoryDisk(mem)
			n, err := openNode(d, "n2", newBell())
			if err == nil && own != nil {
				err = n.store.StoreLogs(own)
			}
			if err != nil {
				t.Fatal(err)
			}
			d.Hooks(func(op fs.Op) {
				for _, percent := range []int{0, 40, 100} {
					cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(uint64(op.Number), 3))}
					if err := lookInstall(mem.CrashClone(cfg), source); err != nil {
						t.Errorf("crash with %d %% of what was not synced before %s: %v", percent, op, err)
					}
				}
			}, nil)
			if err := install(n, source); err != nil {
				t.Fatal(err)
			}
			d.Hooks(nil, nil)
			if err := installed(n, source, list); err != nil {
				t.Error(err)
			}
			if err := lookInstall(mem.CrashClone(vfs.CrashCloneCfg{}), source); err != nil {
				t.Error(err)
			}
		})
	}
}

// snapshotSource is a node with a snapshot at its last entry.
func snapshotSource(t *testing.T, list []*raft.Log) *node {
	t.Helper()
	n, err := openNode(inMemory(), "n1", newBell())
	if err == nil {
		err = n.store.StoreLogs(list)
	}
	if err != nil {
		t.Fatal(err)
	}
	last := list[len(list)-1]
	to, err := n.shots.Create(1, last.Index, last.Term, raft.Configuration{}, 0, nil)
	if err == nil {
		err = (&cut{log: n.store.current()}).Persist(to)
	}
	if err == nil {
		err = to.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// install gives a node the snapshot of another, as raft does.
func install(n, source *node) error {
	meta, stream, err := source.shots.Open(source.shots.last().Meta.ID)
	if err != nil {
		return err
	}
	to, err := n.shots.Create(meta.Version, meta.Index, meta.Term, meta.Configuration, meta.ConfigurationIndex, nil)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, stream); err != nil {
		return err
	}
	if err := to.Close(); err != nil {
		return err
	}
	if _, stream, err = n.shots.Open(to.ID()); err != nil {
		return err
	}
	if err := n.machine.Restore(stream); err != nil {
		return err
	}
	first, last := n.store.visible()
	return n.store.DeleteRange(first, last)
}

var errLog = errors.New("the log differs")

// installed says how a node differs from what it took over.
func installed(n, source *node, list []*raft.Log) error {
	s, err := n.machine.at()
	if err != nil {
		return err
	}
	if want := source.shots.last(); s != want.State || n.shots.index() != want.Meta.Index {
		return fmt.Errorf("state of entry %d, snapshot %d, want %d", s.Index, n.shots.index(), want.Meta.Index)
	}
	l, theirs := n.store.current(), source.store.current()
	if l.LastIndex() != uint64(len(list)) {
		return fmt.Errorf("log ends with entry %d, the snapshot with %d: %w", l.LastIndex(), len(list), errLog)
	}
	if first, last := n.store.visible(); first <= last {
		return fmt.Errorf("raft sees entries %d to %d after it deleted all", first, last)
	}
	for i := l.FirstIndex(); i <= l.LastIndex(); i++ {
		pos, b, err := l.Get(i)
		if err != nil {
			return err
		}
		want, _, err := theirs.Get(i)
		if err != nil || pos != want || b.Term != list[i-1].Term {
			return fmt.Errorf("entry %d of term %d at %d, want term %d at %d: %w", i, b.Term, pos, list[i-1].Term, want, errLog)
		}
	}
	return nil
}

// lookInstall opens what a power cut left of a node. If it has the snapshot, the
// log reaches it; either way it can take it over again.
func lookInstall(mem *vfs.MemFS, source *node) error {
	n, err := openNode(memoryDisk(mem), "n2", newBell())
	if err != nil {
		return err
	}
	want := source.shots.last()
	if n.shots.index() == want.Meta.Index {
		pos, b, err := n.store.current().Get(want.Meta.Index)
		theirs, _, _ := source.store.current().Get(want.Meta.Index)
		if err != nil || pos != theirs || b.Term != want.Meta.Term {
			return fmt.Errorf("snapshot at entry %d, log to %d: %w", want.Meta.Index, n.store.current().LastIndex(), errors.Join(err, errLog))
		}
	}
	if err := install(n, source); err != nil {
		return err
	}
	s, err := n.machine.at()
	if err != nil || s != want.State {
		return fmt.Errorf("state of entry %d, want that of %d: %w", s.Index, want.Meta.Index, errors.Join(err, errLog))
	}
	return nil
}
