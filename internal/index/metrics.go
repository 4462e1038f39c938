package index

import "time"

// Metrics are figures of an index at one moment. Counters start at Open.
type Metrics struct {
	ReadAmp          int           // places a read may have to look; slow cuts down when it passes about thirty
	DebtBytes        int64         // estimate of what compactions have yet to rewrite
	Tables           int64         // live tables
	LiveBytes        int64         // size of live tables
	PinnedBytes      int64         // size of dead tables that open iterators hold, or that are about to be removed
	DiskBytes        int64         // all files
	Installs         int64         // cuts and excises installed
	InstalledBytes   int64         // size of the tables that cuts brought
	Compactions      int64         // rewrites of tables finished
	CompactionsLost  int64         // rewrites cancelled by an excise or failed
	CompactionBytes  int64         // bytes that compactions wrote
	CompactionTime   time.Duration // time that compactions took
	CacheBytes       int64         // blocks in memory
	CacheHits        int64
	CacheMisses      int64
	OpenIters        int
	CompactionPaused bool // the last compaction failed; none is tried before the next cut
}

// Metrics reads the figures. It takes Pebble's lock for a moment: once a second
// is fine, once a call is not. After a final error and after Close it gives
// zeros.
func (x *Index) Metrics() Metrics {
	if x.enter() != nil {
		return Metrics{}
	}
	defer x.leave()
	p := x.db.Metrics()
	m := Metrics{
		ReadAmp:         p.ReadAmp(),
		DebtBytes:       int64(p.Compact.EstimatedDebt),
		LiveBytes:       int64(p.Table.Local.LiveSize),
		PinnedBytes:     int64(p.Table.Local.ZombieSize + p.Table.Local.ObsoleteSize),
		Tables:          int64(p.Table.Local.LiveCount),
		DiskBytes:       int64(p.DiskSpaceUsage()),
		Installs:        int64(p.Ingest.Count),
		Compactions:     p.Compact.Count,
		CompactionsLost: p.Compact.CancelledCount + p.Compact.FailedCount,
		CompactionTime:  p.Compact.Duration,
		CacheBytes:      p.BlockCache.Size,
		CacheHits:       p.BlockCache.Hits,
		CacheMisses:     p.BlockCache.Misses,
	}
	for i := range p.Levels {
		m.InstalledBytes += int64(p.Levels[i].TableBytesIngested)
		m.CompactionBytes += int64(p.Levels[i].TableBytesCompacted)
	}
	m.CompactionPaused = x.sched.isPaused()
	x.mu.Lock()
	m.OpenIters = x.iters
	x.mu.Unlock()
	return m
}
