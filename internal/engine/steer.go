package engine

import (
	"fmt"

	"github.com/duemq/duemq/internal/dedupe"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// A standing is how a message waits: in the timeline, or held back.
type standing struct {
	ref     record.Ref
	verdict timeline.Verdict
	parked  bool
	at      record.Offset // with parked: where
}

// locate finds how a message waits now. r is the reference as it was sent.
func (m *machine) locate(r record.Ref) (standing, error) {
	if m.queues.Get(r.Queue) == nil {
		return standing{ref: r, verdict: timeline.NotWaiting}, nil
	}
	now, v, err := m.line.Locate(r)
	if err != nil || v == timeline.AlreadyCancelled || now.Due == 0 {
		return standing{ref: now, verdict: v}, err
	}
	// What is held back may stand above the popped key: its due was lifted, or
	// the clock was set back.
	if at, parked, err := m.parking.find(now); err != nil || parked {
		return standing{now, timeline.Done, true, at}, err
	}
	return standing{ref: now, verdict: v}, nil
}

func known(k record.Kind) error {
	if !k.Known() {
		return fmt.Errorf("%w: reference of kind %d", record.ErrVersion, k)
	}
	return nil
}

func (m *machine) cancel(payload []byte, at record.ID) (Outcome, error) {
	c, err := record.DecodeCancel(payload)
	if err != nil {
		return Outcome{}, err
	}
	if err := known(c.Key.Kind); err != nil {
		return Outcome{}, err
	}
	k := c.Key
	return m.take(record.Ref{Due: k.Due, ID: k.ID, Kind: k.Kind, Queue: k.Queue, Level: c.Level}, at)
}

// take takes a message away that waits.
func (m *machine) take(r record.Ref, at record.ID) (Outcome, error) {
	s, err := m.locate(r)
	out := Outcome{Verdict: s.verdict, Due: s.ref.Due}
	if err != nil || s.verdict != timeline.Done {
		return out, err
	}
	t := m.topics.get(m.queues.Get(r.Queue).Topic)
	if s.parked {
		if err := m.parking.remove(r.Queue, s.at); err != nil {
			return out, err
		}
		m.line.MarkCancelled(s.ref, m.stamp, at)
		t.parked--
	} else {
		if _, _, err := m.line.Cancel(r, m.stamp, at); err != nil {
			return out, err
		}
		t.levels[s.ref.Level]--
		m.count.Add(t.family(), s.ref.Due, -1)
	}
	t.waiting--
	m.topics.touch(t)
	m.keep.leaves(r.ID, s.ref.Due)
	return out, nil
}

func (m *machine) reschedule(payload []byte, at record.ID) (Outcome, error) {
	c, err := record.DecodeReschedule(payload)
	if err != nil {
		return Outcome{}, err
	}
	if err := known(c.Ref.Kind); err != nil {
		return Outcome{}, err
	}
	return m.move(c.Ref, c.Due, at)
}

// move gives a waiting message another due. One that is held back goes back to
// the timeline.
func (m *machine) move(r record.Ref, due int64, at record.ID) (Outcome, error) {
	s, err := m.locate(r)
	out := Outcome{Verdict: s.verdict, Due: s.ref.Due}
	if err != nil || s.verdict != timeline.Done {
		return out, err
	}
	t := m.topics.get(m.queues.Get(r.Queue).Topic)
	m.topics.touch(t)
	if s.parked {
		if err := m.parking.remove(r.Queue, s.at); err != nil {
			return out, err
		}
		r.Due = s.ref.Due
		out.Due = m.line.Return(r, due, m.stamp, at).Due
		t.parked--
		t.levels[r.Level]++
	} else {
		now, _, err := m.line.Reschedule(r, due, m.stamp, at)
		if err != nil {
			return out, err
		}
		out.Due = now.Due
		m.count.Add(t.family(), s.ref.Due, -1)
	}
	m.count.Add(t.family(), out.Due, 1)
	m.rekey(r.ID)
	return out, nil
}

// operate does one chunk of a bulk operation.
func (m *machine) operate(payload []byte, at record.ID) (Outcome, error) {
	var o record.Operate
	if err := record.DecodeOperate(payload, &o); err != nil {
		return Outcome{}, err
	}
	op := m.operations.running(o.Number)
	if op == nil {
		return Outcome{Gone: true}, nil
	}
	for _, s := range o.Entries {
		if err := known(s.Ref.Kind); err != nil {
			return Outcome{}, err
		}
		var out Outcome
		var err error
		if s.Due == 0 {
			out, err = m.take(s.Ref, at)
		} else {
			out, err = m.move(s.Ref, s.Due, at)
		}
		if err != nil {
			return Outcome{}, err
		}
		if out.Verdict == timeline.Done {
			op.Done++
		} else {
			op.Missed++
		}
	}
	op.Cursor = o.Cursor
	m.operations.dirty[o.Number] = struct{}{}
	return Outcome{}, nil
}

func (m *machine) operation(payload []byte) (Outcome, error) {
	o, err := record.DecodeOperation(payload)
	if err != nil {
		return Outcome{}, err
	}
	if !o.State.Known() {
		return Outcome{}, fmt.Errorf("%w: bulk operation in state %d", record.ErrVersion, o.State)
	}
	m.operations.put(o, m.stamp)
	return Outcome{}, nil
}

// waits says for the hashes whether the message that one stands for waits, and
// until when.
func (m *machine) waits(e dedupe.Entry) (bool, int64, error) {
	if e.Ref.Kind == record.KindCheck {
		h := m.halves.all[e.ID]
		if h != nil {
			return true, h.Ref.Due, nil
		}
		e.Ref.Kind, e.Ref.Due = record.KindMessage, 0
	}
	s, err := m.locate(e.Ref)
	return s.verdict == timeline.Done, s.ref.Due, err
}
