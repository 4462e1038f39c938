package group

import (
	"cmp"
	"slices"

	"github.com/duemq/duemq/internal/record"
)

// An Ask is what a receiver asks of one queue.
type Ask struct {
	Limit   int   // how many at most
	Now     int64 // monotonic ms
	Until   int64 // monotonic ms: how long the leases run
	Unix    int64 // the broker's time at Now, Unix ms; dues that were written down count from it
	Max     int   // how many leases of the queue may run at once; 0 is MaxInflight
	Ordered bool  // only from the first unfinished offset on, while nobody holds it
}

// A Grant is one leased offset and how often it has now been delivered.
type Grant struct {
	Offset  record.Offset
	Attempt uint32
}

// Grant leases offsets: first those that came back, oldest first, then new ones
// from low, the queue's first offset, below next, its next one. They come in
// order.
//
// An ordered group gets the first unfinished offset and what follows it, and
// nothing while somebody holds that one or it waits for its back-off: what is
// given in one answer is handled in its order, so no message overtakes one
// before it.
//
// An offset that this window has not seen has the attempts and the due that
// progress knows: what was delivered before a restart counts, and waits.
func (l *Leases) Grant(p *Progress, low, next record.Offset, ask Ask) (dst []Grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(max(p.Base, low))
	l.sweep(ask.Now)
	room := cmp.Or(ask.Max, MaxInflight) - l.counts[runs]
	limit := min(ask.Limit, room)
	wait := int64(never) // when what stands in the way of an ordered group may be leased
	switch {
	case limit <= 0:
	case ask.Ordered:
		dst, wait = l.inOrder(p, limit, &ask)
	case l.counts[back] > 0:
		dst = l.again(p, limit, &ask)
	}
	if wait == never {
		dst, wait = l.fresh(dst, p, next, limit, &ask)
	}
	full := room <= len(dst)
	switch {
	case wait < never:
		l.wake = wait
	case full:
		l.wake = l.ends
	case l.counts[back] > 0:
		l.wake = ask.Now
	default:
		l.wake = l.earliest
	}
	l.blocked = len(dst) < ask.Limit && (wait < never || full || len(l.slots) >= MaxInflight)
	return dst
}

// advance drops what the group has finished with or retention has taken. A
// base that falls is a group that was set back.
func (l *Leases) advance(base record.Offset) {
	if base < l.base {
		l.reset(base)
	}
	n := int(min(uint64(base-l.base), uint64(len(l.slots))))
	for i := range l.slots[:n] {
		l.counts[l.slots[i].state]--
	}
	l.slots = l.slots[n:] // append moves what is left now and then
	l.base, l.first = base, max(l.first-n, 0)
}

// sweep finds what has come back, if anything may have. Leases that ended run
// no more, but whoever had one holds it until another gets the message.
func (l *Leases) sweep(now int64) {
	if now < l.earliest {
		return
	}
	l.earliest, l.ends = never, never
	for i := range l.slots {
		s := &l.slots[i]
		switch {
		case s.state == back || s.state == done:
		case s.until <= now:
			to := *s
			to.state = back
			l.set(s, to)
			l.first = min(l.first, i)
		default:
			l.earliest = min(l.earliest, s.until)
			if s.state == runs {
				l.ends = min(l.ends, s.until)
			}
		}
	}
}

// lease makes what a slot becomes by one more attempt.
func (a *Ask) lease(attempts uint32, prior bool) slot {
	attempts = max(attempts, attempts+1) // never falls, not even behind the last number
	return slot{until: a.Until, attempts: attempts, state: runs, held: true, prior: prior}
}

// take leases a slot.
func (l *Leases) take(dst []Grant, i int, ask *Ask) []Grant {
	s := &l.slots[i]
	l.set(s, ask.lease(s.attempts, s.held))
	return append(dst, Grant{l.base + record.Offset(i), s.attempts})
}

// finished closes a slot whose offset was finished without its lease: by one
// from before a restart, while somebody else got it.
func (l *Leases) finished(p *Progress, i int) bool {
	if !p.Finished(l.base + record.Offset(i)) {
		return false
	}
	s := &l.slots[i]
	l.set(s, slot{attempts: s.attempts, state: done})
	return true
}

// again leases what came back.
func (l *Leases) again(p *Progress, limit int, ask *Ask) (dst []Grant) {
	for ; len(dst) < limit && l.counts[back] > 0; l.first++ {
		if l.slots[l.first].state == back && !l.finished(p, l.first) {
			dst = l.take(dst, l.first, ask)
		}
	}
	return dst
}

// inOrder leases what came back as far as nothing stands in the way, and tells
// until when something does.
func (l *Leases) inOrder(p *Progress, limit int, ask *Ask) (dst []Grant, wait int64) {
	for i := range l.slots {
		s := &l.slots[i]
		switch {
		case s.state == done:
		case len(dst) == limit:
			return dst, never
		case l.finished(p, i):
		case s.state == back:
			dst = l.take(dst, i, ask)
		default:
			return dst, s.until
		}
	}
	return dst, never
}

// fresh leases what this window has not seen, and tells until when something
// stands in the way of an ordered group.
func (l *Leases) fresh(dst []Grant, p *Progress, next record.Offset, limit int, ask *Ask) (_ []Grant, wait int64) {
	from := l.base + record.Offset(len(l.slots))
	if from >= next || len(dst) >= limit {
		return dst, never
	}
	if n := min(limit-len(dst), MaxInflight-len(l.slots)); n > 0 {
		n = int(min(uint64(n), uint64(next-from)))
		dst, l.slots = slices.Grow(dst, n), slices.Grow(l.slots, n)
	}
	c := p.seek(from)
	for o := from; o < next && len(dst) < limit && len(l.slots) < MaxInflight; o++ {
		t, finished := c.at(o)
		var s slot
		switch {
		case finished:
			s.state = done
		case t.Due > ask.Unix:
			s = slot{until: later(ask.Now, t.Due-ask.Unix), attempts: t.Attempt, state: waits}
		default:
			s = ask.lease(t.Attempt, t.Attempt > 0 && t.Due == 0)
			dst = append(dst, Grant{o, s.attempts})
		}
		l.slots = append(l.slots, s)
		l.count(&s)
		if s.state == waits && ask.Ordered {
			return dst, s.until
		}
	}
	return dst, never
}

// later is ms after an instant; what would be beyond the last one is that.
func later(now, ms int64) int64 {
	if ms >= never-now {
		return never - 1
	}
	return now + ms
}

// A cursor walks a progress by rising offsets, from base on.
type cursor struct {
	p     *Progress
	acked int
	try   int
}

func (p *Progress) seek(o record.Offset) cursor { return cursor{p, p.after(o), p.find(o)} }

// at tells whether an offset is finished, and if not how often it was delivered
// and when it may be again.
func (c *cursor) at(o record.Offset) (t Try, finished bool) {
	p := c.p
	if o < p.Base {
		return t, true
	}
	for c.acked < len(p.Acked) && p.Acked[c.acked].To <= o {
		c.acked++
	}
	if c.acked < len(p.Acked) && p.Acked[c.acked].From <= o {
		return t, true
	}
	for c.try < len(p.tries) && p.tries[c.try].Offset < o {
		c.try++
	}
	if c.try < len(p.tries) && p.tries[c.try].Offset == o {
		t = p.tries[c.try]
	}
	if o < p.Leased {
		t.Attempt = max(t.Attempt, 1)
	}
	return t, false
}

// Runs gives grants, which come in order, as a lease command has them.
func Runs(grants []Grant) (runs []record.LeaseRun) {
	for _, g := range grants {
		if n := len(runs); n > 0 && runs[n-1].To == g.Offset && runs[n-1].Attempt == g.Attempt {
			runs[n-1].To++
			continue
		}
		runs = append(runs, record.LeaseRun{From: g.Offset, To: g.Offset + 1, Attempt: g.Attempt})
	}
	return runs
}
