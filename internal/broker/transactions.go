package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// MaxHalves is how many half messages there may be at once.
const MaxHalves = 100_000

// ErrTransactionEnded says that a message is not half any more, or never was.
var ErrTransactionEnded = errors.New("transaction has ended")

// A Check asks a producer what became of a half message.
type Check struct {
	View

	Checks int // how many times this one makes
}

// checks remembers which check of each half message somebody has been handed.
type checks struct {
	mu     sync.Mutex
	handed map[record.ID]uint32
}

// hand takes up to n half messages whose check nobody has been handed, and
// forgets those that are half no more.
func (c *checks) hand(b *engine.Engine, producer string, n int) []engine.Half {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handed == nil {
		c.handed = make(map[record.ID]uint32)
	}
	var out []engine.Half
	for _, h := range b.Halves(producer) {
		if len(out) < n && h.Checks > c.handed[h.Ref.ID] {
			c.handed[h.Ref.ID] = h.Checks
			out = append(out, h)
		}
	}
	if len(c.handed) > 2*b.HalfCount() {
		for id := range c.handed {
			if _, half := b.Half(id); !half {
				delete(c.handed, id)
			}
		}
	}
	return out
}

// EndTransaction commits a half message, by id or handle, or rolls it back; on a
// commit its delay counts from now. The answer is durable. A message that is
// not half any more is ErrTransactionEnded.
func (b *Broker) EndTransaction(ctx context.Context, reference string, commit bool) (Answer, error) {
	id, err := ParseReference(reference)
	if err != nil {
		return Answer{}, err
	}
	if h, ok := b.e.Half(id); ok {
		t, _ := b.e.TopicOf(h.Ref.Queue)
		out, err := b.e.EndHalf(ctx, id, commit)
		if err != nil {
			return Answer{}, err
		}
		if t != nil && out.Verdict == timeline.Done {
			return Answer{ID: id, Topic: t.Name, Due: out.Due}, nil
		}
	}
	_, _, t, err := b.find(reference)
	if err != nil {
		return Answer{}, err
	}
	return Answer{ID: id, Topic: t.Name}, fmt.Errorf("%w: %v was committed, rolled back or cancelled before, or was sent without", ErrTransactionEnded, id)
}

// Checks gives half messages of a producer group that want to be asked about,
// up to most (0 is 1): each of them once for every time that its moment comes,
// and again after a restart of the broker. It waits for the first one.
func (b *Broker) Checks(ctx context.Context, producer string, most int, wait time.Duration) ([]Check, error) {
	if err := checkGroup(producer); err != nil {
		return nil, err
	}
	if most == 0 {
		most = 1
	}
	if most < 0 || most > MaxPage {
		return nil, fmt.Errorf("%w: max %d, want 1 to %d", ErrInvalid, most, MaxPage)
	}
	if wait < 0 || wait > MaxWait {
		return nil, fmt.Errorf("%w: wait %v, want 0 to %v", ErrInvalid, wait, MaxWait)
	}
	deadline := b.mono() + wait.Milliseconds()
	for {
		bell := b.e.Checks.Wait()
		if halves := b.checks.hand(b.e, producer, most); len(halves) > 0 {
			out := make([]Check, 0, len(halves))
			b.halves(halves, func(h *engine.Half, v View) { out = append(out, Check{v, int(h.Checks)}) })
			return out, nil
		}
		left := deadline - b.mono()
		if left <= 0 {
			return nil, nil
		}
		if err := b.await(ctx, bell, time.Duration(left)*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// Transactions lists the half messages of a producer group, of all for "", in
// the order of sending, up to MaxPage. Bodies are left out.
func (b *Broker) Transactions(producer string) []View {
	halves := b.e.Halves(producer)
	halves = halves[:min(len(halves), MaxPage)]
	out := make([]View, 0, len(halves))
	b.halves(halves, func(_ *engine.Half, v View) {
		v.Body = nil
		out = append(out, v)
	})
	return out
}

// halves looks at half messages. One that cannot be read is shown all the same.
func (b *Broker) halves(halves []engine.Half, fn func(*engine.Half, View)) {
	entries := make([]queue.Entry, len(halves))
	for i := range halves {
		r := &halves[i].Ref
		entries[i] = queue.Entry{ID: r.ID, Size: r.Size, Due: r.Due}
	}
	b.e.Messages(entries, func(i int, m *record.Message, err error) {
		r := &halves[i].Ref
		t, _ := b.e.TopicOf(r.Queue)
		if t == nil {
			return
		}
		if err != nil {
			m = &record.Message{}
		}
		v := b.view(t, r.Queue, m, r.ID)
		v.Body, v.State = slices.Clone(m.Body), StateHalf
		fn(&halves[i], v)
	})
}
