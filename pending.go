package duemq

import (
	"context"
	"iter"
	"time"

	"github.com/duemq/duemq/internal/broker"
)

// A Filter selects messages that wait. Several must all hold; without one,
// everything that waits is selected. The last one of a kind wins.
type Filter func(*selection)

type selection struct {
	f   broker.Filter
	end func(now int64) int64 // first due that is not selected, Unix ms; nil is none
}

// Topic selects the messages of one topic. One that does not exist is
// [ErrUnknownTopic].
func Topic(name string) Filter { return func(s *selection) { s.f.Topic = name } }

// Tagged selects the messages with that tag.
func Tagged(tag string) Filter { return func(s *selection) { s.f.Tag = tag } }

// DueFrom selects what is due at t or later.
func DueFrom(t time.Time) Filter { return func(s *selection) { s.f.From = max(unixMs(t), 0) } }

// DueBefore selects what is due before t.
func DueBefore(t time.Time) Filter {
	return func(s *selection) { s.end = func(int64) int64 { return unixMs(t) } }
}

// Within selects what is due before d has passed on the queue's clock, what is
// overdue included.
func Within(d time.Duration) Filter {
	return func(s *selection) { s.end = func(now int64) int64 { return now + ceilMs(d) } }
}

// filter resolves the filters at this moment.
func (q *Queue) filter(filters []Filter) broker.Filter {
	var s selection
	for _, f := range filters {
		f(&s)
	}
	if s.end != nil {
		s.f.To = max(s.end(q.b.Now()), 1) // 0 would be no end
	}
	return s.f
}

// Pending yields the messages that wait, in the order of falling due, without
// bodies. It reads in pages and locks nothing: each message waited when its page
// was read, and one that is sent, cancelled, moved or delivered meanwhile may or
// may not be seen. An error is yielded once, with a nil message, and ends it:
// the context's, [ErrUnknownTopic], [ErrClosed], [ErrFailed].
func (q *Queue) Pending(ctx context.Context, filters ...Filter) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		f := q.filter(filters)
		for cursor := ""; ; {
			page, err := q.page(ctx, f, cursor)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Messages {
				if !yield(messageOf(&page.Messages[i]), nil) {
					return
				}
			}
			if cursor = page.Cursor; cursor == "" {
				return
			}
		}
	}
}

func (q *Queue) page(ctx context.Context, f broker.Filter, cursor string) (page broker.Page, err error) {
	err = q.steer(ctx, func() (err error) {
		page, err = q.b.Pending(ctx, f, cursor, broker.MaxPage)
		return err
	})
	return page, err
}

// Count counts the messages that wait. Without a filter, or with [Topic] alone,
// it reads a counter; otherwise it reads all that are selected. A tag is
// compared by its hash here, so that rarely one of another tag is counted too.
func (q *Queue) Count(ctx context.Context, filters ...Filter) (n int64, err error) {
	err = q.steer(ctx, func() (err error) {
		n, err = q.b.Count(ctx, q.filter(filters))
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
	ms, ok := q.b.NextDue()
	if !ok {
		return time.Time{}, false
	}
	return instant(ms), true
}
