package history

// A delivery is one message as one group got it once.
type delivery struct {
	Delivery

	m        *message
	run      *run
	wall     int64
	begun    bool // an acknowledgement began
	at       int  // the event that told of it
	acked    int  // the event that answered it, 0 unless there is one
	ackWall  int64
	returned bool  // a nack began
	until    int64 // ns: not again before, if the nack was answered
	nacked   int   // the event that answered it
}

func (c *checker) got(e *Event) {
	for i := range e.Deliveries {
		d := &Delivery{}
		*d = e.Deliveries[i]
		m := c.messages[d.Name]
		if m == nil {
			c.violate(NoPhantom, "%q is delivered, which nobody sent", d.Name)
			continue
		}
		if c.run.deliveries[d.Number] != nil {
			c.violate(HistoryIsWell, "delivery %d twice", d.Number)
		}
		now := &delivery{Delivery: *d, m: m, run: c.run, wall: e.Wall, at: c.at}
		c.run.deliveries[d.Number] = now
		c.same(m, e.Topic, d)
		c.allowed(m)
		switch {
		case d.Retry: // its own place is another one
		case c.planOf(m.topic).Purged:
			c.inTime(m, d)
		default:
			c.inTime(m, d)
			if c.enterQueue(m, d.Offset, d.Due, d.Visible) {
				c.seen(m.entry, e.Group)
			}
		}
		c.again(m, e.Group, now)
		c.take(m, e.Group, now)
	}
}

// same says whether what arrives is what was sent.
func (c *checker) same(m *message, topic string, d *Delivery) {
	if d.Hash != m.Hash {
		c.violate(NoPhantom, "%s is delivered with other content", m.Name)
	}
	if topic != m.topic || m.queue >= 0 && d.Queue != m.queue && !d.Retry {
		c.violate(NoPhantom, "%s was sent to %s/%d and delivered from %s/%d", m.Name, m.topic, m.queue, topic, d.Queue)
	}
	if !d.Retry {
		m.queue = d.Queue
	}
	c.identify(m, d.ID)
	c.highest = max(c.highest, d.ID)
}

// inTime says whether a delivery is early.
func (c *checker) inTime(m *message, d *Delivery) {
	switch {
	case c.now < ns(d.Due):
		c.violate(NeverEarly, "%s is due at %d and was received %d µs before", m.Name, d.Due, (ns(d.Due)-c.now)/1000)
	case d.Visible < d.Due:
		c.violate(NeverEarly, "%s is due at %d and was visible at %d", m.Name, d.Due, d.Visible)
	case ns(d.Visible) > c.now:
		c.violate(NeverEarly, "%s is visible at %d and was received %d µs before", m.Name, d.Visible, (ns(d.Visible)-c.now)/1000)
	case !m.dues.allow(d.Due):
		c.violate(NeverEarly, "%s is delivered as due at %d, known is %+v", m.Name, d.Due, m.dues)
	}
}

// again says whether a further delivery to the same group is explained.
func (c *checker) again(m *message, group string, now *delivery) {
	before := m.given[group]
	c.attempts(m, group, now)
	if len(before) == 0 {
		return
	}
	c.report.Again++
	last := before[len(before)-1]
	if last.run == now.run && !last.returned {
		c.violate(Duplicates, "%s is delivered to %s twice within one process (acknowledged: %v)", m.Name, group, last.acked != 0)
	}
	for _, d := range before {
		if d.acked == 0 {
			continue
		}
		if !c.undone(d) {
			c.violate(Duplicates, "%s is delivered to %s although run %d was told that its acknowledgement counts", m.Name, group, d.run.number)
			return
		}
		c.report.LostAcks++
		d.acked = 0
	}
}

// undone says that a power cut may have undone the acknowledgement: it rode on
// a sync that did not come.
func (c *checker) undone(d *delivery) bool { return c.mayBeLost(d.run, d.acked, d.ackWall) }

// mayBeLost says that a power cut may have taken what a run was told at an event
// and had not synced.
func (c *checker) mayBeLost(r *run, at int, wall int64) bool {
	if r.closed || at < r.synced || !c.cutAfter(r) {
		return false
	}
	return r.endWall-wall <= int64(c.o.AckWindow+c.o.SyncSlack)
}

// cutAfter says that the power was cut after the run and before another process
// had opened the store, which syncs what it finds.
func (c *checker) cutAfter(r *run) bool {
	after := false
	for _, next := range c.runs {
		if next == r {
			after = true
		} else if after && next.up {
			return false
		}
		if after && next.power {
			return true
		}
	}
	return false
}

// take counts a delivery.
func (c *checker) take(m *message, group string, now *delivery) {
	c.report.Delivered++
	if m.given == nil {
		m.given = make(map[string][]*delivery, len(c.o.Groups))
	}
	if len(m.given[group]) == 0 {
		if m.acked && m.run != c.run.number {
			c.report.Across++
		}
		if now.Due != 0 && c.run.mode == ModeLoad {
			from := max(ns(now.Due), c.run.upWall)
			c.report.ReceivedLate.add(now.wall - from)
			c.report.VisibleLate.add(ns(now.Visible) - from)
		}
	}
	m.given[group] = append(m.given[group], now)
}

func (c *checker) acksBegin(e *Event) {
	for _, n := range e.Numbers {
		d := c.run.deliveries[n]
		switch {
		case d == nil:
			c.violate(HistoryIsWell, "%s of delivery %d, which is unknown", e.Kind, n)
		case e.Kind == Nack:
			d.returned = true
			d.until = e.Wall
			if e.Delay != nil {
				d.until += ns(e.Delay.Value)
			}
		case e.Kind == Bury:
			d.m.buried, d.returned = true, true
		default:
			d.begun = true
		}
	}
}

func (c *checker) acksEnd(b begun, e *Event) {
	if e.Err != "" {
		c.violate(NoCallFailed, "%s: %s", b.e.Kind, e.Err)
		return
	}
	if e.Kind == Buried {
		c.run.synced = max(c.run.synced, b.at)
	}
	for _, n := range b.e.Numbers {
		d := c.run.deliveries[n]
		switch {
		case d == nil:
		case e.Kind == Acked:
			d.acked, d.ackWall = c.at, e.Wall
		case e.Kind == Nacked:
			d.nacked, d.ackWall = c.at, e.Wall
			if d.until > b.e.Wall { // the due is rounded up, unless it is at once
				d.until = max(d.until, ns(e.Due))
			}
		}
	}
}
