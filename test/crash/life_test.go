package crash

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/duemq/duemq/test/crash/history"
)

// A campaign is a number of cycles over one store after another.
type campaign struct {
	t     *testing.T
	name  string // of the test, for the command that replays it
	tags  string // likewise
	seed  uint64
	r     *rand.Rand
	dir   string         // where histories are kept
	place string         // where stores are
	cut   func() error   // the power; nil where it stays on
	bug   string         // see bugs
	lives int            // so far
	sum   history.Report // of all lives
}

// newCampaign prepares folders that survive a failure and nothing else.
func newCampaign(t *testing.T, name string) *campaign {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	dir, err := os.MkdirTemp("", "duemq-crash-") //nolint:usetesting // it outlives a failure
	if err != nil {
		t.Fatal(err)
	}
	c := &campaign{t: t, name: name, seed: seed, r: rand.New(rand.NewPCG(seed, 0)), dir: dir, place: dir, bug: *bugFlag}
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(dir)
			return
		}
		t.Logf("histories and stores are in %s\nthe same draws again: go test %s./test/crash -run '^%s$' -cycles=%d -life=%d -seed=%d",
			dir, c.tags, name, *cyclesFlag, *lifeFlag, seed)
	})
	return c
}

// run goes through cycles, with a fresh store every so often.
func (c *campaign) run(cycles, life int) {
	c.t.Helper()
	began := time.Now()
	for done := 0; done < cycles; done += life {
		c.live(min(life, cycles-done))
		if c.t.Failed() {
			return
		}
	}
	took := time.Since(began)
	s := &c.sum
	c.t.Logf("%s, seed %d: %d cycles in %v, %.1f cycles/s; %d kills, %d power cuts, %d closes; %d acked, %d delivered, %d across a restart\n%v",
		c.name, c.seed, cycles, took.Round(time.Millisecond), float64(cycles)/took.Seconds(),
		s.Kills, s.PowerCuts, s.Closes, s.Acked, s.Delivered, s.Across, s)
}

// A life is a store from its making to its last message.
type life struct {
	*campaign
	number   int
	store    string
	run      int
	interval bool
	keep     bool // retention is on
	events   []history.Event
	record   *bufio.Writer
	file     *os.File
}

// live takes a fresh store through some cycles and holds its history to the
// promises.
func (c *campaign) live(cycles int) {
	c.t.Helper()
	l, err := c.newLife()
	if err == nil {
		err = l.cycles(cycles)
	}
	if err == nil {
		err = l.last()
	}
	if cerr := l.close(); err == nil {
		err = cerr
	}
	report := history.Check(l.events, history.Options{Groups: groups(), MinAcked: minAcked})
	c.add(report)
	if err != nil {
		c.t.Errorf("life %d, run %d: %v", l.number, l.run, err)
	}
	if len(report.Violations) > 0 {
		c.t.Errorf("life %d breaks its promises:\n%v\ncheck it again: go test ./test/crash/history -run '^TestRecorded$' -history=%s",
			l.number, report, l.file.Name())
	}
	if !c.t.Failed() {
		_ = os.RemoveAll(l.store)
		_ = os.Remove(l.file.Name())
		return
	}
	if c.place != c.dir { // which goes away
		if err := os.CopyFS(filepath.Join(c.dir, filepath.Base(l.store)), os.DirFS(l.store)); err != nil {
			c.t.Logf("the store cannot be kept: %v", err)
		}
	}
}

// minAcked is what a process must do on average for its death to prove
// anything.
const minAcked = 20

func (c *campaign) newLife() (*life, error) {
	c.lives++
	l := &life{
		campaign: c, number: c.lives,
		store:    filepath.Join(c.place, fmt.Sprintf("store-%d", c.lives)),
		interval: c.cut == nil && c.r.IntN(3) == 0,
		keep:     c.lives%2 == 0,
	}
	var err error
	l.file, err = os.Create(filepath.Join(c.dir, fmt.Sprintf("history-%d.jsonl", c.lives)))
	l.record = bufio.NewWriterSize(l.file, 1<<20)
	return l, err
}

func (l *life) close() error {
	if err := l.record.Flush(); err != nil {
		return err
	}
	return l.file.Close()
}

// cycles goes through some cycles: a process each, and sometimes a few that are
// killed while they recover before it.
func (l *life) cycles(n int) error {
	for range n {
		if l.r.IntN(5) == 0 {
			for range 1 + l.r.IntN(5) {
				if err := l.kill(false, time.Duration(l.r.IntN(200))*time.Millisecond); err != nil {
					return err
				}
			}
		}
		work := time.Duration(10+l.r.IntN(600)) * time.Millisecond
		if l.keep && l.r.IntN(4) == 0 {
			work += time.Second // retention looks once a second
		}
		if l.r.IntN(8) == 0 {
			if err := l.closeAfter(work); err != nil {
				return err
			}
			continue
		}
		if err := l.kill(true, work); err != nil {
			return err
		}
	}
	return nil
}

func (l *life) start(mode string) (*process, error) {
	l.run++
	return startProcess(spec{
		Dir: l.store, Run: l.run, Seed: l.r.Uint64(), Mode: mode, Bug: l.bug, Interval: l.interval, Keep: l.keep,
	}, l.record)
}

// kill kills a process some time after it has started, or after it has opened
// the store, and cuts the power if that is what this is about.
func (l *life) kill(opened bool, after time.Duration) error {
	p, err := l.start(history.ModeLoad)
	if err != nil {
		return err
	}
	if opened {
		_, err = p.awaitUp()
	}
	at, kerr := p.kill(after)
	l.events = append(l.events, p.events...)
	if err == nil {
		err = kerr
	}
	if err != nil {
		return err
	}
	l.put(history.Event{Kind: history.Killed, Wall: at.UnixNano()})
	return l.cutPower()
}

// closeAfter has a process close the store after some time.
func (l *life) closeAfter(work time.Duration) error {
	p, err := l.start(history.ModeLoad)
	if err != nil {
		return err
	}
	if up, err := p.awaitUp(); err != nil || !up {
		_, kerr := p.kill(0)
		l.events = append(l.events, p.events...)
		return fmt.Errorf("not opened: %w", firstError(err, kerr))
	}
	timer := time.NewTimer(work)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.eof:
	}
	err = p.stopNow()
	if l.r.IntN(3) == 0 { // or nearly in good order
		return firstError(err, l.killClosing(p))
	}
	err = firstError(p.await(), err)
	l.events = append(l.events, p.events...)
	if err != nil {
		return err
	}
	return l.cutPower()
}

// killClosing kills a process while it closes the store, unless it is faster.
func (l *life) killClosing(p *process) error {
	timer := time.NewTimer(time.Duration(l.r.IntN(40)) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-p.eof:
		err := p.await()
		l.events = append(l.events, p.events...)
		return firstError(err, l.cutPower())
	case <-timer.C:
	}
	at, err := p.kill(0)
	l.events = append(l.events, p.events...)
	if n := len(p.events); n > 0 && p.events[n-1].Kind == history.Down {
		return l.cutPower() // it had closed, and what is said of its end does not matter
	}
	l.put(history.Event{Kind: history.Killed, Wall: at.UnixNano()})
	return firstError(err, l.cutPower())
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// cutPower comes after the process is dead and everything that it wrote is
// read, never before: a file system that is being shut down may tell a living
// process that its sync went well.
func (l *life) cutPower() error {
	if l.cut == nil {
		return nil
	}
	if err := l.cut(); err != nil {
		return fmt.Errorf("power cut: %w", err)
	}
	l.put(history.Event{Kind: history.PowerCut, Wall: time.Now().UnixNano()})
	return nil
}

// last has everything fall due and taken, and then the state made again from
// the log alone, where all of that is still there.
func (l *life) last() error {
	modes := []string{history.ModeDrain, history.ModeRebuild}
	if l.keep {
		modes = modes[:1]
	}
	for _, mode := range modes {
		p, err := l.start(mode)
		if err != nil {
			return err
		}
		err = p.await()
		l.events = append(l.events, p.events...)
		if err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
	}
	return nil
}

// put adds an event of the driver's.
func (l *life) put(e history.Event) {
	e.Run = l.run
	l.events = append(l.events, e)
	_ = json.NewEncoder(l.record).Encode(&e)
}

// add adds a life's report to the campaign's.
func (c *campaign) add(r *history.Report) {
	s := &c.sum
	s.Runs += r.Runs
	s.Ups += r.Ups
	s.Kills += r.Kills
	s.PowerCuts += r.PowerCuts
	s.Closes += r.Closes
	s.Acked += r.Acked
	s.Unknown += r.Unknown
	s.Came += r.Came
	s.Cancels += r.Cancels
	s.Moves += r.Moves
	s.Delivered += r.Delivered
	s.Across += r.Across
	s.Again += r.Again
	s.LostAcks += r.LostAcks
	s.Cuts += r.Cuts
	s.LogBytes += r.LogBytes
	s.Repeats += r.Repeats
	s.Replaced += r.Replaced
	s.Ended += r.Ended
	s.Pauses += r.Pauses
	s.Purges += r.Purges
	s.Bulks += r.Bulks
	s.Dead += r.Dead
	s.Attempts = max(s.Attempts, r.Attempts)
	s.Carried += r.Carried
	s.Kept = max(s.Kept, r.Kept)
	s.ReceivedLate.Add(&r.ReceivedLate)
	s.VisibleLate.Add(&r.VisibleLate)
	s.SteppedBack = max(s.SteppedBack, r.SteppedBack)
}
