package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// A tally is what a measurement has counted. Its methods are safe for concurrent
// use.
type tally struct {
	mu       sync.Mutex
	began    int64 // mono, of the first request
	sent     int
	sending  int64 // ns from the start to the last answer
	received int
	taking   int64
	left     int // to be sent
	sentIDs  map[string]bool
	gotIDs   map[string]int
	early    int
	answers  *hdrhistogram.Histogram // µs
	visible  *hdrhistogram.Histogram // µs late, on the server's clock
	arrived  *hdrhistogram.Histogram // µs late, on this machine's
}

// maxMeasured is the longest time that is told apart, in µs: an hour.
const maxMeasured = 3600 * 1_000_000

func histogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, maxMeasured, 3) }

func note(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(d.Microseconds(), 0), maxMeasured)) // within its bounds
}

func (b *bench) begin() {
	b.tally = tally{
		began: b.a.Clock.Now().Mono, left: b.total, answers: histogram(), visible: histogram(), arrived: histogram(),
		sentIDs: map[string]bool{}, gotIDs: map[string]int{},
	}
}

// take gives a sender its next batch: how many, and the place of the first.
func (t *tally) take(batch, total int) (n, first int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n = min(batch, t.left)
	first = total - t.left
	t.left -= n
	return n, first
}

// counted gives how many were sent and received so far.
func (t *tally) counted() (sent, received int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent, t.received
}

// send measures sending.
func (b *bench) send(ctx context.Context) error {
	b.begin()
	stop := b.watch(ctx, func() (int, int) { sent, _ := b.tally.counted(); return sent, b.total }, "sending")
	defer stop()
	return b.sendAll(ctx)
}

func (b *bench) sendAll(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for worker := range b.clients {
		g.Go(func() error { return b.sender(ctx, worker) })
	}
	return g.Wait()
}

// sender sends batches, each no earlier than the rate allows.
func (b *bench) sender(ctx context.Context, worker int) error {
	body := strings.Repeat("duemq ", b.size/6+1)[:b.size]
	r := dice(worker)
	for {
		n, first := b.tally.take(b.batch, b.total)
		if n == 0 {
			return nil
		}
		if err := b.pace(ctx, first); err != nil {
			return err
		}
		msgs := make([]wire.Send, n)
		for i := range msgs {
			msgs[i] = wire.Send{Topic: b.topic, Text: body, After: b.due(r)}
		}
		began := b.a.Clock.Now().Mono
		reply, err := b.client.Batch(ctx, msgs)
		if err != nil {
			return b.a.answered(ctx, "sending broke off", err)
		}
		if err := b.answered(ctx, &reply, began); err != nil {
			return err
		}
	}
}

// pace waits until message i may be sent.
func (b *bench) pace(ctx context.Context, i int) error {
	if b.rate == 0 {
		return nil
	}
	due := b.tally.began + int64(float64(i)/float64(b.rate)*1e9)
	if d := time.Duration(due - b.a.Clock.Now().Mono); d > 0 {
		return b.a.pause(ctx, d)
	}
	return nil
}

// answered counts what an answer says.
func (b *bench) answered(ctx context.Context, reply *wire.BatchReply, began int64) error {
	now := b.a.Clock.Now().Mono
	t := &b.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	note(t.answers, time.Duration(now-began))
	t.sending = now - t.began
	for i := range reply.Results {
		r := &reply.Results[i]
		if r.Problem != nil {
			return b.a.answered(ctx, "a message was refused", &client.Error{Problem: *r.Problem})
		}
		t.sent++
		if b.kind == "delay" {
			t.sentIDs[r.Receipt.ID] = true
		}
	}
	return nil
}

// receive measures receiving and acknowledging.
func (b *bench) receive(ctx context.Context) error {
	b.begin()
	stop := b.watch(ctx, func() (int, int) { _, got := b.tally.counted(); return got, b.total }, "receiving")
	defer stop()
	return b.receiveAll(ctx, func() bool { _, got := b.tally.counted(); return got >= b.total })
}

// receiveAll receives until enough says so, or nothing has come for a while.
func (b *bench) receiveAll(ctx context.Context, enough func() bool) error {
	g, ctx := errgroup.WithContext(ctx)
	for range b.clients {
		g.Go(func() error { return b.receiver(ctx, enough) })
	}
	return g.Wait()
}

// benchPoll is how long one receive waits: as long as it may take to learn that
// others have received enough.
const benchPoll = 500 * time.Millisecond

func (b *bench) receiver(ctx context.Context, enough func() bool) error {
	idle := b.a.Clock.Now().Mono
	for !enough() {
		msgs, err := b.client.Receive(ctx, b.topic, wire.Receive{Group: b.group, Max: b.batch, Wait: wire.Duration(min(benchPoll, b.patience))})
		if err != nil {
			return b.a.answered(ctx, "receiving broke off", err)
		}
		now := b.a.Clock.Now()
		if len(msgs) == 0 {
			if b.givesUp(now.Mono - idle) {
				return nil
			}
			continue
		}
		idle = now.Mono
		leases := make([]string, len(msgs))
		for i := range msgs {
			leases[i] = msgs[i].Lease
		}
		if _, err := b.client.AckAll(ctx, leases); err != nil {
			return b.a.answered(ctx, "receiving broke off", err)
		}
		b.got(msgs, now.Time())
	}
	return nil
}

// givesUp says that nothing more is waited for: all that waits must be due.
func (b *bench) givesUp(idle int64) bool {
	if b.kind == "delay" {
		return idle > int64(b.patience+b.most)
	}
	return idle >= int64(b.patience)
}

// got counts messages that were received at an instant and are acknowledged.
func (b *bench) got(msgs []wire.Message, at time.Time) {
	t := &b.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	t.received += len(msgs)
	t.taking = b.a.Clock.Now().Mono - t.began
	if b.kind != "delay" {
		return
	}
	for i := range msgs {
		m := &msgs[i]
		t.gotIDs[m.ID]++
		if m.LatenessMs == nil {
			continue
		}
		if *m.LatenessMs < 0 {
			t.early++
		}
		note(t.visible, time.Duration(*m.LatenessMs)*time.Millisecond)
		note(t.arrived, at.Sub(m.DeliverAt.Time()))
	}
}

// delayed measures how late messages are that wait.
func (b *bench) delayed(ctx context.Context) (err error) {
	if b.topic == "" {
		b.topic = fmt.Sprintf("bench-%d", b.a.now().UnixMilli())
		b.group = b.topic
		defer func() {
			err = errors.Join(err, b.remove(context.WithoutCancel(ctx)))
		}()
	}
	b.begin()
	stop := b.watch(ctx, func() (int, int) { _, got := b.tally.counted(); return got, b.total }, "receiving what was delayed")
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return b.sendAll(ctx) })
	g.Go(func() error {
		return b.receiveAll(ctx, func() bool { _, got := b.tally.counted(); return got >= b.total })
	})
	return g.Wait()
}

// remove deletes the topic and the group that a measurement had for itself.
func (b *bench) remove(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	if _, err := b.client.DeleteTopic(ctx, b.topic); err != nil && client.CodeOf(err) != wire.CodeTopicUnknown {
		return b.a.answered(ctx, "topic "+b.topic+" was not deleted", err)
	}
	if err := b.client.DeleteGroup(ctx, b.group); err != nil && client.CodeOf(err) != wire.CodeGroupUnknown {
		return b.a.answered(ctx, "group "+b.group+" was not deleted", err)
	}
	return nil
}

// watch has the progress bar drawn until the function it gives is called.
func (b *bench) watch(ctx context.Context, so func() (done, total int), label string) (stop func()) {
	bar := b.a.progress(label, count[int64])
	if bar.width == 0 {
		return func() {}
	}
	ctx, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer bar.end()
		for b.a.pause(ctx, progressEvery) == nil {
			done, total := so()
			bar.set(int64(done), int64(total))
		}
	}()
	return func() { end(); <-ended }
}
