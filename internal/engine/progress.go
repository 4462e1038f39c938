package engine

import (
	"fmt"

	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/record"
)

// Bounds are the offsets of a queue that can be read: from Low below Next.
type Bounds struct{ Low, Next record.Offset }

// Progress tells how far a group has come in a queue, counted from where it
// would begin if it never did. fn runs under the lock, must be quick and changes
// nothing; what lies below the bounds was given up and counts as skipped, see
// [group.Progress.Behind].
func (e *Engine) Progress(g *group.Group, n record.QueueNumber, fn func(p *group.Progress, b Bounds)) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	q := e.m.queues.Get(n)
	if q == nil {
		return fmt.Errorf("queue %d: %w", n, ErrNotFound)
	}
	low, err := e.m.queues.Min(q, e.m.keep.trim)
	if err != nil {
		return err
	}
	p := g.Progress(n)
	if p == nil {
		from, err := e.m.start(g, q)
		if err != nil {
			return err
		}
		p = group.StartAt(from)
	}
	fn(p, Bounds{low, q.Next()})
	return nil
}

// Began says whether a group has a position of its own in a queue.
func (e *Engine) Began(g *group.Group, n record.QueueNumber) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return g.Progress(n) != nil
}

// Half gives a half message.
func (e *Engine) Half(id record.ID) (Half, bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	h := e.m.halves.all[id]
	if h == nil {
		return Half{}, false
	}
	return *h, true
}

// Halves gives all half messages of a producer group, of all for "", in the
// order of sending.
func (e *Engine) Halves(producer string) []Half {
	e.mu.RLock()
	defer e.mu.RUnlock()
	var out []Half
	for _, h := range e.m.halves.sorted() {
		if producer == "" || h.Producer == producer {
			out = append(out, *h)
		}
	}
	return out
}

// HalfCount is how many half messages there are.
func (e *Engine) HalfCount() int {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return len(e.m.halves.all)
}
