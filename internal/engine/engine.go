// Package engine is the deterministic state machine over log, timeline, queues
// and groups, and the loop around it: propose, append, apply, cut, recover.
//
// A change travels one way. Callers hand proposals in; the proposer reads the
// clock, resolves due, queue and level, and writes the result as commands into
// a batch; the writer appends and syncs, one sync for all who wait; the applier
// applies in order and answers. When something falls due and nobody sends, the
// proposer writes an empty batch: the tick. At a cut the applier freezes what
// is in memory and a builder writes it to the index beside it.
//
//	callers ─► proposer ─► writer ─► applier ─► answers
//	             ▲ clock     │ log      │ machine
//	             └── next due┴──────────┴─► builder ─► index
package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/semaphore"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/queue"
)

// A SyncPolicy says what has happened to a message when its sender is answered.
type SyncPolicy uint8

// The policies, safest first.
const (
	// SyncAlways answers after fdatasync of the batch, RocketMQ's SYNC_FLUSH: a
	// power cut loses nothing that was acknowledged.
	SyncAlways SyncPolicy = iota
	// SyncInterval answers after the write and syncs every SyncEvery,
	// RocketMQ's ASYNC_FLUSH: a crash of the process loses nothing, a power cut
	// up to SyncEvery.
	SyncInterval
)

// Classes of error.
var (
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("engine is closed")
	// ErrFailed is the class of a log or index that can no longer be trusted;
	// whether the call had an effect is unknown. Restart to recover from disk.
	ErrFailed = errors.New("engine has failed")
	// ErrDelayTooLong refuses a due beyond MaxDelay; the text names the limit.
	ErrDelayTooLong = errors.New("delay too long")
	// ErrClockSuspect refuses a relative delay while the machine's clock is not
	// believed.
	ErrClockSuspect = errors.New("clock is suspect")
	// ErrDiskFull refuses messages while too little of the disk is free. What
	// waits is still delivered, cancelled and acknowledged.
	ErrDiskFull = errors.New("disk is full")
	// ErrMismatch refuses a message whose idempotency key was used for another.
	ErrMismatch = errors.New("idempotency key was used for another message")
	// ErrGone says that the topic or group of that number has ended.
	ErrGone = errors.New("topic or group has ended")
)

// Options configure an engine. Zero means the default.
type Options struct {
	FS    vfs.FS      // required: the disk
	Dir   string      // required: the data folder, made when missing
	Clock clock.Clock // required
	Rand  io.Reader   // required: where a new store's id comes from

	Sync      SyncPolicy    // default SyncAlways
	SyncEvery time.Duration // default 500 ms; only read under SyncInterval

	SegmentBytes int64           // default 64 MiB; fixed when the store is created
	Levels       []time.Duration // default RocketMQ's 18: messageDelayLevel
	MaxDelay     time.Duration   // default 365 days

	Idempotency time.Duration // default 24 h: how long a key is remembered, or until the message is delivered if that is later
	Retention   Retention

	CutCommands uint64        // default 250,000: commands and deliveries between cuts
	CutBytes    uint64        // default 128 MiB of log
	CutEvery    time.Duration // default 30 s
	CacheBytes  int64         // default 8 MiB: index blocks in memory

	Guard  clock.GuardOptions
	Logger *slog.Logger // default discards
	Bugs   Bugs         // faults for the harness's exam; zero in production
}

// Bugs are seeded faults. The exam of the test harness switches each on and
// demands that a test catches it; none is set outside tests.
type Bugs struct {
	FloorDue  bool // a due is rounded down
	EarlyTick bool // a tick is applied before it is synced

	CarryLosesMoved bool // a carry leaves behind what was moved
	RemoveEarly     bool // segments go before the cut that gives them up is durable
	RepeatFiles     bool // a repeat under an idempotency key is filed as if it were the first

	Log   log.Bugs
	Index index.Bugs
}

// DefaultLevels is RocketMQ's messageDelayLevel:
// "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h".
func DefaultLevels() []time.Duration {
	const s, m, h = time.Second, time.Minute, time.Hour
	return []time.Duration{
		1 * s, 5 * s, 10 * s, 30 * s, 1 * m, 2 * m, 3 * m, 4 * m, 5 * m,
		6 * m, 7 * m, 8 * m, 9 * m, 10 * m, 20 * m, 30 * m, 1 * h, 2 * h,
	}
}

// Retention says how long what became visible is kept, and the log with it.
// What waits is kept however long it waits.
type Retention struct {
	Time       time.Duration // default 72 h, RocketMQ's fileReservedTime; negative: for ever
	Bytes      int64         // of log; above it the oldest goes before its time; 0: any number
	CarryAfter time.Duration // default 24 h: what still waits in a segment of that age is moved into the index
}

func (o *Options) setDefaults() {
	if o.Idempotency == 0 {
		o.Idempotency = 24 * time.Hour
	}
	if o.Retention.Time == 0 {
		o.Retention.Time = 72 * time.Hour
	}
	if o.Retention.CarryAfter == 0 {
		o.Retention.CarryAfter = 24 * time.Hour
	}
	if o.SyncEvery == 0 {
		o.SyncEvery = 500 * time.Millisecond
	}
	if o.Levels == nil {
		o.Levels = DefaultLevels()
	}
	if o.MaxDelay == 0 {
		o.MaxDelay = 365 * 24 * time.Hour
	}
	if o.CutCommands == 0 {
		o.CutCommands = 250_000
	}
	if o.CutBytes == 0 {
		o.CutBytes = 128 << 20
	}
	if o.CutEvery == 0 {
		o.CutEvery = 30 * time.Second
	}
	if o.Guard.MaxDelay == 0 {
		o.Guard.MaxDelay = o.MaxDelay
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Engine is an open store. Its methods are safe for concurrent use.
type Engine struct {
	o      Options
	log    *log.Log
	index  *index.Index
	lock   io.Closer
	store  log.StoreInfo
	found  Recovery
	cutEnd uint64 // where the newest cut ended when the store was opened

	mu sync.RWMutex // guards m: the applier writes, readers read
	m  *machine

	calls    sync.Pool // of *call
	batches  sync.Pool // of *[]byte: batches that are looked into
	pending  pendingCalls
	room     *semaphore.Weighted // bytes of proposals not yet answered
	handoff  chan *flight        // proposer to writer
	written  chan *flight        // writer to applier
	free     chan *flight
	syncs    chan chan error // sync requests to the writer
	builds   chan build      // finished cuts to the applier
	cutAsked chan chan error
	wake     chan struct{} // something changed that the proposer waits for
	closing  chan struct{}
	failed   chan struct{}
	wg       sync.WaitGroup
	writerUp chan struct{} // closed when the writer has ended

	failure  atomic.Pointer[error]
	failOnce sync.Once
	nextDue  atomic.Int64 // first due that waits, MaxInt64 for none
	ticking  atomic.Bool  // a tick is on its way
	believed atomic.Pointer[belief]
	accepts  chan chan struct{}
	looks    chan struct{} // once a second: compare the clocks
	syncTook atomic.Int64  // ns, a recent fdatasync
	disk     atomic.Pointer[diskRoom]

	Checks queue.Bell // rings when half messages are to be checked

	keeper  chan struct{} // once a second: look at what is kept
	removes chan uint64   // to the writer: segments before this may go
	pinned  atomic.Int64  // backups that need the whole log

	carriedTo atomic.Uint64 // what waits before this position is in the index, durably

	stats counters
}

// MaxMissed bounds how far Open counts what fell due meanwhile, since a start
// does not wait for a count.
const MaxMissed = 10_000

// Recovery says what Open found.
type Recovery struct {
	New      bool // the store was created by this Open
	Log      log.Recovery
	Replayed uint64 // batches applied that the index did not hold
	Waiting  int64
	Overdue  bool          // something fell due while nobody was there
	Missed   int           // how much of it, counted up to MaxMissed
	Took     time.Duration // until ready to answer
}

// maxPending bounds the bytes of proposals that wait or are on their way.
const maxPending = 32 << 20

// Open opens or creates the store in o.Dir and recovers it: the newest cut from
// the index, the log after it. It returns when the engine answers. ctx bounds
// only the recovery. A store that another process holds, a log whose
// acknowledged part is damaged, or an index ahead of its log refuses to open.
func Open(ctx context.Context, o Options) (*Engine, error) {
	o.setDefaults()
	if n := len(o.Levels); n > maxLevels {
		return nil, fmt.Errorf("%d delay levels, limit %d", n, maxLevels)
	}
	began := o.Clock.Now()
	e := &Engine{
		o:        o,
		room:     semaphore.NewWeighted(maxPending),
		handoff:  make(chan *flight),
		written:  make(chan *flight, 1),
		free:     make(chan *flight, flights),
		syncs:    make(chan chan error),
		builds:   make(chan build, 1),
		cutAsked: make(chan chan error),
		wake:     make(chan struct{}, 1),
		closing:  make(chan struct{}),
		failed:   make(chan struct{}),
		writerUp: make(chan struct{}),
		accepts:  make(chan chan struct{}),
		looks:    make(chan struct{}, 1),
		keeper:   make(chan struct{}, 1),
		removes:  make(chan uint64, 1),
	}
	e.batches.New = func() any { return new([]byte) }
	if err := e.recover(ctx); err != nil {
		return nil, errors.Join(err, e.release())
	}
	e.found.Took = time.Duration(o.Clock.Now().Mono - began.Mono)
	e.start()
	return e, nil
}

func (e *Engine) start() {
	e.disk.Store(&diskRoom{})
	e.lookAtDisk()
	p := newProposer(e)
	e.nextDue.Store(e.m.nextDue())
	e.wg.Go(p.run)
	e.wg.Go(e.write)
	e.wg.Go(e.applyLoop)
	e.wg.Go(e.watch)
	e.wg.Go(e.keepLoop)
}

// Recovered says what Open found.
func (e *Engine) Recovered() Recovery { return e.found }

// Failed is closed when the engine can no longer be trusted; [Engine.Err] says
// why. A server exits then, so that the next start recovers from disk.
func (e *Engine) Failed() <-chan struct{} { return e.failed }

// Err is why the engine failed, nil while it has not.
func (e *Engine) Err() error {
	if p := e.failure.Load(); p != nil {
		return *p
	}
	return nil
}

// fail ends the engine's usefulness: no more acknowledgements. A failed sync is
// never retried, because the second one may report success for data that the
// first one lost.
func (e *Engine) fail(err error) {
	e.failOnce.Do(func() {
		wrapped := fmt.Errorf("%w: %w", ErrFailed, err)
		e.failure.Store(&wrapped)
		e.o.Logger.Error("engine failed", slog.Any("error", err))
		close(e.failed)
	})
}

// Close answers what was proposed before, writes a cut and closes the store.
// After a failure it closes without a cut.
func (e *Engine) Close() error {
	if !e.pending.close() {
		return ErrClosed
	}
	close(e.closing)
	e.wg.Wait()
	err := e.Err()
	if rerr := e.release(); err == nil {
		err = rerr
	}
	return err
}

// release closes what recover opened.
func (e *Engine) release() error {
	var errs []error
	if e.m != nil && e.m.line != nil {
		errs = append(errs, e.m.line.Close())
	}
	if e.index != nil {
		errs = append(errs, e.index.Close())
	}
	if e.log != nil {
		if err := e.log.Close(); e.Err() == nil {
			errs = append(errs, err)
		}
	}
	if e.lock != nil {
		errs = append(errs, e.lock.Close())
	}
	return errors.Join(errs...)
}

// nudge has the proposer look again.
func (e *Engine) nudge() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}
