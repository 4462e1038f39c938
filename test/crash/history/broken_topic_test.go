package history

import "fmt"

var held = []broken{
	{"visible while paused", HeldBack, "while its topic t was paused", lone(func(s *script) {
		s.send("b", in50)
		s.hold(true)
		s.both("b")
		s.hold(false)
		s.drained()
	})},
	{"paused, killed, and visible", HeldBack, "while its topic t was paused", lone(func(s *script) {
		s.send("b", in50)
		s.hold(true)
		s.kill()
		s.start(ModeDrain)
		s.both("b")
		s.wall += 5
		s.hold(false)
		s.drained()
	})},
	{"ready while paused", HeldBack, "b became visible while its topic t was paused", lone(func(s *script) {
		s.hold(true)
		s.wall += 5
		s.send("b", atOnce)
		s.hold(false)
		s.both("b")
		s.drained()
	})},
	{"faster than its rate", HeldBack, "its rate is 10 a second", lone(func(s *script) {
		s.limit(10)
		for i := range 13 {
			s.send(fmt.Sprint("m", i), atOnce)
			s.both(fmt.Sprint("m", i))
		}
		s.drained()
	})},
	{"faster than its rate, with a kill on the way", HeldBack, "its rate is 10 a second", lone(func(s *script) {
		s.limit(10)
		for i := range 13 {
			s.send(fmt.Sprint("m", i), atOnce)
			s.both(fmt.Sprint("m", i))
			if i == 6 {
				s.kill()
				s.start(ModeLoad)
				s.limit(10)
			}
		}
		s.drained()
	})},
	{"a pause that failed", NoCallFailed, "hold of topic t: disk on fire", lone(func(s *script) {
		s.hold(true)
		s.last().Err = "disk on fire"
		s.drained()
	})},
}

var counted = []broken{
	{"attempts forgotten by a kill", Attempts, "b comes to g1 as attempt 1, want 2 to 3", lone(func(s *script) {
		s.send("b", in50)
		s.both("b")
		s.kill()
		s.start(ModeDrain)
		s.got("g1", "b", func(d *Delivery) { d.Attempt = 1 })
		s.drained()
	})},
	{"attempts forgotten by a power cut, though synced", Attempts, "b comes to g1 as attempt 1, want 2 to 3", lone(func(s *script) {
		s.send("b", in50)
		s.both("b")
		s.send("c", in50)
		s.kill()
		s.cut()
		s.start(ModeDrain)
		s.got("g1", "b", func(d *Delivery) { d.Attempt = 1 })
		s.both("c")
		s.drained()
	})},
	{"more attempts than processes", Attempts, "b comes to g1 as attempt 4, want 2 to 3", lone(func(s *script) {
		s.send("b", in50)
		s.both("b")
		s.kill()
		s.start(ModeDrain)
		s.got("g1", "b", func(d *Delivery) { d.Attempt = 4 })
		s.drained()
	})},
	{"given back, and early", Attempts, "b comes to g1 1000 µs before the end of its delay", lone(func(s *script) {
		s.send("b", in50)
		s.both("b")
		s.nackFor(3, 20)
		s.wall += 17
		s.got("g1", "b")
		s.drained()
	})},
	{"given back, killed, and early", Attempts, "before the end of its delay", lone(func(s *script) {
		s.send("b", in50)
		s.both("b")
		s.nackFor(3, 20)
		s.kill()
		s.start(ModeDrain)
		s.got("g1", "b")
		s.drained()
	})},
	{"more attempts than allowed", Attempts, "b is delivered to g3 for the 3th time, at most 2 are allowed", lone(poison(func(s *script) {
		s.nackFor(s.got("g3", "b"), 0)
		s.nackFor(s.got("g3", "b"), 0)
		s.got("g3", "b")
		s.drained()
	}))},
}

// poison is a story with a message b in a topic of one group, which gives up
// after two attempts.
func poison(story func(*script)) func(*script) {
	return func(s *script) {
		s.plan("poison", Plan{Groups: []string{"g3"}, Attempts: 2})
		s.sendTo("poison", Message{Name: "b", Delay: in50})
		story(s)
	}
}

var dead = []broken{
	{"neither delivered nor dead", NothingLost, "b (id", lone(poison(func(s *script) {
		s.dead()
		s.drained()
	}))},
	{"used up, and not dead", DeadLetters, "b was buried, or given back for the last time, and is not a dead letter of g3", lone(poison(func(s *script) {
		s.nackFor(s.got("g3", "b"), 0)
		s.nackFor(s.got("g3", "b"), 0)
		s.dead()
		s.drained()
	}))},
	{"buried, and not dead", DeadLetters, "b was buried", lone(poison(func(s *script) {
		s.bury(s.got("g3", "b"))
		s.dead()
		s.drained()
	}))},
	{"dead for no reason", DeadLetters, "b is a dead letter of g3 after 1 attempts of 2", lone(poison(func(s *script) {
		s.nackFor(s.got("g3", "b"), 0)
		s.dead("b")
		s.drained()
	}))},
	{"acknowledged and dead", DeadLetters, "b is a dead letter of g3, and was acknowledged", lone(poison(func(s *script) {
		s.nackFor(s.got("g3", "b"), 0)
		s.ack(s.got("g3", "b"))
		s.dead("b")
		s.drained()
	}))},
	{"dead twice", DeadLetters, "b is a dead letter of g3 twice", lone(poison(func(s *script) {
		s.bury(s.got("g3", "b"))
		s.dead("b", "b")
		s.drained()
	}))},
	{"dead with other content", NoPhantom, "b is a dead letter with other content", lone(poison(func(s *script) {
		s.bury(s.got("g3", "b"))
		s.dead("b").Deliveries[0].Hash++
		s.drained()
	}))},
	{"a dead letter of nobody's", NoPhantom, `"x" is a dead letter, which nobody sent`, lone(poison(func(s *script) {
		s.bury(s.got("g3", "b"))
		s.dead("b", "b").Deliveries[1].Name = "x"
		s.drained()
	}))},
}

// inBulk is a story with three messages under a tag, of which b and c wait for
// a day and d falls due soon.
func inBulk(story func(*script)) func(*script) {
	return func(s *script) {
		for _, n := range []string{"b", "c"} {
			s.sendTo("bulk", Message{Name: n, Tag: "tag", Delay: inADay})
		}
		s.sendTo("bulk", Message{Name: "d", Tag: "tag", Delay: in50})
		story(s)
	}
}

var bulks = []broken{
	{"never over", BulkIsExact, "op-1 on tag \"tag\" did not come to its end", lone(inBulk(func(s *script) {
		s.bulk(Operation{ID: "op-1", State: "running"})
		s.kill()
		s.start(ModeDrain)
		s.stands(Operation{ID: "op-1", State: "running", Done: 3})
		s.drained()
	}))},
	{"counted one too many", BulkIsExact, "says that it cancelled 3, of which 2 did not come", lone(inBulk(func(s *script) {
		s.both("d")
		s.bulk(Operation{ID: "op-1", State: OperationDone, Done: 3})
		s.drained()
	}))},
	{"counted one too few", BulkIsExact, "says that it cancelled 1, of which 2 did not come", lone(inBulk(func(s *script) {
		s.both("d")
		s.bulk(Operation{ID: "op-1", State: OperationDone, Done: 1})
		s.drained()
	}))},
	{"lost, and no operation to explain it", BulkIsExact, "says that it cancelled 0, of which 3 did not come", lone(inBulk(func(s *script) {
		s.begin(Event{Kind: Bulk, Topic: "bulk", Tag: "tag"})
		s.kill()
		s.start(ModeDrain)
		s.drained()
	}))},
	{"missed what did not come", BulkIsExact, "says that it missed 1, of which 0 came", lone(inBulk(func(s *script) {
		s.bulk(Operation{ID: "op-1", State: OperationDone, Done: 3, Missed: 1})
		s.drained()
	}))},
	{"over, and one still waits", NothingLost, "b waits, but was cancelled", lone(inBulk(func(s *script) {
		s.bulk(Operation{ID: "op-1", State: OperationDone, Done: 3})
		s.list("b")
		s.both("b")
		s.drained()
	}))},
	{"over, and then something else", BulkIsExact, "op-1 was over with", lone(inBulk(func(s *script) {
		s.bulk(Operation{ID: "op-1", State: OperationDone, Done: 3})
		s.stands(Operation{ID: "op-1", State: OperationDone, Done: 4})
		s.drained()
	}))},
	{"counts fall", BulkIsExact, "and counted 2 and 0 before", lone(inBulk(func(s *script) {
		s.bulk(Operation{ID: "op-1", State: "running", Done: 2})
		s.stands(Operation{ID: "op-1", State: OperationDone, Done: 1})
		s.drained()
	}))},
	{"begun twice", BulkIsExact, "two operations on tag \"tag\": op-1 and op-2", lone(inBulk(func(s *script) {
		s.bulk(Operation{ID: "op-1", State: "running"})
		s.stands(Operation{ID: "op-2", State: OperationDone, Done: 3})
		s.drained()
	}))},
	{"begun by nobody", BulkIsExact, "which nobody began", lone(inBulk(func(s *script) {
		s.stands(Operation{ID: "op-1", State: OperationDone})
		s.drained()
	}))},
	{"a tag that is used twice", HistoryIsWell, "begins twice", lone(inBulk(func(s *script) {
		s.bulk(Operation{ID: "op-1", State: OperationDone, Done: 3})
		s.bulk(Operation{ID: "op-1", State: OperationDone, Done: 3})
		s.drained()
	}))},
}

// inPurged is a story with a message b in a topic that is purged.
func inPurged(story func(*script)) func(*script) {
	return func(s *script) {
		s.plan("purged", Plan{Purged: true})
		s.sendTo("purged", Message{Name: "b", Delay: in50})
		story(s)
	}
}

func (s *script) purge() { s.call(Event{Kind: Purge, Topic: "purged"}, Purged) }

var purged = []broken{
	{"purged and delivered", NothingAfterPurge, "b is delivered, and was purged", lone(inPurged(func(s *script) {
		s.purge()
		s.both("b")
		s.drained()
	}))},
	{"purged, killed, and it waits", NothingAfterPurge, "b waits, but was purged", lone(inPurged(func(s *script) {
		s.purge()
		s.kill()
		s.start(ModeDrain)
		s.list("b")
		s.drained()
	}))},
	{"sent after a purge, and lost", NothingLost, "c (id", lone(inPurged(func(s *script) {
		s.purge()
		s.sendTo("purged", Message{Name: "c", Delay: in50})
		s.drained()
	}))},
}

var keeping = []broken{
	{"taken from who keeps up", KeptEnough, "retention took 1 messages", lone(func(s *script) {
		s.put(Event{Kind: Retention, Figures: &Figures{Kept: 1, Most: 10, Skipped: 1}})
		s.drained()
	})},
	{"the log grows", KeptEnough, "11 bytes of log are kept", lone(func(s *script) {
		s.put(Event{Kind: Retention, Figures: &Figures{Kept: 11, Most: 10}})
		s.drained()
	})},
}
