package duemq

import (
	"context"
	"iter"
	"time"
)

// A Filter selects messages that wait. Several must all hold; without one,
// everything that waits is selected. The last one of a kind wins.
type Filter func(*selection)

// selection is what the filters say.
type selection struct {
	topic string // "" is every one
	tag   string // "" is any
	from  int64  // first due that is selected, Unix ms; 0 is no bound
	end   ending
	to    int64 // first due that is not selected, as end has it
}

// An ending is how a selection ends.
type ending byte

const (
	endNone   ending = iota
	endAt            // at an instant, Unix ms
	endWithin        // so many ms from now on the queue's clock
)

// Topic selects the messages of one topic. One that does not exist is
// [ErrUnknownTopic].
func Topic(name string) Filter { return func(s *selection) { s.topic = name } }

// Tagged selects the messages with that tag.
func Tagged(tag string) Filter { return func(s *selection) { s.tag = tag } }

// DueFrom selects what is due at t or later.
func DueFrom(t time.Time) Filter { return func(s *selection) { s.from = max(unixMs(t), 0) } }

// DueBefore selects what is due before t.
func DueBefore(t time.Time) Filter {
	return func(s *selection) { s.end, s.to = endAt, unixMs(t) }
}

// Within selects what is due before d has passed on the queue's clock, what is
// overdue included.
func Within(d time.Duration) Filter {
	return func(s *selection) { s.end, s.to = endWithin, ceilMs(d) }
}

func selectionOf(filters []Filter) selection {
	var s selection
	for _, f := range filters {
		f(&s)
	}
	return s
}

// Pending yields the messages that wait, in the order of falling due, without
// bodies. It reads in pages and locks nothing: each message waited when its page
// was read, and one that is sent, cancelled, moved or delivered meanwhile may or
// may not be seen. An error is yielded once, with a nil message, and ends it:
// the context's, [ErrUnknownTopic], [ErrClosed], [ErrFailed], [ErrUnavailable].
func (q *Queue) Pending(ctx context.Context, filters ...Filter) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		read := q.b.pages(selectionOf(filters))
		for cursor := ""; ; {
			var page []*Message
			err := q.during(ctx, func() (err error) {
				page, cursor, err = read(ctx, cursor)
				return err
			})
			if err != nil {
				yield(nil, err)
				return
			}
			for _, m := range page {
				if !yield(m, nil) {
					return
				}
			}
			if cursor == "" {
				return
			}
		}
	}
}

// Count counts the messages that wait. Without a filter, or with [Topic] alone,
// it reads a counter; otherwise it reads all that are selected. A tag is
// compared by its hash here, so that rarely one of another tag is counted too.
func (q *Queue) Count(ctx context.Context, filters ...Filter) (n int64, err error) {
	err = q.during(ctx, func() (err error) {
		n, err = q.b.count(ctx, selectionOf(filters))
		return err
	})
	return n, err
}

// NextDue is when the first message that waits falls due, in UTC; ok is false if
// none waits.
func (q *Queue) NextDue() (due time.Time, ok bool) {
	if q.enter() != nil {
		return time.Time{}, false
	}
	defer q.leave()
	return q.b.nextDue()
}
