package history

// name is a message under a name, keyedOne one under a key, half one in a
// transaction.
func name(n string) Message { return Message{Name: n, Slot: "slot", Delay: inADay} }
func keyedOne() Message     { return Message{Name: "b", Once: true, Delay: in50} }
func half(n string) Message { return Message{Name: n, Half: true, Delay: in50} }

// replacing says that a message took the name of another one.
func (s *script) replacing(old string) func(*Receipt) {
	return func(r *Receipt) { r.Replaced = s.know[old].ID }
}

var named = []broken{
	{"replaced and delivered", OneOfAName, "b is delivered, and another one has taken its name", lone(func(s *script) {
		s.sendTo("t", name("b"))
		s.sendTo("t", name("c"), s.replacing("b"))
		s.both("b")
		s.both("c")
		s.drained()
	})},
	{"delivered and replaced", OneOfAName, "c replaced b, which was delivered before", lone(func(s *script) {
		s.sendTo("t", name("b"))
		s.both("b")
		s.sendTo("t", name("c"), s.replacing("b"))
		s.both("c")
		s.drained()
	})},
	{"nobody replaced", OneOfAName, "while b (0x190) waits under it", lone(func(s *script) {
		s.op = 39
		s.sendTo("t", name("b"))
		s.sendTo("t", name("c"))
		s.both("b")
		s.both("c")
		s.drained()
	})},
	{"another name replaced", OneOfAName, `c took name "slot" and replaced b, which has name "other"`, lone(func(s *script) {
		s.sendTo("t", Message{Name: "b", Slot: "other", Delay: inADay})
		s.sendTo("t", name("c"), s.replacing("b"))
		s.both("c")
		s.drained()
	})},
	{"replaced without a name", OneOfAName, "c has no name and replaced", lone(func(s *script) {
		s.sendTo("t", name("b"))
		s.send("c", in50, s.replacing("b"))
		s.both("c")
		s.drained()
	})},
	{"replaced, killed, and it waits", NothingLost, "b waits, but was cancelled", lone(func(s *script) {
		s.sendTo("t", name("b"))
		s.sendTo("t", name("c"), s.replacing("b"))
		s.kill()
		s.start(ModeDrain)
		s.list("b", "c")
		s.both("c")
		s.drained()
	})},
}

var keyed = []broken{
	{"two ids for a key", OnceAKey, "b has id 0x7, and also", lone(func(s *script) {
		s.sendTo("t", keyedOne(), func(r *Receipt) { r.ID = 7 })
		s.sendTo("t", keyedOne())
		s.both("b")
		s.drained()
	})},
	{"killed, sent again, and another one comes", OnceAKey, "b has id", lone(func(s *script) {
		s.sendTo("t", keyedOne())
		s.kill()
		s.start(ModeDrain)
		s.sendTo("t", keyedOne(), func(r *Receipt) { r.Repeat = true })
		s.both("b", func(d *Delivery) { d.ID = 9999 })
		s.drained()
	})},
	{"both come", OnceAKey, "b has id", lone(func(s *script) {
		s.sendTo("t", keyedOne())
		s.both("b")
		s.know["b"].Visible, s.know["b"].ID = 0, 9999
		s.both("b")
		s.drained()
	})},
	{"a repeat of nothing", OnceAKey, "b is said to be a repeat, and was sent once", lone(func(s *script) {
		s.sendTo("t", keyedOne(), func(r *Receipt) { r.Repeat = true })
		s.both("b")
		s.drained()
	})},
	{"a repeat with another due", OnceAKey, "b is said to be due at", lone(func(s *script) {
		s.sendTo("t", keyedOne())
		s.sendTo("t", keyedOne(), func(r *Receipt) { r.Repeat, r.Due = true, r.Due+1 })
		s.both("b")
		s.drained()
	})},
	{"answered as a repeat, and lost", NothingLost, "b (id", lone(func(s *script) {
		s.tryTo("t", keyedOne())
		s.kill()
		s.start(ModeDrain)
		s.sendTo("t", keyedOne(), func(r *Receipt) { r.Repeat = true })
		s.drained()
	})},
}

var transacted = []broken{
	{"delivered before its commit", Transactions, "b is delivered, and was never committed", lone(func(s *script) {
		s.sendTo("t", half("b"))
		s.both("b", func(d *Delivery) { d.Due = s.wall })
		s.end("b", true, OK)
		s.drained()
	})},
	{"rolled back and delivered", Transactions, "b is delivered, and was rolled back", lone(func(s *script) {
		s.sendTo("t", half("b"))
		s.begin(Event{Kind: End, Name: "b", On: true})
		s.kill()
		s.start(ModeDrain)
		s.end("b", false, OK)
		s.both("b", func(d *Delivery) { d.Due = s.wall })
		s.drained()
	})},
	{"committed and lost", NothingLost, "is lost", lone(func(s *script) {
		s.sendTo("t", half("b"))
		s.end("b", true, OK)
		s.drained()
	})},
	{"committed, to one group", NothingLost, "b was delivered, but not to [g2]", lone(func(s *script) {
		s.sendTo("t", half("b"))
		s.begin(Event{Kind: End, Name: "b", On: true})
		s.kill()
		s.start(ModeDrain)
		s.got("g1", "b", func(d *Delivery) { d.Due = d.Visible })
		s.drained()
	})},
	{"its delay does not count from the commit", NeverEarly, "before what", lone(func(s *script) {
		s.sendTo("t", half("b"))
		s.end("b", true, OK)
		s.last().Due -= 10
		s.both("b", func(d *Delivery) { d.Due -= 10 })
		s.drained()
	})},
	{"ended both ways", Transactions, "says ok, but it had ended", lone(func(s *script) {
		s.sendTo("t", half("b"))
		s.end("b", false, OK)
		s.end("b", true, OK)
		s.drained()
	})},
	{"over, by nobody", Transactions, "b is said to be over, but nobody ended it", lone(func(s *script) {
		s.sendTo("t", half("b"))
		s.end("b", true, Over)
		s.drained()
	})},
	{"unknown", Transactions, "b (acknowledged: true) is said to be unknown", lone(func(s *script) {
		s.sendTo("t", half("b"))
		s.end("b", true, Unknown)
		s.drained()
	})},
	{"a half message that is not there", Transactions, "b is not half any more", lone(func(s *script) {
		s.sendTo("t", half("b"))
		s.kill()
		s.start(ModeDrain)
		s.halves()
		s.drained()
	})},
	{"half though ended", Transactions, "b is half, but its transaction has ended", lone(func(s *script) {
		s.sendTo("t", half("b"))
		s.end("b", false, OK)
		s.halves("b")
		s.drained()
	})},
	{"a half message of nobody's", NoPhantom, `"x" is half, which nobody sent`, lone(func(s *script) {
		s.sendTo("t", half("b"))
		s.halves("b")
		s.last().Waits[0].Name = "x"
		s.drained()
	})},
	{"half, and it waits", Transactions, "b waits, but was not committed", lone(func(s *script) {
		s.sendTo("t", half("b"))
		s.list("b")
		s.drained()
	})},
	{"an end that failed", NoCallFailed, "disk on fire", lone(func(s *script) {
		s.sendTo("t", half("b"))
		s.end("b", false, OK)
		s.last().Err = "disk on fire"
		s.drained()
	})},
}
