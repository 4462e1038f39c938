package broker

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
)

// A ReceiveRequest asks for messages of one topic, for one group.
type ReceiveRequest struct {
	Topic     string
	Group     string
	Max       int           // 1 to MaxReceive; 0 is 1
	Wait      time.Duration // how long to wait for the first one; 0 does not
	Invisible time.Duration // how long they are leased; 0 is the group's, by default DefaultInvisible
	MaxBytes  int           // of their bodies; 0 and above is MaxReceiveBytes. One message always fits

	// Tags selects messages by their tags: "a || b"; "" and "*" are all. What
	// does not match is finished for the group.
	Tags string

	// Ordered has each queue in order: nothing of it is given while the group has
	// something of it that is not finished.
	Ordered bool
}

// A Delivery is one message, leased.
type Delivery struct {
	View

	Lease string
}

func (r *ReceiveRequest) check() error {
	if r.Max == 0 {
		r.Max = 1
	}
	if r.Invisible == 0 {
		r.Invisible = DefaultInvisible
	}
	switch {
	case r.Max < 0 || r.Max > MaxReceive:
		return fmt.Errorf("%w: max %d, want 1 to %d", ErrInvalid, r.Max, MaxReceive)
	case r.Wait < 0 || r.Wait > MaxWait:
		return fmt.Errorf("%w: wait %v, want 0 to %v", ErrInvalid, r.Wait, MaxWait)
	case r.Invisible < time.Millisecond || r.Invisible > MaxInvisible:
		return fmt.Errorf("%w: invisible %v, want 1ms to %v", ErrInvalid, r.Invisible, MaxInvisible)
	}
	return nil
}

// Receive leases messages: those whose lease ended first, then new ones. It
// returns with what there is, and waits only for the first one. No message
// within Wait is an empty answer and no error.
func (b *Broker) Receive(ctx context.Context, r ReceiveRequest) ([]Delivery, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := checkTopic(r.Topic); err != nil {
		return nil, err
	}
	g, err := b.group(ctx, r.Group)
	if err != nil {
		return nil, err
	}
	t, err := b.topic(ctx, r.Topic)
	if err != nil {
		return nil, err
	}
	deadline := b.mono() + r.Wait.Milliseconds()
	for {
		bell := t.Bell.Wait()
		got, again, err := b.lease(t, g, &r)
		if err != nil || len(got) > 0 {
			return got, err
		}
		wait := min(deadline, again) - b.mono()
		if deadline <= b.mono() {
			return nil, nil
		}
		if err := b.await(ctx, bell, time.Duration(max(wait, 1))*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// mono is monotonic time in ms, for leases and waits. It is never zero, which
// ends a lease for good.
func (b *Broker) mono() int64 { return b.clock.Now().Mono/int64(time.Millisecond) + 1 }

// await waits for the bell, at most for d.
func (b *Broker) await(ctx context.Context, bell <-chan struct{}, d time.Duration) error {
	timer := b.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-bell:
		return nil
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-b.e.Failed():
		return b.e.Err()
	case <-b.closing:
		return ErrDraining
	}
}

// lease leases what is there. again is the next instant at which a lease ends.
func (b *Broker) lease(t *engine.Topic, g *group.Group, r *ReceiveRequest) (got []Delivery, again int64, err error) {
	now := b.mono()
	until := now + r.Invisible.Milliseconds()
	again = now + MaxWait.Milliseconds()
	ask := group.Ask{Now: now, Until: until, Unix: b.e.Now()}
	first := b.turn.Add(1)
	for i := range t.Queues {
		q := t.First() + record.QueueNumber((first+i)%t.Queues)
		l := b.leasesOf(g.Number, q)
		var grants []group.Grant
		err := b.e.Progress(g, q, func(p *group.Progress, bounds engine.Bounds) {
			ask.Limit = r.Max - len(got)
			grants = l.Grant(p, bounds.Low, bounds.Next, ask)
		})
		if err != nil {
			return got, again, err
		}
		before := len(got)
		if got, err = b.deliver(got, t, g, q, grants); err != nil {
			return got, again, err
		}
		if at, ok := l.Next(); ok {
			again = min(again, at)
		}
		if full := len(got) > 0 && len(got)-before < len(grants); full || len(got) >= r.Max {
			break
		}
	}
	return got, again, nil
}

// deliver reads the leased messages of one queue.
func (b *Broker) deliver(dst []Delivery, t *engine.Topic, g *group.Group, q record.QueueNumber, grants []group.Grant) ([]Delivery, error) {
	if len(grants) == 0 {
		return dst, nil
	}
	dst = slices.Grow(dst, len(grants))
	entries := make([]queue.Entry, 0, len(grants))
	for i := 0; i < len(grants); {
		n := 1
		for i+n < len(grants) && grants[i+n].Offset == grants[i].Offset+record.Offset(n) {
			n++
		}
		from := len(entries)
		var err error
		if entries, err = b.e.Entries(entries, q, grants[i].Offset, n); err != nil {
			return dst, err
		}
		if len(entries) == from {
			return dst, fmt.Errorf("queue %d offset %d: %w", q, grants[i].Offset, engine.ErrNotFound)
		}
		i += len(entries) - from
	}
	if n := fit(dst, entries); n < len(grants) {
		l := b.leasesOf(g.Number, q)
		for _, grant := range grants[n:] {
			l.Return(grant.Offset, grant.Attempt)
		}
		entries = entries[:n]
		t.Bell.Ring() // others may have them now
	}
	b.e.Messages(entries, func(i int, m *record.Message, err error) {
		if err != nil {
			// Its lease ends and it is tried again; the others go out.
			b.log.Error("message cannot be read", slog.Any("id", entries[i].ID), slog.Any("error", err))
			return
		}
		d := Delivery{Lease: lease{g.Name, q, grants[i].Offset, grants[i].Attempt}.String()}
		d.View = b.view(t, q, m, entries[i].ID)
		d.Offset, d.HasOffset, d.Attempt, d.State = grants[i].Offset, true, int(grants[i].Attempt), StateInflight
		d.Due, d.VisibleAt = entries[i].Due, entries[i].VisibleAt
		d.Body = slices.Clone(m.Body)
		dst = append(dst, d)
	})
	return dst, nil
}

// fit says how many of entries MaxReceiveBytes has room for beside dst. The
// first message of an answer always fits.
func fit(dst []Delivery, entries []queue.Entry) (n int) {
	room := MaxReceiveBytes
	for i := range dst {
		room -= len(dst[i].Body)
	}
	for n < len(entries) && (int(entries[n].Size) <= room || len(dst)+n == 0) {
		room -= int(entries[n].Size)
		n++
	}
	return n
}
