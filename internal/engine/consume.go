package engine

import (
	"fmt"

	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
)

// progress is how far a group has come in a queue, moved up to what is kept.
// Nil if either has ended.
func (m *machine) progress(gn record.GroupNumber, qn record.QueueNumber) (*group.Progress, *queue.Queue, error) {
	g, q := m.groups.Get(gn), m.queues.Get(qn)
	if g == nil || q == nil {
		return nil, nil, nil
	}
	from, err := m.start(g, q)
	if err != nil {
		return nil, nil, err
	}
	least, err := m.queues.Min(q, m.keep.trim)
	if err != nil {
		return nil, nil, err
	}
	p := m.groups.Begin(g, qn, from)
	p.Clip(least)
	return p, q, nil
}

// start is where a group begins in a queue in which it has not begun.
func (m *machine) start(g *group.Group, q *queue.Queue) (record.Offset, error) {
	switch {
	case g.Progress(q.Number) != nil:
		return 0, nil
	case g.Start == record.StartLatest:
		return q.Next(), nil
	case g.Start == record.StartAt:
		return m.queues.Search(q, max(g.StartTime, m.keep.trim))
	default:
		return m.queues.Min(q, m.keep.trim)
	}
}

func (m *machine) ack(payload []byte) (Outcome, error) {
	var a record.Ack
	if err := record.DecodeAck(payload, &a); err != nil {
		return Outcome{}, err
	}
	p, q, err := m.progress(a.Group, a.Queue)
	if err != nil || p == nil {
		return Outcome{Gone: true}, err
	}
	return Outcome{Fresh: p.Ack(a.Ranges, q.Next())}, nil
}

func (m *machine) lease(payload []byte) (Outcome, error) {
	var l record.Lease
	if err := record.DecodeLease(payload, &l); err != nil {
		return Outcome{}, err
	}
	p, q, err := m.progress(l.Group, l.Queue)
	if err != nil || p == nil {
		return Outcome{Gone: true}, err
	}
	p.Lease(l.Runs, q.Next())
	return Outcome{}, nil
}

func (m *machine) release(payload []byte) (Outcome, error) {
	var r record.Release
	if err := record.DecodeRelease(payload, &r); err != nil {
		return Outcome{}, err
	}
	if !r.Reason.Known() {
		return Outcome{}, fmt.Errorf("%w: release for reason %d", record.ErrVersion, r.Reason)
	}
	p, q, err := m.progress(r.Group, r.Queue)
	if err != nil || p == nil {
		return Outcome{Gone: true}, err
	}
	p.Release(r.Entries, q.Next())
	return Outcome{}, nil
}

func (m *machine) commit(payload []byte) (Outcome, error) {
	c, err := record.DecodeCommit(payload)
	if err != nil {
		return Outcome{}, err
	}
	p, q, err := m.progress(c.Group, c.Queue)
	if err != nil || p == nil {
		return Outcome{Gone: true}, err
	}
	p.Pulled = min(c.Offset, q.Next())
	return Outcome{}, nil
}

func (m *machine) reset(payload []byte) (Outcome, error) {
	c, err := record.DecodeReset(payload)
	if err != nil {
		return Outcome{}, err
	}
	p, q, err := m.progress(c.Group, c.Queue)
	if err != nil || p == nil {
		return Outcome{Gone: true}, err
	}
	p.Reset(min(c.Offset, q.Next()))
	return Outcome{Offset: p.Base}, nil
}

func (m *machine) makeGroup(payload []byte) (Outcome, error) {
	g, err := record.DecodeGroup(payload)
	if err != nil {
		return Outcome{}, err
	}
	if !g.Start.Known() {
		return Outcome{}, fmt.Errorf("%w: group that starts by policy %d", record.ErrVersion, g.Start)
	}
	made := m.groups.Make(g)
	return Outcome{Group: made, Gone: made == nil}, nil
}

func (m *machine) endGroup(payload []byte) (Outcome, error) {
	g, err := record.DecodeEndGroup(payload)
	if err != nil {
		return Outcome{}, err
	}
	if m.groups.Get(g.Number) == nil {
		return Outcome{Gone: true}, nil
	}
	m.groups.End(g.Number)
	return Outcome{}, nil
}
