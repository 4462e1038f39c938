package duemq

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// remote is a backend that asks a server. What is sent is in outbox.go.
type remote struct {
	c    *client.Client
	line *line
	log  *slog.Logger
	poll time.Duration // longest wait of one receive
	shut atomic.Bool   // closed: what a queue may be asked all the same is not known any more

	end         func()                              // drains
	whenDrained func(f func()) (forget func() bool) // runs f when drained
	brief       func() (context.Context, func())    // bounds a call whose caller has no context
}

var _ backend = (*remote)(nil)

const (
	// longPoll is the longest wait of one receive. The server would take twice as
	// much, but proxies like to end a silence of 60 s.
	longPoll = 30 * time.Second
	// briefly bounds a call whose caller has no context.
	briefly = 10 * time.Second
)

// newRemote makes a backend that outlives ctx and keeps its values.
func newRemote(ctx context.Context, c *client.Client, k clock.Clock, s *settings) *remote {
	ctx = context.WithoutCancel(ctx)
	life, end := context.WithCancel(ctx)
	var seed [16]byte
	_, _ = rand.Read(seed[:]) // it never fails
	jitter := mathrand.NewPCG(binary.LittleEndian.Uint64(seed[:]), binary.LittleEndian.Uint64(seed[8:]))
	r := &remote{
		c:           c,
		line:        &line{clock: k, log: s.logger, closing: life.Done(), jitter: mathrand.New(jitter)},
		log:         s.logger,
		poll:        longPoll,
		end:         end,
		whenDrained: func(f func()) func() bool { return context.AfterFunc(life, f) },
		brief: func() (context.Context, func()) {
			ctx, end := context.WithTimeout(ctx, briefly)
			return ctx, end
		},
	}
	if h := s.httpClient; h != nil && h.Timeout > 0 {
		r.poll = min(longPoll, h.Timeout/2)
	}
	return r
}

// greet finds out whether a DueMQ server is there.
func (r *remote) greet(ctx context.Context) error {
	v, err := ask(ctx, r, r.c.Version)
	if err == nil && v.Version == "" {
		err = fmt.Errorf("%w: what answers is not a DueMQ server", ErrUnavailable)
	}
	return err
}

// once makes a call that must not happen twice.
func (r *remote) once(ctx context.Context, call func() error) error { return r.do(ctx, false, call) }

// twice makes a call that may happen twice.
func (r *remote) twice(ctx context.Context, call func() error) error { return r.do(ctx, true, call) }

func (r *remote) do(ctx context.Context, twice bool, call func() error) error {
	return r.line.again(ctx, twice, func() error { return answered(ctx, call()) })
}

// ask makes a call that only looks, or is the same twice as once.
func ask[T any](ctx context.Context, r *remote, call func(context.Context) (T, error)) (v T, err error) {
	err = r.twice(ctx, func() (err error) {
		v, err = call(ctx)
		return err
	})
	return v, err
}

// change makes a call that must not happen twice.
func change[T any](ctx context.Context, r *remote, call func(context.Context) (T, error)) (v T, err error) {
	err = r.once(ctx, func() (err error) {
		v, err = call(ctx)
		return err
	})
	return v, err
}

// askBriefly is ask for a caller without a context.
func askBriefly[T any](r *remote, call func(context.Context) (T, error)) (T, error) {
	if r.shut.Load() {
		var none T
		return none, ErrClosed
	}
	ctx, end := r.brief()
	defer end()
	return ask(ctx, r, call)
}

// answered gives an error its class, or is the context's if that has ended
// without an answer.
func answered(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil && !client.Answered(err) {
		return ended
	}
	return classed(err)
}

func (r *remote) receive(ctx context.Context, q broker.ReceiveRequest) ([]*Message, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	forget := r.whenDrained(func() { end(ErrClosed) })
	defer forget()
	ms, err := r.c.Receive(ctx, q.Topic, wire.Receive{
		Group: q.Group, Max: q.Max, MaxBytes: q.MaxBytes, Wait: wire.Duration(min(q.Wait, r.poll)),
		Invisible: wire.Duration(q.Invisible), Tags: q.Tags, Ordered: q.Ordered,
	})
	if err = answered(ctx, err); err != nil {
		if context.Cause(ctx) == ErrClosed { //nolint:errorlint // the very value given above
			return nil, ErrClosed
		}
		return nil, err
	}
	r.line.up()
	msgs := messagesFrom(ms)
	for i := range ms {
		msgs[i].lease = ms[i].Lease
	}
	return msgs, nil
}

func messagesFrom(ms []wire.Message) []*Message {
	msgs := make([]*Message, len(ms))
	for i := range ms {
		msgs[i] = messageFrom(&ms[i])
	}
	return msgs
}

// messageFrom makes a message of the wire's.
func messageFrom(w *wire.Message) *Message {
	m := &Message{
		Topic: w.Topic, Body: w.Body, Key: w.Key, Tag: w.Tag, Headers: w.Headers, Queue: w.Queue,
		ID: w.ID, Offset: -1, SentAt: instant(int64(w.BornAt)), StoredAt: instant(int64(w.StoredAt)),
		DueAt: instant(int64(w.DeliverAt)), DueLevel: w.Level, VisibleAt: instant(int64(w.VisibleAt)),
		Attempt: w.Attempt, State: State(w.State), NextAttempt: instant(int64(w.NextAttemptAt)),
		Group: w.Group, Origin: w.Origin, OriginTopic: w.OriginTopic, Reason: w.Reason,
	}
	if w.Offset != nil {
		m.Offset = int64(*w.Offset)
	}
	return m
}

func (r *remote) giveBack(leases []string) {
	ctx, end := r.brief()
	defer end()
	err := r.twice(ctx, func() error { return r.c.Return(ctx, leases) })
	if err != nil {
		r.log.Warn("messages that nobody has seen stay leased until their leases end", slog.Int("messages", len(leases)), slog.Any("error", err))
	}
}

// maxAcks is how many leases go into one request: a MiB holds them with names of
// any length.
const maxAcks = 2048

func (r *remote) ack(ctx context.Context, leases []string) ([]error, error) {
	errs := make([]error, 0, len(leases))
	for len(leases) > 0 {
		n := min(len(leases), maxAcks)
		reply, err := ask(ctx, r, func(ctx context.Context) (wire.AckAllReply, error) { return r.c.AckAll(ctx, leases[:n]) })
		if err != nil {
			return nil, err
		}
		if len(reply.Results) != n {
			return nil, fmt.Errorf("the server answers for %d leases of %d", len(reply.Results), n)
		}
		for i := range reply.Results {
			errs = append(errs, problem(reply.Results[i].Problem))
		}
		leases = leases[n:]
	}
	return errs, nil
}

// problem is the error of a part of an answer, nil if there is none.
func problem(p *wire.Problem) error {
	if p == nil {
		return nil
	}
	return classed(&client.Error{Problem: *p})
}

func (r *remote) nack(ctx context.Context, lease string, d *time.Duration) (retried, error) {
	reply, err := change(ctx, r, func(ctx context.Context) (wire.NackReply, error) { return r.c.Reject(ctx, lease, d) })
	return retried{instant(int64(reply.Due)), reply.Dead}, err
}

func (r *remote) bury(ctx context.Context, lease, reason string) error {
	_, err := change(ctx, r, func(ctx context.Context) (string, error) { return r.c.Bury(ctx, lease, reason) })
	return err
}

func (r *remote) extend(ctx context.Context, lease string, d time.Duration) error {
	return r.twice(ctx, func() error { return r.c.Extend(ctx, lease, d) })
}

// cancel is not made twice: the second answer would be that somebody has
// cancelled it before, and the caller could not tell who.
func (r *remote) cancel(ctx context.Context, id string) error {
	return r.once(ctx, func() error {
		_, err := r.c.Cancel(ctx, id)
		return err
	})
}

func (r *remote) reschedule(ctx context.Context, id string, d Delay) error {
	var w wire.Reschedule
	switch d.d.Kind {
	case broker.DelayNone:
		return r.deliverNow(ctx, id)
	default:
		w.After, w.At, w.Level = typed(d.d)
	}
	return r.once(ctx, func() error {
		_, err := r.c.Reschedule(ctx, id, w)
		return err
	})
}

func (r *remote) shift(ctx context.Context, id string, by time.Duration) error {
	return r.once(ctx, func() error {
		_, err := r.c.Reschedule(ctx, id, wire.Reschedule{By: milliseconds(by.Milliseconds())})
		return err
	})
}

func (r *remote) deliverNow(ctx context.Context, id string) error {
	return r.once(ctx, func() error {
		_, err := r.c.DeliverNow(ctx, id)
		return err
	})
}

func (r *remote) message(ctx context.Context, id string) (*Message, error) {
	w, err := ask(ctx, r, func(ctx context.Context) (wire.Message, error) { return r.c.Message(ctx, id) })
	if err != nil {
		return nil, err
	}
	return messageFrom(&w), nil
}

func (r *remote) named(ctx context.Context, topic, name string) (*Message, error) {
	w, err := ask(ctx, r, func(ctx context.Context) (wire.Message, error) { return r.c.MessageNamed(ctx, topic, name) })
	if err != nil {
		return nil, err
	}
	return messageFrom(&w), nil
}

func (r *remote) cancelNamed(ctx context.Context, topic, name string) error {
	_, err := change(ctx, r, func(ctx context.Context) (wire.Answer, error) { return r.c.CancelNamed(ctx, topic, name) })
	return err
}

func (r *remote) pages(s selection) pager {
	q := s.query()
	q.Limit = broker.MaxPage
	return func(ctx context.Context, cursor string) ([]*Message, string, error) {
		q.Cursor = cursor
		page, err := ask(ctx, r, func(ctx context.Context) (wire.Page, error) { return r.c.Pending(ctx, q) })
		if err != nil {
			return nil, "", err
		}
		return messagesFrom(page.Messages), page.Cursor, nil
	}
}

func (r *remote) count(ctx context.Context, s selection) (int64, error) {
	return ask(ctx, r, func(ctx context.Context) (int64, error) { return r.c.Count(ctx, s.query()) })
}

// query is a selection as the wire has it.
func (s *selection) query() wire.PendingQuery {
	q := wire.PendingQuery{
		Topic: s.topic, Tag: s.tag, Key: s.key, IDs: s.ids, From: wire.Time(s.from),
		State: wire.State(s.state), Overdue: s.overdue,
	}
	switch s.end {
	case endNone:
	case endAt:
		q.To = wire.Time(max(s.to, 1)) // 0 would be no end
	case endWithin:
		// The server's within takes the last millisecond in, ours does not; and a
		// within of 0 would be none, while a nanosecond less is rounded up to it.
		const far = int64(100 * 365 * 24 * time.Hour / time.Millisecond)
		q.Within = wire.Duration(time.Duration(min(max(s.to-1, -far), far)) * time.Millisecond)
		if q.Within == 0 {
			q.Within = -1
		}
	}
	return q
}

func (r *remote) nextDue() (due time.Time, ok bool) {
	s, err := askBriefly(r, r.c.Stats)
	if err != nil || s.Messages.NextDue == 0 {
		return time.Time{}, false
	}
	return instant(int64(s.Messages.NextDue)), true
}

func (r *remote) ready() error {
	ctx, end := r.brief()
	defer end()
	return r.twice(ctx, func() error { return r.c.Ready(ctx) })
}

func (r *remote) failed() <-chan struct{} { return nil }
func (r *remote) err() error              { return nil }

func (r *remote) now() time.Time {
	s, err := askBriefly(r, r.c.Stats)
	if err != nil {
		return time.Time{}
	}
	return instant(int64(s.Clock.Now))
}

func (r *remote) acceptClock() error {
	_, err := askBriefly(r, r.c.AcceptClock)
	return err
}

// settle asks until nothing is due.
func (r *remote) settle(ctx context.Context) error {
	for n := 1; ; n++ {
		if err := r.twice(ctx, func() error { return r.c.Health(ctx) }); err != nil {
			return err
		}
		s, err := ask(ctx, r, r.c.Stats)
		if err != nil {
			return err
		}
		due := s.Messages.NextDue
		if s.Clock.Suspect || !s.Messages.Overdue && (due == 0 || due > s.Clock.Now) {
			return nil
		}
		if err := r.line.pause(ctx, n, firstPause); err != nil {
			return err
		}
	}
}

func (r *remote) stats() (Stats, error) {
	s, err := askBriefly(r, r.c.Stats)
	if err != nil {
		return Stats{}, err
	}
	return Stats{
		Waiting: s.Messages.Waiting, Visible: s.Messages.Visible, Overdue: s.Messages.Overdue,
		Wakeups: s.Wakeups.Total, Fruitless: s.Wakeups.Fruitless, Ticks: s.Wakeups.Ticks,
		Syncs: s.Log.Syncs, SyncTime: time.Duration(s.Log.SyncSeconds * float64(time.Second)),
		Cuts: s.Index.Cuts, CutFailures: s.Index.CutFailures, ClockSteps: s.Log.ClockSteps, LogBytes: s.Log.Bytes,
	}, nil
}

func (r *remote) recovered() Recovery {
	s, err := askBriefly(r, r.c.Stats)
	if err != nil {
		return Recovery{}
	}
	f := s.Recovery
	return Recovery{New: f.New, Waiting: f.Waiting, Overdue: f.Overdue, Replayed: f.Batches, Took: time.Duration(f.Took)}
}

func (r *remote) drain() { r.end() }

func (r *remote) close() error {
	r.end()
	r.shut.Store(true)
	r.c.Close()
	return nil
}
