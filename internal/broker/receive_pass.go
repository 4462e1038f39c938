package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
)

// Bounds of one pass of a receive.
const (
	passLook  = 64 << 10 // entries that a tag filter looks at
	passChunk = 1024     // of these at once
	passDead  = 16       // dead letters made; each is synced
)

// A reception is one receive on its way. It passes over the queues: leases what
// is there (memory), has it written down that this was delivered once more,
// reads the messages, and finishes what nobody is to see.
type reception struct {
	b      *Broker
	r      *ReceiveRequest
	s      subscriber
	config GroupConfig
	tags   tagFilter
	topic  *engine.Topic
	retry  *engine.Topic // nil if there is none

	// Of one pass.
	takes    []take
	entries  []queue.Entry
	planned  int // messages among takes
	room     int // bytes left for more
	looked   int // entries
	finished piles
	dead     []letter
	again    int64 // mono ms: when something may come back

	got []Delivery
}

// A take is what was leased of one queue.
type take struct {
	topic    string // as the receiver sees it
	retry    bool
	queue    record.QueueNumber
	index    int
	leases   *group.Leases
	grants   []group.Grant
	from, to int // its entries, one for each grant
}

// reception finds what a receive is about, or makes it.
func (b *Broker) reception(ctx context.Context, r *ReceiveRequest) (*reception, error) {
	tags, err := parseTags(r.Tags)
	if err != nil {
		return nil, err
	}
	s, err := b.subscriber(ctx, r.Group)
	if err != nil {
		return nil, err
	}
	t, err := b.topic(ctx, r.Topic)
	if err != nil {
		return nil, err
	}
	h := &reception{b: b, r: r, s: s, tags: tags, topic: t, config: configOf(&s.Group, b.e.LevelTable())}
	if r.Invisible == 0 {
		r.Invisible = h.config.Invisible
	}
	return h, nil
}

// bells is what to listen to, and is asked for before looking. The retry topic
// may have been made since the last look; whoever makes it rings the topic's
// bell.
func (h *reception) bells() (on bells) {
	on[0] = h.topic.Bell.Wait()
	if h.retry = h.b.e.TopicNamed(retryTopic(h.s.Name, h.r.Topic)); h.retry != nil {
		on[1] = h.retry.Bell.Wait()
	}
	return on
}

// pass looks once. more says that it found something, none of it for the
// receiver, and that there may be more of it.
func (h *reception) pass(ctx context.Context) (more bool, err error) {
	h.takes, h.entries, h.finished, h.dead = h.takes[:0], h.entries[:0], nil, nil
	h.planned, h.room, h.looked = 0, h.r.MaxBytes, 0
	if err := h.b.pin(ctx, h.s, h.topic); err != nil {
		return false, err
	}
	err = h.grant()
	if err == nil && h.planned > 0 {
		err = h.note(ctx)
	}
	if err != nil {
		h.giveBack()
		return false, err
	}
	h.read()
	return h.looked > 0, h.settle(ctx)
}

// grant leases what is there, first of what is redelivered.
func (h *reception) grant() error {
	h.again = h.b.mono() + MaxWait.Milliseconds()
	ask := group.Ask{Max: h.config.InflightMax, Ordered: h.r.Ordered}
	turn := h.b.turn.Add(1)
	for _, t := range [2]*engine.Topic{h.retry, h.topic} {
		if t == nil {
			continue
		}
		first := t.First()
		for i := range t.Queues {
			index := (turn + i) % t.Queues
			tk := take{topic: h.r.Topic, retry: t == h.retry, queue: first + record.QueueNumber(index), index: int(index)}
			full, err := h.grantQueue(&tk, ask)
			switch {
			case errors.Is(err, engine.ErrNotFound):
				if err := h.ended(t, first); err != nil {
					return err
				}
			case err != nil || full:
				return err
			}
		}
	}
	return nil
}

// ended tells why a queue is not there: a purge gives the topic others, which
// are looked at next time; a deleted topic has none.
func (h *reception) ended(t *engine.Topic, first record.QueueNumber) error {
	switch {
	case t == h.retry || t.First() != first:
		h.again = 0
		return nil
	case h.b.e.TopicNamed(t.Name) != t:
		return unknownTopic(t.Name)
	default:
		return fmt.Errorf("queue %d of topic %q: %w", first, t.Name, engine.ErrNotFound)
	}
}

// grantQueue leases what is there of one queue, and says whether the receiver
// has enough. A filter by tags may look at many to find a few.
func (h *reception) grantQueue(tk *take, ask group.Ask) (full bool, err error) {
	b := h.b
	tk.leases = b.leasesOf(h.s.Number, tk.queue)
	for ask.Limit = h.r.Max - h.planned; ; ask.Limit = min(4*ask.Limit, passChunk) {
		var grants []group.Grant
		err := b.e.Progress(h.s.state, tk.queue, func(p *group.Progress, bounds engine.Bounds) {
			// Read here, the clock stands where it stood when the last of these
			// messages became visible, or later: no lease ends before it began.
			ask.Now = b.mono()
			ask.Until, ask.Unix = ask.Now+h.r.Invisible.Milliseconds(), b.e.Now()
			grants = tk.leases.Grant(p, bounds.Low, bounds.Next, ask)
		})
		if err != nil {
			return false, err
		}
		if len(grants) > 0 {
			if full, err = h.plan(tk, grants); err != nil {
				return false, err
			}
		}
		if full || h.tags.all() || len(grants) < ask.Limit || h.looked >= passLook {
			break
		}
	}
	if at, ok := tk.leases.Next(); ok {
		h.again = min(h.again, at)
	}
	return full || h.looked >= passLook, nil
}

// plan chooses of what was leased, by the hash of its tag and its size, and says
// whether the receiver has enough. What is too much goes back.
func (h *reception) plan(tk *take, grants []group.Grant) (full bool, err error) {
	tk.from = len(h.entries)
	if h.entries, err = h.b.entries(h.entries, tk.queue, grants); err != nil {
		h.entries = h.entries[:tk.from]
		giveBack(tk.leases, grants)
		return false, h.trimmed(tk, grants, err)
	}
	h.looked += len(grants)
	kept, to, back := grants[:0], tk.from, false
	for i, g := range grants {
		e := &h.entries[tk.from+i]
		switch {
		case !h.tags.mayMatch(e.Tag):
			h.finish(tk, g)
		case full || h.planned > 0 && int(e.Size) > h.room:
			full, back = true, true
			tk.leases.Return(g.Offset, g.Attempt)
		default:
			h.entries[to] = *e
			to++
			kept = append(kept, g)
			h.planned++
			h.room -= int(e.Size)
			full = h.planned == h.r.Max
		}
	}
	h.entries = h.entries[:to]
	if len(kept) > 0 {
		tk.grants, tk.to = kept, to
		h.takes = append(h.takes, *tk)
	}
	if back {
		h.ring(tk) // others may have them now
	}
	return full, nil
}

func (h *reception) ring(tk *take) {
	if tk.retry {
		h.retry.Bell.Ring()
	} else {
		h.topic.Bell.Ring()
	}
}

// trimmed tells of entries that are not there whether retention took them since
// they were leased; then there are others to look at.
func (h *reception) trimmed(tk *take, grants []group.Grant, err error) error {
	if !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	low, _, berr := h.b.e.Bounds(tk.queue)
	if berr == nil && low <= grants[0].Offset {
		return err
	}
	h.again = 0
	return berr
}

// entries reads the entries of leased offsets, one for each.
func (b *Broker) entries(dst []queue.Entry, q record.QueueNumber, grants []group.Grant) (_ []queue.Entry, err error) {
	for i := 0; i < len(grants); {
		n := 1
		for i+n < len(grants) && grants[i+n].Offset == grants[i].Offset+record.Offset(n) {
			n++
		}
		from := len(dst)
		if dst, err = b.e.Entries(dst, q, grants[i].Offset, n); err != nil {
			return dst, err
		}
		i += len(dst) - from
	}
	return dst, nil
}

// note has it written down what is going to be delivered.
func (h *reception) note(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	leases := make([]record.Lease, len(h.takes))
	for i := range h.takes {
		tk := &h.takes[i]
		leases[i] = record.Lease{Group: h.s.Number, Queue: tk.queue, Runs: group.Runs(tk.grants)}
	}
	return h.b.e.Lease(context.WithoutCancel(ctx), leases)
}

// giveBack ends the leases of a pass that failed: nobody has seen anything.
func (h *reception) giveBack() {
	for i := range h.takes {
		giveBack(h.takes[i].leases, h.takes[i].grants)
		h.ring(&h.takes[i])
	}
}

func giveBack(l *group.Leases, grants []group.Grant) {
	for _, g := range grants {
		l.Return(g.Offset, g.Attempt)
	}
}

// finish ends a message of which the receiver wants nothing. It is written down
// when the pass settles.
func (h *reception) finish(tk *take, g group.Grant) {
	tk.leases.Finish(g.Offset, g.Attempt)
	h.finished.add(leaseKey{h.s.Number, tk.queue}, tk.leases, g.Offset)
}

// read reads the messages that were leased.
func (h *reception) read() {
	if h.planned > 0 {
		h.got = slices.Grow(h.got, h.planned)
	}
	for i := range h.takes {
		tk := &h.takes[i]
		entries := h.entries[tk.from:tk.to]
		h.b.e.Messages(entries, func(k int, m *record.Message, err error) { h.hand(tk, tk.grants[k], &entries[k], m, err) })
	}
}

// hand hands one message to the receiver, if it is for its eyes.
func (h *reception) hand(tk *take, g group.Grant, e *queue.Entry, m *record.Message, err error) {
	attempt := int(g.Attempt)
	if err != nil {
		// Its lease ends and it is tried again; the others go out.
		h.b.log.Error("message cannot be read", slog.Any("id", e.ID), slog.Any("error", err))
		if attempt > h.config.MaxAttempts {
			h.doom(tk, g, e, unreadable(e), "its bytes cannot be read: "+err.Error())
		}
		return
	}
	if tk.retry {
		attempt += attemptsBefore(m)
	}
	switch {
	case !h.tags.matches(m.Tag):
		h.finish(tk, g)
	case attempt > h.config.MaxAttempts:
		h.doom(tk, g, e, m, reasonUsedUp)
	default:
		h.got = append(h.got, Delivery{Lease: lease{h.r.Group, tk.queue, g.Offset, g.Attempt}.String()})
		v := &h.got[len(h.got)-1].View
		v.fill(tk.topic, tk.index, m, e.ID)
		v.Body = slices.Clone(m.Body)
		v.Offset, v.HasOffset, v.Attempt, v.State = g.Offset, true, attempt, StateInflight
		v.Due, v.VisibleAt = e.Due, e.VisibleAt
		if tk.retry {
			v.Group, v.OriginTopic = h.s.Name, h.r.Topic
		}
	}
}

// doom makes a dead letter of a message when the pass settles. There may be too
// many for one pass; then it is its turn another time.
func (h *reception) doom(tk *take, g group.Grant, e *queue.Entry, m *record.Message, reason string) {
	if len(h.dead) == passDead {
		tk.leases.Return(g.Offset, g.Attempt)
		return
	}
	l := letter{
		group: h.s.Name, number: h.s.Number, queue: tk.queue, offset: g.Offset, topic: h.r.Topic,
		attempts: int(g.Attempt) - 1, reason: reason, lease: g.Attempt,
	}
	if tk.retry {
		l.attempts += attemptsBefore(m)
	}
	l.take(m, e.ID)
	h.dead = append(h.dead, l)
}

// settle finishes what the receiver is not to see. What it is to see is leased
// and goes out, whatever becomes of the rest.
func (h *reception) settle(ctx context.Context) error {
	var err error
	ctx = context.WithoutCancel(ctx)
	if len(h.finished) > 0 {
		err = h.b.e.Ack(ctx, h.finished.acks())
		h.b.ringBlocked(h.finished)
	}
	for i := range h.dead {
		if err == nil {
			_, err = h.b.buryLeased(ctx, &h.dead[i])
		}
	}
	if err != nil && len(h.got) > 0 && h.b.e.Err() == nil {
		h.b.log.Error("message cannot be moved to the dead letters", slog.String("group", h.s.Name), slog.Any("error", err))
		err = nil
	}
	return err
}

// pin notes where a new group begins, unless that is with what is kept: what
// becomes visible from now on is for it, however late it comes for more.
func (b *Broker) pin(ctx context.Context, s subscriber, t *engine.Topic) error {
	if s.Start == record.StartEarliest {
		return nil
	}
	var acks []record.Ack
	first := t.First()
	for i := range t.Queues {
		if n := first + record.QueueNumber(i); !b.e.Began(s.state, n) {
			acks = append(acks, record.Ack{Group: s.Number, Queue: n})
		}
	}
	if len(acks) == 0 {
		return nil
	}
	return b.e.Ack(ctx, acks)
}
