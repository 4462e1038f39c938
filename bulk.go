package duemq

import (
	"context"
	"fmt"
	"time"

	"github.com/duemq/duemq/internal/broker"
)

// A BulkOption says what a bulk operation works on: any [Filter], or [All]; and
// whether it is only tried: [DryRun].
type BulkOption interface{ bulk(b *bulkTerms) }

// bulkTerms are what the options say.
type bulkTerms struct {
	selection

	filtered bool // a filter was given
	all      bool
	dry      bool
}

type bulkFunc func(*bulkTerms)

func (f bulkFunc) bulk(b *bulkTerms) { f(b) }

// All is everything that waits. A bulk operation has to be told so: without any
// filter it is refused.
func All() BulkOption { return bulkFunc(func(b *bulkTerms) { b.all = true }) }

// A DryRunOption is for everything that can be tried.
type DryRunOption interface {
	BulkOption
	RedriveOption
	ResetOption
}

type dryRun struct{}

func (dryRun) bulk(b *bulkTerms)    { b.dry = true }
func (dryRun) redrive(r *redriving) { r.dry = true }
func (dryRun) reset(dry *bool)      { *dry = true }

// DryRun changes nothing and tells what would be: of an [Operation] how many
// messages are Matched, with some Samples.
func DryRun() DryRunOption { return dryRun{} }

// A bulk is what is done to what a selection selects.
type bulk struct {
	kind       broker.BulkKind
	s          selection
	all        bool
	d          Delay         // of a reschedule, unless moved
	by         time.Duration // of a reschedule, if moved
	moved      bool
	spreadFrom int64 // Unix ms; 0 is now
	spreadOver time.Duration
	dry        bool
}

// CancelWhere cancels everything that the filters select, in the background: see
// [Operation]. A message that is delivered before its turn comes is counted as
// Missed.
func (q *Queue) CancelWhere(ctx context.Context, opts ...BulkOption) (*Operation, error) {
	return q.bulk(ctx, bulk{kind: broker.BulkCancel}, opts)
}

// DeliverWhere has everything that the filters select delivered at once, in the
// background, in the order of falling due.
func (q *Queue) DeliverWhere(ctx context.Context, opts ...BulkOption) (*Operation, error) {
	return q.bulk(ctx, bulk{kind: broker.BulkDeliver}, opts)
}

// RescheduleWhere gives everything that the filters select another due, in the
// background: an [After] counts from now.
func (q *Queue) RescheduleWhere(ctx context.Context, d Delay, opts ...BulkOption) (*Operation, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	return q.bulk(ctx, bulk{kind: broker.BulkReschedule, d: d}, opts)
}

// ShiftWhere moves the due of everything that the filters select by that much,
// later or sooner, in the background.
func (q *Queue) ShiftWhere(ctx context.Context, by time.Duration, opts ...BulkOption) (*Operation, error) {
	return q.bulk(ctx, bulk{kind: broker.BulkReschedule, by: wholeMs(by), moved: true}, opts)
}

// SpreadWhere spreads everything that the filters select evenly over a stretch of
// time, in the order of falling due and in the background, so that a herd does
// not come at once. It begins at from; the zero time is now.
func (q *Queue) SpreadWhere(ctx context.Context, from time.Time, over time.Duration, opts ...BulkOption) (*Operation, error) {
	b := bulk{kind: broker.BulkSpread, spreadOver: wholeMs(over)}
	if !from.IsZero() {
		b.spreadFrom = max(unixMs(from), 1)
	}
	if over <= 0 {
		return nil, fmt.Errorf("%w: a spread over %v, want more than 0", ErrInvalid, over)
	}
	return q.bulk(ctx, b, opts)
}

func (q *Queue) bulk(ctx context.Context, b bulk, opts []BulkOption) (*Operation, error) {
	var t bulkTerms
	for _, o := range opts {
		o.bulk(&t)
	}
	switch {
	case t.err != nil:
		return nil, t.err
	case t.blank != "":
		return nil, fmt.Errorf("%w: %s of nothing; leave it out, or say All", ErrInvalid, t.blank)
	case t.all && t.filtered:
		return nil, fmt.Errorf("%w: All and a filter", ErrInvalid)
	case !t.all && !t.filtered:
		return nil, fmt.Errorf("%w: no filter; say All for everything that waits", ErrInvalid)
	}
	b.s, b.all, b.dry = t.selection, t.all, t.dry
	return q.operate(ctx, func() (*Operation, error) { return q.b.startBulk(ctx, &b) })
}

// operate makes a call that begins an operation.
func (q *Queue) operate(ctx context.Context, begin func() (*Operation, error)) (op *Operation, err error) {
	err = q.during(ctx, func() (err error) {
		op, err = begin()
		return err
	})
	if err != nil {
		return nil, err
	}
	op.queue = q
	return op, nil
}

// An OperationState says how a bulk operation stands.
type OperationState string

// The states of a bulk operation.
const (
	OperationRunning OperationState = "running"
	OperationDone    OperationState = "done"
	OperationStopped OperationState = "stopped" // before its end
	OperationDryRun  OperationState = "dry-run" // nothing was done
)

// An Operation is something that is done to many messages: cancel, reschedule,
// deliver, spread or redrive. It goes on in the background, chunk by chunk, and
// after a restart too; what it did is durable, and counted exactly. What it
// holds is as of the call that gave it, or of the last Wait.
type Operation struct {
	ID      string // "op-12"; empty of a dry run
	Kind    string
	State   OperationState
	Matched int64      // of a dry run or a spread: how many there are
	Done    uint64     // cancelled, moved or delivered
	Missed  uint64     // that did not wait any more when their turn came
	Samples []*Message // of a dry run: the first three
	Began   time.Time
	Ended   time.Time // zero while it runs
	Error   string    // why it does not go on; it tries again after a restart

	queue *Queue
}

// Wait returns when the operation has ended, and brings o up to date. That it was
// stopped is no error; that it does not go on before a restart is one, and so are
// those of ctx, [ErrClosed] and [ErrUnavailable].
func (o *Operation) Wait(ctx context.Context) error {
	if o.ID == "" {
		return nil
	}
	return o.queue.patiently(ctx, func(ctx context.Context) error {
		for {
			now, err := o.queue.b.waitOperation(ctx, o.ID)
			if err != nil {
				return err
			}
			now.queue = o.queue
			*o = *now
			switch {
			case o.State != OperationRunning:
				return nil
			case o.Error != "":
				return fmt.Errorf("operation %s does not go on: %s", o.ID, o.Error)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	})
}

// Stop ends the operation. What it did stays done. One that has ended is no
// error.
func (o *Operation) Stop(ctx context.Context) error {
	if o.ID == "" {
		return nil
	}
	return o.queue.during(ctx, func() error { return o.queue.b.stopOperation(ctx, o.ID) })
}

// Operation gives a bulk operation by its id; [ErrUnknownOperation] if there is
// none, or none any more.
func (q *Queue) Operation(ctx context.Context, id string) (*Operation, error) {
	return q.operate(ctx, func() (*Operation, error) { return q.b.operation(ctx, id) })
}

// Operations gives the bulk operations that are remembered, oldest first.
func (q *Queue) Operations(ctx context.Context) (all []*Operation, err error) {
	err = q.during(ctx, func() (err error) {
		all, err = q.b.operations(ctx)
		return err
	})
	for _, op := range all {
		op.queue = q
	}
	return all, err
}
