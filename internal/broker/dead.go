package broker

import (
	"context"
	"errors"

	"github.com/duemq/duemq/internal/record"
)

// Bury makes a leased message a dead letter at once, for a reason that is kept
// with it, and gives its id there. The move is one durable step. Errors are as
// for Extend.
func (b *Broker) Bury(ctx context.Context, lease, reason string) (record.ID, error) {
	return 0, errors.ErrUnsupported
}

// DeadLetters lists a group's dead letters that were neither redriven nor
// purged, oldest first, with their bodies, up to limit (0 is 100, at most
// MaxPage). next is where the following page begins; empty at the end.
func (b *Broker) DeadLetters(ctx context.Context, group, cursor string, limit int) (page []View, next string, err error) {
	return nil, "", errors.ErrUnsupported
}

// PurgeDead drops dead letters of a group, all of them if ids is empty, and says
// how many.
func (b *Broker) PurgeDead(ctx context.Context, group string, ids []string) (int, error) {
	return 0, errors.ErrUnsupported
}
