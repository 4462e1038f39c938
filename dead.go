package duemq

import (
	"context"
	"fmt"
	"iter"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/engine"
)

// DeadLetters yields a group's dead letters that were neither redriven nor
// purged, oldest first, with their bodies: messages that failed as often as the
// group allows, or were buried. Origin and OriginTopic say what each was, Reason
// why it is here. It reads in pages and locks nothing. An error is yielded once,
// with a nil message, and ends it.
func (q *Queue) DeadLetters(ctx context.Context, group string) iter.Seq2[*Message, error] {
	return q.listing(ctx, func() (pager, error) { return q.b.deadPages(group), nil })
}

// A RedriveOption says what is redriven, and how: [IDs], [After], [Rate],
// [DryRun].
type RedriveOption interface{ redrive(r *redriving) }

// redriving is what the options say.
type redriving struct {
	ids  []string
	some bool // IDs was given
	d    Delay
	rate int
	dry  bool
}

type redriveFunc func(*redriving)

func (f redriveFunc) redrive(r *redriving) { f(r) }

// Rate bounds how many dead letters are delivered a second; default any number.
func Rate(n int) RedriveOption { return redriveFunc(func(r *redriving) { r.rate = n }) }

// redrive has Delay be a RedriveOption.
func (d Delay) redrive(r *redriving) { r.d = d }

// Redrive has dead letters of a group delivered again, to that group and to no
// other, and their attempts counted anew: all that there are now, or those of
// [IDs]; at once or [After] a while. It goes on in the background, also over a
// restart: see [Operation]. With [DryRun] it is only told how many there are.
func (q *Queue) Redrive(ctx context.Context, group string, opts ...RedriveOption) (*Operation, error) {
	var r redriving
	for _, o := range opts {
		o.redrive(&r)
	}
	ask := broker.RedriveRequest{Group: group, IDs: r.ids, Rate: r.rate, DryRun: r.dry, Delay: r.d.d}
	switch {
	case r.some && len(r.ids) == 0:
		return nil, errNoIDs()
	case r.d.d.Kind == engine.DelayAfter && r.d.d.Value <= 0:
		ask.Delay = engine.Delay{}
	case r.d != (Delay{}) && r.d.d.Kind != engine.DelayAfter:
		return nil, fmt.Errorf("%w: %v: a redrive takes After", ErrInvalid, r.d)
	}
	return q.operate(ctx, func() (*Operation, error) { return q.b.redrive(ctx, ask) })
}

// PurgeDead drops the dead letters of a group that have these ids, and says how
// many they were. That cannot be undone.
func (q *Queue) PurgeDead(ctx context.Context, group string, ids ...string) (n int, err error) {
	if len(ids) == 0 {
		return 0, errNoIDs()
	}
	return q.purgeDead(ctx, group, ids)
}

// PurgeAllDead drops all dead letters of a group, and says how many they were.
// That cannot be undone.
func (q *Queue) PurgeAllDead(ctx context.Context, group string) (n int, err error) {
	return q.purgeDead(ctx, group, nil)
}

func (q *Queue) purgeDead(ctx context.Context, group string, ids []string) (n int, err error) {
	err = q.during(ctx, func() (err error) {
		n, err = q.b.purgeDead(ctx, group, ids)
		return err
	})
	return n, err
}
