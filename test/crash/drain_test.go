package crash

import (
	"fmt"
	"sync"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/test/crash/history"
)

// drain lists what waits, lets it all fall due and has every group take
// everything.
func (w *worker) drain() error {
	waits, err := w.list()
	if err != nil {
		return err
	}
	if err := w.hurry(waits); err != nil {
		return fmt.Errorf("what waits cannot be moved: %w", err)
	}
	l := &load{worker: w, until: w.ctx}
	var wg sync.WaitGroup
	for _, topic := range w.b.Topics() {
		for _, group := range groups() {
			wg.Go(func() { l.empty(group, topic.Name) })
		}
	}
	wg.Wait()
	return w.b.Err()
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
				c := candidate{at.Name, record.ID(at.ID).String()}
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
		if len(got) == 0 && counts.Waiting == 0 {
			return // what waited before this receive would have come with it
		}
	}
}
