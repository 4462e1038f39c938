package history

import (
	"fmt"
	"slices"
)

// A place is one queue of one topic.
type place struct {
	topic string
	queue int
}

func (p place) String() string { return fmt.Sprintf("%s/%d", p.topic, p.queue) }

// A queue is what was seen of one queue, by offset.
type queue struct {
	entries []*entry
}

// An entry is what was seen at one offset.
type entry struct {
	m       *message
	offset  uint64
	due     int64
	visible int64 // 0 unless seen by a group
	seen    map[string]bool
}

// maxOffset bounds what the checker remembers; what is beyond is nonsense.
const maxOffset = 1 << 28

// enterQueue notes that a message is at an offset of its queue.
func (c *checker) enterQueue(m *message, offset uint64, due, visible int64) bool {
	p := place{m.topic, m.queue}
	if offset >= maxOffset || m.queue < 0 {
		c.violate(Order, "%s is at offset %d of %v", m.Name, offset, p)
		return false
	}
	q := c.queues[p]
	if q == nil {
		q = &queue{}
		c.queues[p] = q
		c.places = append(c.places, p)
	}
	for uint64(len(q.entries)) <= offset {
		q.entries = append(q.entries, nil)
	}
	e := q.entries[offset]
	if e == nil {
		e = &entry{m: m, offset: offset, due: due, visible: visible}
		q.entries[offset] = e
	}
	return c.stands(p, e, m, &entry{m: m, offset: offset, due: due, visible: visible})
}

// stands says whether an entry is what it was when it was seen before.
func (c *checker) stands(p place, e *entry, m *message, now *entry) bool {
	switch {
	case e.m != m:
		c.violate(OffsetsStand, "%v offset %d is %s, and was %s", p, e.offset, m.Name, e.m.Name)
		return false
	case m.entry != nil && m.entry != e:
		c.violate(OffsetsStand, "%s is at offset %d of %v, and was at %d", m.Name, e.offset, p, m.entry.offset)
		return false
	case e.due != now.due || e.visible != 0 && now.visible != 0 && e.visible != now.visible:
		c.violate(OffsetsStand, "%v offset %d (%s) is due %d, visible %d, and was due %d, visible %d",
			p, e.offset, m.Name, now.due, now.visible, e.due, e.visible)
	}
	m.entry = e
	e.visible = max(e.visible, now.visible)
	return true
}

func (c *checker) seen(e *entry, group string) {
	if e.seen == nil {
		e.seen = make(map[string]bool, len(c.o.Groups))
	}
	e.seen[group] = true
}

// inspect looks at a whole queue: no gaps, and in order.
func (c *checker) inspect(p place) {
	gaps, first := 0, -1
	var visible int64
	var moved, direct *entry // the last ones that came from waiting, and at once
	for o, e := range c.queues[p].entries {
		if e == nil || !c.seenByAll(p.topic, e) {
			if gaps++; first < 0 {
				first = o
			}
		}
		if e == nil {
			continue
		}
		if e.visible != 0 && e.visible < visible {
			c.violate(Order, "%v offset %d (%s) is visible at %d, one before at %d", p, o, e.m.Name, e.visible, visible)
		}
		visible = max(visible, e.visible)
		switch {
		case e.due == 0 && e.m.Half: // in the order of its commit
		case e.due == 0:
			direct = c.follows(p, direct, e)
		case e.waited():
			moved = c.follows(p, moved, e)
		}
	}
	if gaps > 0 {
		c.violate(Order, "%v: %d of %d offsets were not delivered to each group, the first is %d",
			p, gaps, len(c.queues[p].entries), first)
	}
}

// seenByAll says that each group got what is at an offset, or has it among its
// dead letters.
func (c *checker) seenByAll(topic string, e *entry) bool {
	return !slices.ContainsFunc(c.groupsOf(topic), func(g string) bool { return !e.seen[g] && !c.dead[g][e.m.Name] })
}

// waited says that the message certainly went through the timeline.
func (e *entry) waited() bool {
	m := e.m
	if m.acked && !m.repeated {
		return !m.ready
	}
	return m.Delay.Kind == After && m.Delay.Value > 0 || m.Delay.Kind == At && ns(m.Delay.Value) > m.begun+ns(60_000)
}

// follows says whether an entry is behind another one in (due, id).
func (c *checker) follows(p place, last, e *entry) *entry {
	if last != nil && (e.due < last.due || e.due == last.due && e.m.id <= last.m.id) {
		c.violate(Order, "%v offset %d: (%d, %#x) comes after offset %d: (%d, %#x)",
			p, e.offset, e.due, e.m.id, last.offset, last.due, last.m.id)
	}
	return e
}
