package broker

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"github.com/duemq/duemq/internal/count"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/record"
)

// A BulkKind says what a bulk operation does.
type BulkKind string

// The kinds of bulk operation on what waits.
const (
	BulkCancel     BulkKind = "cancel"
	BulkReschedule BulkKind = "reschedule" // to Bulk.Delay, or by Bulk.By
	BulkDeliver    BulkKind = "deliver"    // at once
	BulkSpread     BulkKind = "spread"     // evenly over Bulk.SpreadOver
)

// A Bulk is something to be done to everything that a filter selects: what
// waits when it begins, and is not moved by somebody else before its turn.
type Bulk struct {
	Kind       BulkKind
	Filter     Filter
	Delay      Delay         // of a reschedule, counted from the beginning
	By         time.Duration // of a reschedule: later by this much, or earlier
	SpreadFrom int64         // of a spread: Unix ms; 0 is now
	SpreadOver int64         // of a spread: ms
	DryRun     bool          // only count
	Sample     int           // of a dry run: how many messages to show, 0 is 3
}

// Limits of bulk operations.
const (
	MaxSample = 100
	bulkChunk = 500     // messages of one step: an apply of less than a millisecond
	bulkPage  = 1 << 14 // looked for at a time, which passes over all that is in memory
)

// StartBulk begins a bulk operation, which goes on in the background and after a
// restart too. A dry run counts and begins nothing.
func (b *Broker) StartBulk(ctx context.Context, r Bulk) (Operation, error) {
	s, err := b.specify(ctx, &r)
	if err != nil {
		return Operation{}, err
	}
	if r.DryRun || r.Kind == BulkSpread {
		if s.Matched, err = b.matched(ctx, &s); err != nil {
			return Operation{}, err
		}
	}
	if !r.DryRun {
		return b.start(ctx, s)
	}
	if r.Sample == 0 {
		r.Sample = 3
	}
	page, err := b.Pending(ctx, r.Filter, "", r.Sample)
	if err != nil {
		return Operation{}, err
	}
	return Operation{Kind: s.Kind, State: OperationDryRun, Filter: s.Filter, Matched: s.Matched, Samples: page.Messages}, nil
}

// specify resolves what was asked for, so that it means the same whenever the
// work is done.
func (b *Broker) specify(ctx context.Context, r *Bulk) (spec, error) {
	s := spec{Kind: string(r.Kind), Filter: r.Filter, Before: b.e.End()}
	if r.Sample < 0 || r.Sample > MaxSample {
		return s, fmt.Errorf("%w: sample of %d, want 0 to %d", ErrInvalid, r.Sample, MaxSample)
	}
	sel, err := b.selects(ctx, r.Filter)
	if err != nil {
		return s, err
	}
	s.Filter.IDs = nil
	for _, id := range sel.ids {
		s.Filter.IDs = append(s.Filter.IDs, id.String())
	}
	now := b.e.Now()
	if s.Filter.Overdue { // by the time at which it began
		s.Filter.Overdue, s.Filter.To = false, sel.before
	}
	switch r.Kind {
	case BulkCancel:
	case BulkDeliver:
		s.Due = now
	case BulkReschedule:
		err = b.specifyMove(ctx, &s, r, sel, now)
	case BulkSpread:
		err = b.specifySpread(&s, r, now)
	default:
		err = fmt.Errorf("%w: bulk operation %q, want cancel, reschedule, deliver or spread", ErrInvalid, r.Kind)
	}
	return s, err
}

func (b *Broker) specifyMove(ctx context.Context, s *spec, r *Bulk, sel *selection, now int64) error {
	if (r.By != 0) == (r.Delay.Kind != engine.DelayNone) {
		return fmt.Errorf("%w: a reschedule takes either a delay or a duration to shift by, not 0", ErrInvalid)
	}
	limit := now + b.MaxDelay().Milliseconds()
	if r.By == 0 {
		due, err := b.resolve(r.Delay, now)
		s.Due = due
		if err == nil && due > limit {
			err = fmt.Errorf("%w: %v, limit %v", ErrDelayTooLong, time.Duration(due-now)*time.Millisecond, b.MaxDelay())
		}
		return err
	}
	s.By = r.By.Milliseconds()
	if s.By == 0 {
		return fmt.Errorf("%w: shift by %v, want whole milliseconds", ErrInvalid, r.By)
	}
	last, err := b.last(ctx, sel)
	if err == nil && s.By > 0 && last > limit-s.By {
		err = fmt.Errorf("%w: something may wait until %s and would by %v pass the limit of %v from now; select less by its due",
			ErrDelayTooLong, time.UnixMilli(last).UTC().Format(time.RFC3339), r.By, b.MaxDelay())
	}
	return err
}

// resolve gives the due of a delay that counts from now; what is at once is now.
func (b *Broker) resolve(d Delay, now int64) (int64, error) {
	if d.Kind != engine.DelayAt && b.Suspect() {
		return 0, fmt.Errorf("%w: a delay cannot be counted from it; set the clock, or run: duemq clock accept", ErrClockSuspect)
	}
	switch d.Kind {
	case engine.DelayLevel:
		if table := b.LevelTable(); d.Value > 0 && len(table) > 0 {
			return now + table[min(d.Value, int64(len(table)))-1].Milliseconds(), nil
		}
	case engine.DelayAfter:
		if d.Value > b.MaxDelay().Milliseconds() {
			return 0, fmt.Errorf("%w: %d ms, limit %v", ErrDelayTooLong, d.Value, b.MaxDelay())
		}
		return now + max(d.Value, 0), nil
	case engine.DelayAt:
		return max(d.Value, now), nil
	case engine.DelayNone:
	}
	return now, nil
}

// last is a bound of the dues that a filter selects, Unix ms.
func (b *Broker) last(ctx context.Context, sel *selection) (int64, error) {
	_, minute, ok, err := sel.horizon(ctx, engine.CountQuery{To: count.MinuteOf(sel.before) + 1})
	if err != nil || !ok {
		return 0, err
	}
	return min(sel.before-1, (int64(minute)+1)*minuteMs-1), nil
}

func (b *Broker) specifySpread(s *spec, r *Bulk, now int64) error {
	s.From, s.Over = r.SpreadFrom, r.SpreadOver
	if s.From == 0 {
		s.From = now
	}
	limit := b.MaxDelay().Milliseconds()
	if s.Over < 1 || s.Over > limit {
		return fmt.Errorf("%w: spread over %d ms, want 1 to %d", ErrInvalid, s.Over, limit)
	}
	if s.From < 0 || s.From > now+limit-s.Over {
		return fmt.Errorf("%w: spread from %d ms over %d ms, which ends later than %v from now", ErrDelayTooLong, s.From, s.Over, b.MaxDelay())
	}
	return nil
}

// matched counts what an operation would be done to.
func (b *Broker) matched(ctx context.Context, s *spec) (int64, error) {
	if s.Filter.counted() {
		return b.Count(ctx, s.Filter)
	}
	var n int64
	err := b.chunks(ctx, s, record.Key{}, func(page []engine.Listed, _ record.Key) error {
		n += int64(len(page))
		return nil
	})
	return n, err
}

// bulk does the work of an operation on what waits.
func (b *Broker) bulk(ctx context.Context, r *run) error {
	op, ok := b.e.Operation(r.number)
	if !ok {
		return nil
	}
	i := int64(op.Done + op.Missed)
	return b.chunks(ctx, &r.spec, op.Cursor, func(page []engine.Listed, cursor record.Key) error {
		o := record.Operate{Number: r.number, Cursor: cursor, Entries: make([]record.Steer, len(page))}
		for k := range page {
			o.Entries[k] = record.Steer{Ref: page[k].Ref, Due: r.spec.due(page[k].Due, i)}
			i++
		}
		return b.e.Operate(context.WithoutCancel(ctx), o)
	})
}

// due is what the i-th message, which waits for due, gets: 0 cancels it.
func (s *spec) due(due, i int64) int64 {
	switch BulkKind(s.Kind) {
	case BulkReschedule, BulkDeliver:
		if s.By != 0 {
			return max(due+s.By, 1)
		}
		return s.Due
	case BulkSpread:
		n := max(s.Matched, 1)
		hi, lo := bits.Mul64(uint64(s.Over), uint64(min(i, n-1)))
		share, _ := bits.Div64(hi, lo, uint64(n))
		return max(s.From+int64(share), 1)
	default:
		return 0
	}
}

// chunks calls fn with what an operation is to be done to, from a cursor on and
// in the order of falling due, a chunk at a time. A topic that is gone has
// nothing.
func (b *Broker) chunks(ctx context.Context, s *spec, after record.Key, fn func(page []engine.Listed, cursor record.Key) error) error {
	sel, err := b.selects(ctx, s.Filter)
	if errors.Is(err, ErrTopicUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	if after == (record.Key{}) {
		after = sel.start()
	}
	var ended atomic.Bool
	defer context.AfterFunc(ctx, func() { ended.Store(true) })()
	sel.until(&ended)
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var page []engine.Listed
		if page, after, more, err = sel.next(after, bulkPage); err != nil {
			return err
		}
		for chunk := range slices.Chunk(page, bulkChunk) {
			if err := ctx.Err(); err != nil {
				return err // the page may be what nobody selected
			}
			if err := b.chunk(s, chunk, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// chunk calls fn with what of a chunk has stayed as it was when the operation
// began.
func (b *Broker) chunk(s *spec, chunk []engine.Listed, fn func(page []engine.Listed, cursor record.Key) error) error {
	cursor := chunk[len(chunk)-1].Key()
	page, err := b.e.Settled(chunk, s.Before)
	if err != nil {
		return err
	}
	if page = b.tagged(page, s.Filter.Tag); len(page) == 0 {
		return nil
	}
	return fn(page, cursor)
}
