package queue

import (
	"encoding/binary"
	"fmt"

	"github.com/duemq/duemq/internal/record"
)

// MaxNumber bounds the numbers that are believed from a cut; queues are kept by
// number, and numbers are handed out one by one.
const MaxNumber = 1 << 28

// queueState is the version of a queue's small state.
const queueState = 1

func (q *Queue) appendState() []byte {
	dst := []byte{queueState}
	dst = binary.AppendUvarint(dst, uint64(q.Topic))
	dst = binary.AppendUvarint(dst, uint64(q.next))
	return binary.AppendUvarint(dst, uint64(q.lastVisible))
}

// Restore takes back one queue's small state from a cut.
func (s *Set) Restore(n record.QueueNumber, state []byte) error {
	if len(state) == 0 || state[0] != queueState {
		return fmt.Errorf("%w: state of queue %d", record.ErrVersion, n)
	}
	r := record.ReadFields(state[1:])
	topic, next, visible := r.Uvarint(), r.Uvarint(), r.Uvarint()
	if !r.Done() || topic > 1<<32-1 || n > MaxNumber {
		return fmt.Errorf("%w: state of queue %d", record.ErrCorrupt, n)
	}
	q := s.Add(n, record.TopicNumber(topic))
	q.next, q.liveFrom, q.lastVisible = record.Offset(next), record.Offset(next), int64(visible)
	return nil
}

// RestoreDirectory reads where the entries of older cuts lie. All queues have
// been restored before; what a directory says of others is skipped, since they
// have ended.
func (s *Set) RestoreDirectory() error {
	it, err := s.src.NewIter(s.spaces.Directory, nil, nil)
	if err != nil {
		return fmt.Errorf("read directory: %w", err)
	}
	for it.First(); it.Valid() && err == nil; it.Next() {
		err = s.restoreEpoch(it.Key(), it.Value())
	}
	if err == nil {
		err = it.Error()
	}
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = s.restoreBelow()
	}
	if err != nil {
		return fmt.Errorf("read directory: %w", err)
	}
	s.guess()
	return nil
}

func (s *Set) restoreEpoch(key, value []byte) error {
	if len(key) != 4 {
		return fmt.Errorf("%w: directory key %x", record.ErrCorrupt, key)
	}
	e := epoch{number: binary.BigEndian.Uint32(key)}
	var err error
	e.last, err = decodeDirectory(value, func(n record.QueueNumber, from record.Offset) {
		if q := s.Get(n); q != nil {
			q.supersede(from)
			q.parts = append(q.parts, part{e.number, from})
		}
	})
	s.epochs = append(s.epochs, e)
	return err
}

// supersede lets go of parts that begin at or after an offset at which a later
// one begins. There are some if a cut was abandoned although it was durable, so
// that the next one wrote the same entries again.
func (q *Queue) supersede(from record.Offset) {
	n := len(q.parts)
	for n > 0 && q.parts[n-1].from >= from {
		n--
	}
	q.parts = q.parts[:n]
}

// restoreBelow finds below which epoch there is at most garbage, which a crash
// left before it was excised.
func (s *Set) restoreBelow() error {
	if len(s.epochs) > 0 {
		s.below.Store(s.epochs[0].number)
		return nil
	}
	it, err := s.src.NewIter(s.spaces.Entries, nil, nil)
	if err != nil {
		return err
	}
	if it.Last() && len(it.Key()) == 16 {
		s.below.Store(binary.BigEndian.Uint32(it.Key()) + 1)
	}
	return it.Close()
}

// guess gives epochs whose directory does not tell a greatest VisibleAt: the
// newest of all.
func (s *Set) guess() {
	newest := int64(0)
	for _, q := range s.queues {
		if q != nil {
			newest = max(newest, q.lastVisible)
		}
	}
	for i := range s.epochs {
		if s.epochs[i].last == unknown {
			s.epochs[i].last = newest
		}
	}
}
