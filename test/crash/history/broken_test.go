package history

var lost = []broken{
	{"lost", NothingLost, "nothing sent later was seen", lone(func(s *script) {
		s.send("b", in50)
		s.drained()
	})},
	{"lost in the middle", NothingLost, "what was sent later is there", lone(func(s *script) {
		s.send("b", in50)
		s.send("c", in50)
		s.both("c")
		s.drained()
	})},
	{"lost to one group", NothingLost, "b was delivered, but not to [g2]", lone(func(s *script) {
		s.send("b", in50)
		s.got("g1", "b")
		s.drained()
	})},
	{"not acknowledged, to one group", NothingLost, "b was delivered, but not to [g1]", lone(func(s *script) {
		s.try("b", in50)
		s.kill()
		s.start(ModeDrain)
		s.both("a")
		s.got("g2", "b")
		s.drained()
	})},
	{"not listed", NothingLost, "does not wait any more", lone(func(s *script) {
		s.send("b", in50)
		s.list()
		s.both("b")
		s.drained()
	})},
	{"listed after its delivery", NothingLost, "b waits, but was delivered", lone(func(s *script) {
		s.send("b", in50)
		s.both("b")
		s.list("b")
		s.drained()
	})},
}

var steered = []broken{
	{"cancelled and delivered", NothingLost, "b was cancelled and is delivered", lone(func(s *script) {
		s.send("b", in50)
		s.cancel("b", OK)
		s.both("b")
		s.drained()
	})},
	{"delivered and cancelled", NothingLost, "b was cancelled and is delivered", lone(func(s *script) {
		s.send("b", in50)
		s.both("b")
		s.cancel("b", OK)
		s.drained()
	})},
	{"cancelled, found cancelled, and delivered", NothingLost, "b was cancelled and is delivered", lone(func(s *script) {
		s.send("b", in50)
		s.begin(Event{Kind: Cancel, Name: "b"})
		s.kill()
		s.start(ModeDrain)
		s.cancel("b", WasCancelled)
		s.both("b")
		s.drained()
	})},
	{"said to be delivered, and is not", NothingLost, "b was said to be delivered, but not to [g1 g2]", lone(func(s *script) {
		s.send("b", in50)
		s.cancel("b", WasDelivered)
		s.drained()
	})},
	{"said to be cancelled, by nobody", NothingLost, "b is said to be cancelled, but nobody did that", lone(func(s *script) {
		s.send("b", in50)
		s.cancel("b", WasCancelled)
		s.drained()
	})},
	{"said to be delivered after a cancel", NothingLost, "b is said to be delivered, but was cancelled", lone(func(s *script) {
		s.send("b", in50)
		s.cancel("b", OK)
		s.move("b", in50, WasDelivered)
		s.drained()
	})},
	{"cancelled after it was said to be delivered", NothingLost, "cancel of b says ok, but it was delivered", lone(func(s *script) {
		s.send("b", in50)
		s.cancel("b", WasDelivered)
		s.cancel("b", OK)
		s.drained()
	})},
	{"acknowledged and unknown", NothingLost, "b (acknowledged: true) is said to be unknown", lone(func(s *script) {
		s.send("b", in50)
		s.cancel("b", Unknown)
		s.both("b")
		s.drained()
	})},
	{"moved after a cancel", NothingLost, "move of b says ok, but it was cancelled before", lone(func(s *script) {
		s.send("b", in50)
		s.cancel("b", OK)
		s.move("b", in50, OK)
		s.drained()
	})},
	{"listed though cancelled", NothingLost, "b waits, but was cancelled", lone(func(s *script) {
		s.send("b", in50)
		s.cancel("b", OK)
		s.list("b")
		s.drained()
	})},
}

var changed = []broken{
	{"phantom", NoPhantom, `"x" is delivered, which nobody sent`, lone(func(s *script) {
		s.got("g1", "a", func(d *Delivery) { d.Name = "x" })
		s.drained()
	})},
	{"phantom in a listing", NoPhantom, `"x" waits, which nobody sent`, lone(func(s *script) {
		s.send("b", in50)
		s.list("b").Waits[0].Name = "x"
		s.both("b")
		s.drained()
	})},
	{"listed twice", NoPhantom, "b is listed twice", lone(func(s *script) {
		s.send("b", in50)
		s.list("b", "b")
		s.both("b")
		s.drained()
	})},
	{"refused and delivered", NoPhantom, "b was refused and is delivered", lone(func(s *script) {
		s.send("b", in50, func(r *Receipt) { r.Err = "no" })
		s.both("b")
		s.drained()
	})},
	{"other content", NoPhantom, "b is delivered with other content", lone(func(s *script) {
		s.send("b", in50)
		s.got("g1", "b")
		s.got("g2", "b", func(d *Delivery) { d.Hash++ })
		s.drained()
	})},
	{"other id", NoPhantom, "b has id", lone(func(s *script) {
		s.send("b", in50)
		s.got("g1", "b")
		s.got("g2", "b", func(d *Delivery) { d.ID++ })
		s.drained()
	})},
	{"one id for two", NoPhantom, "c and b have the same id", lone(func(s *script) {
		s.send("b", in50)
		s.send("c", in50, func(r *Receipt) { r.ID = s.know["b"].ID })
		s.both("b")
		s.both("c", func(d *Delivery) { d.ID = s.know["b"].ID })
		s.drained()
	})},
	{"other queue", NoPhantom, "b was sent to t/1 and delivered from t/0", lone(func(s *script) {
		s.send("b", in50, func(r *Receipt) { r.Queue = 1 })
		s.both("b")
		s.drained()
	})},
	{"another queue than asked for", NoPhantom, "b was sent to queue 3 and filed in 0", lone(func(s *script) {
		op := s.try("b", in50)
		s.last().Messages[0].Queue = 3
		s.put(Event{Kind: Sent, Op: op, Receipts: []Receipt{{ID: s.know["b"].ID, Due: s.know["b"].Due}}})
		s.both("b")
		s.drained()
	})},
}

var early = []broken{
	{"received a nanosecond early", NeverEarly, "b is due at", lone(func(s *script) {
		s.send("b", in50)
		s.both("b")
		e := s.last()
		early := e.Wall - ns(s.know["b"].Due) + 1
		e.Wall, e.Mono = e.Wall-early, e.Mono-early
		s.drained()
	})},
	{"visible early", NeverEarly, "and was visible at", lone(func(s *script) {
		s.send("b", in50)
		s.both("b", func(d *Delivery) { d.Visible = d.Due - 1 })
		s.drained()
	})},
	{"visible in the future", NeverEarly, "is visible at", lone(func(s *script) {
		s.send("b", in50)
		s.both("b", func(d *Delivery) { d.Visible += 100 })
		s.drained()
	})},
	{"rounded down", NeverEarly, "1 ms before what", lone(func(s *script) {
		s.send("b", in50, func(r *Receipt) { r.Due-- })
		s.both("b", func(d *Delivery) { d.Due-- })
		s.drained()
	})},
	{"due later than asked for", NeverEarly, "4 ms after what", lone(func(s *script) {
		s.send("b", in50, func(r *Receipt) { r.Due += 5 })
		s.both("b", func(d *Delivery) { d.Due += 5 })
		s.drained()
	})},
	{"delivered with the old due", NeverEarly, "known is", lone(func(s *script) {
		s.send("b", in50)
		due := s.know["b"].Due
		s.move("b", Delay{Kind: After, Value: 90}, OK)
		s.both("b", func(d *Delivery) { d.Due = due })
		s.drained()
	})},
	{"moved too early", NeverEarly, "before what", lone(func(s *script) {
		s.send("b", in50)
		s.move("b", Delay{Kind: After, Value: 90}, OK)
		s.last().Due -= 10
		s.both("b", func(d *Delivery) { d.Due -= 10 })
		s.drained()
	})},
	{"unanswered, and early", NeverEarly, "known is", lone(func(s *script) {
		s.try("b", in50)
		s.kill()
		s.start(ModeDrain)
		s.both("a")
		s.both("b", func(d *Delivery) { d.Due -= 2 })
		s.drained()
	})},
	{"listed with another due", NeverEarly, "b waits for", lone(func(s *script) {
		s.send("b", in50)
		s.list("b").Waits[0].Due++
		s.both("b")
		s.drained()
	})},
}

var repeated = []broken{
	{"twice in one process", Duplicates, "b is delivered to g1 twice within one process", lone(func(s *script) {
		s.send("b", in50)
		s.both("b")
		s.got("g1", "b")
		s.drained()
	})},
	{"acknowledged, and again in the same process", Duplicates, "(acknowledged: true)", lone(func(s *script) {
		s.ack(1)
		s.got("g1", "a")
		s.drained()
	})},
	{"attempts do not count", Attempts, "b comes to g1 as attempt 2, want 1 to 1", lone(func(s *script) {
		s.send("b", in50)
		s.both("b", func(d *Delivery) { d.Attempt++ })
		s.drained()
	})},
	{"acknowledged, killed, and again", Duplicates, "a is delivered to g1 although run 2", lone(func(s *script) {
		s.ack(1)
		s.kill()
		s.start(ModeDrain)
		s.got("g1", "a")
		s.drained()
	})},
	{"acknowledged, closed, power cut, and again", Duplicates, "a is delivered to g1 although run 2", lone(func(s *script) {
		s.ack(1)
		s.close()
		s.cut()
		s.start(ModeDrain)
		s.got("g1", "a")
		s.drained()
	})},
	{"acknowledged, synced, power cut, and again", Duplicates, "a is delivered to g1 although run 2", lone(func(s *script) {
		s.ack(1)
		s.send("b", in50)
		s.kill()
		s.cut()
		s.start(ModeDrain)
		s.got("g1", "a")
		s.both("b")
		s.drained()
	})},
	{"acknowledged long before a power cut, and again", Duplicates, "a is delivered to g1 although run 2", lone(func(s *script) {
		s.ack(1)
		s.wall += 5000
		s.kill()
		s.cut()
		s.start(ModeDrain)
		s.got("g1", "a")
		s.drained()
	})},
	{"acknowledged, opened, power cut, and again", Duplicates, "a is delivered to g1 although run 2", lone(func(s *script) {
		s.ack(1)
		s.kill()
		s.start(ModeLoad)
		s.kill()
		s.cut()
		s.start(ModeDrain)
		s.got("g1", "a")
		s.drained()
	})},
}

var disordered = []broken{
	{"gap", Order, "t/0: 1 of 3 offsets were not delivered to each group, the first is 1", lone(func(s *script) {
		s.send("b", in50)
		s.both("b", func(d *Delivery) { d.Offset = 2 })
		s.drained()
	})},
	{"offset from nowhere", Order, "b is at offset 268435456 of t/0", lone(func(s *script) {
		s.send("b", in50)
		s.both("b", func(d *Delivery) { d.Offset = maxOffset })
		s.drained()
	})},
	{"visible falls", Order, "(c) is visible at", lone(func(s *script) {
		s.send("b", in50)
		s.send("c", in50)
		s.both("b", func(d *Delivery) { s.wall, d.Visible = base+200, base+100 })
		s.both("c", func(d *Delivery) { d.Visible = base + 99 })
		s.drained()
	})},
	{"equal dues out of order", Order, "comes after offset 1", lone(func(s *script) {
		at := Delay{Kind: At, Value: base + 70}
		s.send("b", at)
		s.send("c", at)
		s.both("c")
		s.both("b")
		s.drained()
	})},
	{"dues out of order", Order, "comes after offset 1", lone(func(s *script) {
		s.send("b", in50)
		s.send("c", in50)
		s.both("c")
		s.both("b")
		s.drained()
	})},
	{"unanswered, and dues out of order", Order, "comes after offset 1", lone(func(s *script) {
		s.try("b", in50)
		s.try("c", in50)
		s.kill()
		s.start(ModeDrain)
		s.both("a")
		s.both("c")
		s.both("b")
		s.drained()
	})},
	{"sent at once, out of order", Order, "comes after offset 0", lone(func(s *script) {
		s.send("b", atOnce, func(r *Receipt) { r.ID = 1 })
		s.both("b", func(d *Delivery) { d.ID = 1 })
		s.drained()
	})},
	{"an offset for two", OffsetsStand, "t/0 offset 0 is b, and was a", lone(func(s *script) {
		s.send("b", in50)
		s.both("b", func(d *Delivery) { d.Offset = 0 })
		s.drained()
	})},
	{"two offsets for one", OffsetsStand, "b is at offset 2 of t/0, and was at 1", lone(func(s *script) {
		s.send("b", in50)
		s.both("b")
		s.kill()
		s.start(ModeDrain)
		s.both("a")
		s.both("b", func(d *Delivery) { d.Offset = 2 })
		s.drained()
	})},
	{"visible at another time after a crash", OffsetsStand, "t/0 offset 1 (b) is due", lone(func(s *script) {
		s.send("b", in50)
		s.both("b")
		s.kill()
		s.start(ModeDrain)
		s.both("a")
		s.both("b", func(d *Delivery) { d.Visible++ })
		s.drained()
	})},
	{"another state from the log alone", SameFromLog, "has state other", lone(func(s *script) {
		s.drained()
		s.start(ModeRebuild)
		s.put(Event{Kind: Drained, Hash: "other"})
	})},
}

var invalid = []broken{
	{"not drained", RunIsValid, "did not drain", lone(func(*script) {})},
	{"nothing killed", RunIsValid, "nothing was killed", func(s *script) {
		s.start(ModeLoad)
		s.send("a", atOnce)
		s.both("a")
		s.drained()
	}},
	{"no load", RunIsValid, "no process ever took load", func(s *script) {
		s.start(ModeDrain)
		s.kill()
		s.start(ModeDrain)
		s.drained()
	}},
	{"hardly anything", RunIsValid, "1 messages acknowledged by 2 processes", func(s *script) {
		s.start(ModeLoad)
		s.send("a", atOnce)
		s.kill()
		s.start(ModeLoad)
		s.both("a")
		s.drained()
	}},
	{"nothing across a restart", RunIsValid, "no message was delivered across a restart", func(s *script) {
		s.start(ModeLoad)
		s.send("a", atOnce)
		s.both("a")
		s.kill()
		s.start(ModeDrain)
		s.both("a")
		s.drained()
	}},
	{"a send that failed", NoCallFailed, "disk on fire", lone(func(s *script) {
		op := s.try("b", in50)
		s.put(Event{Kind: Sent, Op: op, Err: "disk on fire"})
		s.drained()
	})},
	{"a cancel that failed", NoCallFailed, "disk on fire", lone(func(s *script) {
		s.cancel("a", "")
		s.last().Err = "disk on fire"
		s.drained()
	})},
	{"a move that failed", NoCallFailed, "disk on fire", lone(func(s *script) {
		s.move("a", in50, "")
		s.last().Err = "disk on fire"
		s.drained()
	})},
	{"an acknowledgement that failed", NoCallFailed, "disk on fire", lone(func(s *script) {
		s.ack(1)
		s.last().Err = "disk on fire"
		s.drained()
	})},
	{"a close that failed", NoCallFailed, "disk on fire", lone(func(s *script) {
		s.drained()
		s.last().Err = "disk on fire"
	})},
	{"a call never answered", NoCallFailed, "closed while 1 calls", lone(func(s *script) {
		s.try("b", in50)
		s.drained()
	})},
	{"an end without a beginning", HistoryIsWell, "which did not begin", lone(func(s *script) {
		s.put(Event{Kind: Acked, Op: 77})
		s.drained()
	})},
	{"a call that begins twice", HistoryIsWell, "begins twice", lone(func(s *script) {
		s.try("b", in50)
		s.op--
		s.try("c", in50)
		s.drained()
	})},
	{"a name that is sent twice", HistoryIsWell, "a is sent twice", lone(func(s *script) {
		s.send("a", atOnce)
		s.drained()
	})},
	{"a delivery with a number that is taken", HistoryIsWell, "delivery 1 twice", lone(func(s *script) {
		s.send("b", in50)
		s.both("b", func(d *Delivery) { d.Number = 1 })
		s.drained()
	})},
	{"runs out of order", HistoryIsWell, "after run 2", lone(func(s *script) {
		s.drained()
		s.events = append(s.events, s.events[0])
	})},
	{"a cancel of what nobody sent", NoPhantom, `cancel of "x", which nobody sent`, lone(func(s *script) {
		s.cancel("x", OK)
		s.drained()
	})},
	{"an acknowledgement of what was not delivered", HistoryIsWell, "ack of delivery 77, which is unknown", lone(func(s *script) {
		s.ack(77)
		s.drained()
	})},
	{"an event of another kind", HistoryIsWell, "nonsense", lone(func(s *script) {
		s.put(Event{Kind: "nonsense"})
		s.drained()
	})},
}
