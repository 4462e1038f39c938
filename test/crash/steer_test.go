package crash

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/test/crash/history"
)

// A candidate is a message that may be cancelled or moved.
type candidate struct {
	name, reference string
	far             bool // it waits long
}

// found offers what an earlier process has left waiting.
func (l *load) found() {
	for _, from := range []int64{0, time.Now().Add(30 * time.Minute).UnixMilli()} {
		page, err := l.b.Pending(l.ctx, broker.Filter{From: from}, "", 60)
		if err != nil {
			l.fatal("list what waits", err)
		}
		for i := range page.Messages {
			if m := &page.Messages[i]; m.Group == "" && slices.Contains(l.plain(), m.Topic) {
				l.offer(candidate{m.Key, m.ID.String(), from > 0})
			}
		}
	}
}

// plain are the topics without terms of their own.
func (l *load) plain() (names []string) {
	for run := range 4 {
		names = append(names, topics(run)...)
	}
	return names
}

// offer hands a message to the steerer that it belongs to: one message is
// steered by one goroutine, so that the order of the answers is the order of
// the calls.
func (l *load) offer(c candidate) {
	h := hash(c.name, "", nil)
	select {
	case l.steer[h%steerers] <- c:
	default:
	}
}

// steerer cancels and moves candidates, some of them again and again.
func (l *load) steerer(from chan candidate) func(*rand.Rand) {
	var recent []candidate
	return func(r *rand.Rand) {
		select {
		case <-l.closed:
			return
		case c := <-from:
			recent = append(recent, c)
		}
		i := r.IntN(len(recent))
		c := recent[i]
		if len(recent) > 16 || r.IntN(2) == 0 {
			recent[i] = recent[len(recent)-1]
			recent = recent[:len(recent)-1]
		}
		if r.IntN(2) == 0 && !c.far {
			l.cancel(c)
			return
		}
		d, noted := delay(r, time.Now())
		if c.far && r.IntN(4) > 0 { // so that it is moved before it is carried, and after
			ms := time.Hour.Milliseconds() + r.Int64N(time.Hour.Milliseconds())
			d, noted = broker.Delay{Kind: broker.DelayAfter, Value: ms}, history.Delay{Kind: history.After, Value: ms}
		}
		_ = l.move(c, d, noted) // it is in the history
	}
}

func (w *worker) cancel(c candidate) {
	op := w.journal.begin(history.Event{Kind: history.Cancel, Name: c.name})
	_, err := w.b.Cancel(w.ctx, c.reference)
	answer, err := verdict(err)
	w.journal.end(op, history.Event{Kind: history.Cancelled, Answer: answer}, err)
}

// move gives a message another due. Its error is one that no promise allows.
func (w *worker) move(c candidate, d broker.Delay, noted history.Delay) error {
	op := w.journal.begin(history.Event{Kind: history.Move, Name: c.name, Delay: &noted})
	a, err := w.b.Reschedule(w.ctx, c.reference, d)
	answer, err := verdict(err)
	w.journal.end(op, history.Event{Kind: history.Moved, Answer: answer, Due: a.Due}, err)
	return err
}

// verdict turns the classes of error that are answers into answers.
func verdict(err error) (string, error) {
	switch {
	case err == nil:
		return history.OK, nil
	case errors.Is(err, broker.ErrDelivered):
		return history.WasDelivered, nil
	case errors.Is(err, broker.ErrCancelled):
		return history.WasCancelled, nil
	case errors.Is(err, broker.ErrUnknown):
		return history.Unknown, nil
	default:
		return "", err
	}
}
