package engine

import (
	"fmt"
	"math"
	"slices"

	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// A machine is the deterministic state machine: what all batches up to one
// make of nothing. apply reads the state and the batch and nothing else, no
// clock, no settings, no randomness, so that a replay gives the same queues and
// offsets and replicas agree.
type machine struct {
	index uint64 // of the last batch applied
	last  uint64 // its position, 0 before the first
	term  uint64
	stamp int64 // log time, Unix ms

	topics   *topics
	queues   *queue.Set
	groups   *group.Set
	line     *timeline.Timeline
	settings map[string]string
	changed  map[string]struct{} // settings since the last cut

	nextQueue record.QueueNumber
	cuts      uint32 // number of the last cut begun

	moved uint64 // references moved to their queues, for when a cut is due
	total uint64 // commands applied, likewise
}

// An Outcome is what apply made of one command.
type Outcome struct {
	Verdict timeline.Verdict // of a cancel or reschedule
	Due     int64            // how it waits now, or waited
	Ready   bool             // a send: visible at once, at Offset
	Offset  record.Offset
	Gone    bool // the topic or group of that number has ended
	Topic   *Topic
	Group   *group.Group
	Fresh   uint64 // an ack: offsets not finished before
}

// effects collects what those who wait for a batch want to know.
type effects struct {
	outcomes []Outcome // one for each command
	rung     []*Topic  // topics with something new
}

func (e *effects) reset() {
	e.outcomes, e.rung = e.outcomes[:0], e.rung[:0]
}

// apply applies one batch: time advances to its stamp, what is due by then
// moves to its queues in order, then the commands act.
func (m *machine) apply(pos uint64, b *record.Batch, eff *effects) error {
	if b.Index != m.index+1 {
		return fmt.Errorf("%w: batch %d after %d", record.ErrCorrupt, b.Index, m.index)
	}
	m.index, m.last, m.term = b.Index, pos, b.Term
	if b.Type != record.EntryCommands {
		return nil
	}
	if err := m.advance(pos, b, eff); err != nil {
		return err
	}
	data := record.ID(pos + log.LocalBytes + uint64(b.DataOffset()))
	for at := 0; at < len(b.Data); {
		c, err := record.NextCommand(b.Data, at)
		if err != nil {
			return fmt.Errorf("batch %d: %w", b.Index, err)
		}
		out, err := m.command(&c, data+record.ID(at), eff)
		if err != nil {
			return fmt.Errorf("batch %d command at %d: %w", b.Index, at, err)
		}
		eff.outcomes = append(eff.outcomes, out)
		at += c.Size
		m.total++
	}
	return m.line.Err()
}

// advance lets time go on to the batch's stamp.
func (m *machine) advance(pos uint64, b *record.Batch, eff *effects) error {
	switch {
	case b.Flags&record.FlagRebase != 0:
		m.line.Rebase(b.Stamp, record.ID(pos))
	case b.Stamp < m.stamp:
		return fmt.Errorf("%w: stamp %d of batch %d below %d", record.ErrCorrupt, b.Stamp, b.Index, m.stamp)
	}
	m.stamp = b.Stamp
	n := m.line.PopDue(b.Stamp, int(b.Limit), func(r *record.Ref) { m.deliver(r, eff) })
	m.moved += uint64(n)
	return m.line.Err()
}

// deliver makes a waiting message visible.
func (m *machine) deliver(r *record.Ref, eff *effects) {
	q := m.queues.Get(r.Queue)
	if q == nil {
		return // its topic has ended
	}
	t := m.topics.get(q.Topic)
	t.waiting--
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

func (m *machine) command(c *record.Command, id record.ID, eff *effects) (Outcome, error) {
	switch c.Type {
	case record.CommandSend:
		return m.send(c, id, eff)
	case record.CommandAck:
		return m.ack(c.Payload)
	case record.CommandCommit:
		return m.commit(c.Payload)
	case record.CommandCancel:
		return m.cancel(c.Payload, id)
	case record.CommandReschedule:
		return m.reschedule(c.Payload, id)
	case record.CommandTopic:
		return m.makeTopic(c.Payload)
	case record.CommandGroup:
		return m.makeGroup(c.Payload)
	case record.CommandSetting:
		return m.set(c.Payload)
	default:
		return Outcome{}, record.UnknownCommand(c.Type)
	}
}

// send files a message: into the timeline if it is due later, else into its
// queue. While there is a backlog, a delayed message that is due already joins
// the timeline, so that it does not overtake the overdue ones.
func (m *machine) send(c *record.Command, id record.ID, eff *effects) (Outcome, error) {
	p, err := record.PeekSend(c, id)
	if err != nil {
		return Outcome{}, err
	}
	r := p.Ref
	if r.Level > timeline.Levels {
		return Outcome{}, fmt.Errorf("%w: delay level %d", record.ErrCorrupt, r.Level)
	}
	q := m.queues.Get(r.Queue)
	if q == nil {
		return Outcome{Gone: true}, nil
	}
	t := m.topics.get(q.Topic)
	if r.Due > m.stamp || (r.Due != 0 && m.backlog()) {
		filed := m.line.Add(r, m.stamp, id, r.Due <= m.stamp)
		t.waiting++
		m.topics.touch(t)
		return Outcome{Due: filed.Due}, nil
	}
	return Outcome{Due: r.Due, Ready: true, Offset: m.show(q, t, &r, eff)}, nil
}

// backlog says that something due has not been moved yet.
func (m *machine) backlog() bool { return m.nextDue() <= m.stamp }

// nextDue is the due of the first message that waits, MaxInt64 if none does.
func (m *machine) nextDue() int64 {
	if due, ok := m.line.Next(); ok {
		return due
	}
	return math.MaxInt64
}

func (m *machine) ack(payload []byte) (Outcome, error) {
	var a record.Ack
	if err := record.DecodeAck(payload, &a); err != nil {
		return Outcome{}, err
	}
	g, q := m.groups.Get(a.Group), m.queues.Get(a.Queue)
	if g == nil || q == nil {
		return Outcome{Gone: true}, nil
	}
	p := m.groups.Begin(g, a.Queue, m.start(g, q))
	return Outcome{Fresh: p.Ack(a.Ranges, q.Next())}, nil
}

// start is where a group begins in a queue in which it has not begun.
func (m *machine) start(g *group.Group, q *queue.Queue) record.Offset {
	if g.Start == record.StartLatest {
		return q.Next()
	}
	return q.First()
}

func (m *machine) commit(payload []byte) (Outcome, error) {
	c, err := record.DecodeCommit(payload)
	if err != nil {
		return Outcome{}, err
	}
	g, q := m.groups.Get(c.Group), m.queues.Get(c.Queue)
	if g == nil || q == nil {
		return Outcome{Gone: true}, nil
	}
	m.groups.Begin(g, c.Queue, m.start(g, q)).Pulled = min(c.Offset, q.Next())
	return Outcome{}, nil
}

func (m *machine) cancel(payload []byte, at record.ID) (Outcome, error) {
	c, err := record.DecodeCancel(payload)
	if err != nil {
		return Outcome{}, err
	}
	k := c.Key
	r, v, err := m.line.Cancel(record.Ref{Due: k.Due, ID: k.ID, Kind: k.Kind, Queue: k.Queue, Level: c.Level}, m.stamp, at)
	if err != nil {
		return Outcome{}, err
	}
	if q := m.queues.Get(k.Queue); v == timeline.Done && q != nil {
		t := m.topics.get(q.Topic)
		t.waiting--
		m.topics.touch(t)
	}
	return Outcome{Verdict: v, Due: r.Due}, nil
}

func (m *machine) reschedule(payload []byte, at record.ID) (Outcome, error) {
	c, err := record.DecodeReschedule(payload)
	if err != nil {
		return Outcome{}, err
	}
	r, v, err := m.line.Reschedule(c.Ref, c.Due, m.stamp, at)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Verdict: v, Due: r.Due}, nil
}

func (m *machine) makeTopic(payload []byte) (Outcome, error) {
	t, err := record.DecodeTopic(payload)
	if err != nil {
		return Outcome{}, err
	}
	m.nextQueue = max(m.nextQueue, t.FirstQueue+record.QueueNumber(t.Queues))
	made, fresh := m.topics.make(t)
	if fresh {
		for i := range t.Queues {
			m.queues.Touch(m.queues.Add(t.FirstQueue+record.QueueNumber(i), t.Number))
		}
	}
	return Outcome{Topic: made}, nil
}

func (m *machine) makeGroup(payload []byte) (Outcome, error) {
	g, err := record.DecodeGroup(payload)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Group: m.groups.Make(g)}, nil
}

func (m *machine) set(payload []byte) (Outcome, error) {
	s, err := record.DecodeSetting(payload)
	if err != nil {
		return Outcome{}, err
	}
	if s.Value == "" {
		delete(m.settings, s.Name)
	} else {
		m.settings[s.Name] = s.Value
	}
	m.changed[s.Name] = struct{}{}
	return Outcome{}, nil
}

// names of the settings, in order.
func (m *machine) names() []string {
	names := make([]string, 0, len(m.settings))
	for n := range m.settings {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
