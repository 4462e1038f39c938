package broker

import (
	"context"
	"errors"

	"github.com/duemq/duemq/internal/engine"
)

// A RedriveRequest asks for dead letters to be delivered again.
type RedriveRequest struct {
	Group  string
	IDs    []string // of the dead letters; none: all there are now
	Delay  engine.Delay
	Rate   int // how many a second at most; 0 is any number
	DryRun bool
}

// Redrive has dead letters delivered again, to the group whose they are and to
// nobody else, and begins to count their attempts anew. It runs in the
// background as an [Operation]; a dry run only counts.
func (b *Broker) Redrive(ctx context.Context, r RedriveRequest) (Operation, error) {
	return Operation{}, errors.ErrUnsupported
}
