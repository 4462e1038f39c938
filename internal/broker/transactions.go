package broker

import (
	"context"
	"errors"
	"time"
)

// MaxHalves is how many half messages there may be at once.
const MaxHalves = 100_000

// ErrTransactionEnded says that a message is not half any more, or never was.
var ErrTransactionEnded = errors.New("transaction has ended")

// A Check asks a producer what became of a half message.
type Check struct {
	View

	Checks int // how many times this one makes
}

// EndTransaction commits a half message, by id or handle, or rolls it back; on a
// commit its delay counts from now. The answer is durable. A message that is
// not half any more is ErrTransactionEnded.
func (b *Broker) EndTransaction(ctx context.Context, reference string, commit bool) (Answer, error) {
	return Answer{}, errors.ErrUnsupported
}

// Checks gives half messages of a producer group that want to be asked about,
// up to max (0 is 1): each of them once for every time that its moment comes,
// and again after a restart of the broker. It waits for the first one.
func (b *Broker) Checks(ctx context.Context, producer string, max int, wait time.Duration) ([]Check, error) {
	return nil, errors.ErrUnsupported
}

// Transactions lists the half messages of a producer group, of all for "", in
// the order of sending, up to MaxPage. Bodies are left out.
func (b *Broker) Transactions(producer string) []View { return nil }
