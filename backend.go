package duemq

import (
	"context"
	"time"

	"github.com/duemq/duemq/internal/broker"
)

// A backend does what the methods of a Queue promise: on a store in this process
// (local, of [Open]) or by asking a server (remote, of [Dial]). The Queue keeps
// for itself what is the same both ways: options, closing, waiting in steps,
// giving back. A new family of features is one more interface here.
//
// No method is called after close. Errors have the classes of errors.go; those
// of a context that ended are the context's.
type backend interface {
	sending
	receiving
	steering
	looking
	standing
}

// sending brings messages in.
type sending interface {
	// send gives a receipt for each message, a refused one with its Err. Bodies
	// are the caller's again when it returns. With an error nothing is known of
	// any message.
	send(ctx context.Context, msgs []broker.Message) ([]Receipt, error)
}

// receiving gives messages out, and takes their leases.
type receiving interface {
	// receive leases what is there or waits for the first message, at most for
	// r.Wait and maybe less; none is no error. A drain ends it with ErrClosed.
	receive(ctx context.Context, r broker.ReceiveRequest) ([]*Message, error)
	// giveBack returns leases of messages that nobody has seen. It is an effort,
	// not a promise: what it misses comes again when its lease ends.
	giveBack(leases []string)
	// ack has an error for each lease that did not hold.
	ack(ctx context.Context, leases []string) ([]error, error)
	nack(ctx context.Context, lease string, d time.Duration) error
	extend(ctx context.Context, lease string, d time.Duration) error
}

// steering changes what waits, by id or handle.
type steering interface {
	cancel(ctx context.Context, id string) error
	reschedule(ctx context.Context, id string, d Delay) error
	shift(ctx context.Context, id string, by time.Duration) error
	deliverNow(ctx context.Context, id string) error
}

// looking changes nothing.
type looking interface {
	message(ctx context.Context, id string) (*Message, error)
	// pages gives what reads a listing. What s says of the present is meant as of
	// this call.
	pages(s selection) pager
	count(ctx context.Context, s selection) (int64, error)
	nextDue() (due time.Time, ok bool)
}

// A pager gives the page at a cursor, "" being the first, and the cursor of the
// next one, "" at the end. Messages have no bodies.
type pager func(ctx context.Context, cursor string) ([]*Message, string, error)

// standing is how the store is, and its end.
type standing interface {
	ready() error
	failed() <-chan struct{}
	err() error
	now() time.Time
	acceptClock() error
	settle(ctx context.Context) error
	stats() (Stats, error)
	recovered() Recovery
	drain() // ends receives that wait; everything else still works
	close() error
}
