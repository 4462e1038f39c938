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
	var done piles
	f := finder{b: b}
	for i, s := range leases {
		if errs[i] = f.find(s); errs[i] != nil || f.gone {
			continue
		}
		switch f.leases.Finish(f.offset, f.attempt) {
		case group.Unknown: // from before a restart, or never given
			if errs[i] = f.plausible(); errs[i] == nil {
				done.add(f.key, f.leases, f.offset)
			}
		case group.Holds:
			done.add(f.key, f.leases, f.offset)
		case group.Lost:
			errs[i] = lost(s)
		case group.Finished:
		}
	}
	if len(done) == 0 {
		return errs, nil
	}
	err := b.e.Ack(context.WithoutCancel(ctx), done.acks())
	b.ringBlocked(done)
	return errs, err
}

// A finder finds what leases name. It remembers the group and the queue of the
// last one, since they come in runs.
type finder struct {
	b      *Broker
	name   string // of the last group
	s      subscriber
	low    record.Offset // of the last queue
	next   record.Offset
	leases *group.Leases

	// Of the last lease.
	text    string
	key     leaseKey
	offset  record.Offset
	attempt uint32
	gone    bool // retention has taken the message
}

// find reads a lease and finds its group and queue.
func (f *finder) find(s string) error {
	var buf [maxLeaseBytes]byte
	name, l, err := scanLease(buf[:], s)
	if err != nil {
		return err
	}
	if f.s.state == nil || string(name) != f.name {
		f.name, f.leases = string(name), nil
		if f.s.state, f.s.Group = f.b.e.GroupNow(f.name); f.s.state == nil {
			return fmt.Errorf("%w: %q names group %q, which is unknown", ErrInvalid, short(s), f.name)
		}
	}
	f.text, f.offset, f.attempt = s, l.offset, l.attempt
	if key := (leaseKey{f.s.Number, l.queue}); f.leases == nil || key != f.key {
		f.key, f.leases = key, nil
		if f.low, f.next, err = f.b.e.Bounds(l.queue); err != nil {
			return fmt.Errorf("%w: %s: its topic was deleted or purged", ErrLeaseLost, short(s))
		}
		f.leases = f.b.leasesOf(f.key.group, f.key.queue)
	}
	if l.offset >= f.next {
		if _, f.next, err = f.b.e.Bounds(l.queue); err != nil || l.offset >= f.next {
			return fmt.Errorf("%w: %q names a delivery that never was", ErrInvalid, short(s))
		}
	}
	f.gone = l.offset < f.low
	return nil
}

// held is find for who needs the message itself.
func (f *finder) held(s string) error {
	if err := f.find(s); err != nil {
		return err
	}
	if f.gone {
		return fmt.Errorf("%w: %s: the message was older than what is kept", ErrLeaseLost, short(s))
	}
	return nil
}

// plausible refuses a lease that this group cannot have been given: nobody gets
// more than MaxInflight beyond what is finished.
func (f *finder) plausible() error {
	base := f.offset
	err := f.b.e.Progress(f.s.state, f.key.queue, func(p *group.Progress, b engine.Bounds) { base, _ = p.Behind(b.Low) })
	if err == nil && f.offset >= base+group.MaxInflight {
		err = fmt.Errorf("%w: lease of offset %d, while the group is at %d: it was never given", ErrInvalid, f.offset, base)
	}
	return err
}

// standing makes an error of how a lease stands that does not hold.
func (f *finder) standing(st group.Standing) error {
	switch st {
	case group.Holds:
		return nil
	case group.Finished:
		return fmt.Errorf("%w: %s: the message is acknowledged", ErrLeaseLost, short(f.text))
	case group.Lost, group.Unknown:
	}
	return lost(f.text)
}

func lost(s string) error {
	return fmt.Errorf("%w: %s: it ended and the message was given back, or to another receiver", ErrLeaseLost, short(s))
}

// A pile is offsets of one queue that a group is finished with.
type pile struct {
	key     leaseKey
	leases  *group.Leases
	offsets []record.Offset
}

type piles []pile

func (ps *piles) add(k leaseKey, l *group.Leases, o record.Offset) {
	i := len(*ps) - 1
	for i >= 0 && (*ps)[i].key != k {
		i--
	}
	if i < 0 {
		*ps = append(*ps, pile{key: k, leases: l})
		i = len(*ps) - 1
	}
	(*ps)[i].offsets = append((*ps)[i].offsets, o)
}

// acks makes one command of each pile.
func (ps *piles) acks() []record.Ack {
	acks := make([]record.Ack, 0, len(*ps))
	for _, p := range *ps {
		acks = append(acks, record.Ack{Group: p.key.group, Queue: p.key.queue, Ranges: ranges(p.offsets)})
	}
	slices.SortFunc(acks, func(x, y record.Ack) int {
		return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Queue, y.Queue))
	})
	return acks
}

// ranges joins offsets, in whatever order and however often they come.
func ranges(offsets []record.Offset) (out []record.OffsetRange) {
	slices.Sort(offsets)
	for _, o := range offsets {
		n := len(out)
		switch {
		case n > 0 && out[n-1].To > o:
		case n > 0 && out[n-1].To == o:
			out[n-1].To++
		default:
			out = append(out, record.OffsetRange{From: o, To: o + 1})
		}
	}
	return out
}

// ringBlocked wakes who waits for what is finished now: because of order, or
// because there was no room for more.
func (b *Broker) ringBlocked(ps piles) {
	for i := range ps {
		if ps[i].leases.Blocked() {
			b.ring(ps[i].key.queue)
		}
	}
}

// ring wakes who waits for something of a queue.
func (b *Broker) ring(q record.QueueNumber) {
	if t, _ := b.e.TopicOf(q); t != nil {
		t.Bell.Ring()
	}
}

// Return gives back leased messages that were not shown to anybody: they may be
// received again at once, and their attempt does not count. What is not leased
// any more is passed over.
func (b *Broker) Return(leases []string) {
	f := finder{b: b}
	for _, s := range leases {
		if f.find(s) == nil && f.leases.Return(f.offset, f.attempt) == group.Holds {
			b.ring(f.key.queue)
		}
	}
}

// Extend has a lease run for d from now on. ErrLeaseLost: the lease has ended
// and the message was given to somebody else, it is finished, retention has
// taken it, or the broker was restarted.
func (b *Broker) Extend(_ context.Context, s string, d time.Duration) error {
	if err := checkInvisible(d); err != nil {
		return err
	}
	f := finder{b: b}
	if err := f.held(s); err != nil {
		return err
	}
	if err := f.standing(f.leases.Extend(f.offset, f.attempt, b.mono()+d.Milliseconds())); err != nil {
		return err
	}
	b.ring(f.key.queue) // who waits must learn of the new instant
	return nil
}

func checkInvisible(d time.Duration) error {
	if d < 0 || d > MaxInvisible {
		return fmt.Errorf("%w: %v, want 0 to %v", ErrInvalid, d, MaxInvisible)
	}
	return nil
}
