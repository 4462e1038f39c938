package raft

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
)

// sameLog says how two entries differ.
func sameLog(got, want *raft.Log) error {
	if got.Index != want.Index || got.Term != want.Term || got.Type != want.Type || !got.AppendedAt.Equal(want.AppendedAt) ||
		!bytes.Equal(got.Data, want.Data) || !bytes.Equal(got.Extensions, want.Extensions) {
		return fmt.Errorf("entry %d of term %d, type %v, %d bytes, appended at %v; want term %d, type %v, %d bytes, appended at %v",
			got.Index, got.Term, got.Type, len(got.Data), got.AppendedAt, want.Term, want.Type, len(want.Data), want.AppendedAt)
	}
	return nil
}

// entries are one of each type, with and without all that raft may fill in.
func entries() []*raft.Log {
	rebase := record.Batch{Stamp: -5, Limit: 1<<32 - 1, Flags: record.FlagRebase, Data: []byte("commands")}
	tick := record.Batch{Stamp: 1 << 62, Limit: 0}
	return []*raft.Log{
		{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(raft.Configuration{Servers: voters("n1", "n2")})},
		{Index: 2, Term: 1, Type: raft.LogNoop, AppendedAt: time.Unix(1795000000, 123456789)},
		{Index: 3, Term: 1, Type: raft.LogCommand, Data: appendProposal(nil, &rebase), Extensions: []byte{0, 1}, AppendedAt: time.Unix(0, 1)},
		{Index: 4, Term: 7, Type: raft.LogBarrier, AppendedAt: time.Unix(-1, 0)},
		{Index: 5, Term: 7, Type: raft.LogCommand, Data: appendProposal(nil, &tick), Extensions: make([]byte, 300)},
	}
}

// TestEntries keeps all that raft wants kept, of every type, over a power cut.
func TestEntries(t *testing.T) {
	mem := fs.NewMem()
	n, err := openNode(memoryDisk(mem), "n1", newBell())
	if err == nil {
		err = n.store.StoreLogs(entries())
	}
	if err != nil {
		t.Fatal(err)
	}
	n, err = openNode(memoryDisk(mem.CrashClone(vfs.CrashCloneCfg{})), "n1", newBell())
	if err != nil {
		t.Fatal(err)
	}
	if err := holds(n.store, entries(), 5); err != nil {
		t.Error(err)
	}
	_, b, err := n.store.current().Get(3)
	if err != nil || b.Stamp != -5 || b.Limit != 1<<32-1 || b.Flags != record.FlagRebase || string(b.Data) != "commands" {
		t.Errorf("batch 3 is %+v, %v", b, err)
	}
}

// TestMarks moves raft's mark, which hides entries and removes none, and keeps it
// over a power cut.
func TestMarks(t *testing.T) {
	mem := fs.NewMem()
	n, err := openNode(memoryDisk(mem), "n1", newBell())
	if err == nil {
		err = n.store.StoreLogs(commands(1, 10, 1, 200))
	}
	if err == nil {
		err = n.shots.publish(&manifest{Meta: raft.SnapshotMeta{Index: 10, Term: 1}, Folder: firstFolder})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ lo, hi, first, last uint64 }{
		{1, 3, 4, 10},
		{4, 4, 5, 10},
		{7, 6, 5, 10},
		{1, 5, 6, 10},
		{6, 10, 0, 0},
	} {
		if err := n.store.DeleteRange(step.lo, step.hi); err != nil {
			t.Fatal(err)
		}
		reopened, err := openNode(memoryDisk(mem.CrashClone(vfs.CrashCloneCfg{})), "n1", newBell())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*store{n.store, reopened.store} {
			first, _ := s.FirstIndex()
			last, _ := s.LastIndex()
			if first != step.first || last != step.last {
				t.Errorf("raft sees %d to %d after the deletion of %d to %d, want %d to %d", first, last, step.lo, step.hi, step.first, step.last)
			}
			if l := s.current(); l.FirstIndex() != 1 || l.LastIndex() != 10 {
				t.Errorf("the log keeps %d to %d, want all", l.FirstIndex(), l.LastIndex())
			}
			if err := s.GetLog(step.first-1, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
				t.Errorf("entry before the first: %v", err)
			}
		}
	}
	if err := n.store.StoreLogs(commands(11, 12, 1, 200)); err != nil {
		t.Fatal(err)
	}
	if first, last := n.store.visible(); first != 11 || last != 12 {
		t.Errorf("raft sees %d to %d, want 11 to 12", first, last)
	}
}

// TestRefusals stops a store for ever at whatever raft must not do, and at what
// only a later raft could.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(s *store) error
		want error
	}{
		"gap":           {func(s *store) error { return s.StoreLog(command(7, 1, 10)) }, log.ErrGap},
		"overwriting":   {func(s *store) error { return s.StoreLog(command(5, 1, 10)) }, log.ErrGap},
		"short command": {func(s *store) error { return s.StoreLog(&raft.Log{Index: 6, Term: 1, Data: []byte{1}}) }, record.ErrCorrupt},
		"old membership": {func(s *store) error {
			return s.StoreLog(&raft.Log{Index: 6, Term: 1, Type: raft.LogRemovePeerDeprecated})
		}, record.ErrVersion},
		"too large": {func(s *store) error { return s.StoreLog(command(6, 1, 70000)) }, record.ErrTooLarge},
		"hole":      {func(s *store) error { return s.DeleteRange(2, 3) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := openNode(inMemory(), "n1", newBell())
			if err == nil {
				err = n.store.StoreLogs(commands(1, 5, 1, 100))
			}
			if err != nil {
				t.Fatal(err)
			}
			err = c.do(n.store)
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Fatalf("refused with %v, want %v", err, c.want)
			}
			if again := n.store.StoreLog(command(6, 1, 10)); !errors.Is(again, err) && again == nil {
				t.Errorf("goes on after %v", err)
			}
			select {
			case <-n.store.failed:
			default:
				t.Error("nobody is told")
			}
			if err := holds(n.store, commands(1, 5, 1, 100), 5); err != nil {
				t.Error(err)
			}
		})
	}
}
