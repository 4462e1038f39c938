package history

import "time"

// Options say what a history is held to. Zero means the default.
type Options struct {
	Groups []string // each gets everything; required

	// AckWindow is how long before a power cut an acknowledgement of a consumer
	// may have been answered and be lost all the same, if no synced answer
	// vouches for it. Default 10 ms, what the store promises, and SyncSlack.
	AckWindow time.Duration
	// SyncSlack is how long the sync may take on which the last
	// acknowledgements ride. Default 2 s: a busy disk is not the store's fault.
	SyncSlack time.Duration

	// MinAcked is how many messages each process that opened the store for
	// load must have acknowledged on average. Default 1.
	MinAcked int
}

func (o *Options) setDefaults() {
	if o.AckWindow == 0 {
		o.AckWindow = 10 * time.Millisecond
	}
	if o.SyncSlack == 0 {
		o.SyncSlack = 2 * time.Second
	}
	if o.MinAcked == 0 {
		o.MinAcked = 1
	}
}

// Check holds the history of one store, from the first process on an empty
// folder to a run that drained it, to all rules.
func Check(events []Event, o Options) *Report {
	o.setDefaults()
	c := &checker{
		o:        o,
		messages: make(map[string]*message),
		byID:     make(map[uint64]*message),
		queues:   make(map[place]*queue),
		plans:    make(map[string]*Plan),
		topics:   make(map[string]*topic),
		replaced: make(map[uint64]bool),
		bulks:    make(map[string]*bulk),
		dead:     make(map[string]map[string]bool),
	}
	for i := range events {
		c.at = i + 1
		c.event(&events[i])
	}
	c.finish()
	return &c.report
}

type checker struct {
	o      Options
	report Report
	at     int   // number of the event, from 1
	now    int64 // the instant of the event, ns; see clock
	before int64 // the latest instant of earlier runs

	runs     []*run
	run      *run // of the event
	messages map[string]*message
	inOrder  []*message
	byID     map[uint64]*message
	queues   map[place]*queue
	places   []place
	highest  uint64           // id that was ever seen delivered or waiting
	plans    map[string]*Plan // by topic
	topics   map[string]*topic
	replaced map[uint64]bool            // ids of those whose slot another one took
	bulks    map[string]*bulk           // by tag
	bulkTags []string                   // in order
	dead     map[string]map[string]bool // names by group, as last listed
	hash     string                     // of the state, when first drained
	drained  bool                       // by the newest run, those that only rebuild not counted
}

// A run is one process.
type run struct {
	number     int
	mode       string
	up         bool
	upWall     int64
	endWall    int64 // when it was killed
	killed     bool
	closed     bool
	power      bool // was cut after it
	ops        map[int]begun
	deliveries map[int]*delivery
	synced     int // the last beginning of a call whose answer came and had to be synced
	acked      int // messages
	cuts       int64
	carried    int64
	furthest   int64 // of wall minus monotonic clock
	latest     int64 // of wall
}

// A begun call has not ended.
type begun struct {
	e  *Event
	at int
}

func (c *checker) violate(rule Rule, format string, args ...any) {
	n := 0
	if c.run != nil {
		n = c.run.number
	}
	c.report.violate(rule, n, format, args...)
}

func (c *checker) event(e *Event) {
	c.enter(e)
	switch e.Kind {
	case Start:
		c.run.mode = e.Mode
		c.drained = c.drained && e.Mode == ModeRebuild
	case Up:
		c.run.up, c.run.upWall = true, e.Wall
		c.report.Ups++
	case Send:
		c.begin(e)
		c.sendBegins(e)
	case Cancel, Move, Ack, Nack, End, Hold, Limit, Purge, Bulk, Bury:
		c.begin(e)
		c.callBegins(e)
	case Sent, Cancelled, Moved, Acked, Nacked, Ended, Held, Limited, Purged, Bulked, Buried:
		if b, ok := c.end(e); ok {
			c.callEnds(b, e)
		}
	case Got:
		c.got(e)
	case Waiting:
		c.listed(e)
	case Figure:
		c.figures(e)
	case Drained:
		c.isDrained(e)
	case Planned, Halves, Operated, DeadOnes, Retention:
		c.told(e)
	case Stop:
	case Down, Killed, PowerCut:
		c.leave(e)
	default:
		c.violate(HistoryIsWell, "event of kind %q", e.Kind)
	}
}

// enter finds the event's run and watches the clock.
func (c *checker) enter(e *Event) {
	if c.run == nil || c.run.number != e.Run {
		if c.run != nil && e.Run < c.run.number {
			c.violate(HistoryIsWell, "%s of run %d after run %d", e.Kind, e.Run, c.run.number)
		}
		if c.run != nil {
			c.before = max(c.before, c.run.latest)
		}
		c.run = &run{number: e.Run, ops: make(map[int]begun), deliveries: make(map[int]*delivery)}
		c.runs = append(c.runs, c.run)
		c.report.Runs++
	}
	c.clock(e)
}

// clock says when the event happened. A store may go on by the monotonic clock
// when the wall clock was set back a little, and so must its judge: the time is
// the furthest that the wall clock ever was, carried on.
func (c *checker) clock(e *Event) {
	if e.Mono == 0 {
		c.now = e.Wall
		return
	}
	offset := e.Wall - e.Mono
	if c.run.furthest == 0 {
		c.run.furthest = offset
	}
	c.run.furthest = max(c.run.furthest, offset)
	c.run.latest = max(c.run.latest, e.Wall)
	c.report.SteppedBack = max(c.report.SteppedBack, time.Duration(c.run.furthest-offset))
	c.now = max(e.Mono+c.run.furthest, c.before)
}

func (c *checker) leave(e *Event) {
	switch e.Kind {
	case Down:
		c.run.closed = true
		c.report.Closes++
		if e.Err != "" {
			c.violate(NoCallFailed, "close: %s", e.Err)
		}
		if len(c.run.ops) > 0 {
			c.violate(NoCallFailed, "closed while %d calls were not answered", len(c.run.ops))
		}
	case Killed:
		c.run.killed, c.run.endWall = true, e.Wall
		c.report.Kills++
	default:
		c.run.power = true
		c.report.PowerCuts++
	}
}

func (c *checker) begin(e *Event) {
	if _, twice := c.run.ops[e.Op]; twice || e.Op == 0 {
		c.violate(HistoryIsWell, "call %d begins twice", e.Op)
	}
	c.run.ops[e.Op] = begun{e, c.at}
}

// ends are the events that end a call, by those that begin one.
var ends = map[Kind]Kind{
	Send: Sent, Cancel: Cancelled, Move: Moved, Ack: Acked, Nack: Nacked,
	End: Ended, Hold: Held, Limit: Limited, Purge: Purged, Bulk: Bulked, Bury: Buried,
}

func (c *checker) end(e *Event) (begun, bool) {
	b, ok := c.run.ops[e.Op]
	if !ok || ends[b.e.Kind] != e.Kind {
		c.violate(HistoryIsWell, "%s of call %d, which did not begin", e.Kind, e.Op)
		return b, false
	}
	delete(c.run.ops, e.Op)
	return b, true
}

func (c *checker) callBegins(e *Event) {
	switch e.Kind {
	case Cancel:
		c.steer(e, func(m *message) { m.cancels++ })
	case Move:
		if e.Delay == nil {
			c.violate(HistoryIsWell, "move %d without a delay", e.Op)
			return
		}
		c.steer(e, func(m *message) { m.dues.may(least(*e.Delay, e.Wall)) })
	case End:
		c.steer(e, func(m *message) { m.ending(e) })
	case Hold:
		c.topicOf(e.Topic).holdBegins(e.On, ms(c.now))
	case Limit:
		c.topicOf(e.Topic).limitBegins(e.Rate, ms(c.now))
	case Purge:
		c.purgeBegins(e)
	case Bulk:
		c.bulkBegins(e)
	default:
		c.acksBegin(e)
	}
}

func (c *checker) callEnds(b begun, e *Event) {
	switch e.Kind {
	case Sent:
		c.sendEnds(b, e)
	case Cancelled:
		c.cancelEnds(b, e)
	case Moved:
		c.moveEnds(b, e)
	case Ended:
		c.transactionEnds(b, e)
	case Held, Limited, Purged, Bulked:
		c.topicEnds(b, e)
	default:
		c.acksEnd(b, e)
	}
}

// told takes what a process has looked at.
func (c *checker) told(e *Event) {
	switch e.Kind {
	case Planned:
		c.plans[e.Topic] = e.Plan
	case Halves:
		c.halves(e)
	case Operated:
		c.operated(e.Tag, e.Operation)
	case DeadOnes:
		c.deadLetters(e)
	default:
		c.kept(e)
	}
}

func (c *checker) figures(e *Event) {
	if e.Figures == nil {
		return
	}
	c.report.Cuts += e.Figures.Cuts - c.run.cuts
	c.run.cuts = e.Figures.Cuts
	c.report.Carried += e.Figures.Carried - c.run.carried
	c.run.carried = e.Figures.Carried
	c.report.LogBytes = max(c.report.LogBytes, e.Figures.LogBytes)
}

// isDrained notes the state's hash: it must not depend on the index.
func (c *checker) isDrained(e *Event) {
	c.drained = true
	if c.hash == "" {
		c.hash = e.Hash
	}
	if e.Hash != c.hash {
		c.violate(SameFromLog, "a %s run has state %s, it was %s before", c.run.mode, e.Hash, c.hash)
	}
}

// finish looks at what only the whole history can tell.
func (c *checker) finish() {
	c.run = nil
	if !c.drained {
		c.violate(RunIsValid, "the last run did not drain the store: what is lost cannot be told")
		return
	}
	for _, m := range c.inOrder {
		c.settle(m)
	}
	for _, p := range c.places {
		c.inspect(p)
	}
	for _, tag := range c.bulkTags {
		c.settleBulk(tag)
	}
	c.settleTopics()
	c.valid()
}

// valid says whether enough has happened.
func (c *checker) valid() {
	r := &c.report
	loads, ends := 0, 0
	for _, run := range c.runs {
		if run.mode == ModeLoad && run.up {
			loads++
		}
		if run.killed {
			ends++
		}
	}
	switch {
	case ends == 0:
		c.violate(RunIsValid, "nothing was killed")
	case loads == 0:
		c.violate(RunIsValid, "no process ever took load")
	case r.Acked < c.o.MinAcked*loads:
		c.violate(RunIsValid, "%d messages acknowledged by %d processes, want %d each", r.Acked, loads, c.o.MinAcked)
	case r.Across == 0:
		c.violate(RunIsValid, "no message was delivered across a restart")
	}
}
