package engine

import (
	"strconv"

	"github.com/duemq/duemq/internal/record"
)

// command appends a random command and says what must come of it.
func (h *history) command(data []byte, stamp int64, at record.ID) ([]byte, Outcome) {
	kind := h.rng.IntN(40)
	switch {
	case len(h.ids) == 0 || kind < 13:
		return h.sendSome(data, stamp, at)
	case kind < 16:
		return h.postSome(data, stamp, at)
	case kind < 20:
		a := h.randomAck()
		return record.AppendAck(data, &a), Outcome{Fresh: h.s.ack(a)}
	case kind < 28:
		return h.steerSome(data, stamp)
	case kind < 31:
		return h.decideSome(data, stamp)
	case kind < 35:
		return h.holdSome(data)
	case kind < 36:
		return h.purgeSome(data)
	default:
		return h.keepSome(data, stamp)
	}
}

func (h *history) randomQueue() record.QueueNumber {
	t := h.s.topics[h.rng.IntN(2)]
	return t.first + record.QueueNumber(h.rng.IntN(3))
}

func (h *history) randomMessage(stamp int64) record.Message {
	m := record.Message{Queue: h.randomQueue(), Stored: stamp, Born: stamp, Body: []byte("x")}
	switch h.rng.IntN(7) {
	case 6:
		m.Due = stamp + int64(h.rng.IntN(5*hourMs))
	case 0: // at once
	case 1:
		m.Due = max(1, stamp-int64(h.rng.IntN(30)))
	case 2:
		m.Level = uint8(1 + h.rng.IntN(3))
		m.Due = stamp + int64(m.Level)*10
	case 3:
		m.Due = stamp + int64(h.rng.IntN(3000))
	default:
		m.Due = stamp + int64(h.rng.IntN(100))
	}
	if h.rng.IntN(3) == 0 {
		m.Tag = "blue"
	}
	return m
}

func refOf(m *record.Message, at record.ID, size int) record.Ref {
	return record.Ref{
		Due: m.Due, ID: at, Size: uint32(size), Queue: m.Queue,
		Tag: record.TagHash(m.Tag), Kind: record.KindMessage, Level: m.Level,
	}
}

func (h *history) sendSome(data []byte, stamp int64, at record.ID) ([]byte, Outcome) {
	m := h.randomMessage(stamp)
	before := len(data)
	data = record.AppendSend(data, &m)
	h.ids = append(h.ids, at)
	return data, h.s.send(refOf(&m, at, len(data)-before))
}

func (h *history) postSome(data []byte, stamp int64, at record.ID) ([]byte, Outcome) {
	m := h.randomMessage(stamp)
	var t record.Terms
	if h.rng.IntN(2) == 0 {
		t.Once = record.Hash{1, byte(h.rng.IntN(4))}
		t.Print, t.Until = uint64(h.rng.IntN(2)), max(stamp+int64(h.rng.IntN(200)), m.Due)
	}
	if h.rng.IntN(2) == 0 {
		t.Name = record.Hash{2, byte(h.rng.IntN(3))}
	}
	if h.rng.IntN(2) == 0 {
		t.Half, t.Producer, t.Check = true, "p", stamp+int64(h.rng.IntN(60))
		t.Kind, t.Delay = uint8(DelayAfter), int64(h.rng.IntN(80))
		m.Due, m.Level = 0, 0
	}
	before := len(data)
	data = record.AppendPost(data, &t, &m)
	out := h.s.post(refOf(&m, at, len(data)-before), &t)
	if !out.Repeat {
		h.ids = append(h.ids, at)
	}
	return data, out
}

// randomID is the id of one of the last messages.
func (h *history) randomID() record.ID {
	return h.ids[len(h.ids)-1-h.rng.IntN(min(len(h.ids), 40))]
}

func (h *history) steerSome(data []byte, stamp int64) ([]byte, Outcome) {
	id := h.randomID()
	sent := h.s.msgs[id].sent
	due := max(1, stamp+int64(h.rng.IntN(60))-20)
	if h.rng.IntN(4) == 0 && sent.Due != 0 {
		due = sent.Due // there and back
	}
	switch h.rng.IntN(7) {
	case 0: // an operation with one chunk
		other := h.randomID()
		o := record.Operate{Number: 1, Entries: []record.Steer{{Ref: sent}, {Ref: h.s.msgs[other].sent, Due: due}}}
		data = record.AppendOperate(data, &o)
		if h.s.operation != record.OperationRunning {
			return data, Outcome{Gone: true}
		}
		h.s.cancel(id)
		h.s.reschedule(other, due)
		return data, Outcome{}
	case 1, 2, 3:
		return record.AppendCancel(data, &record.Cancel{Key: sent.Key(), Level: sent.Level}), Outcome{Verdict: h.s.cancel(id)}
	default:
		v, got := h.s.reschedule(id, due)
		return record.AppendReschedule(data, &record.Reschedule{Ref: sent, Due: due}), Outcome{Verdict: v, Due: got}
	}
}

// decideSome ends a transaction, now and then one that has ended.
func (h *history) decideSome(data []byte, stamp int64) ([]byte, Outcome) {
	id := h.randomID()
	for i := range h.ids {
		if h.s.halves[h.ids[i]] != nil && h.rng.IntN(3) > 0 {
			id = h.ids[i]
			break
		}
	}
	c := record.EndHalf{Ref: h.s.msgs[id].sent, Commit: h.rng.IntN(3) > 0}
	if half := h.s.halves[id]; half != nil {
		c.Ref = half.ref
		if c.Commit && h.rng.IntN(3) > 0 {
			c.Due = stamp + half.delay
		}
	}
	return record.AppendEndHalf(data, &c), h.s.decide(id, c.Commit, c.Due)
}

// holdSome pauses, resumes, and sets rates.
func (h *history) holdSome(data []byte) ([]byte, Outcome) {
	t := h.s.topics[h.rng.IntN(2)]
	switch h.rng.IntN(4) {
	case 0:
		rate := []int64{0, 0, 20, 500}[h.rng.IntN(4)]
		t.rate = rate
		c := h.ref.topics.get(t.number).Topic
		c.FirstQueue = t.first
		c.Attributes = []record.Property{{Name: RateAttribute, Value: strconv.FormatInt(rate, 10)}}
		return record.AppendTopic(data, &c), Outcome{}
	case 1:
		t.paused = true
	default:
		t.paused = false
	}
	return record.AppendPause(data, &record.Pause{Topic: t.number, Paused: t.paused}), Outcome{}
}

// purgeSome empties a topic, seldom.
func (h *history) purgeSome(data []byte) ([]byte, Outcome) {
	if h.rng.IntN(3) > 0 {
		return record.AppendPause(data, &record.Pause{Topic: 99, Paused: true}), Outcome{Gone: true}
	}
	t := h.s.topics[h.rng.IntN(2)]
	c := record.EndTopic{Number: t.number, Purge: true, FirstQueue: h.s.nextQ}
	h.s.nextQ += 3
	h.s.purge(t, c.FirstQueue)
	return record.AppendEndTopic(data, &c), Outcome{}
}

// keepSome trims, carries, begins and ends an operation.
func (h *history) keepSome(data []byte, stamp int64) ([]byte, Outcome) {
	switch h.rng.IntN(4) {
	case 0:
		before := stamp - int64(h.rng.IntN([]int{400, 3 * hourMs}[h.rng.IntN(2)]))
		h.s.cut(before, h.pos)
		return record.AppendTrim(data, &record.Trim{Before: before}), Outcome{}
	case 1, 2:
		last := h.pos / testSegment
		to := record.ID((last - min(last, uint64(h.rng.IntN(3)))) * testSegment)
		ok := h.s.carry(to, h.pos)
		return record.AppendCarry(data, &record.Carry{To: to}), Outcome{Gone: !ok}
	default:
		state := record.OperationRunning
		if h.rng.IntN(4) == 0 {
			state = record.OperationDone
		}
		if h.s.operation == record.OperationRunning || (h.s.operation == 0 && state == record.OperationRunning) {
			h.s.operation = state
		}
		return record.AppendOperation(data, &record.Operation{Number: 1, State: state, Spec: "x"}), Outcome{}
	}
}

// randomAck finishes some offsets of a queue, most of them there, some not yet.
func (h *history) randomAck() record.Ack {
	a := record.Ack{Queue: h.randomQueue()}
	at := record.Offset(0)
	if n := len(h.s.queues[a.Queue]); n > 12 {
		at = record.Offset(n - 12)
	}
	for range 1 + h.rng.IntN(3) {
		at += record.Offset(h.rng.IntN(5))
		to := at + record.Offset(1+h.rng.IntN(4))
		a.Ranges = append(a.Ranges, record.OffsetRange{From: at, To: to})
		at = to + 1
	}
	return a
}
