package duemq

import (
	"context"
	"iter"
	"time"
)

// A Filter selects messages that wait. Several must all hold; without one,
// everything that waits is selected. The last one of a kind wins.
type Filter interface {
	BulkOption
	filter(s *selection)
}

// A RangeFilter is a filter that a [Queue.Timeline] takes too.
type RangeFilter interface {
	Filter
	TimelineOption
}

// selection is what the filters say.
type selection struct {
	topic   string // "" is every one
	tag     string // "" is any
	key     string // "" is any
	ids     []string
	state   State // "" is any
	overdue bool
	from    int64 // first due that is selected, Unix ms; 0 is no bound
	end     ending
	to      int64 // first due that is not selected, as end has it

	blank string // a filter that was given and selects by nothing
	err   error
}

// An ending is how a selection ends.
type ending byte

const (
	endNone   ending = iota
	endAt            // at an instant, Unix ms
	endWithin        // so many ms from now on the queue's clock
)

type (
	filterFunc func(*selection)
	rangeFunc  struct{ filterFunc }
)

func (f filterFunc) filter(s *selection) { f(s) }

func (f filterFunc) bulk(b *bulkTerms) {
	f(&b.selection)
	b.filtered = true
}

func (f rangeFunc) show(t *timelineTerms) { f.filterFunc(&t.selection) }

func rangeFilter(f filterFunc) rangeFunc { return rangeFunc{f} }

// by notes what is selected by. A bulk operation refuses an empty one: somebody
// may not have meant everything.
func (s *selection) by(name, value string) string {
	if value == "" {
		s.blank = name
	}
	return value
}

// Topic selects the messages of one topic. One that does not exist is
// [ErrUnknownTopic].
func Topic(name string) RangeFilter {
	return rangeFilter(func(s *selection) { s.topic = s.by("Topic", name) })
}

// Tagged selects the messages with that tag.
func Tagged(tag string) Filter {
	return filterFunc(func(s *selection) { s.tag = s.by("Tagged", tag) })
}

// Keyed selects the messages that have that key, or have it among their keys. It
// looks them up; above 10,000 messages of one key it is [ErrTooMany].
func Keyed(key string) Filter {
	return filterFunc(func(s *selection) { s.key = s.by("Keyed", key) })
}

// IDs selects messages by id or handle, 1000 at most. None is [ErrInvalid]: it
// must not stand for everything.
func IDs(ids ...string) IDFilter { return idFilter(ids) }

// An IDFilter is for what waits and for dead letters.
type IDFilter interface {
	Filter
	RedriveOption
}

type idFilter []string

func (f idFilter) filter(s *selection) {
	s.ids = f
	if len(f) == 0 {
		s.err = errNoIDs()
	}
}

func (f idFilter) bulk(b *bulkTerms) {
	f.filter(&b.selection)
	b.filtered = true
}

func (f idFilter) redrive(r *redriving) { r.ids, r.some = f, true }

// Paused selects what is due and held back by its topic: it is paused
// ([Queue.Pause]), or has used up its rate ([MaxRate]).
func Paused() Filter { return filterFunc(func(s *selection) { s.state = StatePaused }) }

// Overdue selects what is due and not delivered yet, for whatever reason.
func Overdue() Filter { return filterFunc(func(s *selection) { s.overdue = true }) }

// DueFrom selects what is due at t or later.
func DueFrom(t time.Time) RangeFilter {
	return rangeFilter(func(s *selection) { s.from = max(unixMs(t), 0) })
}

// DueBefore selects what is due before t.
func DueBefore(t time.Time) RangeFilter {
	return rangeFilter(func(s *selection) { s.end, s.to = endAt, unixMs(t) })
}

// Within selects what is due before d has passed on the queue's clock, what is
// overdue included.
func Within(d time.Duration) RangeFilter {
	return rangeFilter(func(s *selection) { s.end, s.to = endWithin, ceilMs(d) })
}

func selectionOf(filters []Filter) (selection, error) {
	var s selection
	for _, f := range filters {
		f.filter(&s)
	}
	return s, s.err
}

// Pending yields the messages that wait, in the order of falling due, without
// bodies. It reads in pages and locks nothing: each message waited when its page
// was read, and one that is sent, cancelled, moved or delivered meanwhile may or
// may not be seen. An error is yielded once, with a nil message, and ends it:
// the context's, [ErrInvalid], [ErrUnknownTopic], [ErrTooMany], [ErrClosed],
// [ErrFailed], [ErrUnavailable].
func (q *Queue) Pending(ctx context.Context, filters ...Filter) iter.Seq2[*Message, error] {
	return q.listing(ctx, func() (pager, error) {
		s, err := selectionOf(filters)
		if err != nil {
			return nil, err
		}
		return q.b.pages(s), nil
	})
}

// listing yields what is on pages.
func (q *Queue) listing(ctx context.Context, open func() (pager, error)) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		read, err := open()
		if err != nil {
			yield(nil, err)
			return
		}
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

// Count counts the messages that wait. By [Topic] and due it reads counters of
// whole minutes, and looks at messages only at the edges; by anything else it
// reads all that are selected. A tag is compared by its hash here, so that
// rarely one of another tag is counted too.
func (q *Queue) Count(ctx context.Context, filters ...Filter) (n int64, err error) {
	s, err := selectionOf(filters)
	if err != nil {
		return 0, err
	}
	err = q.during(ctx, func() (err error) {
		n, err = q.b.count(ctx, s)
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
