package engine

import (
	"math"
	"time"

	"github.com/duemq/duemq/internal/clock"
)

// due is the first due that waits. A failed engine moves nothing any more: what
// is due stays so, and ticks for it would follow each other without end.
func (p *proposer) due() int64 {
	if p.e.Err() != nil {
		return math.MaxInt64
	}
	return p.e.nextDue.Load()
}

// tick has what is due moved: by the batch that is open anyway, or by an empty
// one. At most one tick is on its way.
func (p *proposer) tick(now belief, due int64, force bool) {
	if p.rebase {
		p.begin(now)
		p.flight.mustSync = true
	}
	if now.suspect || due > clock.FloorMs(now.ns) || p.e.ticking.Load() || (!force && p.gap(now) > 0) {
		return
	}
	d := p.open(now)
	if d.Stamp < due {
		d = p.begin(now)
	}
	d.Limit = tickLimit
	p.flight.mustSync, p.flight.tick = true, true
	p.e.ticking.Store(true)
	p.ticked = now.at.Mono
	p.e.stats.ticks.Add(1)
}

// gap is how long the next tick has to wait: a millisecond and half a recent
// sync after the last one, so that steady trickles share a sync. With a backlog
// there is none.
func (p *proposer) gap(now belief) time.Duration {
	if p.e.stats.backlog.Load() {
		return 0
	}
	least := time.Millisecond + time.Duration(p.e.syncTook.Load()/2)
	return least - time.Duration(now.at.Mono-p.ticked)
}

// arm sets the timer for the next due.
func (p *proposer) arm() {
	due := p.due()
	now := p.e.believed.Load()
	if due == math.MaxInt64 || p.e.ticking.Load() || now.suspect {
		if p.armed != 0 {
			p.timer.Stop()
			p.armed = 0
		}
		return
	}
	if p.armed == due {
		return
	}
	r := p.e.o.Clock.Now()
	elapsed := r.Mono - now.at.Mono
	wait := max(time.Duration(min(due, math.MaxInt64/int64(time.Millisecond))*int64(time.Millisecond)-now.ns-elapsed), p.gap(belief{at: r}))
	p.timer.Reset(wait)
	p.armed = due
}

// woke counts a wake-up for a due: one that finds nothing is a defect that the
// metric shows.
func (p *proposer) woke() {
	p.armed = 0
	p.e.stats.wakeups.Add(1)
	if now := p.observe(); p.e.nextDue.Load() > clock.FloorMs(now.ns) {
		p.e.stats.fruitless.Add(1)
	}
}
