package duemq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

// A Handler deals with a message. Nil acknowledges it, an error gives it back for
// the group's back-off ([Message.Retry]). One that has called Ack, Retry or Bury
// itself has decided: then nothing more is done.
type Handler func(ctx context.Context, m *Message) error

// MaxConcurrency is the largest number of handlers of one Handle.
const MaxConcurrency = 10_000

// Concurrency says how many messages are handled at once; default 1.
func Concurrency(n int) HandleOption { return handleFunc(func(r *reception) { r.workers = n }) }

// Handle receives messages and has each handled, as many at once as
// [Concurrency] says, until ctx ends. A message is fetched when a handler is free
// for it, and must be done before its lease ends ([Invisible], [Message.Extend]):
// after that somebody else gets it as well. A handler that panics has failed as
// if it had returned an error. What failed is told to the logger
// ([WithLogger]); after its last attempt it is a dead letter ([MaxAttempts],
// [Queue.DeadLetters]).
//
// With [Ordered] the messages of one queue are handled one after the other, and
// the next one only when the one before has been acknowledged.
//
// When ctx ends nothing more is fetched, and Handle returns when the handlers
// have. Their context has the values of ctx and does not end with it, so that
// they can finish their work; a program that wants them to stop gives them
// something of its own. The error is ctx's then; otherwise it is [ErrClosed],
// [ErrFailed] or [ErrInvalid], and nil if [Wait] was given and no message came
// within it. [Queue.Close] waits for handlers too, so it must not be called by
// one.
func (q *Queue) Handle(ctx context.Context, topic string, handler Handler, opts ...HandleOption) error {
	r, err := receptionOf(topic, MaxReceive, append([]HandleOption{Concurrency(1)}, opts...))
	if err != nil {
		return err
	}
	if r.req.Max > MaxReceive {
		return fmt.Errorf("%w: max %d, want 1 to %d", ErrInvalid, r.req.Max, MaxReceive)
	}
	if r.workers < 1 || r.workers > MaxConcurrency {
		return fmt.Errorf("%w: concurrency %d, want 1 to %d", ErrInvalid, r.workers, MaxConcurrency)
	}
	if handler == nil {
		return fmt.Errorf("%w: no handler", ErrInvalid)
	}
	if !q.handling.TryRLock() { // somebody closes the queue, and waits for handlers
		return ErrClosed
	}
	defer q.handling.RUnlock()
	h := &handling{q: q, r: r, handler: handler, free: make(chan struct{}, r.workers)}
	defer h.running.Wait()
	return h.run(ctx)
}

// A handling is one Handle under way.
type handling struct {
	q       *Queue
	r       *reception
	handler Handler
	free    chan struct{} // holds an element for each handler that is busy
	running sync.WaitGroup
}

// run fetches messages for handlers that are free.
func (h *handling) run(ctx context.Context) error {
	for {
		n, err := h.claim(ctx)
		if err != nil {
			return err
		}
		r := *h.r
		r.req.Max = n
		got, err := h.q.fetch(ctx, &r)
		jobs := h.jobs(got)
		h.release(n - len(jobs))
		if err != nil {
			return err
		}
		if len(got) == 0 {
			return nil // Wait was given, and nothing came
		}
		for _, job := range jobs {
			h.running.Go(func() {
				defer h.release(1)
				h.each(context.WithoutCancel(ctx), job)
			})
		}
	}
}

// claim waits for one handler to be free and takes all that are, at most as many
// as may be fetched.
func (h *handling) claim(ctx context.Context) (n int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	select {
	case h.free <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-h.q.closing:
		return 0, ErrClosed
	}
	for n = 1; n < h.r.req.Max; n++ {
		select {
		case h.free <- struct{}{}:
		default:
			return n, nil
		}
	}
	return n, nil
}

func (h *handling) release(n int) {
	for range n {
		<-h.free
	}
}

// jobs are the messages that one handler each deals with: one, or in order those
// of a queue.
func (h *handling) jobs(got []*Message) [][]*Message {
	jobs := make([][]*Message, 0, len(got))
	byQueue := make(map[int]int)
	for _, m := range got {
		if i, ok := byQueue[m.Queue]; ok && h.r.req.Ordered {
			jobs[i] = append(jobs[i], m)
			continue
		}
		byQueue[m.Queue] = len(jobs)
		jobs = append(jobs, []*Message{m})
	}
	return jobs
}

// each handles messages one after the other. After one that was not acknowledged
// the rest must not come before it: they are given back.
func (h *handling) each(ctx context.Context, msgs []*Message) {
	for i, m := range msgs {
		if !h.one(ctx, m) {
			h.q.giveBack(msgs[i+1:])
			return
		}
	}
}

// one handles a message and says whether it is done with.
func (h *handling) one(ctx context.Context, m *Message) bool {
	err := h.guarded(ctx, m)
	switch {
	case m.settled && err == nil:
		return m.State != StateRetrying
	case m.settled:
		h.q.log.Warn("handler failed after it had settled its message", about(m, err)...)
		return m.State != StateRetrying
	case err == nil:
		if err = m.Ack(ctx); err != nil {
			h.q.log.Warn("message is handled and cannot be acknowledged: it comes again", about(m, err)...)
		}
		return err == nil
	}
	if rerr := m.Retry(ctx); rerr != nil {
		h.q.log.Warn("handler failed; the message comes again when its lease ends", about(m, errors.Join(err, rerr))...)
		return false
	}
	if m.State == StateDead {
		h.q.log.Error("handler failed for the last time; the message is a dead letter", about(m, err)...)
		return true
	}
	h.q.log.Warn("handler failed", append(about(m, err), slog.Time("next_attempt", m.NextAttempt))...)
	return false
}

// guarded runs the handler and makes an error of a panic.
func (h *handling) guarded(ctx context.Context, m *Message) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("handler panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return h.handler(ctx, m)
}

func about(m *Message, err error) []any {
	return []any{
		slog.String("id", m.ID), slog.String("topic", m.Topic), slog.Int("attempt", m.Attempt), slog.Any("error", err),
	}
}
