package broker

import (
	"context"
	"errors"
	"time"

	"github.com/duemq/duemq/internal/record"
)

// A PullRequest asks for messages of one queue from an offset on, without a
// group and without leases.
type PullRequest struct {
	Topic    string
	Queue    int
	Offset   record.Offset
	Max      int           // 1 to MaxReceive; 0 is 1
	MaxBytes int           // of their bodies; 0 and above is MaxReceiveBytes. One message always fits
	Wait     time.Duration // how long to wait for the first one; 0 does not
	Tags     string        // as for a receive; what does not match is passed over
}

// A PullResult is what a pull found.
type PullResult struct {
	Messages []View
	Next     record.Offset // where the next pull goes on
	Low      record.Offset // the first that is kept
	High     record.Offset // one more than the last
	Moved    bool          // the offset asked for lies outside of what is kept: retention has moved it, or it is beyond the end
	Skipped  uint64        // how many offsets retention has moved it by
}

// Pull reads messages of a queue. Consumers that keep their own positions call
// it, and those that commit them to a group. No message within Wait is no error.
func (b *Broker) Pull(ctx context.Context, r PullRequest) (PullResult, error) {
	return PullResult{}, errors.ErrUnsupported
}

// Commit notes a pull consumer's next offset in queues of a topic, for its
// group, which is made if there is none. It is as durable as an ack.
func (b *Broker) Commit(ctx context.Context, group, topic string, offsets map[int]record.Offset) error {
	return errors.ErrUnsupported
}

// Position gives a pull consumer's next offset in each queue of a topic: what it
// committed, or where its group begins.
func (b *Broker) Position(group, topic string) (map[int]record.Offset, error) {
	return nil, errors.ErrUnsupported
}

// SearchOffset finds the first offset of a queue that became visible at an
// instant (Unix ms) or later: the next one to come if none did.
func (b *Broker) SearchOffset(topic string, queue int, at int64) (record.Offset, error) {
	return 0, errors.ErrUnsupported
}
