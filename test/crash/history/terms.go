package history

// A key, a name, a transaction: what a message may be sent under.

// sentAgain begins to send a message that was sent before. Under an idempotency
// key that is allowed; it is the same message then.
func (c *checker) sentAgain(m *message, sent *Message, e *Event) {
	if !m.Once || !sent.Once || m.Hash != sent.Hash || m.topic != e.Topic {
		c.violate(HistoryIsWell, "%s is sent twice", sent.Name)
		return
	}
	m.repeated = true
	if !m.dues.known {
		m.dues.may(least(sent.Delay, e.Wall))
	}
}

// isRepeat takes the answer that a key was used before: it tells of the first
// message, as far as its record is kept.
func (c *checker) isRepeat(m *message, r *Receipt) {
	switch {
	case !m.Once || !m.repeated:
		c.violate(OnceAKey, "%s is said to be a repeat, and was sent once", m.Name)
	case r.Due == 0:
	case !m.dues.allow(r.Due):
		c.violate(OnceAKey, "%s is said to be due at %d, known is %+v", m.Name, r.Due, m.dues)
	default:
		m.dues.is(r.Due)
	}
	c.report.Repeats++
}

// sends notes a new message of a topic. If it has a name, whoever waits under
// that may be cancelled by it.
func (t *topic) sends(m *message) {
	if m.Slot != "" {
		for _, old := range t.slots[m.Slot] {
			old.cancels++
		}
		t.slots[m.Slot] = append(t.slots[m.Slot], m)
	}
	t.messages = append(t.messages, m)
}

// replaces takes the answer of a message that has a name: who is cancelled.
func (c *checker) replaces(m *message, r *Receipt) {
	if m.Slot == "" {
		if r.Replaced != 0 {
			c.violate(OneOfAName, "%s has no name and replaced %#x", m.Name, r.Replaced)
		}
		return
	}
	if r.Replaced != 0 {
		c.report.Replaced++
		c.replaced[r.Replaced] = true
		if old := c.byID[r.Replaced]; old != nil {
			c.isReplaced(old, m)
		}
	}
	for _, old := range c.topicOf(m.topic).slots[m.Slot] {
		if old == m {
			break
		}
		old.cancels--
		if old.id != r.Replaced && old.acked && old.mustWait(c.now) {
			c.violate(OneOfAName, "%s took name %q and replaced %#x, while %s (%#x) waits under it", m.Name, m.Slot, r.Replaced, old.Name, old.id)
		}
	}
}

func (c *checker) isReplaced(old, m *message) {
	if old.topic != m.topic || old.Slot != m.Slot {
		c.violate(OneOfAName, "%s took name %q and replaced %s, which has name %q", m.Name, m.Slot, old.Name, old.Slot)
	}
	if old.cancelled || old.told || len(old.given) > 0 {
		c.violate(OneOfAName, "%s replaced %s, which was %s before", m.Name, old.Name, old.past())
	}
	old.cancelled = true
}

// ending begins to end a transaction.
func (m *message) ending(e *Event) {
	if e.On {
		m.commits++
		m.dues.may(least(m.Delay, e.Wall))
	} else {
		m.rolls++
	}
}

func (c *checker) transactionEnds(b begun, e *Event) {
	m := c.messages[b.e.Name]
	if m == nil {
		return
	}
	if e.Err != "" {
		c.violate(NoCallFailed, "end of the transaction of %s: %s", m.Name, e.Err)
		return
	}
	if e.Answer != OK {
		c.wasOver(m, b, e)
		return
	}
	c.report.Ended++
	c.run.synced = max(c.run.synced, b.at)
	if m.commit || m.roll || !b.e.On && len(m.given) > 0 {
		c.violate(Transactions, "end of the transaction of %s (commit: %v) says ok, but it had ended", m.Name, b.e.On)
	}
	if !b.e.On {
		m.roll = true
		return
	}
	m.commit = true
	c.dueFits(m, m.Delay, e.Due, b.e.Wall)
	m.dues.is(e.Due)
}

// wasOver takes the answer that the transaction had ended before.
func (c *checker) wasOver(m *message, b begun, e *Event) {
	if b.e.On {
		m.commits--
		m.dues.not(least(m.Delay, b.e.Wall))
	} else {
		m.rolls--
	}
	switch {
	case e.Answer != Over:
		c.violate(Transactions, "the transaction of %s (acknowledged: %v) is said to be %s", m.Name, m.acked, e.Answer)
	case m.commits+m.rolls == 0:
		c.violate(Transactions, "the transaction of %s is said to be over, but nobody ended it", m.Name)
	case m.rolls == 0:
		m.commit = true
	case m.commits == 0:
		m.roll = true
	}
}

// halves compares a listing of all half messages with what is known.
func (c *checker) halves(e *Event) {
	there := make(map[string]bool, len(e.Waits))
	for _, w := range e.Waits {
		m := c.messages[w.Name]
		if there[w.Name] = true; m == nil {
			c.violate(NoPhantom, "%q is half, which nobody sent", w.Name)
			continue
		}
		c.identify(m, w.ID)
		if !m.Half || m.commit || m.roll || len(m.given) > 0 {
			c.violate(Transactions, "%s is half, but its transaction has ended", m.Name)
		}
	}
	for _, m := range c.inOrder {
		if m.Half && m.acked && m.commits+m.rolls == 0 && !there[m.Name] {
			c.violate(Transactions, "%s is not half any more, and nobody ended its transaction", m.Name)
		}
	}
}

// allowed says whether a message may be delivered at all by now.
func (c *checker) allowed(m *message) {
	switch {
	case m.Half && m.commits == 0:
		c.violate(Transactions, "%s is delivered, and was never committed", m.Name)
	case m.roll:
		c.violate(Transactions, "%s is delivered, and was rolled back", m.Name)
	case m.purged:
		c.violate(NothingAfterPurge, "%s is delivered, and was purged", m.Name)
	case m.cancelled && m.Slot != "":
		c.violate(OneOfAName, "%s is delivered, and another one has taken its name", m.Name)
	}
}
