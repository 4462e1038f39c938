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
	next   uint64 // offset
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
func (s *script) try(name string, d Delay) int {
	if s.know == nil {
		s.know = make(map[string]*Delivery)
	}
	hash := uint64(len(name))
	op := s.begin(Event{Kind: Send, Topic: "t", Messages: []Message{{Name: name, Queue: -1, Hash: hash, Delay: d}}})
	k := &Delivery{Name: name, ID: uint64(10 * op), Offset: ^uint64(0), Due: s.due(d), Hash: hash}
	s.know[name] = k
	if d.Kind == NoDelay {
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
		k.Visible, k.Offset = max(k.Due, s.wall), s.next
		s.next++
	}
}

// send sends a message; change makes its receipt a wrong one.
func (s *script) send(name string, d Delay, change ...func(*Receipt)) {
	op := s.try(name, d)
	k := s.know[name]
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
	d.Number, d.Attempt = s.no, 1
	for _, f := range change {
		f(&d)
	}
	s.put(Event{Kind: Got, Topic: "t", Group: group, Deliveries: []Delivery{d}})
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
