package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
)

// redriveKind is the kind of an [Operation] that redrives dead letters.
const redriveKind = "redrive"

// Bounds of a redrive.
const (
	MaxRedriveRate = 1_000_000 // dead letters a second

	redriveChunk = 100     // of one step
	redriveBytes = 4 << 20 // of these, but for one that is larger
)

// A RedriveRequest asks for dead letters to be delivered again.
type RedriveRequest struct {
	Group  string
	IDs    []string     // of the dead letters, at most MaxPage; none: all there are now
	Delay  engine.Delay // counts from when each is sent again
	Rate   int          // how many a second at most; 0 is any number
	DryRun bool         // only count
}

func (r *RedriveRequest) check(b *Broker) error {
	if r.Rate < 0 || r.Rate > MaxRedriveRate {
		return fmt.Errorf("%w: rate %d, want 0 (any) to %d a second", ErrInvalid, r.Rate, MaxRedriveRate)
	}
	ms := r.Delay.Value
	switch r.Delay.Kind {
	case engine.DelayAt:
		ms -= b.e.Now()
	case engine.DelayAfter:
	default:
		return nil
	}
	if limit := b.e.MaxDelay(); ms > limit.Milliseconds() {
		return fmt.Errorf("%w: %d ms, limit %v", ErrDelayTooLong, ms, limit)
	}
	return nil
}

// Redrive has dead letters delivered again, to the group whose they are and to
// nobody else, and begins to count their attempts anew. It runs in the
// background as an [Operation], whose count of what is done is exact across a
// crash, and goes on after a restart; a dry run only counts.
func (b *Broker) Redrive(ctx context.Context, r RedriveRequest) (Operation, error) {
	if err := r.check(b); err != nil {
		return Operation{}, err
	}
	if _, err := b.known(r.Group); err != nil {
		return Operation{}, err
	}
	t := b.e.TopicNamed(deadTopic(r.Group))
	s := spec{Kind: redriveKind, Before: b.e.End(), Redrive: &r}
	named, err := b.deadByID(r.Group, t, r.IDs)
	if err != nil {
		return Operation{}, err
	}
	if len(r.IDs) == 0 {
		err = b.deadLeft(t, lagInto(&s.Matched))
	} else {
		named, err = b.leftOf(t, named)
		s.Matched = int64(len(named))
	}
	if err != nil {
		return Operation{}, err
	}
	if !r.DryRun {
		return b.start(ctx, s)
	}
	op := Operation{Kind: redriveKind, State: OperationDryRun, Matched: s.Matched}
	if len(r.IDs) == 0 {
		if named, _, _, err = b.deadOffsets(t, 0, redriveSample); err != nil {
			return Operation{}, err
		}
	}
	if named = named[:min(len(named), redriveSample)]; len(named) > 0 {
		op.Samples, _, err = b.deadViews(t, named)
	}
	return op, err
}

const redriveSample = 3

// redriven reads what the cursor of a redrive says. A step writes it in the same
// batch as what it does: as the due how many were sent again, as the queue how
// many could not be, as the id the offset at which the next step begins.
func redriven(c record.Key) (done, missed uint64) { return uint64(c.Due), uint64(c.Queue) }

// redrive is the work of a redrive; see [Broker.worker].
func (b *Broker) redrive(ctx context.Context, r *run) error {
	op, ok := b.e.Operation(r.number)
	if !ok {
		return nil
	}
	w := redriver{b: b, run: r, ask: r.spec.Redrive, cursor: op.Cursor}
	return w.begin(ctx)
}

// A redriver does the work of one redrive, step by step.
type redriver struct {
	b      *Broker
	run    *run
	ask    *RedriveRequest
	s      subscriber
	t      *engine.Topic      // of the dead letters
	number record.GroupNumber // that is finished with them
	named  []record.Offset    // those asked for by id
	cursor record.Key
}

func (w *redriver) begin(ctx context.Context) (err error) {
	b := w.b
	if w.s, err = b.known(w.ask.Group); errors.Is(err, ErrGroupUnknown) {
		return nil // deleted, and its dead letters with it
	}
	if w.t = b.e.TopicNamed(deadTopic(w.ask.Group)); w.t == nil || err != nil {
		return err
	}
	if w.named, err = b.deadByID(w.ask.Group, w.t, w.ask.IDs); err != nil {
		return err
	}
	if _, err = b.e.MakeGroup(ctx, record.Group{Name: deadGroup, Start: record.StartEarliest}); err != nil {
		return err
	}
	_, graves := b.e.GroupNow(deadGroup)
	w.number = graves.Number
	next := b.mono()
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var n int
		if n, more, err = w.step(ctx); err != nil {
			return err
		}
		if w.ask.Rate == 0 || n == 0 || !more {
			continue
		}
		next = max(next, b.mono()-1000) + int64(n)*1000/int64(w.ask.Rate)
		if err := w.rest(ctx, time.Duration(max(next-b.mono(), 1))*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (w *redriver) rest(ctx context.Context, d time.Duration) error {
	timer := w.b.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// step sends some dead letters again and says how many.
func (w *redriver) step(ctx context.Context) (n int, more bool, err error) {
	w.b.graves.Lock()
	defer w.b.graves.Unlock()
	offsets, next, more, err := w.pick()
	if err != nil || len(offsets) == 0 {
		return 0, false, err
	}
	cursor := w.cursor
	var done []record.Offset
	var msgs []record.Message
	seen, lerr := 0, error(nil)
	err = w.b.deadMessages(w.t, offsets, redriveBytes, func(i int, e *queue.Entry, m *record.Message, err error) {
		if seen = i + 1; e.ID >= w.run.spec.Before || lerr != nil {
			more = false // dead since it began
			return
		}
		if err != nil { // it stays where it is
			w.b.log.Error("dead letter cannot be read", slog.Any("id", e.ID), slog.Any("error", err))
			cursor.Queue++
			return
		}
		again, err := w.again(ctx, m, e.ID)
		if err != nil {
			lerr = err
			return
		}
		done, msgs = append(done, offsets[i]), append(msgs, again)
	})
	if err := errors.Join(err, lerr); err != nil {
		return 0, false, err
	}
	if seen < len(offsets) {
		next, more = offsets[seen], true
	}
	cursor.Due, cursor.ID = cursor.Due+int64(len(done)), record.ID(next)
	ack := record.Ack{Group: w.number, Queue: w.t.First(), Ranges: ranges(done)}
	// Once it has begun it ends, so that it is known what was done.
	err = w.b.e.Redrive(context.WithoutCancel(ctx), ack, msgs, w.ask.Delay, record.Operate{Number: w.run.number, Cursor: cursor})
	if err == nil {
		w.cursor = cursor
	}
	return len(done), more, err
}

// pick chooses the next dead letters.
func (w *redriver) pick() (offsets []record.Offset, next record.Offset, more bool, err error) {
	limit := redriveChunk
	if w.ask.Rate > 0 {
		limit = min(max(w.ask.Rate/10, 1), limit)
	}
	from := record.Offset(w.cursor.ID)
	if len(w.ask.IDs) == 0 {
		return w.b.deadOffsets(w.t, from, limit)
	}
	i, _ := slices.BinarySearch(w.named, from)
	left, err := w.b.leftOf(w.t, w.named[i:])
	if err != nil || len(left) == 0 {
		return nil, 0, false, err
	}
	offsets = left[:min(limit, len(left))]
	return offsets, offsets[len(offsets)-1] + 1, len(offsets) < len(left), nil
}

// again makes the message that the group gets again.
func (w *redriver) again(ctx context.Context, m *record.Message, id record.ID) (record.Message, error) {
	topic := string(extension(m, record.ExtTopic))
	t, err := w.b.makeRetry(ctx, w.s, topic)
	if err != nil {
		return record.Message{}, err
	}
	var l letter
	l.take(m, id)
	return l.again(t, 0), nil
}
