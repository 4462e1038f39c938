package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// A countdown is the line of a receiver that waits: when the next message of the
// topic falls due. It is drawn on a terminal only, and only for people.
type countdown struct {
	a     *app
	topic string
	stop  context.CancelFunc
	done  chan struct{}
}

// How often the line is drawn, and how old what it says may be, since others
// send, cancel and move messages.
const (
	countEvery = time.Second
	countStale = 5 * time.Second
)

// watched says that a person looks at a terminal, and not a program at a pipe.
func (a *app) watched() bool { return a.errWidth > 0 && a.outWidth > 0 && a.format == formatTable }

// watch draws the line until end is called.
func (a *app) watch(ctx context.Context, c *client.Client, topic string) *countdown {
	w := &countdown{a: a, topic: topic, stop: func() {}, done: make(chan struct{})}
	if !a.watched() {
		close(w.done)
		return w
	}
	ctx, w.stop = context.WithCancel(ctx)
	go w.run(ctx, c)
	return w
}

// end takes the line away; the terminal is the caller's again.
func (w *countdown) end() {
	w.stop()
	<-w.done
}

func (w *countdown) run(ctx context.Context, c *client.Client) {
	defer close(w.done)
	defer fmt.Fprint(w.a.Stderr, "\r\x1b[K")
	timer := w.a.Clock.NewTimer(countEvery / 4) // what is there already comes without a line
	defer timer.Stop()
	var next wire.Time
	var waiting, asked int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		if now := w.a.Clock.Now(); asked == 0 || now.Mono-asked > int64(countStale) || next != 0 && next.Time().Before(now.Time()) {
			asked = now.Mono
			next, waiting = w.ask(ctx, c)
		}
		if ctx.Err() == nil {
			fmt.Fprintf(w.a.Stderr, "\r\x1b[K%s", w.a.paint(w.a.errWidth, dim, w.line(next, waiting)))
		}
		timer.Reset(countEvery)
	}
}

// ask asks what waits; nothing if the server does not say.
func (w *countdown) ask(ctx context.Context, c *client.Client) (next wire.Time, waiting int64) {
	q := wire.PendingQuery{Topic: w.topic, Limit: 1}
	page, err := c.Pending(ctx, q)
	if err != nil || len(page.Messages) == 0 {
		return 0, 0
	}
	if waiting, err = c.Count(ctx, q); err != nil {
		return 0, 0
	}
	return page.Messages[0].DeliverAt, waiting
}

func (w *countdown) line(next wire.Time, waiting int64) string {
	if next == 0 {
		return "waiting… nothing pending in " + w.topic
	}
	left := max(next.Time().Sub(w.a.now()), 0).Round(time.Second)
	return fmt.Sprintf("waiting… next due in %s (%s pending)", span(left), count(waiting))
}
