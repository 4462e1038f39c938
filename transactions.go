package duemq

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// DefaultProducer is the group of producers of a [Queue.Begin] that names none.
const DefaultProducer = "default"

// Producer names the group of producers whose transaction it is: its members are
// asked what became of it when nobody says so ([Queue.Checks]). Default
// [DefaultProducer].
func Producer(name string) BeginOption {
	return beginFunc(func(o *outgoing) {
		if name == "" {
			o.refuse("no producer")
		}
		o.m.Half = name
	})
}

// A Tx is a message whose sender has yet to say whether it is to be delivered:
// to be sent exactly if something else happened, such as a change in a database.
type Tx struct {
	Receipt // of the half message; not Ready, and not due before it is committed

	queue *Queue
}

// Begin sends a half message: it is as durable as any, and nobody receives it,
// until its transaction is committed. Who neither commits nor rolls back is
// asked ([Queue.Checks]) after 6 seconds and then every 30; after 15 times the
// message is rolled back. There may be 100,000 half messages: [ErrFull].
//
// Its delay counts from the commit. The id of the Tx is that of the message, so
// that another process can end it ([Queue.Commit] is something else:
// [Queue.CommitTx]).
func (q *Queue) Begin(ctx context.Context, topic string, body []byte, opts ...BeginOption) (*Tx, error) {
	r, err := sendOne(ctx, q, topic, body, append([]BeginOption{Producer(DefaultProducer)}, opts...))
	if err != nil {
		return nil, err
	}
	return &Tx{r, q}, nil
}

// Commit has the message delivered when its delay, counted from now, has passed.
// The answer is as durable as the [SyncPolicy] says. A transaction that was ended
// before, either way, is [ErrTransactionEnded].
func (t *Tx) Commit(ctx context.Context) error { return t.queue.CommitTx(ctx, t.ID) }

// Rollback has the message never be delivered. Errors are those of Commit.
func (t *Tx) Rollback(ctx context.Context) error { return t.queue.RollbackTx(ctx, t.ID) }

// CommitTx is [Tx.Commit] by the id of the half message.
func (q *Queue) CommitTx(ctx context.Context, id string) error { return q.endTx(ctx, id, true) }

// RollbackTx is [Tx.Rollback] by the id of the half message.
func (q *Queue) RollbackTx(ctx context.Context, id string) error { return q.endTx(ctx, id, false) }

func (q *Queue) endTx(ctx context.Context, id string, commit bool) error {
	return q.during(ctx, func() error { return q.b.endTransaction(ctx, id, commit) })
}

// A Check asks a producer what became of a transaction.
type Check struct {
	*Message // the half message

	Checks int // how often was asked, from 1

	queue *Queue
}

// Commit is [Tx.Commit].
func (c *Check) Commit(ctx context.Context) error { return c.queue.CommitTx(ctx, c.ID) }

// Rollback is [Tx.Rollback].
func (c *Check) Rollback(ctx context.Context) error { return c.queue.RollbackTx(ctx, c.ID) }

// Checks yields the half messages of a group of producers that want to be asked
// about, as their moments come. The loop commits each or rolls it back, or does
// nothing if it cannot tell yet: then it is asked again. Each is given to one of
// the loops that are there. It ends as that of [Queue.Receive].
func (q *Queue) Checks(ctx context.Context, producer string, opts ...CheckOption) iter.Seq2[*Check, error] {
	return func(yield func(*Check, error) bool) {
		r, err := receptionOf("", 1, opts)
		if err != nil {
			yield(nil, err)
			return
		}
		if r.req.Max > MaxReceive {
			yield(nil, fmt.Errorf("%w: max %d, want 1 to %d", ErrInvalid, r.req.Max, MaxReceive))
			return
		}
		for {
			var got []*Check
			err := q.inSteps(ctx, r, func(wait time.Duration) (bool, error) {
				err := q.patiently(ctx, func(ctx context.Context) (err error) {
					got, err = q.b.checks(ctx, producer, r.req.Max, wait)
					return err
				})
				return len(got) > 0, err
			})
			if err != nil {
				yield(nil, err)
				return
			}
			if len(got) == 0 {
				return
			}
			for _, c := range got {
				c.queue = q
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

// Transactions gives the half messages of a group of producers, of all groups if
// it is empty, in the order of sending, without bodies and 1000 at most.
func (q *Queue) Transactions(ctx context.Context, producer string) (halves []*Message, err error) {
	err = q.during(ctx, func() (err error) {
		halves, err = q.b.transactions(ctx, producer)
		return err
	})
	return halves, err
}

// errNoIDs refuses an empty list, which must not stand for everything.
func errNoIDs() error { return fmt.Errorf("%w: no ids", ErrInvalid) }
