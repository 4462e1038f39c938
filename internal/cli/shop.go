package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// Topics of the shop, and the group of those that work in it.
const (
	shopOrders    = "demo-orders"    // closes an order, unless it is paid before
	shopReminders = "demo-reminders" // ten minutes before a class
	shopWebhooks  = "demo-webhooks"  // to partners, who are down at times
	shopPush      = "demo-push"      // good morning
	shopTrials    = "demo-trials"    // that end in weeks
)

// A shop is what the demo feeds a server with.
type shop struct {
	a    *app
	c    *client.Client
	rate int
	dice *rand.Rand // of the feeder

	orders, paid, closed, reminded, moved, hooked, failed, dead, pushed atomic.Int64

	unpaid []payment // in the order of their moments
	orderN int
	classN int
	hookN  int
}

// A payment is an order that will be paid.
type payment struct {
	at int64  // mono
	id string // of the message that would close it
}

func newShop(a *app, c *client.Client, rate int) *shop {
	return &shop{a: a, c: c, rate: rate, dice: dice(0)}
}

// payWithin is how long a customer has.
const payWithin = 2 * time.Minute

// run runs the shop for so long, or until ctx ends.
func (s *shop) run(ctx context.Context, length time.Duration) error {
	if length > 0 {
		var stop context.CancelFunc
		ctx, stop = s.a.after(ctx, length)
		defer stop()
	}
	err := s.open(ctx)
	if err == nil {
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return s.feed(ctx) })
		g.Go(func() error { return s.work(ctx, shopOrders, &s.closed, nil) })
		g.Go(func() error { return s.work(ctx, shopReminders, &s.reminded, nil) })
		g.Go(func() error { return s.work(ctx, shopPush, &s.pushed, nil) })
		g.Go(func() error { return s.work(ctx, shopWebhooks, &s.hooked, dice(1)) })
		g.Go(func() error { return s.show(ctx) })
		err = g.Wait()
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// after gives a context that ends after a time of the app's clock.
func (a *app) after(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		defer stop()
		_ = a.pause(ctx, d) // ended early is ended
	}()
	return ctx, stop
}

// How much waits from the beginning.
const (
	pushes = 2000
	trials = 300
)

// open makes the group whose webhooks fail, and fills the future.
func (s *shop) open(ctx context.Context) error {
	undone := "the shop could not open"
	_, err := s.c.CreateGroup(ctx, wire.NewGroup{Name: shopWebhooks, GroupSettings: wire.GroupSettings{
		MaxAttempts: new(4), Backoff: []wire.Duration{wire.Duration(2 * time.Second), wire.Duration(5 * time.Second), wire.Duration(15 * time.Second)},
	}})
	if err != nil && client.CodeOf(err) != wire.CodeExists {
		return s.a.answered(ctx, undone, err)
	}
	at := wire.TimeOf(nine(s.a.now(), s.a.Zone)).String()
	msgs := make([]wire.Send, 0, pushes+trials)
	for i := range pushes {
		msgs = append(msgs, wire.Send{Topic: shopPush, Key: "user-" + strconv.Itoa(i), Tag: "morning", Text: "good morning", At: at})
	}
	for i := range trials {
		in := time.Duration(1+s.dice.IntN(30*24)) * time.Hour
		msgs = append(msgs, wire.Send{Topic: shopTrials, Key: "account-" + strconv.Itoa(i), Text: "the trial ends", After: in.String()})
	}
	for some := range slices.Chunk(msgs, batchMessages) {
		if _, err := s.c.Batch(ctx, some); err != nil {
			return s.a.answered(ctx, undone, err)
		}
	}
	return nil
}

// beat is how often the shop does what is to be done.
const beat = 100 * time.Millisecond

// feed has customers order, pay or not, book classes and move them, and has
// webhooks called.
func (s *shop) feed(ctx context.Context) error {
	began := s.a.Clock.Now().Mono
	for {
		now := s.a.Clock.Now().Mono
		want := int(time.Duration(now-began) * time.Duration(s.rate) / time.Second)
		if err := s.customers(ctx, want, now); err != nil {
			return err
		}
		if err := s.pay(ctx, now); err != nil {
			return err
		}
		if err := s.a.pause(ctx, beat); err != nil {
			return err
		}
	}
}

// customers has as many orders come as are wanted by now; every third books a
// class, and every second has a webhook called.
func (s *shop) customers(ctx context.Context, want int, now int64) error {
	for s.orderN < want {
		s.orderN++
		order := wire.Send{
			Topic: shopOrders, Key: "o-" + strconv.Itoa(s.orderN), Tag: "unpaid", Text: `{"do":"close unless paid"}`, After: payWithin.String(),
		}
		r, err := s.c.Publish(ctx, order)
		if err != nil {
			return s.a.answered(ctx, "an order was lost", err)
		}
		s.orders.Add(1)
		if s.dice.IntN(10) < 7 { // the others forget it
			in := time.Duration(5000+s.dice.IntN(int(payWithin.Milliseconds()))) * time.Millisecond // a few come too late
			s.unpaid = append(s.unpaid, payment{at: now + int64(in), id: r.ID})
		}
		if s.orderN%3 == 0 {
			if err := s.book(ctx); err != nil {
				return err
			}
		}
		if s.orderN%2 == 0 {
			s.hookN++
			hook := wire.Send{Topic: shopWebhooks, Key: "call-" + strconv.Itoa(s.hookN), Text: `{"event":"order.placed"}`}
			if _, err := s.c.Publish(ctx, hook); err != nil {
				return s.a.answered(ctx, "a webhook was lost", err)
			}
		}
	}
	return nil
}

// book has a class booked, or every fourth time an earlier one moved.
func (s *shop) book(ctx context.Context) error {
	n := s.classN + 1
	if s.classN > 0 && s.dice.IntN(4) == 0 {
		n = 1 + s.dice.IntN(s.classN)
	} else {
		s.classN++
	}
	in := time.Duration(10+s.dice.IntN(600)) * time.Second
	m := wire.Send{Topic: shopReminders, Name: "class-" + strconv.Itoa(n), Text: "your class begins in 10 minutes", After: in.String()}
	r, err := s.c.Publish(ctx, m)
	if err != nil {
		return s.a.answered(ctx, "a reminder was lost", err)
	}
	if r.Replaced != "" {
		s.moved.Add(1)
	}
	return nil
}

// pay has customers pay whose moment has come: what would have closed their
// orders is taken back, unless it was too late.
func (s *shop) pay(ctx context.Context, now int64) error {
	var err error
	s.unpaid = slices.DeleteFunc(s.unpaid, func(p payment) bool {
		if p.at > now || err != nil {
			return false
		}
		_, cerr := s.c.Cancel(ctx, p.id)
		switch {
		case cerr == nil:
			s.paid.Add(1)
		case !lostRace(cerr):
			err = s.a.answered(ctx, "a payment was lost", cerr)
		}
		return true
	})
	return err
}

// work receives the messages of a topic and finishes them. With dice it fails at
// times, as partners do.
func (s *shop) work(ctx context.Context, topic string, done *atomic.Int64, dice *rand.Rand) error {
	for {
		msgs, err := s.c.Receive(ctx, topic, wire.Receive{Group: topic, Max: pageSize, Wait: wire.Duration(pollFor)})
		if err != nil {
			return s.a.answered(ctx, "nobody works on "+topic, err)
		}
		for i := range msgs {
			m := &msgs[i]
			if dice != nil && dice.IntN(10) < 3 {
				r, err := s.c.Reject(ctx, m.Lease, nil)
				if err != nil && !lostRace(err) {
					return s.a.answered(ctx, "nobody works on "+topic, err)
				}
				s.failed.Add(1)
				if r.Dead {
					s.dead.Add(1)
				}
				continue
			}
			if err := s.c.Ack(ctx, m.Lease); err != nil && !lostRace(err) {
				return s.a.answered(ctx, "nobody works on "+topic, err)
			}
			done.Add(1)
		}
	}
}

// show draws how the shop does, each second on a terminal.
func (s *shop) show(ctx context.Context) error {
	if s.a.errWidth == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	defer fmt.Fprint(s.a.Stderr, "\r\x1b[K")
	for {
		waiting, err := s.c.Count(ctx, wire.PendingQuery{})
		if err != nil && ctx.Err() == nil {
			return s.a.answered(ctx, "cannot count what waits", err)
		}
		line := fmt.Sprintf("%s; %s wait", s.summary(), count(waiting))
		fmt.Fprintf(s.a.Stderr, "\r\x1b[K%s", s.a.paint(s.a.errWidth, dim, cut(line, s.a.errWidth-1)))
		if err := s.a.pause(ctx, time.Second); err != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// summary is how the shop does, in a line.
func (s *shop) summary() string {
	n := func(v *atomic.Int64) string { return count(v.Load()) }
	return fmt.Sprintf("orders: %s, paid %s, closed %s; reminders: %s, moved %s; webhooks: %s, failed %s, given up %s",
		n(&s.orders), n(&s.paid), n(&s.closed), n(&s.reminded), n(&s.moved), n(&s.hooked), n(&s.failed), n(&s.dead))
}
