package crash

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/test/crash/history"
)

// drain lets go what is held, lists what waits, lets it all fall due and has
// every group take everything.
func (w *worker) drain() error {
	if err := w.release(); err != nil {
		return err
	}
	waits, err := w.list()
	if err != nil {
		return err
	}
	if err := w.hurry(waits); err != nil {
		return fmt.Errorf("what waits cannot be moved: %w", err)
	}
	l := &load{worker: w, until: w.ctx}
	var wg sync.WaitGroup
	for _, topic := range w.b.TopicList(false) {
		takers := groups()
		if topic.Name == topicPoison {
			takers = []string{coroner}
		}
		for _, group := range takers {
			wg.Go(func() { l.empty(group, topic.Name) })
		}
	}
	wg.Wait()
	if err := w.listDead(); err != nil {
		return err
	}
	if w.Keep {
		w.shrink()
	}
	return w.b.Err()
}

// release lets paused and limited topics go on, bulk operations come to their
// end, and ends the transactions that nobody ended.
func (w *worker) release() error {
	if err := firstError(w.hold(false), w.limit(0)); err != nil {
		return err
	}
	for _, op := range w.b.Operations() {
		is, err := w.b.WaitOperation(w.ctx, op.ID)
		if err != nil {
			return fmt.Errorf("wait for %s: %w", op.ID, err)
		}
		w.stands(is)
	}
	var waits []history.Wait
	halves := w.b.Transactions("")
	for i := range halves {
		waits = append(waits, history.Wait{Name: halves[i].Key, ID: uint64(halves[i].ID)})
	}
	w.journal.put(history.Event{Kind: history.Halves, Waits: waits})
	for i, c := range w.halves() {
		w.end(c, i%2 == 0)
	}
	return nil
}

// listDead writes down the dead letters of the one group that has any.
func (w *worker) listDead() error {
	e := history.Event{Kind: history.DeadOnes, Group: coroner}
	for cursor, more := "", true; more; more = cursor != "" {
		page, next, err := w.b.DeadLetters(w.ctx, coroner, cursor, broker.MaxPage)
		if err != nil {
			return err
		}
		for i := range page {
			v := &page[i]
			e.Deliveries = append(e.Deliveries, history.Delivery{
				Name: v.Key, ID: uint64(v.Origin), Attempt: v.Attempt, Hash: hash(v.Key, v.Tag, v.Body),
			})
		}
		cursor = next
	}
	w.journal.put(e)
	return nil
}

// shrink waits for retention to take what is old, as long as that takes at
// most, and writes down what is left.
func (w *worker) shrink() {
	f := history.Figures{Most: keptMost}
	for _, group := range groups() {
		if info, err := w.b.Group(group); err == nil {
			for i := range info.Topics {
				f.Skipped += info.Topics[i].Skipped
			}
		}
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(patience / 2); ; <-tick.C {
		info := w.b.RetentionInfo()
		if f.Kept = info.LogEnd - info.LogFirst; f.Kept <= keptMost || time.Now().After(limit) {
			break
		}
	}
	w.journal.put(history.Event{Kind: history.Retention, Figures: &f})
}

// list writes down everything that waits. Nobody sends meanwhile.
func (w *worker) list() ([]history.Wait, error) {
	var waits []history.Wait
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := w.b.Pending(w.ctx, broker.Filter{}, cursor, broker.MaxPage)
		if err != nil {
			return nil, err
		}
		for i := range page.Messages {
			m := &page.Messages[i]
			if m.Group != "" {
				continue // a redelivery
			}
			waits = append(waits, history.Wait{Name: m.Key, ID: uint64(m.ID), Due: m.Due})
		}
		cursor = page.Cursor
	}
	w.journal.put(history.Event{Kind: history.Waiting, Waits: waits})
	return waits, nil
}

// hurry moves what is due after all levels to now, or nearly so. It gives the
// first error: what cannot be moved would be waited for in vain.
func (w *worker) hurry(waits []history.Wait) error {
	const movers = 32
	failed := make(chan error, movers)
	soon := time.Now().Add(2 * time.Second).UnixMilli()
	work := make(chan history.Wait)
	var wg sync.WaitGroup
	for range movers {
		wg.Go(func() {
			for at := range work {
				c := candidate{at.Name, record.ID(at.ID).String(), false}
				d, noted := broker.Delay{}, history.Delay{Kind: history.NoDelay}
				if at.ID%2 == 0 {
					d = broker.Delay{Kind: broker.DelayAfter, Value: 20}
					noted = history.Delay{Kind: history.After, Value: 20}
				}
				if err := w.move(c, d, noted); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for _, at := range waits {
		if at.Due > soon {
			work <- at
		}
	}
	close(work)
	wg.Wait()
	close(failed)
	return <-failed
}

// empty takes everything from a topic until nothing waits and nothing is left.
func (l *load) empty(group, topic string) {
	for l.b.Err() == nil {
		counts, err := l.b.Counts(topic)
		if err != nil {
			l.fatal("counts", err)
			return
		}
		got := l.receive(l.until, group, topic, maxGot, poll)
		l.ack(got)
		if len(got) == 0 && counts.Waiting == 0 && l.lag(group, topic) == 0 {
			return // what waited before this receive would have come with it
		}
	}
}

// lag is how much of a topic, and of what is redelivered of it, a group has not
// finished.
func (l *load) lag(group, topic string) (n int64) {
	info, err := l.b.Group(group)
	if err != nil {
		l.fatal("group", err)
	}
	for i := range info.Topics {
		if t := &info.Topics[i]; t.Topic == topic || strings.HasSuffix(t.Topic, "+"+topic) {
			n += t.Lag
		}
	}
	return n
}
