package crash

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/test/crash/history"
)

// The topics that have terms of their own, each with whoever works on it.
const (
	topicOnce  = "once"   // everything under an idempotency key
	topicNamed = "named"  // everything under a few names
	topicHalf  = "halves" // everything in transactions

	slots    = 6  // names
	onceKeys = 24 // of a process before that are sent again
	producer = "clerks"
)

// part gives a worker a source and has it rest after each step, much longer
// where the senders pause: there are many parts, and there is to be silence.
func (l *load) part(stream uint64, pause time.Duration, step func(*rand.Rand)) {
	l.each(stream, func(r *rand.Rand) {
		step(r)
		timer := time.NewTimer(time.Duration(r.Int64N(int64(2*pause + 8*l.pause))))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.closed:
		}
	})
}

// terms starts whoever sends under a key or a name, or in transactions.
func (l *load) terms() {
	for i := range 2 { // who walk through the same keys side by side
		n := 0
		l.part(uint64(500+i), 15*time.Millisecond, func(*rand.Rand) {
			n++
			run, at := l.Run-1, n
			if at > onceKeys {
				run, at = l.Run, n-onceKeys
			}
			l.once(run, at)
		})
	}
	for i := range 2 {
		l.part(uint64(510+i), 15*time.Millisecond, func(r *rand.Rand) { l.named(r, fmt.Sprintf("name-%d", 2*r.IntN(slots/2)+i)) })
	}
	left := l.halves()
	l.part(520, 20*time.Millisecond, func(r *rand.Rand) { left = l.transact(r, left) })
}

// once sends what is sent under a key. Everything about it is drawn from the
// key, so that another process can send it again.
func (l *load) once(run, n int) {
	name := fmt.Sprintf("once-%d-%d", run, n)
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	r := rand.New(rand.NewPCG(h.Sum64(), 0))
	m := broker.Message{Topic: topicOnce, Key: name, Idempotency: "key of " + name, Body: body(r, r.IntN(maxBody))}
	noted := history.Message{Name: name, Queue: -1, Once: true, Hash: hash(m.Key, m.Tag, m.Body)}
	m.Delay, noted.Delay = relative(r)
	l.sendOne(m, noted)
}

// named sends a message that takes a name. Each name has one sender, so that the
// history knows which was there before.
func (l *load) named(r *rand.Rand, slot string) {
	m, noted := l.message(r, topicNamed)
	m.Name, noted.Slot = slot, slot
	m.HasQueue, noted.Queue = false, -1
	m.Delay, noted.Delay = relative(r)
	if r.IntN(8) == 0 {
		m.Delay = broker.Delay{Kind: broker.DelayAfter, Value: time.Hour.Milliseconds()}
		noted.Delay = history.Delay{Kind: history.After, Value: m.Delay.Value}
	}
	l.sendOne(m, noted)
}

// relative draws a delay that does not depend on the time.
func relative(r *rand.Rand) (broker.Delay, history.Delay) {
	if r.IntN(5) == 0 {
		return broker.Delay{}, history.Delay{Kind: history.NoDelay}
	}
	ms := 1 + r.Int64N(maxDelay)
	return broker.Delay{Kind: broker.DelayAfter, Value: ms}, history.Delay{Kind: history.After, Value: ms}
}

func body(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// sendOne sends one message and gives its id, zero if it has none.
func (l *load) sendOne(m broker.Message, noted history.Message) uint64 {
	noted.Tag = m.Tag
	receipts := l.sendAll(m.Topic, []broker.Message{m}, []history.Message{noted})
	if len(receipts) != 1 {
		return 0
	}
	return uint64(receipts[0].ID)
}

// sendAll sends messages to one topic in one call.
func (l *load) sendAll(topic string, msgs []broker.Message, noted []history.Message) []broker.Receipt {
	op := l.journal.begin(history.Event{Kind: history.Send, Topic: topic, Messages: noted})
	receipts, err := l.b.Send(l.ctx, msgs)
	e := history.Event{Kind: history.Sent, Receipts: make([]history.Receipt, len(receipts))}
	for i := range receipts {
		e.Receipts[i] = receipt(&receipts[i])
	}
	l.journal.end(op, e, err)
	return receipts
}

// halves are the half messages that an earlier process has left.
func (w *worker) halves() (left []candidate) {
	for _, v := range w.b.Transactions(producer) {
		left = append(left, candidate{v.Key, v.ID.String(), false})
	}
	return left
}

// transact sends a half message, or ends a transaction, sometimes twice.
func (l *load) transact(r *rand.Rand, left []candidate) []candidate {
	if len(left) == 0 || r.IntN(5) < 2 {
		m, noted := l.message(r, topicHalf)
		m.Half, noted.Half = producer, true
		m.Delay, noted.Delay = relative(r)
		if id := l.sendOne(m, noted); id != 0 {
			left = append(left, candidate{noted.Name, fmt.Sprintf("%016x", id), false})
		}
		return left
	}
	i := r.IntN(len(left))
	c := left[i]
	l.end(c, r.IntN(3) > 0)
	if r.IntN(10) == 0 {
		l.end(c, r.IntN(2) == 0)
	}
	left[i] = left[len(left)-1]
	return left[:len(left)-1]
}

// end commits a transaction or rolls it back.
func (w *worker) end(c candidate, commit bool) {
	op := w.journal.begin(history.Event{Kind: history.End, Name: c.name, On: commit})
	a, err := w.b.EndTransaction(w.ctx, c.reference, commit)
	answer := history.OK
	if errors.Is(err, broker.ErrTransactionEnded) {
		answer, err = history.Over, nil
	}
	w.journal.end(op, history.Event{Kind: history.Ended, Answer: answer, Due: a.Due}, err)
}
