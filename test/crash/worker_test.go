package crash

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/test/crash/history"
)

// A spec is what the driver tells a worker, as JSON in its environment.
type spec struct {
	Dir      string // the store's folder
	Run      int    // number of the process in the history
	Seed     uint64
	Mode     string // see history
	Bug      string // see bugs
	Keep     bool   // retention and carry, both after a short time
	Interval bool   // answer after the write and sync now and then, not after the sync
}

// Ends of a worker that it chooses itself.
const (
	exitOK     = 0
	exitFailed = 3 // the store failed, or would not open
	exitAlone  = 4 // the driver is gone
)

// stopLine on standard input asks a worker to close the store and end.
const stopLine = "stop"

// bugs are the faults that -bug switches on.
var bugs = map[string]engine.Bugs{
	"skip-sync":      {Log: log.Bugs{SkipSync: true}},
	"skip-dir-sync":  {Log: log.Bugs{SkipDirSync: true}},
	"skip-mark":      {Log: log.Bugs{SkipMark: true}},
	"skip-table":     {Index: index.Bugs{SkipTableSync: true}},
	"index-no-dirs":  {Index: index.Bugs{SkipDirSync: true}},
	"applied-ahead":  {Index: index.Bugs{AppliedAhead: engine.SpaceState}},
	"early-tick":     {EarlyTick: true},
	"floor-due":      {FloorDue: true},
	"cut-bad-middle": {Log: log.Bugs{CutBadMiddle: true}},
	"carry-loses":    {CarryLosesMoved: true},
	"remove-early":   {RemoveEarly: true},
	"repeat-files":   {RepeatFiles: true},
}

// What is kept under retention: long enough for a consumer that keeps up to be
// killed a few times on the way.
const (
	keepTime   = 4 * time.Second
	carryAfter = time.Second
	keptMost   = 2 << 20 // bytes of log, once everything is consumed and old
)

// levels are the delay levels, scaled down so that all fall due within a cycle.
func levels() []time.Duration {
	table := make([]time.Duration, 18)
	for i := range table {
		table[i] = time.Duration(i+1) * 50 * time.Millisecond
	}
	return table
}

// open opens the store with everything small, so that segments roll and cuts
// are written, installed and excised many times a second.
func (s *spec) open(ctx context.Context) (*broker.Broker, error) {
	bug, known := bugs[s.Bug]
	if !known && s.Bug != "" {
		return nil, fmt.Errorf("no bug is called %q", s.Bug)
	}
	o := engine.Options{
		FS: fs.Real(), Dir: s.Dir, Clock: clock.Real(), Rand: rand.Reader,
		SegmentBytes: 256 << 10, Levels: levels(),
		CutCommands: 150, CutBytes: 64 << 10, CutEvery: 2 * time.Second, CacheBytes: 1 << 20,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Bugs:   bug,
	}
	if s.Mode == history.ModeRebuild { // as it is by default, for all the log is one recovery
		o.CutCommands, o.CutBytes = 0, 0
	}
	if s.Keep {
		o.Retention = engine.Retention{Time: keepTime, CarryAfter: carryAfter}
	}
	if s.Interval {
		o.Sync, o.SyncEvery = engine.SyncInterval, 50*time.Millisecond
	}
	return broker.Open(ctx, broker.Options{Queues: 3, Engine: o})
}

// A worker is the process under test.
type worker struct {
	spec
	ctx     context.Context // of calls; it never ends
	b       *broker.Broker
	journal *journal
	stop    chan struct{} // closed when the driver asks to close
}

// work is the worker's main; it returns the exit status.
func work(encoded string) int {
	w := &worker{ctx: context.Background(), journal: newJournal(), stop: make(chan struct{})}
	if err := json.Unmarshal([]byte(encoded), &w.spec); err != nil {
		return w.fail(err)
	}
	w.journal.run = w.Run
	go w.listen()
	w.journal.put(history.Event{Kind: history.Start, Mode: w.Mode})
	if w.Mode == history.ModeRebuild {
		if err := os.RemoveAll(filepath.Join(w.Dir, "index")); err != nil {
			return w.fail(err)
		}
	}
	b, err := w.open(w.ctx)
	if err != nil {
		return w.fail(err)
	}
	w.b = b
	found := b.Recovered()
	w.journal.put(history.Event{Kind: history.Up, Figures: &history.Figures{
		Replayed: found.Replayed, Torn: found.Log.Torn, Waiting: found.Waiting,
	}})
	if w.Mode != history.ModeRebuild {
		err = w.plan()
	}
	switch {
	case err != nil:
	case w.Mode == history.ModeLoad:
		w.load()
	case w.Mode == history.ModeDrain:
		err = w.drain()
	}
	if err == nil && w.Mode != history.ModeLoad {
		err = w.drained()
	}
	if err != nil {
		return w.fail(err)
	}
	return w.close()
}

// close ends the worker in good order.
func (w *worker) close() int {
	w.figures()
	w.journal.put(history.Event{Kind: history.Stop})
	e := history.Event{Kind: history.Down}
	if err := w.b.Close(); err != nil {
		e.Err = err.Error()
	}
	w.journal.put(e)
	return exitOK
}

func (w *worker) fail(err error) int {
	fmt.Fprintln(os.Stderr, "worker:", err)
	return exitFailed
}

// listen obeys the driver, and ends the worker when there is none any more.
func (w *worker) listen() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if lines.Text() == stopLine {
			close(w.stop)
		}
	}
	os.Exit(exitAlone)
}

// drained says that nothing is left, and what the state is.
func (w *worker) drained() error {
	hash, err := w.b.Hash()
	w.journal.put(history.Event{Kind: history.Drained, Hash: hash})
	return err
}

func (w *worker) figures() {
	s := w.b.Stats()
	w.journal.put(history.Event{Kind: history.Figure, Figures: &history.Figures{
		Cuts: s.Cuts, Syncs: s.Syncs, LogBytes: s.LogBytes, Carried: s.Carried,
	}})
}

// A journal writes events to standard output, a line each. When put returns the
// line is the kernel's: a kill does not take it back.
type journal struct {
	run   int
	start time.Time
	ops   atomic.Int64

	mu  sync.Mutex
	out io.Writer
}

func newJournal() *journal { return &journal{start: time.Now(), out: os.Stdout} }

// put writes an event that happens now.
func (j *journal) put(e history.Event) { j.at(time.Now(), e) }

// at writes an event that has just happened.
func (j *journal) at(now time.Time, e history.Event) {
	e.Run, e.Wall, e.Mono = j.run, now.UnixNano(), int64(now.Sub(j.start))+1
	line, err := json.Marshal(&e)
	if err == nil {
		j.mu.Lock()
		_, err = j.out.Write(append(line, '\n'))
		j.mu.Unlock()
	}
	if err != nil {
		os.Exit(exitAlone)
	}
}

// begin writes the beginning of a call and gives its number.
func (j *journal) begin(e history.Event) int {
	e.Op = int(j.ops.Add(1))
	j.put(e)
	return e.Op
}

// end writes its end.
func (j *journal) end(op int, e history.Event, err error) {
	e.Op = op
	if err != nil {
		e.Err = err.Error()
	}
	j.put(e)
}
