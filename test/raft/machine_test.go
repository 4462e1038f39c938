package raft

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
)

// A state is what a replica has made of the log up to Index: a hash over index,
// position and replicated bytes of every entry, in order, whatever its type.
type state struct {
	Index uint64
	Hash  [sha256.Size]byte
}

// fold goes on with the entries of the log up to index.
func (s *state) fold(l *log.Log, index uint64) error {
	for s.Index < index {
		pos, b, err := l.Get(s.Index + 1)
		if err != nil {
			return err
		}
		if err := s.add(pos, &b); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) add(pos uint64, b *record.Batch) error {
	h := sha256.New()
	h.Write(s.Hash[:])
	raw, err := record.AppendBatch(binary.LittleEndian.AppendUint64(nil, pos), b)
	if err != nil {
		return err
	}
	h.Write(raw)
	s.Index = b.Index
	h.Sum(s.Hash[:0])
	return nil
}

// A machine applies the log. It reads every entry from its own node's log, as
// the engine does, and wants raft to have handed over the same.
type machine struct {
	bell *bell

	store *store // whose log a restored snapshot has changed

	mu       sync.Mutex
	log      *log.Log
	state    state
	restored int // snapshots of others that were taken over
	fault    error
}

var (
	_ raft.FSM                = (*machine)(nil)
	_ raft.ConfigurationStore = (*machine)(nil)
)

// Apply applies a command.
func (m *machine) Apply(l *raft.Log) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.state.fold(m.log, l.Index)
	if err == nil {
		err = m.handed(l)
	}
	if err != nil && m.fault == nil {
		m.fault = fmt.Errorf("apply of entry %d: %w", l.Index, err)
	}
	m.bell.ring()
	return nil
}

// handed says how raft's entry differs from the log's.
func (m *machine) handed(l *raft.Log) error {
	_, kept, err := m.log.Get(l.Index)
	if err != nil {
		return err
	}
	b, err := toBatch(l)
	if err != nil {
		return err
	}
	theirs, err := record.AppendBatch(nil, b)
	if err != nil {
		return err
	}
	ours, err := record.AppendBatch(nil, &kept)
	if err == nil && !bytes.Equal(ours, theirs) {
		err = fmt.Errorf("raft hands over %d bytes, other ones than the %d in the log", len(theirs), len(ours))
	}
	return err
}

// StoreConfiguration applies a change of members.
func (m *machine) StoreConfiguration(index uint64, _ raft.Configuration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.state.fold(m.log, index); err != nil && m.fault == nil {
		m.fault = fmt.Errorf("apply of configuration %d: %w", index, err)
	}
	m.bell.ring()
}

// at is the state now, and what went wrong on the way.
func (m *machine) at() (state, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state, m.fault
}

func (m *machine) restores() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.restored
}

// Snapshot begins a cut.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &cut{state: m.state, log: m.log}, m.fault
}

// Restore takes over the cut that a snapshot's stream begins with. The log is
// as the snapshot wants it already: the sink saw to that.
func (m *machine) Restore(source io.ReadCloser) error {
	var f manifest
	if err := json.NewDecoder(source).Decode(&f); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state, m.log = f.State, m.store.current()
	m.restored++
	m.bell.ring()
	return nil
}

// A cut is the machine's state at a moment.
type cut struct {
	state state
	log   *log.Log
}

// Persist writes the cut. Raft's snapshot may reach a little further than the
// last entry that the machine was given: noops and barriers are not handed over.
func (c *cut) Persist(to raft.SnapshotSink) error {
	s, ok := to.(*sink)
	if !ok {
		return fmt.Errorf("sink of type %T", to)
	}
	if err := c.state.fold(c.log, s.manifest.Meta.Index); err != nil {
		return err
	}
	s.manifest.State, s.own = c.state, true
	return nil
}

// Release ends the cut.
func (c *cut) Release() {}
