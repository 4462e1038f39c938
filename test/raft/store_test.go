package raft

import (
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
)

// keyFirst is where the stable store keeps raft's mark.
var keyFirst = []byte("duemq first")

// A store is a commit log as raft's log. It keeps two marks: what raft may see,
// which raft moves when it compacts, and what the log still holds, which is the
// business of retention. Raft's mark never removes a byte.
//
// All of it is safe from any goroutine: raft stores and truncates from its main
// one, moves its mark from another, and retention comes from a third.
type store struct {
	power  *power
	stable *stable
	bell   *bell
	// newest is the index of the newest snapshot: what raft deletes at or below
	// it is only hidden, what it deletes above is cut off.
	newest func() uint64

	// appender is held by whoever changes the log.
	appender sync.Mutex

	mu     sync.RWMutex
	log    *log.Log
	first  uint64 // the first index that raft may see
	poison error
	failed chan struct{} // closed when the store is poisoned

	truncating func()     // if set, called before a suffix is removed
	truncated  int        // suffixes removed
	promised   uint64     // index of the last entry, as raft was told
	old        []*log.Log // replaced by a snapshot, still open for readers
}

var (
	_ raft.LogStore          = (*store)(nil)
	_ raft.MonotonicLogStore = (*store)(nil)
)

func newStore(l *log.Log, s *stable, p *power, b *bell, newest func() uint64) (*store, error) {
	first, err := s.GetUint64(keyFirst)
	if err != nil {
		return nil, err
	}
	return &store{power: p, stable: s, bell: b, newest: newest, log: l, first: max(first, 1), failed: make(chan struct{})}, nil
}

// IsMonotonic says that the log has no gaps.
func (s *store) IsMonotonic() bool { return true }

func (s *store) current() *log.Log {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.log
}

// visible is the range that raft may see, from 1 up to 0 if there is none.
func (s *store) visible() (first, last uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	first, last = max(s.first, s.log.FirstIndex()), s.log.LastIndex()
	if first > last {
		return 1, 0
	}
	return first, last
}

// FirstIndex is the first index that raft may see, 0 if there is none.
func (s *store) FirstIndex() (uint64, error) {
	first, last := s.visible()
	return min(first, last), nil
}

// LastIndex is the last index that raft may see, 0 if there is none.
func (s *store) LastIndex() (uint64, error) {
	_, last := s.visible()
	return last, nil
}

// GetLog reads one entry, verified.
func (s *store) GetLog(index uint64, l *raft.Log) error {
	if first, last := s.visible(); index < first || index > last {
		return raft.ErrLogNotFound
	}
	_, b, err := s.current().Get(index)
	if errors.Is(err, log.ErrRemoved) || errors.Is(err, log.ErrRange) {
		return raft.ErrLogNotFound // raft compares, it does not unwrap
	}
	if err != nil {
		return err
	}
	return fromBatch(&b, l)
}

// StoreLog stores one entry.
func (s *store) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs appends entries. They are on disk when it returns nil: raft counts
// this replica for their commitment from then on. After any error it fails for
// ever and the node stops, where raft alone would only step down and try again.
func (s *store) StoreLogs(logs []*raft.Log) error {
	s.appender.Lock()
	defer s.appender.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	batches := make([]*record.Batch, len(logs))
	for i, l := range logs {
		b, err := toBatch(l)
		if err != nil {
			return s.fail(err)
		}
		batches[i] = b
	}
	l := s.current()
	err := l.Append(batches, make([]uint64, len(batches)))
	if err == nil {
		err = l.Sync()
	}
	return s.done(err)
}

// DeleteRange hides a prefix or cuts off a suffix, min and max included.
func (s *store) DeleteRange(lo, hi uint64) error {
	if err := s.usable(); err != nil {
		return err
	}
	first, last := s.visible()
	if first > last || lo > hi {
		return nil
	}
	if lo > first {
		if hi < last {
			return s.fail(fmt.Errorf("deletion from %d to %d would leave a hole in %d to %d", lo, hi, first, last))
		}
		return s.truncate(lo)
	}
	// A prefix, perhaps all. Up to the newest snapshot our entries are those of
	// the group; beyond it they may be another history, which must not come back.
	if floor := s.newest(); hi > floor {
		if err := s.truncate(floor + 1); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.first = max(s.first, hi+1)
	s.mu.Unlock()
	return s.done(s.stable.SetUint64(keyFirst, hi+1))
}

func (s *store) truncate(from uint64) error {
	s.appender.Lock()
	defer s.appender.Unlock()
	s.mu.Lock()
	truncating := s.truncating
	s.promised = min(s.promised, from-1)
	s.mu.Unlock()
	if truncating != nil {
		truncating()
	}
	err := s.current().TruncateSuffix(from)
	s.mu.Lock()
	s.truncated++
	s.mu.Unlock()
	return s.done(err)
}

// trim is retention: it removes the segments that lie before the newest
// snapshot's last entry. Raft may see less already, never more.
func (s *store) trim() error {
	s.appender.Lock()
	defer s.appender.Unlock()
	l := s.current()
	pos, _, err := l.Get(s.newest())
	if err != nil {
		return err
	}
	return l.RemoveBefore(pos)
}

// onTruncate sets what is called before a suffix is removed.
func (s *store) onTruncate(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.truncating = fn
}

// truncations is how often a suffix was removed.
func (s *store) truncations() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.truncated
}

// swap puts another log in the place of the present one. That stays open, for
// the machine may still be reading it.
func (s *store) swap(l *log.Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l != s.log {
		s.old, s.log = append(s.old, s.log), l
	}
}

// replaced are the logs that were swapped out, for whoever closes them.
func (s *store) replaced() []*log.Log {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.old
}

// done ends an operation that raft may build on. What came after the power was
// gone is not on the disk, whatever the disk said.
func (s *store) done(err error) error {
	if err == nil {
		err = s.power.gone()
	}
	if err != nil {
		return s.fail(err)
	}
	s.mu.Lock()
	s.promised = s.log.LastIndex()
	s.mu.Unlock()
	s.bell.ring()
	return nil
}

// promise is up to where raft was told that entries are on the disk.
func (s *store) promise() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.promised
}

func (s *store) usable() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.poison
}

// fail poisons the store.
func (s *store) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poison == nil {
		s.poison = fmt.Errorf("raft store stopped: %w", err)
		close(s.failed)
	}
	return s.poison
}
