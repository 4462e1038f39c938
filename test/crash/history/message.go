package history

import "slices"

// A message is what the history tells of one message.
type message struct {
	Message

	topic   string
	run     int // that sent it
	begun   int64
	id      uint64 // 0 unless told
	acked   bool
	refused bool
	ready   bool // visible when it was acknowledged
	queue   int  // -1 unless known
	dues    dues
	entry   *entry
	given   map[string][]*delivery // by group

	cancels   int  // begun, and neither answered nor known to have done nothing
	cancelled bool // for certain
	told      bool // somebody was told that it was delivered

	repeated bool // it was sent more than once under its key
	commits  int  // begun
	rolls    int  // begun
	commit   bool // answered
	roll     bool // answered
	buried   bool // somebody asked for it
	purges   int  // of its topic that began after it
	purged   bool // one of them was answered
}

// dues are what is known of a message's due.
type dues struct {
	known bool
	due   int64
	least []int64 // what calls that were not answered may have made of it, at least
}

func (d *dues) is(due int64)    { *d = dues{known: true, due: due} }
func (d *dues) may(least int64) { d.least = append(d.least, least) }

// not takes back what a call would have done.
func (d *dues) not(least int64) {
	if i := slices.Index(d.least, least); i >= 0 {
		d.least = slices.Delete(d.least, i, i+1)
	}
}

func (d *dues) allow(due int64) bool {
	return d.known && d.due == due || slices.ContainsFunc(d.least, func(least int64) bool { return least <= due })
}

// least is the least due that a delay can give when the call began at wall. A
// message that is to be delivered at once may be due by the stamp of a batch
// that was begun before.
func least(d Delay, wall int64) int64 {
	switch d.Kind {
	case After:
		return ceilMs(wall + ns(d.Value))
	case At:
		return d.Value
	default:
		return 0
	}
}

// most is the greatest due that it can give when the call was answered at wall.
func most(d Delay, wall int64) int64 {
	switch d.Kind {
	case After:
		return ceilMs(wall) + max(d.Value, 0)
	case At:
		return max(d.Value, ceilMs(wall)+1)
	default:
		return ceilMs(wall) + 1
	}
}

func (c *checker) sendBegins(e *Event) {
	for _, sent := range e.Messages {
		if again := c.messages[sent.Name]; again != nil {
			c.sentAgain(again, &sent, e)
			continue
		}
		m := &message{Message: sent, topic: e.Topic, run: e.Run, begun: e.Wall, queue: sent.Queue}
		switch {
		case sent.Half:
		case sent.Delay.Kind == NoDelay:
			m.dues.is(0)
			m.dues.may(0) // or by the stamp, if its topic holds it back
		default:
			m.dues.may(least(sent.Delay, e.Wall))
		}
		t := c.topicOf(e.Topic)
		t.sends(m)
		c.messages[sent.Name] = m
		c.inOrder = append(c.inOrder, m)
		c.report.Attempted++
	}
}

func (c *checker) sendEnds(b begun, e *Event) {
	if e.Err != "" {
		c.violate(NoCallFailed, "send of %d messages: %s", len(b.e.Messages), e.Err)
		return
	}
	if len(e.Receipts) != len(b.e.Messages) {
		c.violate(HistoryIsWell, "%d receipts for %d messages", len(e.Receipts), len(b.e.Messages))
		return
	}
	for i := range e.Receipts {
		c.receipt(c.messages[b.e.Messages[i].Name], &e.Receipts[i], b)
	}
	c.run.synced = max(c.run.synced, b.at)
}

func (c *checker) receipt(m *message, r *Receipt, b begun) {
	if r.Err != "" {
		m.refused = true
		c.violate(NoCallFailed, "send of %s: %s", m.Name, r.Err)
		return
	}
	if !m.acked {
		m.acked = true
		c.report.Acked++
		c.run.acked++
	}
	c.identify(m, r.ID)
	if r.Repeat {
		c.isRepeat(m, r)
		return
	}
	c.replaces(m, r)
	if m.Half {
		return
	}
	if m.Queue >= 0 && m.Queue != r.Queue {
		c.violate(NoPhantom, "%s was sent to queue %d and filed in %d", m.Name, m.Queue, r.Queue)
	}
	m.queue = r.Queue
	c.dueFits(m, m.Delay, r.Due, b.e.Wall)
	m.dues.is(r.Due)
	if r.Ready {
		m.ready = true
		c.readyInTime(m, b)
		if !c.planOf(m.topic).Purged {
			c.enterQueue(m, r.Offset, r.Due, 0)
		}
	}
}

// identify notes a message's id, which is its own.
func (c *checker) identify(m *message, id uint64) {
	if m.id != 0 && m.id != id {
		rule := NoPhantom
		if m.Once {
			rule = OnceAKey
		}
		c.violate(rule, "%s has id %#x, and also %#x", m.Name, m.id, id)
		return
	}
	if other := c.byID[id]; other != nil && other != m {
		c.violate(NoPhantom, "%s and %s have the same id %#x", m.Name, other.Name, id)
	}
	m.id, c.byID[id] = id, m
	m.cancelled = m.cancelled || c.replaced[id]
}

// dueFits holds a due that was answered now to the delay that was asked for.
func (c *checker) dueFits(m *message, d Delay, due, begun int64) {
	switch {
	case d.Kind == NoDelay && due == 0:
	case due < least(d, begun):
		c.violate(NeverEarly, "%s is due at %d, %d ms before what %+v asked for", m.Name, due, least(d, begun)-due, d)
	case due > most(d, c.now):
		c.violate(NeverEarly, "%s is due at %d, %d ms after what %+v asked for", m.Name, due, due-most(d, c.now), d)
	}
}

// steer begins a cancel or a move.
func (c *checker) steer(e *Event, note func(*message)) {
	m := c.messages[e.Name]
	if m == nil {
		c.violate(NoPhantom, "%s of %q, which nobody sent", e.Kind, e.Name)
		return
	}
	note(m)
}

func (c *checker) cancelEnds(b begun, e *Event) {
	m := c.messages[b.e.Name]
	if m == nil {
		return
	}
	m.cancels--
	if e.Err != "" {
		m.cancels++
		c.violate(NoCallFailed, "cancel of %s: %s", m.Name, e.Err)
		return
	}
	if e.Answer != OK {
		c.turnedDown(m, e)
		return
	}
	c.report.Cancels++
	c.run.synced = max(c.run.synced, b.at)
	if m.cancelled || m.told {
		c.violate(NothingLost, "cancel of %s says ok, but it was %s before", m.Name, m.past())
	}
	m.cancelled = true
}

func (c *checker) moveEnds(b begun, e *Event) {
	m := c.messages[b.e.Name]
	if m == nil || b.e.Delay == nil {
		return
	}
	if e.Err != "" {
		c.violate(NoCallFailed, "move of %s: %s", m.Name, e.Err)
		return
	}
	if e.Answer != OK {
		m.dues.not(least(*b.e.Delay, b.e.Wall))
		c.turnedDown(m, e)
		return
	}
	c.report.Moves++
	c.run.synced = max(c.run.synced, b.at)
	if m.cancelled || m.told {
		c.violate(NothingLost, "move of %s says ok, but it was %s before", m.Name, m.past())
	}
	c.dueFits(m, *b.e.Delay, e.Due, b.e.Wall)
	m.dues.is(e.Due)
}

// past says what a message was known to be.
func (m *message) past() string {
	if m.cancelled {
		return WasCancelled
	}
	return WasDelivered
}

// turnedDown takes the answer of a cancel or move that came too late.
func (c *checker) turnedDown(m *message, e *Event) {
	switch e.Answer {
	case WasDelivered:
		if m.cancelled {
			c.violate(NothingLost, "%s is said to be delivered, but was cancelled", m.Name)
		}
		m.told = true
	case WasCancelled:
		if !m.cancelled && m.cancels == 0 {
			c.violate(NothingLost, "%s is said to be cancelled, but nobody did that", m.Name)
		}
		m.cancelled = true
	case Unknown:
		c.violate(NothingLost, "%s (acknowledged: %v) is said to be unknown", m.Name, m.acked)
	default:
		c.violate(HistoryIsWell, "answer %q", e.Answer)
	}
}

// listed compares a listing of all that waits with what is known.
func (c *checker) listed(e *Event) {
	there := make(map[string]bool, len(e.Waits))
	for _, w := range e.Waits {
		m := c.messages[w.Name]
		switch {
		case m == nil:
			c.violate(NoPhantom, "%q waits, which nobody sent", w.Name)
			continue
		case there[w.Name]:
			c.violate(NoPhantom, "%s is listed twice", w.Name)
		case m.cancelled:
			c.violate(NothingLost, "%s waits, but was cancelled", m.Name)
		case m.purged:
			c.violate(NothingAfterPurge, "%s waits, but was purged", m.Name)
		case m.Half && m.commits == 0:
			c.violate(Transactions, "%s waits, but was not committed", m.Name)
		case m.told || len(m.given) > 0:
			c.violate(NothingLost, "%s waits, but was delivered", m.Name)
		case !m.dues.allow(w.Due):
			c.violate(NeverEarly, "%s waits for %d, known is %+v", m.Name, w.Due, m.dues)
		}
		there[w.Name] = true
		c.identify(m, w.ID)
		c.highest = max(c.highest, w.ID)
	}
	for _, m := range c.inOrder {
		if !there[m.Name] && m.acked && m.mustWait(c.now) {
			c.violate(NothingLost, "%s, due at %d, does not wait any more at %d", m.Name, m.dues.due, ms(c.now))
		}
	}
}

// mustWait says that nothing can have ended the message's wait before wall.
func (m *message) mustWait(wall int64) bool {
	return !m.cancelled && m.cancels == 0 && m.purges == 0 && m.dues.known && len(m.dues.least) == 0 && ns(m.dues.due) > wall
}

// settle says whether everybody got the message who had to.
func (c *checker) settle(m *message) {
	missing := slices.DeleteFunc(slices.Clone(c.groupsOf(m.topic)), func(g string) bool { return len(m.given[g]) > 0 || c.dead[g][m.Name] })
	if !m.acked && !m.refused {
		c.report.Unknown++
		if len(m.given) > 0 {
			c.report.Came++
		}
	}
	switch {
	case m.refused && len(m.given) > 0:
		c.violate(NoPhantom, "%s was refused and is delivered", m.Name)
	case m.cancelled && len(m.given) > 0:
		c.violate(NothingLost, "%s was cancelled and is delivered", m.Name)
	case m.cancelled || m.purges > 0 || len(missing) == 0:
	case m.Half && !m.commit && len(m.given) == 0:
	case m.told:
		c.violate(NothingLost, "%s was said to be delivered, but not to %v", m.Name, missing)
	case len(m.given) > 0:
		c.violate(NothingLost, "%s was delivered, but not to %v", m.Name, missing)
	case m.acked && m.cancels == 0:
		where := "nothing sent later was seen"
		if m.id < c.highest {
			where = "what was sent later is there"
		}
		c.violate(NothingLost, "%s (id %#x, run %d, due %d) is lost: %s", m.Name, m.id, m.run, m.dues.due, where)
	}
}
