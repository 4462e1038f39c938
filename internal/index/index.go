// Package index keeps what is too old for memory: sorted keys and values in
// spaces, changed by whole cuts.
//
// It is Pebble with its write-ahead log off. Nothing is ever written to it but
// cuts: a [Cut] builds one table per space and installs all of them in one
// atomic ingest, so that after any crash either every space holds the cut or
// none does. The log is the truth and the index only its memory, so an index
// that cannot be read may be deleted and is filled again from the log.
//
// The package knows nothing of keys beyond their first byte, the [Space], and
// shows nothing of Pebble. The mechanics stand in docs/formats/index.md.
package index

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The classes of errors.
var (
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("index is closed")
	// ErrCorrupt is the class of a table or a manifest whose bytes are not what
	// was written. The index cannot be used any more; delete it and let the log
	// fill a new one.
	ErrCorrupt = errors.New("index is corrupt")
)

// A Space is the first byte of a key: one kind of thing that the index holds.
// 0x00 and 0xff are not spaces: the first is what a forgotten field holds, and
// nothing sorts behind the second.
type Space byte

// Options configure an index. Zero means the default.
type Options struct {
	FS         vfs.FS       // required: the disk
	Dir        string       // required: a folder of its own, made when missing; the folder above it must exist
	CacheBytes int64        // default 8 MiB: blocks of tables held in memory
	Logger     *slog.Logger // default discards: work in the background that failed, and why the index has failed
	Bugs       Bugs         // faults for the harness's exam; zero in production
}

// Bugs are faults that the harness seeds to show that its tests catch them.
type Bugs struct {
	AppliedAhead  Space // not zero: the table of this space is ingested alone, before the others
	SkipTableSync bool  // tables of a cut are not synced before they are installed
	SkipDirSync   bool  // no directory is ever synced
}

// Index is a store of sorted keys. Its methods are safe for concurrent use.
//
// An error of a read or of an install leaves it as it was. One kind of error is
// final: when a change of the manifest failed half way, when a directory could
// not be synced, or when a table turned out to be corrupt, nobody knows what a
// restart will find. The index then refuses all further use with the same
// error, which [Index.Err] gives, and no longer touches the disk. Close it and
// open it again: a cut whose install failed in this way is then there as a
// whole or not at all.
type Index struct {
	dir     string
	tables  string // the folder of Pebble
	cutsDir string // the folder in which cuts are built
	lock    *pebble.Lock
	db      *pebble.DB
	opts    *pebble.Options
	disk    *disk
	sched   *scheduler
	failure *failure
	bugs    Bugs
	cuts    atomic.Uint64 // numbers the folders of cuts under construction

	mu     sync.Mutex
	closed bool
	calls  int // running, Close waits for them
	iters  int // open, Close refuses while there are any
	quiet  sync.Cond
}

// Open opens the index in o.Dir, or makes an empty one, and removes what
// unfinished cuts left behind. The folder is locked against other processes. A
// damaged index gives an error of class [ErrCorrupt].
func Open(o Options) (*Index, error) {
	if o.FS == nil || o.Dir == "" {
		return nil, errors.New("index: FS and Dir are required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	x := &Index{dir: o.Dir, bugs: o.Bugs}
	x.tables, x.cutsDir = o.FS.PathJoin(o.Dir, "tables"), o.FS.PathJoin(o.Dir, "cuts")
	x.quiet.L = &x.mu
	x.failure = &failure{dir: o.Dir, logger: o.Logger}
	x.disk = &disk{FS: o.FS, failure: x.failure, bugs: o.Bugs}
	x.sched = newScheduler(x.failure)
	x.opts = pebbleOptions(o, x)
	if err := x.open(); err != nil {
		return nil, fmt.Errorf("index %s: %w", o.Dir, classify(err))
	}
	if err := x.failure.get(); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// Get appends the value of a key to dst and returns the longer slice. Without
// the key, ok is false and dst comes back as it was.
func (x *Index) Get(dst []byte, s Space, key []byte) (value []byte, ok bool, err error) {
	if err := x.enter(); err != nil {
		return dst, false, err
	}
	defer x.leave()
	var buf [64]byte
	found, closer, err := x.db.Get(appendKey(buf[:0], s, key))
	if errors.Is(err, pebble.ErrNotFound) {
		return dst, false, nil
	}
	if err != nil {
		return dst, false, x.readError(s, err)
	}
	dst = append(dst, found...)
	if err := closer.Close(); err != nil {
		return dst, false, x.readError(s, err)
	}
	return dst, true, nil
}

// Excise drops every key of a space in [lower, upper), those of older cuts as
// well as of the newest; a nil bound is the end of the space. Iterators that
// are open keep their view. It is durable on return. Whole tables vanish in
// well under a millisecond and others are clipped without being rewritten, but
// compactions that touch the range are cancelled, so do it now and then and
// not in every cut.
func (x *Index) Excise(s Space, lower, upper []byte) error {
	if err := checkSpace(s); err != nil {
		return err
	}
	lo, hi := bounds(s, lower, upper)
	if string(lo) >= string(hi) {
		return nil
	}
	if err := x.enter(); err != nil {
		return err
	}
	defer x.leave()
	err := x.db.Excise(background(), pebble.KeyRange{Start: lo, End: hi})
	if err := x.outcome(err); err != nil {
		return fmt.Errorf("index %s: excise in space %#02x: %w", x.dir, byte(s), err)
	}
	return nil
}

// Err gives the error that has made the index unusable, nil while it is usable.
func (x *Index) Err() error { return x.failure.get() }

// Close waits for calls that are running and closes the index. While iterators
// are open it does nothing but return an error that names how many: close them
// and call it again. Cuts that are not installed are lost.
func (x *Index) Close() error {
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		return nil
	}
	if x.iters > 0 {
		defer x.mu.Unlock()
		return fmt.Errorf("index %s: cannot close, open iterators: %d", x.dir, x.iters)
	}
	x.closed = true
	for x.calls > 0 {
		x.quiet.Wait()
	}
	x.mu.Unlock()
	if err := errors.Join(x.db.Close(), x.lock.Close()); err != nil {
		return fmt.Errorf("index %s: close: %w", x.dir, err)
	}
	return nil
}

// enter admits a call and keeps Close from passing it. Pebble panics when it is
// called after its end, and after a final error its state is not to be trusted.
func (x *Index) enter() error {
	if err := x.failure.get(); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return fmt.Errorf("index %s: %w", x.dir, ErrClosed)
	}
	x.calls++
	return nil
}

func (x *Index) leave() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls--
	if x.calls == 0 {
		x.quiet.Broadcast()
	}
}

// outcome judges a change of the index. After a final error the change may or
// may not be there, whatever Pebble says. After another one the disk is probably
// full and compactions, which need room before they give any, are held back
// until a change has succeeded.
func (x *Index) outcome(err error) error {
	if final := x.failure.get(); final != nil {
		return final
	}
	if err != nil {
		x.sched.pause()
		return classify(err)
	}
	x.sched.resume()
	return nil
}

func (x *Index) readError(s Space, err error) error {
	if final := x.failure.get(); final != nil {
		return final
	}
	return fmt.Errorf("index %s: read space %#02x: %w", x.dir, byte(s), classify(err))
}

// classify gives Pebble's corruption its class here.
func classify(err error) error {
	if err != nil && pebble.IsCorruptionError(err) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

func checkSpace(s Space) error {
	if s == 0x00 || s == 0xff {
		return fmt.Errorf("index: %#02x is not a space", byte(s))
	}
	return nil
}

func appendKey(dst []byte, s Space, key []byte) []byte {
	return append(append(dst, byte(s)), key...)
}

// bounds turns bounds within a space into bounds of the whole, in memory of
// their own.
func bounds(s Space, lower, upper []byte) (lo, hi []byte) {
	lo = appendKey(nil, s, lower)
	if upper == nil {
		return lo, []byte{byte(s) + 1}
	}
	return lo, appendKey(nil, s, upper)
}

// background is what Pebble's calls take for tracing. None of them can be
// abandoned half way, so no caller's context belongs here.
func background() context.Context {
	return context.Background() //nolint:forbidigo // see above
}
