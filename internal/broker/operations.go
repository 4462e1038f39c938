package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/record"
)

// An OperationState says where a bulk operation stands.
type OperationState string

// The states of a bulk operation.
const (
	OperationRunning OperationState = "running"
	OperationDone    OperationState = "done"
	OperationStopped OperationState = "stopped"
	OperationDryRun  OperationState = "dry-run" // nothing was done
)

// An Operation is a bulk operation, or the answer of a dry run.
type Operation struct {
	ID      string // "op-12"; empty for a dry run
	Kind    string // a BulkKind, or "redrive"
	State   OperationState
	Filter  Filter
	Matched int64  // of a dry run or a spread: how many there are
	Done    uint64 // cancelled, moved or redriven
	Missed  uint64 // had been delivered or cancelled when their turn came
	Samples []View // of a dry run: the first
	Began   int64  // Unix ms
	Ended   int64  // Unix ms, 0 while it runs
	Error   string // why it does not go on; it will after a restart
}

// MaxOperations is how many bulk operations may run at once.
const MaxOperations = 16

// ErrOperationUnknown says that there is no bulk operation of that id, or that
// it ended long ago.
var ErrOperationUnknown = errors.New("unknown operation")

// A spec is how a bulk operation was asked for, as the engine keeps it: what it
// needs to go on after a restart exactly as it began. It is JSON, since it is
// read seldom and grows.
type spec struct {
	Kind    string          `json:"kind"`
	Filter  Filter          `json:"filter,omitzero"`
	Before  record.ID       `json:"before"`            // position of the log at which it began
	Due     int64           `json:"due,omitempty"`     // of a reschedule or a deliver: Unix ms
	By      int64           `json:"by,omitempty"`      // of a reschedule: ms
	From    int64           `json:"from,omitempty"`    // of a spread: Unix ms
	Over    int64           `json:"over,omitempty"`    // of a spread: ms
	Matched int64           `json:"matched,omitempty"` // of a spread: how many there were
	Redrive *RedriveRequest `json:"redrive,omitempty"`
}

// operations is the bulk operations that run here.
type operations struct {
	mu      sync.Mutex
	running map[uint64]*run
	failed  map[uint64]error // why one that is not over does not run
	closed  bool
	wg      sync.WaitGroup
}

// A run is the goroutine of a bulk operation.
type run struct {
	number uint64
	spec   spec
	stop   context.CancelFunc
	ended  chan struct{}
}

// worker gives what does the work of a kind of operation. It goes on from where
// the operation stands, returns nil when nothing is left to do, and with the
// context's error soon after that has ended, between two steps.
func (b *Broker) worker(kind string) func(context.Context, *run) error {
	switch BulkKind(kind) {
	case BulkCancel, BulkReschedule, BulkDeliver, BulkSpread:
		return b.bulk
	case redriveKind:
		return b.redrive
	default:
		return nil
	}
}

// resume starts what was running when the store was closed.
func (b *Broker) resume(ctx context.Context) {
	for _, op := range b.e.Operations() {
		if op.State != record.OperationRunning {
			continue
		}
		s, err := readSpec(op.Spec)
		if err == nil && b.worker(s.Kind) == nil {
			err = fmt.Errorf("%w: operation of kind %q", errors.ErrUnsupported, s.Kind)
		}
		if err != nil {
			b.operations.fail(op.Number, err)
			b.log.Error("bulk operation cannot go on", slog.Uint64("number", op.Number), slog.Any("error", err))
			continue
		}
		b.operations.mu.Lock()
		b.startLocked(ctx, op.Number, s)
		b.operations.mu.Unlock()
	}
}

func readSpec(text string) (s spec, err error) {
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("%w: description of a bulk operation: %w", record.ErrCorrupt, err)
	}
	if s.Due < 0 || s.From < 0 || s.Over < 0 || s.Matched < 0 {
		return s, fmt.Errorf("%w: description of a bulk operation: %.100q", record.ErrCorrupt, text)
	}
	return s, nil
}

// start begins a bulk operation, if there is room for one more.
func (b *Broker) start(ctx context.Context, s spec) (Operation, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return Operation{}, fmt.Errorf("%w: bulk operation: %w", ErrInvalid, err)
	}
	number, err := b.begin(ctx, s, string(text))
	if err != nil {
		return Operation{}, err
	}
	op, ok := b.e.Operation(number)
	if !ok {
		return Operation{}, fmt.Errorf("%w: op-%d", ErrOperationUnknown, number)
	}
	return b.operationView(&op), nil
}

// begin begins an operation and has it run.
func (b *Broker) begin(ctx context.Context, s spec, text string) (uint64, error) {
	o := &b.operations
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, ErrClosed
	}
	if n := len(o.running); n >= MaxOperations {
		return 0, fmt.Errorf("%w: %d bulk operations run; wait for one, or stop one", ErrFull, n)
	}
	number, err := b.e.BeginOperation(context.WithoutCancel(ctx), text) // or it would have begun, and not run
	if err == nil {
		b.startLocked(ctx, number, s)
	}
	return number, err
}

// startLocked has an operation run until it is done or stopped, whatever becomes
// of ctx.
func (b *Broker) startLocked(ctx context.Context, number uint64, s spec) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &run{number: number, spec: s, stop: stop, ended: make(chan struct{})}
	o := &b.operations
	if o.running == nil {
		o.running = make(map[uint64]*run)
	}
	o.running[number] = r
	o.wg.Go(func() {
		defer stop()
		err := b.perform(ctx, r)
		if err != nil {
			o.fail(number, err)
		}
		o.mu.Lock()
		delete(o.running, number)
		o.mu.Unlock()
		close(r.ended)
	})
}

// perform does the work of an operation and ends it. An error is why it is not
// over and does not go on.
func (b *Broker) perform(ctx context.Context, r *run) error {
	err := b.worker(r.spec.Kind)(ctx, r)
	if err == nil {
		err = b.e.EndOperation(context.WithoutCancel(ctx), r.number, record.OperationDone)
	}
	if ctx.Err() != nil || errors.Is(err, engine.ErrGone) {
		err = nil // the store is closing, or somebody stopped it
	}
	if err != nil {
		b.log.Error("bulk operation does not go on before a restart", slog.Uint64("number", r.number), slog.Any("error", err))
	}
	return err
}

func (o *operations) fail(number uint64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil {
		o.failed = make(map[uint64]error)
	}
	o.failed[number] = err
}

// close stops all between two steps, and waits for that.
func (o *operations) close() {
	o.mu.Lock()
	o.closed = true
	for _, r := range o.running {
		r.stop()
	}
	o.mu.Unlock()
	o.wg.Wait()
}

// Operation tells how a bulk operation stands.
func (b *Broker) Operation(id string) (Operation, error) {
	op, err := b.operation(id)
	if err != nil {
		return Operation{}, err
	}
	return b.operationView(&op), nil
}

func (b *Broker) operation(id string) (engine.Operation, error) {
	text, ok := strings.CutPrefix(id, "op-")
	number, err := strconv.ParseUint(text, 10, 64)
	if !ok || err != nil {
		return engine.Operation{}, fmt.Errorf("%w: %q is not the id of an operation, such as op-12", ErrInvalid, short(id))
	}
	op, ok := b.e.Operation(number)
	if !ok {
		return op, fmt.Errorf("%w: %s; the last %d that have ended are remembered", ErrOperationUnknown, id, engine.MaxOperations)
	}
	return op, nil
}

// Operations gives the bulk operations that are remembered, oldest first.
func (b *Broker) Operations() []Operation {
	all := b.e.Operations()
	out := make([]Operation, len(all))
	for i := range all {
		out[i] = b.operationView(&all[i])
	}
	return out
}

func (b *Broker) operationView(op *engine.Operation) Operation {
	s, err := readSpec(op.Spec)
	v := Operation{
		ID: "op-" + strconv.FormatUint(op.Number, 10), Kind: s.Kind, Filter: s.Filter, Matched: s.Matched,
		Done: op.Done, Missed: op.Missed, Began: op.Began, Ended: op.Ended,
	}
	if s.Redrive != nil {
		v.Done, v.Missed = redriven(op.Cursor)
	}
	switch op.State {
	case record.OperationDone:
		v.State = OperationDone
	case record.OperationStopped:
		v.State = OperationStopped
	case record.OperationRunning:
		v.State = OperationRunning
		b.operations.mu.Lock()
		if failed := b.operations.failed[op.Number]; failed != nil {
			err = failed
		}
		b.operations.mu.Unlock()
	}
	if err != nil {
		v.Error = err.Error()
	}
	return v
}

// StopOperation ends a bulk operation; what it did stays done. One that has
// ended is no error.
func (b *Broker) StopOperation(ctx context.Context, id string) error {
	op, err := b.operation(id)
	if err != nil || op.State != record.OperationRunning {
		return err
	}
	if err := b.e.EndOperation(ctx, op.Number, record.OperationStopped); err != nil {
		return err
	}
	b.operations.mu.Lock()
	defer b.operations.mu.Unlock()
	delete(b.operations.failed, op.Number)
	if r := b.operations.running[op.Number]; r != nil {
		r.stop()
	}
	return nil
}

// WaitOperation returns when a bulk operation has ended, or does not go on, or
// with ctx.
func (b *Broker) WaitOperation(ctx context.Context, id string) (Operation, error) {
	op, err := b.operation(id)
	if err != nil {
		return Operation{}, err
	}
	b.operations.mu.Lock()
	r := b.operations.running[op.Number]
	b.operations.mu.Unlock()
	if r != nil {
		select {
		case <-r.ended:
		case <-ctx.Done():
			return Operation{}, ctx.Err()
		}
	}
	return b.Operation(id)
}
