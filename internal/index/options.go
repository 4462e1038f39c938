package index

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// formatVersion is pinned so that a newer Pebble does not change the files of a
// store without a decision here. A store once raised cannot be read by an older
// binary.
const formatVersion = pebble.FormatValueSeparation

// manifestBytes is where the manifest is begun anew. Open reads all of it, so it
// must not grow for long; a cut adds a few hundred bytes.
const manifestBytes = 1 << 20

// pebbleOptions are the options that a probe of this use recommended. The
// reasons are those of a store that is only ever written in whole sorted
// tables, read in order, and must leave most of two cores to others.
func pebbleOptions(o Options, x *Index) *pebble.Options {
	p := &pebble.Options{
		FS:                 x.disk,
		FormatMajorVersion: formatVersion,
		CacheSize:          o.CacheBytes, // zero: Pebble's own 8 MiB
		Merger:             sumMerger,

		// Nothing but ingests writes, so there is nothing for a write-ahead log to
		// hold, and a memtable stays empty at its first and smallest size.
		DisableWAL:   true,
		MemTableSize: 1 << 20,
		MaxOpenFiles: 500,

		MaxManifestFileSize: manifestBytes,

		// Sublevels are cheap to read up to about thirty, and every compaction
		// costs the foreground CPU. Pebble does not hold back ingests at the stop
		// threshold, so this one only keeps it from warning; watch ReadAmp.
		L0CompactionThreshold:      24,
		L0StopWritesThreshold:      1000,
		LBaseMaxBytes:              64 << 20,
		CompactionConcurrencyRange: func() (lower, upper int) { return 1, 1 },

		Logger:        (*pebbleLogger)(x.failure),
		EventListener: x.listener(),
	}
	for i := range p.TargetFileSizes {
		p.TargetFileSizes[i] = 32 << 20
	}
	for i := range p.Levels {
		l := &p.Levels[i]
		l.BlockSize = 32 << 10
		l.IndexBlockSize = 64 << 10
		l.Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
	}
	e := &p.Experimental
	e.CompactionScheduler = x.sched
	// An ingest that overlaps a memtable would return before it is durable. Ours
	// is empty, so this never happens; if it did, it should rather wait.
	e.DisableIngestAsFlushable = func() bool { return true }
	e.EnableDeleteOnlyCompactionExcises = func() bool { return true }
	e.FileCacheShards = 2
	p.EnsureDefaults()
	return p
}

// listener hears of the work in the background, on Pebble's goroutines and with
// Pebble's locks held: it must not call back.
func (x *Index) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			if x.sched.pause() {
				x.failure.logger.Warn("index: background work failed, next try after a cut", errAttr(err))
			}
		},
		DataCorruption: func(i pebble.DataCorruptionInfo) {
			x.failure.set(corruption(i))
		},
	}
}
