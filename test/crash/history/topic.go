package history

import (
	"cmp"
	"slices"
)

// A topic is what is known of one topic as a whole.
type topic struct {
	messages []*message
	slots    map[string][]*message // by name, in the order of sending
	holds    []span
	limits   []span
}

// A span is a time in which a topic was certainly paused, or had a rate.
type span struct {
	from, to int64 // Unix ms, exclusive both; to is 0 while it lasts
	rate     int64
}

func (c *checker) topicOf(name string) *topic {
	t := c.topics[name]
	if t == nil {
		t = &topic{slots: make(map[string][]*message)}
		c.topics[name] = t
	}
	return t
}

func (c *checker) planOf(topic string) Plan {
	if p := c.plans[topic]; p != nil {
		return *p
	}
	return Plan{}
}

func (c *checker) groupsOf(topic string) []string {
	if p := c.planOf(topic); len(p.Groups) > 0 {
		return p.Groups
	}
	return c.o.Groups
}

// end ends the last span, if it lasts.
func end(spans []span, now int64) {
	if n := len(spans); n > 0 && spans[n-1].to == 0 {
		spans[n-1].to = max(now, 1)
	}
}

func lasts(spans []span) bool { return len(spans) > 0 && spans[len(spans)-1].to == 0 }

// holdBegins begins to pause a topic, or to let it go on.
func (t *topic) holdBegins(on bool, now int64) {
	if !on {
		end(t.holds, now)
	}
}

// limitBegins begins to set a topic's rate. The one that it has already changes
// nothing.
func (t *topic) limitBegins(rate, now int64) {
	if lasts(t.limits) && t.limits[len(t.limits)-1].rate != rate {
		end(t.limits, now)
	}
}

// topicEnds takes the answer of a call that is about a whole topic.
func (c *checker) topicEnds(b begun, e *Event) {
	if e.Err != "" {
		c.violate(NoCallFailed, "%s of topic %s: %s", b.e.Kind, b.e.Topic, e.Err)
		return
	}
	c.run.synced = max(c.run.synced, b.at)
	t := c.topicOf(b.e.Topic)
	switch {
	case e.Kind == Purged:
		c.purgeEnds(t, b)
	case e.Kind == Bulked:
		c.operated(b.e.Tag, e.Operation)
	case e.Kind == Held && b.e.On && !lasts(t.holds):
		t.holds = append(t.holds, span{from: ms(c.now)})
		c.report.Pauses++
	case e.Kind == Limited && b.e.Rate > 0 && !lasts(t.limits):
		t.limits = append(t.limits, span{from: ms(c.now), rate: b.e.Rate})
	}
}

func (c *checker) purgeBegins(e *Event) {
	for _, m := range c.topicOf(e.Topic).messages {
		m.purges++
	}
}

func (c *checker) purgeEnds(t *topic, b begun) {
	c.report.Purges++
	for _, m := range t.messages {
		m.purged = m.purged || m.begun <= b.e.Wall && m.purges > 0
	}
}

// readyInTime holds an answer that a message is visible to what its topic allows:
// a paused one shows nothing.
func (c *checker) readyInTime(m *message, b begun) {
	holds := c.topicOf(m.topic).holds
	if lasts(holds) && ms(b.e.Wall) > holds[len(holds)-1].from {
		c.violate(HeldBack, "%s became visible while its topic %s was paused", m.Name, m.topic)
	}
}

// settleTopics looks at when everything became visible.
func (c *checker) settleTopics() {
	shown := make(map[string][]*entry)
	for _, p := range c.places {
		for _, e := range c.queues[p].entries {
			if e != nil && e.visible != 0 {
				shown[p.topic] = append(shown[p.topic], e)
			}
		}
	}
	for _, p := range c.places {
		entries := shown[p.topic]
		delete(shown, p.topic)
		slices.SortFunc(entries, func(x, y *entry) int { return cmp.Compare(x.visible, y.visible) })
		t := c.topicOf(p.topic)
		for _, s := range t.holds {
			c.nothing(p.topic, entries, s)
		}
		for _, s := range t.limits {
			c.notFaster(p.topic, entries, s)
		}
	}
}

// within gives what became visible in a span.
func (s span) within(entries []*entry) []*entry {
	from, _ := slices.BinarySearchFunc(entries, s.from+1, func(e *entry, at int64) int { return cmp.Compare(e.visible, at) })
	to := len(entries)
	if s.to != 0 {
		to, _ = slices.BinarySearchFunc(entries, s.to, func(e *entry, at int64) int { return cmp.Compare(e.visible, at) })
	}
	return entries[from:max(from, to)]
}

func (c *checker) nothing(topic string, entries []*entry, s span) {
	for _, e := range s.within(entries) {
		c.violate(HeldBack, "%s became visible at %d, while its topic %s was paused from %d to %d", e.m.Name, e.visible, topic, s.from, s.to)
	}
}

// notFaster holds every second to the rate. What a quiet time has saved up, a
// tenth of a second's worth, may come on top.
func (c *checker) notFaster(topic string, entries []*entry, s span) {
	most := int(s.rate + max(s.rate/10, 1) + 1)
	in := s.within(entries)
	for i := most; i < len(in); i++ {
		if first := in[i-most]; in[i].visible-first.visible < 1000 {
			c.violate(HeldBack, "%d messages of topic %s became visible from %d on within %d ms, its rate is %d a second",
				most+1, topic, first.visible, in[i].visible-first.visible, s.rate)
			return
		}
	}
}

// kept holds what retention has left to what it should have.
func (c *checker) kept(e *Event) {
	f := e.Figures
	if f == nil {
		return
	}
	c.report.Kept = max(c.report.Kept, f.Kept)
	if f.Skipped > 0 {
		c.violate(KeptEnough, "retention took %d messages from groups that keep up", f.Skipped)
	}
	if f.Most > 0 && f.Kept > f.Most {
		c.violate(KeptEnough, "%d bytes of log are kept when everything is consumed and old, at most %d are expected", f.Kept, f.Most)
	}
}
