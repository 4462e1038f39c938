// Package log is DueMQ's commit log, the truth of which all other state is the
// memory: batches in segment files, one after the other, each checked, numbered
// and chained to the one before. What CommitLog and MappedFileQueue are to
// RocketMQ. It knows neither topics nor time nor goroutines: it does what it is
// told, when it is told, on the caller's stack.
//
// A frame in a segment, little-endian, 16-byte aligned (docs/formats/log.md):
//
//	0       4       8       16       24     28      32           n
//	+-------+-------+-------+--------+------+-------+------------+-------+
//	| magic | crc32c| epoch | synced | prev | zero  | the batch  | zeros |
//	+-------+-------+-------+--------+------+-------+------------+-------+
//	|<------------- local part ------------------->|
//
// A batch has an index, which counts batches, and a position, which is where
// its local part begins: number of the segment times the size of a segment plus
// the offset in it. A batch never crosses a segment; whether it begins a new one
// follows from its size and where the one before ended, from nothing else, so
// that replicas with the same entries have the same positions.
//
// # What survives
//
// Append writes, [Log.Sync] makes durable. Opening finds the last batch that is
// whole and chained to all before it. What follows is a torn tail and dropped,
// unless something that is whole proves that the dropped bytes had been synced:
// then opening refuses with a [DamageError]. A failed write or sync poisons the
// log; nothing is retried, because after a failed fsync the disk may hold
// anything while the next fsync says all is well.
//
// # Who may call what
//
// Append, Sync, TruncateSuffix, RemoveBefore and Close belong to one caller at a
// time, the appender. Everything else may be called by anybody at any time.
package log

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The sizes that a segment may have.
const (
	DefaultSegmentBytes = 64 << 20
	MinSegmentBytes     = 64 << 10 // for tests; too small for the largest batch
	MaxSegmentBytes     = 1 << 30
)

// defaultSpares is how many removed segments are kept for their next life.
const defaultSpares = 2

// Options configure a log. Zero is the default of each field that has one.
type Options struct {
	FS      vfs.FS   // required
	Dir     string   // required; the folder of the segments, made if missing
	StoreID [16]byte // required; of the store, see OpenStore

	// SegmentBytes is the size of a segment, a multiple of 4096, fixed when the
	// store was made. Default 64 MiB. A batch that no segment can hold is refused
	// as too large.
	SegmentBytes int64

	// Origin is where a log begins that this opening makes: with the batch after
	// Index, in the segment at Position, a multiple of SegmentBytes. A copy of
	// another replica's log, as of a node that joins, begins where that one does.
	// Default the beginning. An existing log begins where it was made to.
	Origin Start

	// Preallocate reserves the whole segment on the disk when it is made, so that
	// a full disk shows before a batch is written and not in the middle of one.
	Preallocate bool

	// Spares is how many removed segments are kept to be used again: a file that
	// is written over syncs faster than one that grows. Default 2, negative none.
	Spares int

	Logger *slog.Logger // default none; what recovery dropped and removed

	Bugs Bugs // test hook, see there
}

// Bugs are seeded faults, the exam of the tests that claim to find such faults.
// They are a test hook; nothing outside tests sets one.
type Bugs struct {
	SkipSync     bool // Sync says yes and does nothing
	SkipDirSync  bool // names of files are not synced
	RetrySync    bool // a failed sync is tried again, as if that told anything
	CutBadMiddle bool // damage is cut off as if it were a torn tail
	SkipMark     bool // a truncation is not written down
	SkipRewrite  bool // opening trusts that what can be read is on the disk
}

func checkSegmentBytes(n int64) error {
	if n < MinSegmentBytes || n > MaxSegmentBytes || n%4096 != 0 {
		return fmt.Errorf("segments of %d bytes: want a multiple of 4096 from %d to %d", n, MinSegmentBytes, MaxSegmentBytes)
	}
	return nil
}

// withDefaults fills in the defaults and reports everything that is wrong.
func (o Options) withDefaults() (Options, error) {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	if o.Spares == 0 {
		o.Spares = defaultSpares
	}
	o.Spares = max(o.Spares, 0)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	err := checkSegmentBytes(o.SegmentBytes)
	if o.FS == nil {
		err = errors.Join(err, errors.New("log options: no file system"))
	}
	if o.Dir == "" {
		err = errors.Join(err, errors.New("log options: no folder"))
	}
	if o.StoreID == [16]byte{} {
		err = errors.Join(err, errors.New("log options: no store id"))
	}
	if o.Origin.Position%uint64(o.SegmentBytes) != 0 || (o.Origin.Position == 0) != (o.Origin.Index == 0) {
		err = errors.Join(err, fmt.Errorf("log options: origin at position %d behind batch %d: want the beginning of a segment of %d bytes",
			o.Origin.Position, o.Origin.Index, o.SegmentBytes))
	}
	return o, err
}

// A Log is an open commit log.
type Log struct {
	options Options
	seed    seed
	disk    disk
	handles handles

	// The appender's own.
	file      vfs.File // of the last segment, for writing
	buffer    []byte   // frames not yet written, reused
	marks     marks
	spares    []string // names of files that wait for their next life
	sealed    []*segment
	poison    error
	closed    bool
	recovered Recovery

	synced atomic.Uint64

	mu   sync.Mutex
	view view // guarded by mu; the appender alone changes it
}

// now is the log at this moment.
func (l *Log) now() view {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.view
}

// publish shows readers a new end, and new segments if not nil.
func (l *Log) publish(last Start, segments []*segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.view.last = last
	if segments != nil {
		l.view.segments = segments
	}
}

// active is the segment that is written. Only the appender calls it.
func (l *Log) active() *segment { return l.view.segments[len(l.view.segments)-1] }

// Recovery says what Open found.
type Recovery struct {
	From, End Start  // where the search began and where the log ended
	Batches   uint64 // read and verified between them
	Bytes     int64  // of those batches, with all that stands around them
	Torn      int64  // bytes behind the end that were dropped; at least, since a hole hides what it held
	Reason    string // why the log ends where it does, if bytes were dropped
	Epoch     uint64 // the epoch that this opening began
	Fresh     bool   // there was no log before
}

// Recovered says what Open found.
func (l *Log) Recovered() Recovery { return l.recovered }

// A Segment is one file of the log.
type Segment struct {
	Base  uint64 // position of the file's first byte
	End   uint64 // position after its last batch
	First uint64 // index of its first batch, or of the next one if it has none
	Bytes int64  // what its batches and its header take; the file may be longer
}

// Segments lists the files of the log, oldest first.
func (l *Log) Segments() []Segment {
	v := l.now()
	list := make([]Segment, len(v.segments))
	for i, s := range v.segments {
		end := max(v.end(i), s.base+HeaderBytes)
		list[i] = Segment{Base: s.base, End: end, First: s.prev.Index + 1, Bytes: int64(end - s.base)}
	}
	return list
}

// End is the place after the last appended batch, durable or not.
func (l *Log) End() Start { return l.now().last }

// Synced is the position below which everything is known to be on disk.
func (l *Log) Synced() uint64 { return l.synced.Load() }

// FirstIndex is the index of the first batch kept, or of the next one if there
// is none.
func (l *Log) FirstIndex() uint64 { return l.now().segments[0].prev.Index + 1 }

// LastIndex is the index of the last appended batch, 0 if there was none.
func (l *Log) LastIndex() uint64 { return l.now().last.Index }

// FirstPosition is the position of the first byte kept. A position below it was
// removed.
func (l *Log) FirstPosition() uint64 { return l.now().segments[0].base }

// usable says why the appender may not change anything.
func (l *Log) usable() error {
	if l.closed {
		return ErrClosed
	}
	return l.poison
}

// fail poisons the log: what is on the disk is no longer known.
func (l *Log) fail(err error) error {
	if l.poison == nil {
		l.poison = fmt.Errorf("%w: %w", ErrPoisoned, err)
	}
	return l.poison
}

// Close syncs, notes that all of it was synced, and closes. Readers must have
// finished. A poisoned log is closed without another attempt and says so.
func (l *Log) Close() error {
	if l.closed {
		return ErrClosed
	}
	err := l.Sync()
	if err == nil && l.view.last.Position > l.marks.newest().start {
		err = l.mark(l.view.last.Position)
	}
	l.closed = true
	for _, s := range l.view.segments {
		s.mu.Lock()
		s.closeLocked()
		s.gone = true
		s.mu.Unlock()
	}
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	return errors.Join(err, l.disk.close())
}

// mark begins a new epoch at start. Everything before start is synced.
func (l *Log) mark(start uint64) error {
	next := l.marks.add(start)
	if len(l.view.segments) > 0 {
		first := l.view.segments[0].base
		next = l.marks.add(max(start, HeaderBytes)).prune(first)
	}
	if err := l.disk.replace(marksName, encodeMarks(l.options.StoreID, next)); err != nil {
		return l.fail(fmt.Errorf("mark of epoch %d: %w", next.newest().epoch, err))
	}
	l.marks = next
	return nil
}

// epoch is what this log's next batches carry.
func (l *Log) epoch() uint64 { return l.marks.newest().epoch }
