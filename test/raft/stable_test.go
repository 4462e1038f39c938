package raft

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"

	"github.com/hashicorp/raft"
)

// A stable keeps raft's term and vote in one small file, replaced as a whole.
// After an error it fails for ever, for the same reason as the log.
type stable struct {
	disk *disk

	mu     sync.Mutex
	values map[string][]byte
	poison error
}

const stableName = "STABLE"

var _ raft.StableStore = (*stable)(nil)

func openStable(d *disk) (*stable, error) {
	s := &stable{disk: d, values: map[string][]byte{}}
	raw, err := d.read(d.path(stableName))
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &s.values); err != nil {
		return nil, fmt.Errorf("%s: %w", stableName, err)
	}
	return s, nil
}

// Set keeps a value. It is on disk when it returns nil.
func (s *stable) Set(key, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poison != nil {
		return s.poison
	}
	next := maps.Clone(s.values)
	next[string(key)] = value
	raw, err := json.Marshal(next)
	if err == nil {
		err = s.disk.replace(stableName, raw)
	}
	if err != nil {
		s.poison = err
		return err
	}
	s.values = next
	return nil
}

// Get gives a value, nothing if there is none.
func (s *stable) Get(key []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[string(key)], nil
}

// SetUint64 keeps a number. Raft panics when its term cannot be kept, which is
// right for a process that has lost its disk. Here two other nodes live in the
// process, so a node without power may believe a term that it will have
// forgotten: nothing follows from a term alone, and its vote fails.
func (s *stable) SetUint64(key []byte, value uint64) error {
	err := s.Set(key, binary.LittleEndian.AppendUint64(nil, value))
	if s.disk.power.gone() != nil && string(key) == "CurrentTerm" {
		return nil
	}
	return err
}

// GetUint64 gives a number, 0 if there is none.
func (s *stable) GetUint64(key []byte) (uint64, error) {
	raw, err := s.Get(key)
	if err != nil || len(raw) == 0 {
		return 0, err
	}
	return binary.LittleEndian.Uint64(raw), nil
}
