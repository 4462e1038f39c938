package history

// attempts says whether a delivery has the number that it should have, and comes
// when it may.
func (c *checker) attempts(m *message, group string, now *delivery) {
	before := m.given[group]
	if most := c.planOf(m.topic).Attempts; most > 0 && now.Attempt > most {
		c.violate(Attempts, "%s is delivered to %s for the %dth time, at most %d are allowed", m.Name, group, now.Attempt, most)
	}
	if len(before) == 0 {
		c.attemptIs(m, group, now, 1, 1+now.run.number-m.run)
		return
	}
	last := before[len(before)-1]
	if last.run == now.run {
		c.attemptIs(m, group, now, last.Attempt+1, last.Attempt+1)
	} else {
		least, most := 1, 1
		for _, d := range before {
			if most = max(most, d.Attempt+1); !c.mayBeLost(d.run, d.at, d.wall) {
				least = max(least, d.Attempt+1)
			}
		}
		// Each process in between may have died before it told of one.
		c.attemptIs(m, group, now, least, most+now.run.number-last.run.number)
	}
	if last.nacked > 0 && c.now < last.until && (last.run == now.run || !c.mayBeLost(last.run, last.nacked, last.ackWall)) {
		c.violate(Attempts, "%s comes to %s %d µs before the end of its delay", m.Name, group, (last.until-c.now)/1000)
	}
}

func (c *checker) attemptIs(m *message, group string, now *delivery, least, most int) {
	if now.Attempt < least || now.Attempt > most {
		c.violate(Attempts, "%s comes to %s as attempt %d, want %d to %d", m.Name, group, now.Attempt, least, most)
	}
	c.report.Attempts = max(c.report.Attempts, now.Attempt)
}

// deadLetters takes the list of a group's dead letters, of a time at which
// nobody consumes.
func (c *checker) deadLetters(e *Event) {
	names := make(map[string]bool, len(e.Deliveries))
	for i := range e.Deliveries {
		d := &e.Deliveries[i]
		m := c.messages[d.Name]
		switch {
		case m == nil:
			c.violate(NoPhantom, "%q is a dead letter, which nobody sent", d.Name)
			continue
		case names[d.Name]:
			c.violate(DeadLetters, "%s is a dead letter of %s twice", d.Name, e.Group)
		case m.Hash != d.Hash:
			c.violate(NoPhantom, "%s is a dead letter with other content", m.Name)
		}
		names[d.Name] = true
		c.identify(m, d.ID)
		c.deadForReason(m, e.Group)
	}
	c.report.Dead += len(names)
	c.dead[e.Group] = names
	for _, m := range c.inOrder {
		if c.mustBeDead(m, e.Group) && !names[m.Name] {
			c.violate(DeadLetters, "%s was buried, or given back for the last time, and is not a dead letter of %s", m.Name, e.Group)
		}
	}
}

// deadForReason says whether a message may be among a group's dead letters:
// somebody has buried it, or its attempts may be used up, those counted in which a
// process died; and nobody has acknowledged it.
func (c *checker) deadForReason(m *message, group string) {
	attempts := 0
	for _, d := range m.given[group] {
		attempts = max(attempts, d.Attempt)
		if d.acked != 0 && !c.undone(d) {
			c.violate(DeadLetters, "%s is a dead letter of %s, and was acknowledged", m.Name, group)
		}
	}
	if most := c.planOf(m.topic).Attempts; !m.buried && attempts+c.run.number-m.run < most {
		c.violate(DeadLetters, "%s is a dead letter of %s after %d attempts of %d", m.Name, group, attempts, most)
	}
}

// mustBeDead says that a message ended as a dead letter for certain: its last
// delivery was neither acknowledged nor can there be another one.
func (c *checker) mustBeDead(m *message, group string) bool {
	given := m.given[group]
	if len(given) == 0 || c.planOf(m.topic).Attempts == 0 {
		return false
	}
	for _, d := range given {
		if d.begun {
			return false
		}
	}
	return true
}
