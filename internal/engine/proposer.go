package engine

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/record"
)

// Sizes of what the proposer builds.
const (
	batchBytes      = 256 << 10 // a batch takes commands up to here, or one larger message; less in small segments
	segmentOverhead = 1024      // of a segment is not a message's: headers and lengths
	flightBytes     = 1 << 20   // batches of one write
	flights         = 4         // building, being written, waiting, being applied
	sendLimit       = 2_000     // due references that a batch with commands may move
	tickLimit       = 20_000    // that a tick may move; an apply stays near 5 ms
)

// A draft is a batch being built and who waits for its commands.
type draft struct {
	record.Batch

	runs []run
}

// A run is consecutive commands of one call.
type run struct {
	call  *call
	first int // of call.sends
	n     int
}

// A flight is what goes to the log in one write.
type flight struct {
	drafts    []*draft
	used      int
	bytes     int
	batches   []*record.Batch
	positions []uint64
	barriers  []*call // answered when everything before has been applied
	mustSync  bool    // somebody waits for the disk
	tick      bool
}

func (f *flight) empty() bool { return f.used == 0 && len(f.barriers) == 0 }
func (f *flight) full() bool  { return f.bytes >= flightBytes }

// limit says how many due references each batch may move. A flight of nothing
// but acknowledgements is answered before it is synced, so it moves none: what
// is visible is durable.
func (f *flight) limit() {
	for _, d := range f.drafts[:f.used] {
		switch {
		case !f.mustSync:
			d.Limit = 0
		case d.Limit == 0:
			d.Limit = sendLimit
		}
	}
}

func (f *flight) reset() {
	for _, d := range f.drafts[:f.used] {
		clear(d.runs)
		d.runs = d.runs[:0]
		if cap(d.Data) > 2*batchBytes {
			d.Data = nil
		}
		d.Batch = record.Batch{Data: d.Data[:0]}
	}
	clear(f.barriers)
	f.used, f.bytes, f.mustSync, f.tick = 0, 0, false, false
	f.barriers, f.batches, f.positions = f.barriers[:0], f.batches[:0], f.positions[:0]
}

// A belief is what the proposer last thought of the clock.
type belief struct {
	at      clock.Reading
	ns      int64
	suspect bool
}

// A proposer is the one goroutine that reads the clock and builds batches.
type proposer struct {
	e       *Engine
	guard   *clock.Guard
	flight  *flight
	batch   int     // bytes up to which a batch takes commands
	calls   []*call // taken, not yet encoded
	spare   []*call
	index   uint64
	last    int64 // stamp of the last batch
	rebase  bool  // the next batch may step back
	numbers numbers
	timer   clock.Timer
	armed   int64 // due the timer is set for, 0 if it is not
	ticked  int64 // mono ns of the last tick
}

func newProposer(e *Engine) *proposer {
	now := e.o.Clock.Now()
	p := &proposer{
		e:      e,
		guard:  clock.NewGuard(e.o.Guard, e.m.stamp, now),
		flight: &flight{},
		batch:  int(min(batchBytes, e.store.SegmentBytes/4)), // a batch is within one segment
		index:  e.m.index,
		last:   e.m.stamp,
		numbers: numbers{
			nextTopic: e.m.topics.next(),
			nextQueue: e.m.nextQueue,
			nextGroup: e.m.groups.NextNumber(),
			nextOp:    e.m.operations.next,
		},
	}
	for range flights - 1 {
		e.free <- &flight{}
	}
	p.timer = e.o.Clock.NewTimer(time.Hour)
	p.timer.Stop()
	p.observe()
	if obs := e.believed.Load(); obs.suspect {
		e.o.Logger.Warn("the machine's clock is suspect: nothing falls due and relative delays are refused until it is right",
			slog.Time("clock", now.Time()), slog.Time("last_stamp", time.UnixMilli(e.m.stamp).UTC()),
			slog.String("remedy", "set the clock, wait until it has held for a minute, or run: duemq clock accept"))
	}
	return p
}

// observe reads the clock.
func (p *proposer) observe() belief {
	r := p.e.o.Clock.Now()
	return p.took(r, p.guard.Observe(r))
}

func (p *proposer) took(r clock.Reading, obs clock.Observation) belief {
	switch obs.Event {
	case clock.EventNone:
	case clock.EventRebase:
		p.rebase = true
		p.e.stats.clockSteps.Add(1)
		p.e.o.Logger.Warn("clock was set back and that has held: following it", slog.Duration("step", obs.Step))
	case clock.EventStepFollowed:
		p.e.stats.clockSteps.Add(1)
		p.e.o.Logger.Warn("clock was set forward and that has held: following it, what became due goes out", slog.Duration("step", obs.Step))
	case clock.EventStepSeen:
		p.e.o.Logger.Warn("clock has jumped; not followed until that has held", slog.Duration("step", obs.Step))
	case clock.EventStepVanished:
		p.e.o.Logger.Info("clock has jumped back to where it was", slog.Duration("step", obs.Step))
	case clock.EventTrusted:
		p.e.o.Logger.Info("clock is trusted again")
	}
	if obs.Event != clock.EventNone {
		p.armed = 0
	}
	b := belief{at: r, ns: obs.NowNs, suspect: obs.Suspect}
	p.e.believed.Store(&b)
	return b
}

func (p *proposer) run() {
	defer close(p.e.handoff)
	defer p.timer.Stop()
	for {
		p.fill()
		var out chan *flight
		if !p.flight.empty() {
			out = p.e.handoff
		}
		wake := p.e.wake
		if p.flight.full() {
			wake = nil
		}
		p.arm()
		select {
		case out <- p.flight:
			p.flight = <-p.e.free
		case <-wake:
		case <-p.timer.C():
			p.woke()
		case <-p.e.looks:
			p.observe()
			p.armed = 0
		case done := <-p.e.accepts:
			r := p.e.o.Clock.Now()
			p.took(r, p.guard.Accept(r))
			close(done)
		case <-p.e.closing:
			p.drain()
			return
		}
	}
}

// drain sends off what was handed in before closing.
func (p *proposer) drain() {
	for {
		p.fill()
		if p.flight.empty() {
			return
		}
		p.e.handoff <- p.flight
		p.flight = <-p.e.free
	}
}

// fill encodes what was handed in, and a tick if something is due.
func (p *proposer) fill() {
	if len(p.calls) == 0 {
		p.calls, p.spare = p.e.pending.take(p.spare[:0]), p.calls
		p.spare = p.spare[:0]
	}
	due := p.due()
	if len(p.calls) == 0 && (due == math.MaxInt64 || p.e.ticking.Load()) && !p.rebase {
		return
	}
	now := p.observe()
	force := p.encode(now)
	p.tick(now, due, force)
	p.flight.limit()
}

// encode moves calls into the flight until it is full, and says whether a
// barrier was among them.
func (p *proposer) encode(now belief) (barrier bool) {
	n := 0
	for ; n < len(p.calls) && !p.flight.full(); n++ {
		c := p.calls[n]
		switch {
		case c.sends != nil:
			p.encodeSends(c, now)
		case c.encode != nil:
			p.encodeOther(c, now)
		default:
			p.flight.barriers = append(p.flight.barriers, c)
			barrier = true
		}
		if c.next < len(c.sends) {
			break // the flight is full; the rest goes with the next
		}
	}
	rest := copy(p.calls, p.calls[n:])
	clear(p.calls[rest:])
	p.calls = p.calls[:rest]
	return barrier
}

// open gives the draft that takes the next command.
func (p *proposer) open(now belief) *draft {
	f := p.flight
	if f.used > 0 {
		if d := f.drafts[f.used-1]; len(d.Data) < p.batch && !p.rebase {
			return d
		}
	}
	return p.begin(now)
}

// begin begins a batch. Its stamp is the believed time, never below the last
// one, except where a clock that was set back is followed. While the clock is
// suspect log time stands still.
func (p *proposer) begin(now belief) *draft {
	f := p.flight
	if f.used == len(f.drafts) {
		f.drafts = append(f.drafts, &draft{})
	}
	d := f.drafts[f.used]
	f.used++
	p.index++
	stamp := p.last
	if !now.suspect {
		stamp = max(stamp, clock.FloorMs(now.ns))
	}
	var flags record.BatchFlags
	if p.rebase {
		stamp, flags = clock.FloorMs(now.ns), record.FlagRebase
		p.rebase = false
	}
	p.last = stamp
	d.Batch = record.Batch{
		Type: record.EntryCommands, Flags: flags, Index: p.index, Term: 1,
		Stamp: stamp, AppendedAt: now.ns, Data: d.Data[:0],
	}
	return d
}

func (p *proposer) instant(now belief, d *draft) instant {
	return instant{ns: now.ns, stamp: d.Stamp, suspect: now.suspect, o: &p.e.o, numbers: &p.numbers}
}

// encodeSends encodes a call's messages until the flight is full. A message
// that is refused takes no command.
func (p *proposer) encodeSends(c *call, now belief) {
	for ; c.next < len(c.sends) && !p.flight.full(); c.next++ {
		d := p.open(now)
		at, s := p.instant(now, d), &c.sends[c.next]
		m := &s.Message
		plain := s.Terms == record.Terms{}
		if m.Due, m.Level, s.Err = at.resolve(s.Delay); s.Err == nil {
			s.Err = cmp.Or(p.e.fits(m), p.e.refuseFull())
		}
		if s.Err == nil && !plain {
			s.Err = at.terms(&s.Terms, m, s.Delay)
		}
		if s.Err != nil {
			if c.finish(1) {
				p.flight.barriers = append(p.flight.barriers, c)
			}
			continue
		}
		m.Stored, m.Queue = d.Stamp, s.To
		if m.Queue == 0 {
			m.Queue = s.Turn.Turn()
		}
		before := len(d.Data)
		if plain {
			d.Data = record.AppendSend(d.Data, m)
		} else {
			d.Data = record.AppendPost(d.Data, &s.Terms, m)
		}
		p.flight.bytes += len(d.Data) - before
		d.add(c, c.next)
		p.flight.mustSync = true
	}
}

// fits refuses a message that no segment of this store can hold.
func (e *Engine) fits(m *record.Message) error {
	limit := e.store.SegmentBytes - segmentOverhead
	if limit >= record.MaxBatch {
		return nil
	}
	size := int64(len(m.Body) + len(m.Key) + len(m.Tag))
	for i := range m.Properties {
		size += int64(len(m.Properties[i].Name)+len(m.Properties[i].Value)) + 8
	}
	if size > limit {
		return fmt.Errorf("%w: message of %d bytes, limit %d in segments of %d bytes", record.ErrTooLarge, size, limit, e.store.SegmentBytes)
	}
	return nil
}

func (d *draft) add(c *call, i int) {
	if n := len(d.runs); n > 0 && d.runs[n-1].call == c && d.runs[n-1].first+d.runs[n-1].n == i {
		d.runs[n-1].n++
		return
	}
	d.runs = append(d.runs, run{call: c, first: i, n: 1})
}

func (p *proposer) encodeOther(c *call, now belief) {
	d := p.open(now)
	before := len(d.Data)
	data, err := c.encode(d.Data, p.instant(now, d))
	if err != nil {
		c.err = err
		p.flight.barriers = append(p.flight.barriers, c)
		return
	}
	d.Data = data
	p.flight.bytes += len(d.Data) - before
	d.runs = append(d.runs, run{call: c, n: c.commands})
	if !c.lazy {
		p.flight.mustSync = true
	}
}

// Now is the believed time in Unix ms, rounded down.
func (e *Engine) Now() int64 {
	b := e.believed.Load()
	return clock.FloorMs(b.ns + e.o.Clock.Now().Mono - b.at.Mono)
}

// Soon is the believed time in Unix ms, rounded up: what is counted from it is
// never early.
func (e *Engine) Soon() int64 {
	b := e.believed.Load()
	return clock.CeilMs(b.ns + e.o.Clock.Now().Mono - b.at.Mono)
}

// Reached is the monotonic ms, rounded up, at which the believed time will have
// reached a Unix ms, unless the clock is set meanwhile.
func (e *Engine) Reached(unix int64) int64 {
	b := e.believed.Load()
	return clock.CeilMs(unix*int64(time.Millisecond) - b.ns + b.at.Mono)
}

// Suspect says that the machine's clock is not believed.
func (e *Engine) Suspect() bool { return e.believed.Load().suspect }

// AcceptClock believes the machine's clock as it is, because an operator says
// so.
func (e *Engine) AcceptClock() error {
	done := make(chan struct{})
	select {
	case e.accepts <- done:
		<-done
		return nil
	case <-e.closing:
		return ErrClosed
	}
}
