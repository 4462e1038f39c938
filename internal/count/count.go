// Package count knows how many messages wait, by topic and by the minute in
// which they fall due, without reading them one by one.
//
// The engine says +1 when a message begins to wait and -1 when it stops, so a
// count is a sum of small changes. Those of the time since the last cut stand
// in flat tables in memory; a cut adds them to the sums in the index, one key
// for each minute and topic, and one for each minute. Minutes come first in the key: a question is a
// range of minutes, and what is past is a prefix that is dropped as a whole.
//
// The applier is the only writer. Readers open a view of the index, and then
// look into memory piece by piece, each under the engine's read lock for
// microseconds. A mark in the index says which cuts a view holds, so that
// nothing is counted twice or not at all while a cut passes from memory to the
// index.
//
// What is counted is a function of the batches applied, never of when a cut
// happened.
package count

import (
	"fmt"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// A Source opens iterators over the sums of installed cuts.
type Source interface {
	NewIter(s index.Space, lower, upper []byte) (*index.Iter, error)
}

// Counts counts what waits. Changing it is for one goroutine at a time, and not
// while a reader holds the lock that is handed to [Counts.Range].
type Counts struct {
	src Source

	// The place that was changed last. Deliveries come in the order of their
	// dues and levels have one due at a time, so the next change mostly hits it.
	topic    record.TopicNumber
	from, to int64  // dues, Unix ms, to exclusive
	place    *int64 // in live

	live   *memory
	frozen *Frozen // being written to the index; nil between cuts

	installed uint64 // number of the last cut in the index that had counts
	last      uint64 // number of the last cut begun
}

// New makes counts of nothing, over an index that holds none.
func New(src Source) *Counts {
	return &Counts{src: src, live: new(memory)}
}

// Restore makes the counts of the newest cut in an index. Without any, known is
// false: nothing that was still there at a cut has ever waited, or the index is
// from before counts were kept. In the second case the caller adds what waits
// in it.
func Restore(src Source) (c *Counts, known bool, err error) {
	c = New(src)
	it, number, err := c.open()
	if err != nil {
		return nil, false, fmt.Errorf("restore counts: %w", err)
	}
	if err := it.Close(); err != nil {
		return nil, false, fmt.Errorf("restore counts: %w", err)
	}
	c.installed, c.last = number, number
	return c, number > 0, nil
}

// Add says that n more messages of a topic (not 0) wait for a due (Unix ms), or
// that -n of them wait no longer, whether they were delivered, cancelled, moved
// to another due or dropped with their topic. What was added under a due must
// be taken away under the same one.
func (c *Counts) Add(topic record.TopicNumber, due, n int64) {
	if topic != c.topic || due < c.from || due >= c.to {
		c.seek(topic, due)
	}
	*c.place += n
}

// seek finds the place of a topic and due. It is apart from Add so that Add is
// small enough to be inlined.
func (c *Counts) seek(topic record.TopicNumber, due int64) {
	minute := MinuteOf(due)
	c.topic, c.place = topic, c.live.place(keyOf(minute, topic))
	c.from = int64(minute) * minuteMillis
	c.to = c.from + minuteMillis
}

// forget makes the next Add look for its place.
func (c *Counts) forget() { c.from, c.to, c.place = 0, 0, nil }

// Cells is how many pairs of minute and topic have changed since the last cut
// was begun; memory holds 21 to 43 bytes for each. A backlog that goes back far
// and over many topics changes many in a short time, which is a reason for a
// cut.
func (c *Counts) Cells() int { return c.live.cells }
