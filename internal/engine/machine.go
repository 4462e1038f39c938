package engine

import (
	"fmt"
	"slices"

	"github.com/duemq/duemq/internal/count"
	"github.com/duemq/duemq/internal/dedupe"
	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/keys"
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
	stamp int64     // log time, Unix ms
	at    record.ID // position of the command that is being applied

	topics     *topics
	queues     *queue.Set
	parking    *parking
	groups     *group.Set
	line       *timeline.Timeline
	halves     *halves
	operations *operations
	dedupe     *dedupe.Set
	keep       keeping
	settings   map[string]string
	changed    map[string]struct{} // settings since the last cut

	count *count.Counts // what waits by topic and minute: for those who look
	keys  *keys.Index   // messages by their keys: likewise

	carries []stretch              // of the log, that the next cut carries
	rekeyed map[record.ID]struct{} // carried messages that were moved since the last cut
	swept   swept
	bugs    Bugs

	nextQueue record.QueueNumber
	cuts      uint32 // number of the last cut begun

	moved uint64 // references moved to their queues, for when a cut is due
	total uint64 // commands applied, likewise
}

// An Outcome is what apply made of one command.
type Outcome struct {
	Verdict  timeline.Verdict // of a cancel, a reschedule or a transaction's end
	Ready    bool             // a send: visible at once, at Offset
	Held     bool             // a send: due, and held back by its topic
	Gone     bool             // the topic, group or operation of that number has ended
	Repeat   bool             // a send under a key that was used before, by message First
	Mismatch bool             // and that one said something else
	Due      int64            // how it waits now, or waited
	Offset   record.Offset
	First    record.ID // with Repeat; else the message whose name was taken
	Topic    *Topic
	Group    *group.Group
	Fresh    uint64 // an ack: offsets not finished before
}

// effects collects what those who wait for a batch want to know.
type effects struct {
	outcomes   []Outcome   // one for each command
	rung       []*Topic    // topics with something new
	checks     bool        // half messages are to be checked
	rolledBack []record.ID // half messages whose producer never answered
}

func (e *effects) reset() {
	*e = effects{outcomes: e.outcomes[:0], rung: e.rung[:0], rolledBack: e.rolledBack[:0]}
}

// apply applies one batch: time advances to its stamp, what is due by then
// moves to its queues in order, then the commands act.
func (m *machine) apply(pos uint64, b *record.Batch, eff *effects) error {
	if b.Index != m.index+1 {
		return fmt.Errorf("%w: batch %d after %d", record.ErrCorrupt, b.Index, m.index)
	}
	m.index, m.last, m.term = b.Index, pos, b.Term
	if b.Type != record.EntryCommands {
		m.keep.reach(pos, m.stamp)
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
		m.at = data + record.ID(at)
		out, err := m.command(&c, m.at, eff)
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
	m.stamp, m.at = b.Stamp, record.ID(pos)
	m.keep.high = max(m.keep.high, b.Stamp)
	m.keep.reach(pos, b.Stamp)
	n := m.line.PopDue(b.Stamp, int(b.Limit), func(r *record.Ref) { m.arrive(r, eff) })
	m.moved += uint64(n)
	if err := m.line.Err(); err != nil {
		return err
	}
	return m.drain(int(b.Limit)-n+int(b.Limit)/4, eff)
}

// command lets one command act. A command that came too late for what it is
// about says so in its outcome; an error means that the log cannot be
// understood.
func (m *machine) command(c *record.Command, id record.ID, eff *effects) (Outcome, error) {
	switch c.Type {
	case record.CommandSend:
		return m.send(c, id, eff)
	case record.CommandPost:
		return m.post(c, id, eff)
	case record.CommandEndHalf:
		return m.decide(c.Payload, eff)
	case record.CommandAck:
		return m.ack(c.Payload)
	case record.CommandLease:
		return m.lease(c.Payload)
	case record.CommandRelease:
		return m.release(c.Payload)
	case record.CommandCommit:
		return m.commit(c.Payload)
	case record.CommandReset:
		return m.reset(c.Payload)
	case record.CommandCancel:
		return m.cancel(c.Payload, id)
	case record.CommandReschedule:
		return m.reschedule(c.Payload, id)
	case record.CommandOperation:
		return m.operation(c.Payload)
	case record.CommandOperate:
		return m.operate(c.Payload, id)
	default:
		return m.administer(c)
	}
}

// administer lets a command act that changes what there is.
func (m *machine) administer(c *record.Command) (Outcome, error) {
	switch c.Type {
	case record.CommandTopic:
		return m.makeTopic(c.Payload)
	case record.CommandEndTopic:
		return m.endTopic(c.Payload)
	case record.CommandPause:
		return m.pause(c.Payload)
	case record.CommandGroup:
		return m.makeGroup(c.Payload)
	case record.CommandEndGroup:
		return m.endGroup(c.Payload)
	case record.CommandSetting:
		return m.set(c.Payload)
	case record.CommandTrim:
		return m.trim(c.Payload)
	case record.CommandCarry:
		return m.carry(c.Payload)
	default:
		return Outcome{}, record.UnknownCommand(c.Type)
	}
}

func (m *machine) makeTopic(payload []byte) (Outcome, error) {
	t, err := record.DecodeTopic(payload)
	if err != nil {
		return Outcome{}, err
	}
	m.reserveQueues(t.FirstQueue, t.Queues)
	if m.topics.find(t.Number) == nil && t.Number < m.topics.next() {
		return Outcome{Gone: true}, nil // it ended while somebody changed it; its numbers are nobody's any more
	}
	made, fresh := m.topics.make(t)
	if fresh {
		m.openQueues(made)
	}
	return Outcome{Topic: made}, nil
}

func (m *machine) reserveQueues(first record.QueueNumber, n uint32) {
	m.nextQueue = max(m.nextQueue, first+record.QueueNumber(n))
}

func (m *machine) openQueues(t *Topic) {
	for i := range t.Queues {
		m.queues.Touch(m.queues.Add(t.FirstQueue+record.QueueNumber(i), t.Number))
	}
}

// endTopic ends a topic's queue numbers, with all that is visible in them or
// waits for them. A purged topic goes on under new ones.
func (m *machine) endTopic(payload []byte) (Outcome, error) {
	c, err := record.DecodeEndTopic(payload)
	if err != nil {
		return Outcome{}, err
	}
	t := m.topics.find(c.Number)
	if c.Purge && t != nil {
		m.reserveQueues(c.FirstQueue, t.Queues)
	}
	if t == nil || (c.Purge && c.FirstQueue <= t.FirstQueue) {
		return Outcome{Gone: true}, nil
	}
	for _, h := range m.halves.sorted() {
		if m.queues.Get(h.Ref.Queue).Topic == t.Number {
			m.endHalf(h)
		}
	}
	for i := range t.Queues {
		n := t.FirstQueue + record.QueueNumber(i)
		m.queues.End(n)
		m.parking.end(n)
	}
	m.groups.Forget(t.FirstQueue, t.Queues)
	m.line.Forget(t.levels)
	t.levels = [timeline.Levels + 1]int64{}
	t.waiting, t.parked = 0, 0
	if !c.Purge {
		m.topics.end(t)
		return Outcome{Topic: t}, nil
	}
	t.begin(c.FirstQueue)
	m.topics.touch(t)
	m.openQueues(t)
	return Outcome{Topic: t}, nil
}

func (m *machine) pause(payload []byte) (Outcome, error) {
	c, err := record.DecodePause(payload)
	if err != nil {
		return Outcome{}, err
	}
	t := m.topics.find(c.Topic)
	if t == nil {
		return Outcome{Gone: true}, nil
	}
	t.paused = c.Paused
	m.topics.touch(t)
	return Outcome{Topic: t}, nil
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

// trim gives up what became visible before a stamp.
func (m *machine) trim(payload []byte) (Outcome, error) {
	c, err := record.DecodeTrim(payload)
	if err != nil {
		return Outcome{}, err
	}
	ahead := min(m.stamp, m.parking.oldest())
	if due, ok := m.line.Next(); ok {
		ahead = min(ahead, due)
	}
	m.keep.cut(min(c.Before, m.stamp), ahead)
	m.line.Keep(record.ID(m.keep.from()))
	if day := keys.Day(m.keep.gone); day > 1 {
		m.keys.Drop(day - 1)
	}
	return Outcome{}, nil
}

// carry has what waits in a stretch of the log moved into the index by the next
// cut.
func (m *machine) carry(payload []byte) (Outcome, error) {
	c, err := record.DecodeCarry(payload)
	if err != nil {
		return Outcome{}, err
	}
	from := m.keep.carried
	if m.halves.oldest() < c.To || !m.keep.carry(c.To) {
		return Outcome{Gone: true}, nil
	}
	m.carries = append(m.carries, stretch{from: uint64(from), to: uint64(c.To), head: m.line.Head(m.at), lots: m.parking.copy()})
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
