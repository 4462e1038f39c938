package broker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/record"
)

// Ack finishes leased messages. The result has an error for each lease that
// did not hold: ErrLeaseLost if somebody else has the message, ErrInvalid if it
// is no lease. A lease that has ended without anybody else getting the message,
// or from before a restart, still holds. A ctx that has ended keeps it from
// beginning; one that ends later does not, since the lease is over by then.
func (b *Broker) Ack(ctx context.Context, leases []string) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	errs := make([]error, len(leases))
	offsets := make(map[leaseKey][]record.Offset)
	for i, s := range leases {
		l, g, err := b.held(s)
		if err != nil {
			errs[i] = err
			continue
		}
		k := leaseKey{g.Number, l.queue}
		switch b.leasesOf(g.Number, l.queue).Finish(l.offset, l.attempt) {
		case group.Unknown: // from before a restart, or never given
			if errs[i] = b.plausible(g, l); errs[i] == nil {
				offsets[k] = append(offsets[k], l.offset)
			}
		case group.Holds:
			offsets[k] = append(offsets[k], l.offset)
		case group.Lost:
			errs[i] = lost(s)
		case group.Finished:
		}
	}
	acks := coalesce(offsets)
	if len(acks) == 0 {
		return errs, nil
	}
	return errs, b.e.Ack(context.WithoutCancel(ctx), acks)
}

// plausible refuses a lease that this group cannot have been given: nobody gets
// more than MaxInflight beyond what is finished.
func (b *Broker) plausible(g *group.Group, l lease) error {
	var base record.Offset
	err := b.e.Progress(g, l.queue, func(p *group.Progress, b engine.Bounds) { base, _ = p.Behind(b.Low) })
	if err == nil && l.offset >= base+group.MaxInflight {
		err = fmt.Errorf("%w: lease of offset %d, while the group is at %d: it was never given", ErrInvalid, l.offset, base)
	}
	return err
}

// coalesce makes one command for each group and queue.
func coalesce(offsets map[leaseKey][]record.Offset) []record.Ack {
	acks := make([]record.Ack, 0, len(offsets))
	for k, os := range offsets {
		slices.Sort(os)
		a := record.Ack{Group: k.group, Queue: k.queue}
		for _, o := range slices.Compact(os) {
			if n := len(a.Ranges); n > 0 && a.Ranges[n-1].To == o {
				a.Ranges[n-1].To++
				continue
			}
			a.Ranges = append(a.Ranges, record.OffsetRange{From: o, To: o + 1})
		}
		acks = append(acks, a)
	}
	slices.SortFunc(acks, func(x, y record.Ack) int {
		return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Queue, y.Queue))
	})
	return acks
}

func lost(s string) error {
	return fmt.Errorf("%w: %s: it ended and the message was given back, or to another receiver", ErrLeaseLost, short(s))
}

// held reads a lease and finds its group.
func (b *Broker) held(s string) (lease, *group.Group, error) {
	l, err := parseLease(s)
	if err != nil {
		return l, nil, err
	}
	g := b.e.GroupNamed(l.group)
	if g == nil {
		return l, nil, fmt.Errorf("%w: %q names group %q, which is unknown", ErrInvalid, short(s), l.group)
	}
	_, next, err := b.e.Bounds(l.queue)
	if err != nil || l.offset >= next {
		return l, nil, fmt.Errorf("%w: %q names a delivery that never was", ErrInvalid, short(s))
	}
	return l, g, nil
}

// Return gives back leased messages that were not shown to anybody: they may be
// received again at once, and their attempt does not count. What is not leased
// any more is passed over.
func (b *Broker) Return(leases []string) {
	for _, s := range leases {
		l, g, err := b.held(s)
		if err != nil || b.leasesOf(g.Number, l.queue).Return(l.offset, l.attempt) != group.Holds {
			continue
		}
		if t, _ := b.e.TopicOf(l.queue); t != nil {
			t.Bell.Ring()
		}
	}
}

// Extend has a lease run for d from now on.
func (b *Broker) Extend(_ context.Context, s string, d time.Duration) error {
	return b.extend(s, d, true)
}

func (b *Broker) extend(s string, d time.Duration, held bool) error {
	if d < 0 || d > MaxInvisible {
		return fmt.Errorf("%w: %v, want 0 to %v", ErrInvalid, d, MaxInvisible)
	}
	l, g, err := b.held(s)
	if err != nil {
		return err
	}
	change := b.leasesOf(g.Number, l.queue).Back
	if held {
		change = b.leasesOf(g.Number, l.queue).Extend
	}
	switch change(l.offset, l.attempt, b.mono()+d.Milliseconds()) {
	case group.Holds:
		if t, _ := b.e.TopicOf(l.queue); t != nil {
			t.Bell.Ring() // who waits must learn of the new instant
		}
		return nil
	case group.Finished:
		return fmt.Errorf("%w: %s: the message is acknowledged", ErrLeaseLost, short(s))
	default:
		return lost(s)
	}
}
