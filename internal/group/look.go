package group

import "github.com/duemq/duemq/internal/record"

// Due is when an unfinished offset that was given back may be delivered again
// (Unix ms), 0 if it does not wait for that.
func (p *Progress) Due(o record.Offset) int64 {
	if i := p.find(o); i < len(p.tries) && p.tries[i].Offset == o {
		return p.tries[i].Due
	}
	return 0
}

// Retrying is how many offsets were given back and may not be delivered again
// at an instant (Unix ms).
func (p *Progress) Retrying(at int64) (n int64) {
	for i := range p.tries {
		if p.tries[i].Due > at {
			n++
		}
	}
	return n
}

// Lag is how many offsets below next, the queue's next one, are not finished,
// by acknowledging or by pulling beyond them, of those from low on, the queue's
// first.
func (p *Progress) Lag(low, next record.Offset) int64 {
	base, _ := p.Behind(low)
	from := max(base, p.Pulled)
	if from >= next {
		return 0
	}
	lag := int64(next - from)
	for _, r := range p.Acked[p.after(from):] {
		lag -= int64(r.To - max(r.From, from))
	}
	return lag
}

// Inflight is how many leases run at an instant, in monotonic ms, from base on,
// below which the group is finished.
func (l *Leases) Inflight(base record.Offset, now int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(max(base, l.base))
	l.sweep(now)
	return int64(l.counts[runs])
}
