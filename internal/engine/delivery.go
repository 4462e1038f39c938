package engine

import (
	"math"

	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
)

// arrive gives a reference that fell due to whom it is for.
func (m *machine) arrive(r *record.Ref, eff *effects) {
	if r.Kind == record.KindCheck {
		m.check(r, eff)
		return
	}
	q := m.queues.Get(r.Queue)
	t := m.topics.get(q.Topic) // the timeline passes over queues that have ended
	t.levels[r.Level]--
	m.count.Add(t.family(), r.Due, -1)
	if m.held(t, r.Queue) {
		m.park(t, *r)
		return
	}
	t.waiting--
	m.keep.leaves(r.ID, r.Due)
	m.show(q, t, r, eff)
}

// show appends a message to its queue.
func (m *machine) show(q *queue.Queue, t *Topic, r *record.Ref, eff *effects) record.Offset {
	t.visible++
	m.topics.touch(t)
	if !t.rung {
		t.rung = true
		eff.rung = append(eff.rung, t)
	}
	return m.queues.Append(q, queue.Entry{ID: r.ID, Due: r.Due, Size: r.Size, Tag: r.Tag}, m.stamp)
}

// held says that nothing may become visible in a queue now: its topic is
// paused or has used up its rate, or others wait before.
func (m *machine) held(t *Topic, n record.QueueNumber) bool {
	if t.paused {
		return true
	}
	if len(m.parking.lots) > 0 && m.parking.lots[n] != nil {
		return true
	}
	return !m.allows(t)
}

// allows takes one message's share of the topic's rate.
func (m *machine) allows(t *Topic) bool {
	if t.rate == 0 {
		return true
	}
	m.topics.touch(t)
	return t.take(m.stamp)
}

// park holds a message back that is due. It waits still, but not for time.
func (m *machine) park(t *Topic, r record.Ref) record.Ref {
	filed := m.parking.park(r, m.stamp)
	t.parked++
	m.topics.touch(t)
	if filed.Due != r.Due {
		m.line.MarkMoved(filed, r.Due, m.at)
		m.rekey(r.ID)
	}
	return filed
}

// rekey has the next cut put a carried message's bytes under its new due.
func (m *machine) rekey(id record.ID) {
	if id < m.keep.carried {
		m.rekeyed[id] = struct{}{}
	}
}

// drain lets what is held back go on, as far as topics allow and limit reaches.
// The queues take turns, so that no large one keeps the others waiting.
func (m *machine) drain(limit int, eff *effects) error {
	lots := m.parking.order
	if len(lots) == 0 || limit <= 0 {
		return nil
	}
	turn := make([]*lot, 0, len(lots))
	for i := range lots {
		l := lots[(uint64(i)+m.index)%uint64(len(lots))]
		if t := m.topics.get(m.queues.Get(l.q.Number).Topic); !t.paused {
			turn = append(turn, l)
		}
	}
	for len(turn) > 0 && limit > 0 {
		share := max(limit/len(turn), 1)
		kept := turn[:0]
		for _, l := range turn {
			n, more, err := m.drainLot(l, min(share, limit), eff)
			if err != nil {
				return err
			}
			limit -= n
			if more && limit > 0 {
				kept = append(kept, l)
			}
		}
		turn = kept
	}
	return nil
}

// drainLot lets up to limit messages of one queue go on; more says that its
// topic would allow others.
func (m *machine) drainLot(l *lot, limit int, eff *effects) (n int, more bool, err error) {
	q := m.queues.Get(l.q.Number)
	t := m.topics.get(q.Topic)
	for l.head < l.q.Next() {
		if n == limit {
			return n, true, nil
		}
		if !m.allows(t) {
			return n, false, nil
		}
		e, err := m.parking.peek(l)
		if err != nil {
			return n, false, err
		}
		r := record.Ref{Due: e.Due, ID: e.ID, Size: e.Size, Tag: e.Tag, Queue: q.Number, Kind: record.KindMessage}
		t.parked--
		t.waiting--
		m.keep.leaves(r.ID, r.Due)
		m.line.MarkDelivered(r, m.at)
		m.show(q, t, &r, eff)
		m.moved++
		n++
		if err := m.parking.next(l); err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

// nextDue is the due of the first message that may move when its time comes,
// MaxInt64 if there is none.
func (m *machine) nextDue() int64 {
	due := int64(math.MaxInt64)
	if d, ok := m.line.Next(); ok {
		due = d
	}
	for _, l := range m.parking.order {
		if t := m.topics.get(m.queues.Get(l.q.Number).Topic); !t.paused {
			due = min(due, t.ready(m.stamp))
		}
	}
	return due
}

// backlog says that something due has not been moved yet.
func (m *machine) backlog() bool {
	due, ok := m.line.Next()
	return ok && due <= m.stamp
}
