package crash

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/test/crash/history"
)

// Who does what in a worker under load.
const (
	batchers  = 3  // send up to maxBatch messages a call
	singles   = 4  // send one message a call
	maxBatch  = 40 //
	steerers  = 2  // cancel and move what the senders have sent
	maxBody   = 300
	largeBody = 24 << 10 // now and then, so that segments roll
	maxDelay  = 800      // ms
	invisible = time.Minute
	poll      = 100 * time.Millisecond
	maxGot    = 200
)

// groups are the consumer groups; each must get everything.
func groups() []string { return []string{"billing", "audit"} }

// topics are where a run sends to and receives from. The third one changes from
// run to run, so that topics are made at all times, and older ones keep what
// nobody fetched for the last run.
func topics(run int) []string { return []string{"orders", "bills", fmt.Sprintf("side-%d", run%4)} }

// consumed are the topics from which both groups receive. Where retention takes
// what is old, nothing may be left for later.
func (w *worker) consumed() []string {
	names := append(topics(w.Run), topicOnce, topicNamed, topicHalf, topicPaused, topicRated, topicBulk)
	for run := w.Run + 1; w.Keep && run < w.Run+4; run++ {
		names = append(names, topics(run)[2])
	}
	return names
}

// A load is a worker's workload.
type load struct {
	*worker
	until  context.Context // ends with the load, for receivers
	pause  time.Duration   // at most, of a sender between two calls
	names  atomic.Int64
	nos    atomic.Int64
	steer  [steerers]chan candidate
	wg     sync.WaitGroup
	closed chan struct{}
}

// load works until the driver says stop, or until the worker is killed.
func (w *worker) load() {
	until, cancel := context.WithCancel(w.ctx)
	defer cancel()
	// A store that is always busy hides what is written without a sync, for the
	// next call's sync brings it to the disk: let there be silence, too.
	pauses := []time.Duration{0, 0, 20 * time.Millisecond, 150 * time.Millisecond}
	if w.Keep {
		pauses = pauses[2:] // who sends without a pause is not kept up with
	}
	l := &load{worker: w, until: until, closed: w.stop, pause: pauses[w.Seed%uint64(len(pauses))]}
	for i := range l.steer {
		l.steer[i] = make(chan candidate, 64)
	}
	l.found()
	for i := range batchers {
		l.each(uint64(100+i), func(r *rand.Rand) { l.send(r, 1+r.IntN(maxBatch)); l.rest(r) })
	}
	for i := range singles {
		l.each(uint64(200+i), func(r *rand.Rand) { l.send(r, 1); l.rest(r) })
	}
	for i := range l.steer {
		l.each(uint64(300+i), l.steerer(l.steer[i]))
	}
	l.terms()
	l.steered()
	for g, group := range groups() {
		for t, topic := range w.consumed() {
			l.each(uint64(400+20*g+t), l.consumer(group, topic))
		}
	}
	l.wg.Go(l.report)
	<-w.stop
	cancel()
	l.wg.Wait()
}

// each calls step again and again until the load ends, with a source of its own.
func (l *load) each(stream uint64, step func(*rand.Rand)) {
	r := rand.New(rand.NewPCG(l.Seed, stream))
	l.wg.Go(func() {
		for {
			select {
			case <-l.closed:
				return
			default:
				step(r)
			}
		}
	})
}

// rest lets a sender pause.
func (l *load) rest(r *rand.Rand) {
	if l.pause == 0 {
		return
	}
	timer := time.NewTimer(time.Duration(r.Int64N(int64(l.pause))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.closed:
	}
}

// report writes figures down now and then.
func (l *load) report() {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-l.closed:
			return
		case <-tick.C:
			l.figures()
		}
	}
}

// send sends messages to one topic in one call.
func (l *load) send(r *rand.Rand, n int) {
	topic := topics(l.Run)[r.IntN(3)]
	msgs, noted := make([]broker.Message, n), make([]history.Message, n)
	for i := range msgs {
		msgs[i], noted[i] = l.message(r, topic)
	}
	receipts := l.sendAll(topic, msgs, noted)
	for i := range receipts {
		if at := &receipts[i]; at.Handle != "" && r.IntN(6) == 0 {
			reference := at.ID.String()
			if r.IntN(2) == 0 {
				reference = at.Handle
			}
			l.offer(candidate{noted[i].Name, reference, false})
		}
	}
}

func receipt(r *broker.Receipt) history.Receipt {
	out := history.Receipt{ID: uint64(r.ID), Due: r.Due, Queue: r.Queue, Ready: r.Ready, Offset: uint64(r.Offset)}
	out.Repeat, out.Replaced = r.Repeat, uint64(r.Replaced)
	if r.Err != nil {
		out.Err = r.Err.Error()
	}
	return out
}

// message draws a message.
func (l *load) message(r *rand.Rand, topic string) (broker.Message, history.Message) {
	name := fmt.Sprintf("%d-%d", l.Run, l.names.Add(1))
	size := r.IntN(maxBody)
	if r.IntN(100) == 0 {
		size = r.IntN(largeBody)
	}
	m := broker.Message{Topic: topic, Key: name, Body: body(r, size)}
	if r.IntN(3) == 0 {
		m.Tag = fmt.Sprintf("tag%d", r.IntN(4))
	}
	noted := history.Message{Name: name, Queue: -1}
	if r.IntN(5) == 0 {
		m.HasQueue, m.Queue = true, r.IntN(3)
		noted.Queue = m.Queue
	}
	m.Delay, noted.Delay = delay(r, time.Now())
	noted.Hash = hash(m.Key, m.Tag, m.Body)
	return m, noted
}

// delay draws a delay: as the broker takes it, and as the history notes it.
func delay(r *rand.Rand, now time.Time) (broker.Delay, history.Delay) {
	after := func(kind broker.Delay, ms int64) (broker.Delay, history.Delay) {
		return kind, history.Delay{Kind: history.After, Value: ms}
	}
	at := func(ms int64) (broker.Delay, history.Delay) {
		return broker.Delay{Kind: broker.DelayAt, Value: ms}, history.Delay{Kind: history.At, Value: ms}
	}
	switch p := r.IntN(100); {
	case p < 20:
		return broker.Delay{}, history.Delay{Kind: history.NoDelay}
	case p < 50:
		table := levels()
		n := 1 + r.IntN(len(table))
		return after(broker.Delay{Kind: broker.DelayLevel, Value: int64(n)}, table[n-1].Milliseconds())
	case p < 80:
		ms := 1 + r.Int64N(maxDelay)
		return after(broker.Delay{Kind: broker.DelayAfter, Value: ms}, ms)
	case p < 90:
		return at(now.UnixMilli() + r.Int64N(maxDelay))
	case p < 95:
		return at(max(1, now.UnixMilli()-r.Int64N(100_000)))
	default:
		ms := time.Hour.Milliseconds() + r.Int64N(300*24*time.Hour.Milliseconds())
		if r.IntN(2) == 0 {
			return at(now.UnixMilli() + ms)
		}
		return after(broker.Delay{Kind: broker.DelayAfter, Value: ms}, ms)
	}
}

// hash covers all that a message's sender gives and its receiver must get.
func hash(key, tag string, body []byte) uint64 {
	h := fnv.New64a()
	for _, part := range [][]byte{[]byte(key), []byte(tag), body} {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return h.Sum64()
}

// consumer receives from one topic for one group and acknowledges most of it.
func (l *load) consumer(group, topic string) func(*rand.Rand) {
	return func(r *rand.Rand) {
		got := l.receive(l.until, group, topic, 1+r.IntN(maxGot), poll)
		if len(got) == 0 {
			return
		}
		switch p := r.IntN(20); p {
		case 0: // the first is given back and comes again
			l.nack(got[0], time.Duration(r.IntN(80))*time.Millisecond, r.IntN(3) == 0)
			got = got[1:]
		case 1: // the last is forgotten and comes again after a restart
			got = got[:len(got)-1]
		}
		half := r.IntN(len(got) + 1)
		l.ack(got[:half])
		l.ack(got[half:])
		if r.IntN(50) == 0 {
			l.ack(got) // once more changes nothing
		}
	}
}

// A held message is leased.
type held struct {
	number int
	lease  string
}

// receive receives and writes down what came.
func (l *load) receive(ctx context.Context, group, topic string, most int, wait time.Duration) []held {
	ds, err := l.b.Receive(ctx, broker.ReceiveRequest{Topic: topic, Group: group, Max: most, Wait: wait, Invisible: invisible})
	now := time.Now()
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, broker.ErrDraining) {
			l.fatal("receive", err)
		}
		return nil
	}
	if len(ds) == 0 {
		return nil
	}
	got := make([]held, len(ds))
	e := history.Event{Kind: history.Got, Topic: topic, Group: group, Deliveries: make([]history.Delivery, len(ds))}
	for i := range ds {
		d := &ds[i]
		got[i] = held{number: int(l.nos.Add(1)), lease: d.Lease}
		e.Deliveries[i] = history.Delivery{
			Number: got[i].number, Name: d.Key, ID: uint64(d.ID), Queue: d.Queue, Offset: uint64(d.Offset),
			Attempt: d.Attempt, Due: d.Due, Visible: d.VisibleAt, Hash: hash(d.Key, d.Tag, d.Body),
		}
		if d.Group != "" {
			e.Deliveries[i].Retry, e.Deliveries[i].ID = true, uint64(d.Origin)
		}
	}
	l.journal.at(now, e)
	return got
}

func (l *load) ack(got []held) {
	if len(got) == 0 {
		return
	}
	leases, e := make([]string, len(got)), history.Event{Kind: history.Ack}
	for i := range got {
		leases[i] = got[i].lease
		e.Numbers = append(e.Numbers, got[i].number)
	}
	op := l.journal.begin(e)
	errs, err := l.b.Ack(l.ctx, leases)
	l.journal.end(op, history.Event{Kind: history.Acked}, errors.Join(append(errs, err)...))
}

// nack gives a message back, for some time or for the group's back-off.
func (l *load) nack(h held, after time.Duration, backoff bool) {
	d := &after
	if backoff {
		after, d = backoffMs*time.Millisecond, nil
	}
	noted := history.Delay{Kind: history.After, Value: after.Milliseconds()}
	op := l.journal.begin(history.Event{Kind: history.Nack, Numbers: []int{h.number}, Delay: &noted})
	got, err := l.b.Nack(l.ctx, h.lease, d)
	l.journal.end(op, history.Event{Kind: history.Nacked, Due: got.Due}, err)
}

// fatal writes an error down that no promise allows, as a call that failed.
func (l *load) fatal(what string, err error) {
	op := l.journal.begin(history.Event{Kind: history.Ack})
	l.journal.end(op, history.Event{Kind: history.Acked}, fmt.Errorf("%s: %w", what, err))
}
