package duemq

import (
	"context"
	"io"
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
	pulling
	topics
	groups
	burying
	deciding
	operating
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
	// nack takes nil for the group's back-off.
	nack(ctx context.Context, lease string, d *time.Duration) (retried, error)
	bury(ctx context.Context, lease, reason string) error
	extend(ctx context.Context, lease string, d time.Duration) error
}

// retried is what became of a message that was given back.
type retried struct {
	due  time.Time // not received again before
	dead bool      // its attempts were used up
}

// steering changes what waits, by id or handle.
type steering interface {
	cancel(ctx context.Context, id string) error
	reschedule(ctx context.Context, id string, d Delay) error
	shift(ctx context.Context, id string, by time.Duration) error
	deliverNow(ctx context.Context, id string) error
	cancelNamed(ctx context.Context, topic, name string) error
}

// looking changes nothing.
type looking interface {
	message(ctx context.Context, id string) (*Message, error)
	// pages gives what reads a listing. What s says of the present is meant as of
	// this call.
	pages(s selection) pager
	count(ctx context.Context, s selection) (int64, error)
	nextDue() (due time.Time, ok bool)
	named(ctx context.Context, topic, name string) (*Message, error)
	timeline(ctx context.Context, r broker.TimelineRequest) (Timeline, error)
}

// pulling is for consumers that keep their own place, or have it kept.
type pulling interface {
	// pull waits as receive does.
	pull(ctx context.Context, r broker.PullRequest) (Pulled, error)
	commit(ctx context.Context, group, topic string, next map[int]int64) error
	position(ctx context.Context, group, topic string) (map[int]int64, error)
	offsetAt(ctx context.Context, topic string, queue int, at int64) (int64, error)
}

// topics manages topics.
type topics interface {
	createTopic(ctx context.Context, name string, t topicTerms) (TopicInfo, error)
	updateTopic(ctx context.Context, name string, attributes map[string]string) (TopicInfo, error)
	topicInfo(ctx context.Context, name string) (TopicInfo, error)
	topicList(ctx context.Context) ([]TopicInfo, error)
	pauseTopic(ctx context.Context, name string) error
	resumeTopic(ctx context.Context, name string) error
	deleteTopic(ctx context.Context, name string) (Purged, error)
	purgeTopic(ctx context.Context, name string) (Purged, error)
}

// groups manages consumer groups.
type groups interface {
	createGroup(ctx context.Context, name string, c broker.GroupConfig) (GroupInfo, error)
	// updateGroup gives a group exactly this configuration.
	updateGroup(ctx context.Context, name string, c broker.GroupConfig) (GroupInfo, error)
	groupInfo(ctx context.Context, name string) (GroupInfo, error)
	groupList(ctx context.Context) ([]GroupInfo, error)
	deleteGroup(ctx context.Context, name string) error
	resetGroup(ctx context.Context, name, topic string, to Position, dry bool) ([]QueueReset, error)
}

// burying is about dead letters.
type burying interface {
	deadPages(group string) pager
	redrive(ctx context.Context, r broker.RedriveRequest) (*Operation, error)
	purgeDead(ctx context.Context, group string, ids []string) (int, error) // without ids: all
}

// deciding is about half messages.
type deciding interface {
	endTransaction(ctx context.Context, id string, commit bool) error
	checks(ctx context.Context, producer string, most int, wait time.Duration) ([]*Check, error) // waits as receive does
	transactions(ctx context.Context, producer string) ([]*Message, error)
}

// operating does something to many messages.
type operating interface {
	startBulk(ctx context.Context, b *bulk) (*Operation, error)
	operation(ctx context.Context, id string) (*Operation, error)
	operations(ctx context.Context) ([]*Operation, error)
	waitOperation(ctx context.Context, id string) (*Operation, error)
	stopOperation(ctx context.Context, id string) error
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
	backup(ctx context.Context, w io.Writer, progress func(done, total int64)) error
	settle(ctx context.Context) error
	stats() (Stats, error)
	recovered() Recovery
	drain() // ends receives that wait; everything else still works
	close() error
}
