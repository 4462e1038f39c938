package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
)

// Hash is a digest of the whole state as the batches made it: topics, groups,
// settings, everything visible, everything that waits, and every outcome. It
// does not depend on cuts, so a store whose index was deleted and filled again
// from the log has the same one, and so have replicas. Nothing changes the
// engine meanwhile; it reads everything and is meant for tests and verify.
func (e *Engine) Hash() (string, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	h := sha256.New()
	if err := e.m.hash(h); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (m *machine) hash(h io.Writer) error {
	fmt.Fprintf(h, "index %d stamp %d next %d %d %d\n", m.index, m.stamp, m.topics.next(), m.nextQueue, m.groups.NextNumber())
	for _, n := range m.names() {
		fmt.Fprintf(h, "setting %q %q\n", n, m.settings[n])
	}
	var err error
	m.topics.each(func(t *Topic) {
		fmt.Fprintf(h, "topic %x\n", t.append(nil))
		for i := range t.Queues {
			if err == nil {
				err = m.hashQueue(h, t.FirstQueue+record.QueueNumber(i))
			}
		}
	})
	if err != nil {
		return err
	}
	for _, g := range m.groups.All() {
		g.Hash(func(b []byte) { fmt.Fprintf(h, "group %x\n", b) })
	}
	m.keep.hash(h)
	m.halves.hash(h)
	m.operations.hash(h)
	if err := m.parking.hash(h); err != nil {
		return err
	}
	if err := m.dedupe.Hash(h, m.keep.high, m.waits); err != nil {
		return err
	}
	return m.line.Hash(h, m.heldBack)
}

// heldBack says that a reference which is due does not wait for time any more
// but for its topic.
func (m *machine) heldBack(r record.Ref) bool {
	_, parked, err := m.parking.find(r)
	return err == nil && parked
}

func (m *machine) hashQueue(h io.Writer, n record.QueueNumber) error {
	q := m.queues.Get(n)
	fmt.Fprintf(h, "queue %d %d\n", n, q.Next())
	var entries []queue.Entry
	low, err := m.queues.Min(q, m.keep.trim)
	if err != nil {
		return err
	}
	for o := low; o < q.Next(); o += record.Offset(len(entries)) {
		var ok bool
		if entries, ok = q.Memory(entries[:0], o, 4096); !ok {
			p, stored := q.Place(o)
			if !stored {
				return fmt.Errorf("%w: queue %d has no entry at offset %d", record.ErrCorrupt, n, o)
			}
			var err error
			if entries, err = m.queues.Read(entries[:0], p, o, 4096); err != nil {
				return err
			}
		}
		if err := binary.Write(h, binary.BigEndian, entries); err != nil {
			return fmt.Errorf("hash: %w", err)
		}
	}
	return nil
}
