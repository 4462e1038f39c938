package history

// base is where the clock of made-up histories begins, Unix ms.
const base = 1_800_000_000_000

var (
	groups = []string{"g1", "g2"}
	atOnce = Delay{Kind: NoDelay}
	in50   = Delay{Kind: After, Value: 50}
	inADay = Delay{Kind: After, Value: 24 * 3600 * 1000}
)

// A script makes up a history as a store that keeps its promises would give it,
// of one topic with one queue. Time goes on by a millisecond an event, and to a
// message's due when it is delivered.
type script struct {
	events []Event
	run    int
	wall   int64 // ms
	began  int64 // ms
	op     int
	no     int
	know   map[string]*Delivery
	next   map[string]uint64 // offset, by topic
	where  map[string]string // topic, by message
	tries  map[string]int    // by group and message
}

func (s *script) put(e Event) *Event {
	s.wall++
	e.Run, e.Wall = s.run, ns(s.wall)
	if e.Kind != Killed && e.Kind != PowerCut {
		e.Mono = ns(s.wall - s.began)
	}
	s.events = append(s.events, e)
	return &s.events[len(s.events)-1]
}

func (s *script) start(mode string) {
	s.run++
	if s.wall == 0 {
		s.wall = base
	}
	s.began = s.wall
	s.put(Event{Kind: Start, Mode: mode})
	s.put(Event{Kind: Up})
}

func (s *script) begin(e Event) int {
	s.op++
	e.Op = s.op
	s.put(e)
	return s.op
}

// try begins to send a message. Its content's hash is its name's length.
func (s *script) try(name string, d Delay) int { return s.tryTo("t", Message{Name: name, Delay: d}) }

// tryTo is try of any message to any topic.
func (s *script) tryTo(topic string, m Message) int {
	if s.know == nil {
		s.know, s.where, s.next = make(map[string]*Delivery), make(map[string]string), make(map[string]uint64)
	}
	m.Queue, m.Hash = -1, uint64(len(m.Name))
	op := s.begin(Event{Kind: Send, Topic: topic, Messages: []Message{m}})
	if s.know[m.Name] != nil {
		return op
	}
	k := &Delivery{Name: m.Name, ID: uint64(10 * op), Offset: ^uint64(0), Hash: m.Hash}
	s.know[m.Name], s.where[m.Name] = k, topic
	if !m.Half {
		k.Due = s.due(m.Delay)
	}
	if m.Delay.Kind == NoDelay && !m.Half {
		s.show(k)
	}
	return op
}

// due is what a store makes of a delay now.
func (s *script) due(d Delay) int64 {
	switch d.Kind {
	case After:
		return s.wall + d.Value
	case At:
		return max(d.Value, s.wall)
	default:
		return 0
	}
}

// show makes a message visible.
func (s *script) show(k *Delivery) {
	if k.Visible == 0 {
		k.Visible, k.Offset = max(k.Due, s.wall), s.next[s.where[k.Name]]
		s.next[s.where[k.Name]]++
	}
}

// send sends a message; change makes its receipt a wrong one.
func (s *script) send(name string, d Delay, change ...func(*Receipt)) {
	s.sendTo("t", Message{Name: name, Delay: d}, change...)
}

// sendTo is send of any message to any topic.
func (s *script) sendTo(topic string, m Message, change ...func(*Receipt)) {
	op := s.tryTo(topic, m)
	k := s.know[m.Name]
	r := Receipt{ID: k.ID, Due: k.Due, Ready: k.Visible != 0}
	if r.Ready {
		r.Offset = k.Offset
	}
	for _, f := range change {
		f(&r)
	}
	s.put(Event{Kind: Sent, Op: op, Receipts: []Receipt{r}})
}

func (s *script) cancel(name, answer string) {
	op := s.begin(Event{Kind: Cancel, Name: name})
	s.put(Event{Kind: Cancelled, Op: op, Answer: answer})
}

func (s *script) move(name string, d Delay, answer string) {
	op := s.begin(Event{Kind: Move, Name: name, Delay: &d})
	e := Event{Kind: Moved, Op: op, Answer: answer}
	if answer == OK {
		s.know[name].Due = s.due(d)
		e.Due = s.due(d)
	}
	s.put(e)
}

// list lists what waits.
func (s *script) list(names ...string) *Event {
	e := Event{Kind: Waiting}
	for _, n := range names {
		k := s.know[n]
		e.Waits = append(e.Waits, Wait{n, k.ID, k.Due})
	}
	return s.put(e)
}

// got delivers a message to a group; change makes it a wrong delivery. It
// returns the delivery's number.
func (s *script) got(group, name string, change ...func(*Delivery)) int {
	k := s.know[name]
	s.wall = max(s.wall, k.Due)
	s.show(k)
	d := *k
	s.no++
	if s.tries == nil {
		s.tries = make(map[string]int)
	}
	s.tries[group+name]++
	d.Number, d.Attempt = s.no, s.tries[group+name]
	for _, f := range change {
		f(&d)
	}
	s.put(Event{Kind: Got, Topic: s.where[name], Group: group, Deliveries: []Delivery{d}})
	return s.no
}

// both delivers a message to both groups.
func (s *script) both(name string, change ...func(*Delivery)) {
	s.got("g1", name, change...)
	s.got("g2", name, change...)
}

func (s *script) ack(numbers ...int) {
	op := s.begin(Event{Kind: Ack, Numbers: numbers})
	s.put(Event{Kind: Acked, Op: op})
}

func (s *script) nack(number int) {
	op := s.begin(Event{Kind: Nack, Numbers: []int{number}})
	s.put(Event{Kind: Nacked, Op: op})
}

// call is a call without answers of its own.
func (s *script) call(e Event, kind Kind) {
	op := s.begin(e)
	s.put(Event{Kind: kind, Op: op})
}

func (s *script) nackFor(number int, ms int64) {
	op := s.begin(Event{Kind: Nack, Numbers: []int{number}, Delay: &Delay{Kind: After, Value: ms}})
	s.put(Event{Kind: Nacked, Op: op, Due: s.wall + ms})
}

// end ends a transaction.
func (s *script) end(name string, commit bool, answer string) {
	op := s.begin(Event{Kind: End, Name: name, On: commit})
	e := Event{Kind: Ended, Op: op, Answer: answer}
	if commit && answer == OK {
		e.Due = s.due(in50)
		s.know[name].Due = e.Due
	}
	s.put(e)
}

func (s *script) halves(names ...string) {
	s.list(names...)
	s.last().Kind = Halves
}

func (s *script) hold(on bool)  { s.call(Event{Kind: Hold, Topic: "t", On: on}, Held) }
func (s *script) limit(n int64) { s.call(Event{Kind: Limit, Topic: "t", Rate: n}, Limited) }
func (s *script) bury(n int)    { s.call(Event{Kind: Bury, Numbers: []int{n}}, Buried) }

func (s *script) plan(topic string, p Plan) {
	s.put(Event{Kind: Planned, Topic: topic, Plan: &p})
}

// dead lists a group's dead letters.
func (s *script) dead(names ...string) *Event {
	e := Event{Kind: DeadOnes, Group: "g3"}
	for _, n := range names {
		e.Deliveries = append(e.Deliveries, *s.know[n])
	}
	return s.put(e)
}

// bulk begins to cancel the messages of topic bulk that have the tag, and is
// told of it.
func (s *script) bulk(is Operation) {
	op := s.begin(Event{Kind: Bulk, Topic: "bulk", Tag: "tag"})
	s.put(Event{Kind: Bulked, Op: op, Operation: &is})
}

func (s *script) stands(is Operation) {
	s.put(Event{Kind: Operated, Tag: "tag", Operation: &is})
}

func (s *script) kill() { s.put(Event{Kind: Killed}) }
func (s *script) cut()  { s.put(Event{Kind: PowerCut}) }

func (s *script) close() {
	s.put(Event{Kind: Stop})
	s.put(Event{Kind: Down})
}

// drained says that everything was delivered, and closes.
func (s *script) drained() {
	s.put(Event{Kind: Drained, Hash: "state"})
	s.close()
}

func (s *script) last() *Event { return &s.events[len(s.events)-1] }
