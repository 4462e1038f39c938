package history

// A bulk is a cancel of all messages of a topic that have a tag. Nobody else
// cancels them, and all of them were sent before it began.
type bulk struct {
	messages []*message
	answered bool
	is       Operation // as last seen
}

func (c *checker) bulkBegins(e *Event) {
	if c.bulks[e.Tag] != nil {
		c.violate(HistoryIsWell, "bulk operation on tag %q begins twice", e.Tag)
		return
	}
	b := &bulk{}
	for _, m := range c.topicOf(e.Topic).messages {
		if m.Tag == e.Tag {
			m.cancels++
			b.messages = append(b.messages, m)
		}
	}
	c.bulks[e.Tag], c.bulkTags = b, append(c.bulkTags, e.Tag)
}

// operated takes how an operation was seen to stand.
func (c *checker) operated(tag string, o *Operation) {
	b := c.bulks[tag]
	if b == nil || o == nil {
		c.violate(BulkIsExact, "there is an operation on tag %q, which nobody began", tag)
		return
	}
	was := b.is
	switch {
	case was.ID != "" && was.ID != o.ID:
		c.violate(BulkIsExact, "two operations on tag %q: %s and %s", tag, was.ID, o.ID)
	case was.State == OperationDone && was != *o:
		c.violate(BulkIsExact, "%s was over with %+v and is %+v", o.ID, was, *o)
	case o.Done < was.Done || o.Missed < was.Missed:
		c.violate(BulkIsExact, "%s counts %d done and %d missed, and counted %d and %d before", o.ID, o.Done, o.Missed, was.Done, was.Missed)
	}
	b.answered, b.is = true, *o
	for _, m := range b.messages {
		if o.State == OperationDone && m.acked && m.cancels == 1 && !m.cancelled && len(m.given) == 0 && m.dues.known && ns(m.dues.due) > c.now {
			m.cancelled = true // it waited all the time
		}
	}
}

// settleBulk counts what became of an operation's messages: those that it
// cancelled are those that did not come.
func (c *checker) settleBulk(tag string) {
	b := c.bulks[tag]
	if b.answered && b.is.State != OperationDone {
		c.violate(BulkIsExact, "%s on tag %q did not come to its end: %+v", b.is.ID, tag, b.is)
		return
	}
	gone, came, open := 0, 0, 0
	for _, m := range b.messages {
		switch {
		case len(m.given) > 0:
			came++
		case m.acked:
			gone++
		default:
			open++
		}
	}
	if n := int(b.is.Done); n < gone || n > gone+open {
		c.violate(BulkIsExact, "%s on tag %q says that it cancelled %d, of which %d did not come (%d of them for certain)", b.is.ID, tag, n, gone+open, gone)
	}
	if int(b.is.Missed) > came {
		c.violate(BulkIsExact, "%s on tag %q says that it missed %d, of which %d came", b.is.ID, tag, b.is.Missed, came)
	}
	c.report.Bulks++
}
