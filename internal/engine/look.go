package engine

import (
	"time"

	"github.com/duemq/duemq/internal/record"
)

// Once finds what was sent under an idempotency key, by its hash, with the
// fingerprint that came with it; counts is false if the key is as good as new to
// a message that is sent now.
func (e *Engine) Once(h record.Hash) (id record.ID, fingerprint uint64, counts bool, err error) {
	now := e.Now() // the stamp stands still while nobody sends
	e.mu.RLock()
	defer e.mu.RUnlock()
	entry, ok, err := e.m.dedupe.Get(h)
	if err != nil || !ok {
		return 0, 0, false, err
	}
	counts, err = entry.Counts(max(now, e.m.keep.high), e.m.waits)
	return entry.ID, entry.Print, counts, err
}

// Settled leaves of a page what was sent, and if it was ever moved was moved,
// before a position of the log. By it a bulk operation keeps to what waited when
// it began, and never moves anything twice. The page's memory is used again.
func (e *Engine) Settled(page []Listed, before record.ID) ([]Listed, error) {
	kept := page[:0]
	for i := range page {
		ok, err := e.settled(&page[i].Ref, before)
		if err != nil {
			return nil, err
		}
		if ok {
			kept = append(kept, page[i])
		}
	}
	return kept, nil
}

// settled holds the lock for one message only.
func (e *Engine) settled(r *record.Ref, before record.ID) (bool, error) {
	if r.ID >= before {
		return false, nil
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	o, ok, err := e.m.line.Outcome(*r)
	return !ok || o.At < before, err
}

// End is the position at which the log ends: whatever was answered before lies
// below it, whatever is asked afterwards at it or above.
func (e *Engine) End() record.ID { return record.ID(e.log.End().Position) }

// Kept tells what is kept.
type Kept struct {
	Retention

	LogFirst uint64 // position from which the log is kept
	LogEnd   uint64
	Trim     int64 // what became visible before is given up, Unix ms
}

// Kept tells what is kept.
func (e *Engine) Kept() Kept {
	e.mu.RLock()
	trim := e.m.keep.trim
	e.mu.RUnlock()
	return Kept{e.o.Retention, e.log.FirstPosition(), e.log.End().Position, trim}
}

// IdempotencyWindow is how long a key is remembered at least.
func (e *Engine) IdempotencyWindow() time.Duration { return e.o.Idempotency }

// Held lists what is held back, as [Engine.Page] lists what waits.
func (e *Engine) Held(after record.Key, before int64, limit int, keep func(*record.Ref) bool) ([]Listed, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.m.heldPage(&selection{after, before, limit, keep})
}
