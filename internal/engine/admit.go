package engine

import (
	"fmt"

	"github.com/duemq/duemq/internal/dedupe"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// send files a message: into the timeline if it is due later, else into its
// queue. While there is a backlog, a delayed message that is due already joins
// the timeline, so that it does not overtake the overdue ones.
func (m *machine) send(c *record.Command, id record.ID, eff *effects) (Outcome, error) {
	p, err := record.PeekSend(c, id)
	if err != nil {
		return Outcome{}, err
	}
	q := m.queues.Get(p.Ref.Queue)
	if q == nil {
		return Outcome{Gone: true}, nil
	}
	return m.file(q, p, eff)
}

// post files a message that was sent under terms.
func (m *machine) post(c *record.Command, id record.ID, eff *effects) (Outcome, error) {
	var t record.Terms
	p, err := record.PeekPost(c, id, &t)
	if err != nil {
		return Outcome{}, err
	}
	q := m.queues.Get(p.Ref.Queue)
	if q == nil {
		return Outcome{Gone: true}, nil
	}
	if out, repeat, err := m.repeated(&t); err != nil || repeat {
		return out, err
	}
	replaced, err := m.replace(&t, id)
	if err != nil {
		return Outcome{}, err
	}
	sent := p.Ref
	var out Outcome
	if t.Half {
		out, err = m.fileHalf(q, p, &t)
	} else {
		if sent.Due <= m.stamp {
			sent.Due = 0
		}
		out, err = m.file(q, p, eff)
	}
	out.First = replaced
	m.remember(&t, sent)
	return out, err
}

// repeated looks whether a message was sent under the same key before.
func (m *machine) repeated(t *record.Terms) (Outcome, bool, error) {
	e, counts, err := m.stands(t.Once)
	if err != nil || !counts || m.bugs.RepeatFiles {
		return Outcome{}, false, err
	}
	return Outcome{Repeat: true, First: e.ID, Mismatch: e.Print != t.Print}, true, nil
}

// stands finds what a hash stands for, if that counts.
func (m *machine) stands(h record.Hash) (dedupe.Entry, bool, error) {
	if h == (record.Hash{}) {
		return dedupe.Entry{}, false, nil
	}
	e, ok, err := m.dedupe.Get(h)
	if err != nil || !ok {
		return e, false, err
	}
	counts, err := e.Counts(m.keep.high, m.waits)
	return e, counts, err
}

// replace takes away whoever waits under the same name.
func (m *machine) replace(t *record.Terms, at record.ID) (record.ID, error) {
	if t.Name == (record.Hash{}) {
		return 0, nil
	}
	e, ok, err := m.dedupe.Get(t.Name)
	if err != nil || !ok {
		return 0, err
	}
	if h := m.halves.all[e.ID]; h != nil {
		m.endHalf(h)
		m.rolledBack(h)
		return e.ID, nil
	}
	if e.Ref.Kind == record.KindCheck {
		e.Ref.Kind, e.Ref.Due = record.KindMessage, 0
	}
	out, err := m.take(e.Ref, at)
	if err != nil || out.Verdict != timeline.Done {
		return 0, err
	}
	return e.ID, nil
}

func (m *machine) remember(t *record.Terms, sent record.Ref) {
	if t.Once != (record.Hash{}) {
		m.dedupe.Put(t.Once, dedupe.Entry{ID: sent.ID, Print: t.Print, Until: t.Until, Ref: sent})
	}
	if t.Name != (record.Hash{}) {
		m.dedupe.Put(t.Name, dedupe.Entry{ID: sent.ID, Until: sent.Due, Ref: sent})
	}
}

// file puts a message where it belongs.
func (m *machine) file(q *queue.Queue, p record.Peek, eff *effects) (Outcome, error) {
	r := p.Ref
	if r.Level > timeline.Levels {
		return Outcome{}, fmt.Errorf("%w: delay level %d", record.ErrCorrupt, r.Level)
	}
	t := m.topics.get(q.Topic)
	if len(p.Key) > 0 {
		m.keys.Add(p.Key, m.stamp, r.ID, r.Queue)
	}
	if r.Due > m.stamp || (r.Due != 0 && m.backlog()) {
		return Outcome{Due: m.wait(t, r, r.Due <= m.stamp).Due}, nil
	}
	if m.held(t, r.Queue) {
		return Outcome{Due: m.hold(t, r).Due, Held: true}, nil
	}
	m.keep.shows(r.ID)
	return Outcome{Due: r.Due, Ready: true, Offset: m.show(q, t, &r, eff)}, nil
}

// wait files a message in the timeline.
func (m *machine) wait(t *Topic, r record.Ref, overdue bool) record.Ref {
	filed := m.line.Add(r, m.stamp, m.at, overdue)
	t.waiting++
	t.levels[filed.Level]++
	m.topics.touch(t)
	m.count.Add(t.family(), filed.Due, 1)
	m.keep.waits(r.ID)
	return filed
}

// hold holds a message back that is due by its own stamp, and so is remembered
// as one that waits all the same.
func (m *machine) hold(t *Topic, r record.Ref) record.Ref {
	r.Due = m.stamp
	t.waiting++
	m.keep.waits(r.ID)
	filed := m.park(t, r)
	m.line.MarkMoved(filed, r.Due, m.at)
	return filed
}

// fileHalf files a message that nobody may see before its producer commits it.
func (m *machine) fileHalf(q *queue.Queue, p record.Peek, terms *record.Terms) (Outcome, error) {
	if terms.Kind > uint8(DelayAt) {
		return Outcome{}, fmt.Errorf("%w: half message with a delay of kind %d", record.ErrVersion, terms.Kind)
	}
	if len(p.Key) > 0 {
		m.keys.Add(p.Key, m.stamp, p.Ref.ID, p.Ref.Queue)
	}
	filed := m.line.Add(p.Ref, m.stamp, m.at, false)
	m.keep.waits(filed.ID)
	m.halves.put(&Half{Ref: filed, Producer: terms.Producer, Kind: DelayKind(terms.Kind), Delay: terms.Delay})
	m.halvesOf(q.Topic, 1)
	return Outcome{Due: filed.Due}, nil
}

// check has the moment of a half message come: its producer is to be asked,
// unless that was in vain often enough.
func (m *machine) check(r *record.Ref, eff *effects) {
	h := m.halves.all[r.ID]
	if h == nil {
		return
	}
	h.Checks++
	if h.Checks > MaxChecks {
		m.forgetHalf(h)
		m.rolledBack(h)
		eff.rolledBack = append(eff.rolledBack, r.ID)
		return
	}
	again := *r
	again.Due = max(m.stamp, r.Due) + CheckEvery
	h.Ref = m.line.Add(again, m.stamp, m.at, false)
	m.halves.put(h)
	eff.checks = true
}

// endHalf takes a half message's next check away and forgets it.
func (m *machine) endHalf(h *Half) {
	m.line.Remove(h.Ref)
	m.forgetHalf(h)
}

func (m *machine) forgetHalf(h *Half) {
	m.keep.leaves(h.Ref.ID, h.Ref.Due)
	m.halvesOf(m.queues.Get(h.Ref.Queue).Topic, -1)
	m.halves.drop(h.Ref.ID)
}

// rolledBack has a half message that will never be delivered be known as
// cancelled.
func (m *machine) rolledBack(h *Half) {
	r := record.Ref{ID: h.Ref.ID, Kind: record.KindMessage, Queue: h.Ref.Queue}
	m.line.MarkCancelled(r, m.stamp, m.at)
}

func (m *machine) halvesOf(n record.TopicNumber, more int64) {
	t := m.topics.get(n)
	t.halves += more
	m.topics.touch(t)
}

// decide ends a transaction.
func (m *machine) decide(payload []byte, eff *effects) (Outcome, error) {
	c, err := record.DecodeEndHalf(payload)
	if err != nil {
		return Outcome{}, err
	}
	h := m.halves.all[c.Ref.ID]
	if h == nil {
		return Outcome{Verdict: timeline.NotWaiting}, nil
	}
	q := m.queues.Get(h.Ref.Queue)
	t := m.topics.get(q.Topic)
	r := h.Ref
	m.endHalf(h)
	if !c.Commit {
		m.rolledBack(h)
		return Outcome{Verdict: timeline.Done}, nil
	}
	r.Kind, r.Due, r.Level = record.KindMessage, c.Due, c.Level
	if r.Level > timeline.Levels {
		return Outcome{}, fmt.Errorf("%w: delay level %d", record.ErrCorrupt, r.Level)
	}
	if r.Due > m.stamp || (r.Due != 0 && m.backlog()) {
		return Outcome{Verdict: timeline.Done, Due: m.wait(t, r, true).Due}, nil
	}
	if m.held(t, r.Queue) {
		return Outcome{Verdict: timeline.Done, Due: m.hold(t, r).Due, Held: true}, nil
	}
	return Outcome{Verdict: timeline.Done, Due: r.Due, Ready: true, Offset: m.show(q, t, &r, eff)}, nil
}
