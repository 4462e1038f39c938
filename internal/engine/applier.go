package engine

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/duemq/duemq/internal/dedupe"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
)

// applyLoop is the one goroutine that changes the machine. Between two batches
// it begins and ends cuts.
func (e *Engine) applyLoop() {
	a := &applier{e: e, next: e.nextDue.Load()}
	a.since()
	for {
		select {
		case f, ok := <-e.written:
			if !ok {
				a.finish()
				return
			}
			a.flight(f)
		case b := <-e.builds:
			a.built(b)
		case answer := <-e.cutAsked:
			a.asked = append(a.asked, answer)
		}
		a.cut()
	}
}

// A build is a cut that the builder has finished with, well or not.
type build struct {
	cut *frozenCut
	it  *index.Iter
	err error
}

type applier struct {
	e       *Engine
	eff     effects
	next    int64 // first due that waits
	cutting bool
	asked   []chan error // want a cut that begins from now on
	waiting []chan error // want the one that is being built
	stalled bool         // the last cut failed: wait for the next time, not the next batch

	moved, total, position uint64 // as of the last cut
	cutAt                  int64  // mono ns
}

// maxCells is how many pairs of topic and minute may have changed before a cut
// writes them down: about 20 MiB.
const maxCells = 500_000

// since notes where the next cut begins to count.
func (a *applier) since() {
	m := a.e.m
	a.moved, a.total, a.position = m.moved, m.total, m.last
	a.cutAt = a.e.o.Clock.Now().Mono
}

// flight applies what was written and answers who waits for it.
func (a *applier) flight(f *flight) {
	e := a.e
	err := e.Err()
	for i, d := range f.drafts[:f.used] {
		if err == nil {
			err = a.batch(f.positions[i], d)
		}
		a.answer(f, i, err)
	}
	e.nextDue.Store(a.next)
	if f.tick {
		e.ticking.Store(false)
	}
	for _, c := range f.barriers {
		if c.err == nil {
			c.err = err
		}
		e.answered(c)
	}
	f.reset()
	e.free <- f
	e.nudge()
}

// batch applies one batch and rings the topics that have something new.
func (a *applier) batch(pos uint64, d *draft) error {
	e := a.e
	a.eff.reset()
	e.mu.Lock()
	err := e.m.apply(pos, &d.Batch, &a.eff)
	for _, t := range a.eff.rung {
		t.rung = false
	}
	if err == nil {
		a.next = e.m.nextDue()
		if d.Limit > 0 { // else it was not for this batch to move anything
			e.stats.backlog.Store(a.next <= e.m.stamp)
		}
		e.stats.rolledBack.Add(int64(len(a.eff.rolledBack)))
	}
	e.mu.Unlock()
	if err != nil {
		e.fail(fmt.Errorf("apply: %w", err))
		return e.Err()
	}
	for _, t := range a.eff.rung {
		t.Bell.Ring()
	}
	if a.eff.checks {
		e.Checks.Ring()
	}
	for _, id := range a.eff.rolledBack {
		e.o.Logger.Warn("transaction rolled back: its producer never answered", slog.Any("id", id), slog.Int("checks", MaxChecks))
	}
	return nil
}

// answer tells the calls of the i-th batch what became of their commands.
func (a *applier) answer(f *flight, i int, err error) {
	d := f.drafts[i]
	outcomes := a.eff.outcomes
	at := 0
	for _, r := range d.runs {
		c := r.call
		if err != nil {
			c.err = err
		}
		for k := range r.n {
			if err == nil {
				id := record.ID(f.positions[i]) + log.LocalBytes + record.ID(d.DataOffset()+at)
				at += c.apply(r.first+k, id, &outcomes[k], d.Data[at:])
			}
		}
		if err == nil {
			outcomes = outcomes[r.n:]
		}
		if c.finish(r.n) {
			a.e.answered(c)
		}
	}
}

// apply notes the outcome of one command and gives the size of its bytes.
func (c *call) apply(i int, id record.ID, out *Outcome, data []byte) int {
	if c.sends == nil {
		c.id, c.outcome = id, *out
	} else {
		c.sends[i].answer(id, out)
	}
	cmd, err := record.NextCommand(data, 0)
	if err != nil {
		return len(data) // apply has read the same bytes
	}
	return cmd.Size
}

// answer takes over what became of the message.
func (s *Send) answer(id record.ID, out *Outcome) {
	s.ID, s.Due, s.Ready, s.Held, s.Offset = id, out.Due, out.Ready, out.Held, out.Offset
	switch {
	case out.Gone:
		s.Err = ErrGone
	case out.Mismatch:
		s.Err = fmt.Errorf("%w: message %v was sent under this key and says something else", ErrMismatch, out.First)
	case out.Repeat:
		s.ID, s.Repeat = out.First, true
	default:
		s.Took = out.First
	}
}

// cut begins a cut if one is due and none is being built.
func (a *applier) cut() {
	if a.cutting || a.e.Err() != nil {
		return
	}
	if len(a.asked) == 0 && (a.stalled || !a.due()) {
		return
	}
	a.begin()
}

// due says that enough has happened since the last cut.
func (a *applier) due() bool {
	m := a.e.m
	return m.moved-a.moved+m.total-a.total >= a.e.o.CutCommands ||
		m.last-a.position >= a.e.o.CutBytes || m.line.NeedsCut() || len(m.carries) > 0 || m.count.Cells() >= maxCells
}

func (a *applier) begin() {
	e := a.e
	end, err := e.end()
	if err != nil {
		e.fail(err)
		return
	}
	a.waiting, a.asked = a.asked, nil
	e.mu.Lock()
	f := e.m.freeze(end)
	e.mu.Unlock()
	a.since()
	a.cutting, a.stalled = true, false
	e.wg.Go(func() { e.builds <- e.build(f) })
}

// end is the place after the last batch applied.
func (e *Engine) end() (log.Start, error) {
	if e.m.last == 0 {
		return log.Start{}, nil
	}
	end, err := e.log.After(e.m.last)
	if err != nil {
		return end, fmt.Errorf("read back batch %d: %w", e.m.index, err)
	}
	return end, nil
}

// build writes a cut beside the applier.
func (e *Engine) build(f *frozenCut) build {
	b := build{cut: f}
	if b.err = e.syncTo(f.end.Position); b.err != nil {
		return b
	}
	began := e.o.Clock.Now()
	if b.err = f.write(e.index, e.log, e.waits); b.err != nil {
		return b
	}
	e.clean(f)
	if b.it, b.err = f.line.Open(e.index); b.err != nil {
		e.fail(b.err) // the cut is durable, and cannot be taken back
	}
	e.stats.cuts.Add(1)
	e.stats.cutNs.Add(e.o.Clock.Now().Mono - began.Mono)
	return b
}

// waits asks the machine beside the applier; see [machine.waits].
func (e *Engine) waits(entry dedupe.Entry) (bool, int64, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.m.waits(entry)
}

// clean sweeps up behind a cut that is durable.
func (e *Engine) clean(f *frozenCut) {
	if err := f.clean(e.index); err != nil {
		e.o.Logger.Warn("index not cleaned up", slog.Any("error", err))
	}
}

// built ends a cut. One that failed is taken back and tried again later: its
// content is still in the log and in memory.
func (a *applier) built(b build) {
	a.cutting = false
	if b.err != nil {
		a.abandon(b)
	} else {
		a.install(b)
	}
	for _, answer := range a.waiting {
		answer <- b.err
	}
	a.waiting = nil
}

func (a *applier) abandon(b build) {
	e := a.e
	e.mu.Lock()
	e.m.abandon(b.cut)
	e.mu.Unlock()
	a.stalled = true
	e.stats.cutFailures.Add(1)
	e.o.Logger.Warn("cut postponed", slog.Any("error", b.err))
	if err := e.index.Err(); err != nil {
		e.fail(err)
	}
}

func (a *applier) install(b build) {
	e := a.e
	e.mu.Lock()
	old := e.m.install(b.cut, b.it)
	e.mu.Unlock()
	e.kept(b.cut)
	if old == nil {
		return
	}
	if err := old.Close(); err != nil {
		e.o.Logger.Warn("close iterator", slog.Any("error", err))
	}
}

// finish ends the engine's last cut, so that the next start replays nothing.
func (a *applier) finish() {
	if a.cutting {
		a.built(<-a.e.builds)
	}
	if m := a.e.m; a.e.Err() == nil && m.last != a.position {
		a.begin()
	}
	if a.cutting { // not so if the log could not be read
		a.built(<-a.e.builds)
	}
	for _, answer := range a.asked {
		answer <- ErrClosed
	}
}

// Cut writes a cut now and returns when it is durable.
func (e *Engine) Cut() error {
	answer := make(chan error, 1)
	select {
	case e.cutAsked <- answer:
	case <-e.closing:
		return ErrClosed
	}
	select {
	case err := <-answer:
		return err
	case <-e.failed:
		return e.Err()
	}
}

// watch looks once a second: at the wall clock beside the monotonic one, at the
// disk, and whether a cut is overdue.
func (e *Engine) watch() {
	timer := e.o.Clock.NewTimer(time.Second)
	defer timer.Stop()
	cutAt, cutPosition := e.o.Clock.Now().Mono, e.cutEnd
	for {
		select {
		case <-e.closing:
			return
		case <-timer.C():
		}
		select {
		case e.looks <- struct{}{}:
		default:
		}
		e.lookAtDisk()
		e.askKeeper()
		now := e.o.Clock.Now().Mono
		if end := e.log.End().Position; end == cutPosition {
			cutAt = now
		} else if now-cutAt >= int64(e.o.CutEvery) {
			cutAt, cutPosition = now, end
			e.askCut()
		}
		timer.Reset(time.Second)
	}
}

// askCut has a cut begun without waiting for it.
func (e *Engine) askCut() {
	select {
	case e.cutAsked <- make(chan error, 1):
	case <-e.closing:
	}
}
