package broker

import (
	"context"
	"errors"
	"time"
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
	Kind    string
	State   OperationState
	Filter  Filter
	Matched int64  // of a dry run or a spread: how many there are
	Done    uint64 // cancelled or moved
	Missed  uint64 // had been delivered or cancelled when their turn came
	Samples []View // of a dry run: the first
	Began   int64  // Unix ms
	Ended   int64  // Unix ms, 0 while it runs
	Error   string // why it does not go on; it will after a restart
}

// Limits of bulk operations.
const (
	MaxOperations = 16     // that run at once
	MaxCandidates = 10_000 // messages with one key that are looked at
	MaxSample     = 100
)

// Classes of error of bulk operations.
var (
	// ErrTooMany says that more would have to be looked at than is allowed.
	ErrTooMany = errors.New("too many")
	// ErrOperationUnknown says that there is no bulk operation of that id, or that
	// it ended long ago.
	ErrOperationUnknown = errors.New("unknown operation")
)

// StartBulk begins a bulk operation, which goes on in the background and after a
// restart too. A dry run counts and begins nothing.
func (b *Broker) StartBulk(ctx context.Context, r Bulk) (Operation, error) {
	return Operation{}, errors.ErrUnsupported
}

// Operation tells how a bulk operation stands.
func (b *Broker) Operation(id string) (Operation, error) {
	return Operation{}, errors.ErrUnsupported
}

// Operations gives the bulk operations that are remembered, oldest first.
func (b *Broker) Operations() []Operation { return nil }

// StopOperation ends a bulk operation; what it did stays done. One that has
// ended is no error.
func (b *Broker) StopOperation(ctx context.Context, id string) error {
	return errors.ErrUnsupported
}

// WaitOperation returns when a bulk operation has ended, or with ctx.
func (b *Broker) WaitOperation(ctx context.Context, id string) (Operation, error) {
	return Operation{}, errors.ErrUnsupported
}
