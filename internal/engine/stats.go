package engine

import (
	"sync/atomic"
	"time"

	"github.com/duemq/duemq/internal/index"
)

// counters are what the engine counts about itself.
type counters struct {
	backlog     atomic.Bool // something due has not been moved yet
	wakeups     atomic.Int64
	fruitless   atomic.Int64
	ticks       atomic.Int64
	syncs       atomic.Int64
	syncNs      atomic.Int64
	cuts        atomic.Int64
	cutNs       atomic.Int64
	cutFailures atomic.Int64
	clockSteps  atomic.Int64
	rolledBack  atomic.Int64
	carried     atomic.Int64
	damaged     atomic.Int64
}

// Stats are figures of one engine since it was opened.
type Stats struct {
	Wakeups     int64 // times the timer for the next due fired
	Fruitless   int64 // of these, found nothing due
	Ticks       int64 // batches written because something fell due
	Syncs       int64
	SyncTime    time.Duration // in all
	Cuts        int64
	CutTime     time.Duration // in all, beside everything else
	CutFailures int64         // postponed
	ClockSteps  int64         // followed
	RolledBack  int64         // transactions whose producer never answered
	Carried     int64         // messages whose bytes were moved out of old segments
	Damaged     int64         // messages that could not be, for their bytes are damaged
	LogFirst    uint64        // position from which the log is kept
	Stamp       int64         // log time, Unix ms
	LogBatches  uint64        // index of the last batch applied
	LogBytes    uint64        // position of the log's end
	Index       index.Metrics
}

// Stats gives the figures.
func (e *Engine) Stats() Stats {
	s := &e.stats
	e.mu.RLock()
	stamp, batches := e.m.stamp, e.m.index
	e.mu.RUnlock()
	return Stats{
		Wakeups: s.wakeups.Load(), Fruitless: s.fruitless.Load(), Ticks: s.ticks.Load(),
		Syncs: s.syncs.Load(), SyncTime: time.Duration(s.syncNs.Load()),
		Cuts: s.cuts.Load(), CutTime: time.Duration(s.cutNs.Load()), CutFailures: s.cutFailures.Load(),
		ClockSteps: s.clockSteps.Load(), RolledBack: s.rolledBack.Load(), Carried: s.carried.Load(), Damaged: s.damaged.Load(),
		LogFirst: e.log.FirstPosition(), Stamp: stamp, LogBatches: batches,
		LogBytes: e.log.End().Position, Index: e.index.Metrics(),
	}
}
