// Package index keeps what is too old for memory: sorted tables of keys and
// values in spaces, replaced by whole cuts.
//
// It is Pebble with its write-ahead log off. Nothing is ever written to it but
// cuts: a [Cut] builds one table per space and installs all of them in one
// atomic ingest, so that after any crash either every space holds the cut or
// none does. The log is the truth and the index only its memory, so an index
// that cannot be read may be deleted.
//
// The package knows nothing of keys beyond their first byte, the [Space].
package index

import (
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A Space is the first byte of a key: one kind of thing that the index holds.
type Space byte

// Options configure an index. Zero means the default.
type Options struct {
	FS         vfs.FS       // required
	Dir        string       // required; made when missing
	CacheBytes int64        // default 8 MiB: blocks held in memory
	Logger     *slog.Logger // default: discards
	Bugs       Bugs         // faults for the harness's exam; zero in production
}

// Bugs are faults that the harness seeds to show that it would catch them.
type Bugs struct {
	// AppliedAhead installs the table of the given space in an ingest of its own
	// before the others, when not zero.
	AppliedAhead Space
}

// Index is a store of sorted keys. Its methods are safe for concurrent use.
type Index struct{}

// Open opens the index in o.Dir, or makes one, and removes what unfinished cuts
// left behind.
func Open(o Options) (*Index, error) { return &Index{}, nil }

// Get appends the value of a key to dst; ok is false when there is none.
func (x *Index) Get(dst []byte, s Space, key []byte) (value []byte, ok bool, err error) {
	return dst, false, nil
}

// NewIter opens an iterator over the keys of a space in [lower, upper). A nil
// bound is the end of the space.
func (x *Index) NewIter(s Space, lower, upper []byte) (*Iter, error) { return &Iter{}, nil }

// NewCut begins a cut.
func (x *Index) NewCut() *Cut { return &Cut{} }

// Excise drops every key of a space in [lower, upper), durably and at once.
func (x *Index) Excise(s Space, lower, upper []byte) error { return nil }

// Metrics reads the figures of the index.
func (x *Index) Metrics() Metrics { return Metrics{} }

// Err gives the error that has closed the index to all further use, if any.
func (x *Index) Err() error { return nil }

// Close closes the index.
func (x *Index) Close() error { return nil }

// Metrics are figures of an index at one moment.
type Metrics struct {
	ReadAmp       int
	DebtBytes     int64
	DiskBytes     int64
	IngestedBytes int64
	CompactBytes  int64
	CacheBytes    int64
	CacheHits     int64
	CacheMisses   int64
	OpenIters     int
}

// Iter walks over the keys of one space. It keeps the view that it had when it
// was opened.
type Iter struct{}

// First goes to the first key.
func (i *Iter) First() bool { return false }

// Last goes to the last key.
func (i *Iter) Last() bool { return false }

// SeekGE goes to the first key at or after key.
func (i *Iter) SeekGE(key []byte) bool { return false }

// SeekLT goes to the last key before key.
func (i *Iter) SeekLT(key []byte) bool { return false }

// Next goes one key on.
func (i *Iter) Next() bool { return false }

// Prev goes one key back.
func (i *Iter) Prev() bool { return false }

// Valid says whether the iterator stands on a key.
func (i *Iter) Valid() bool { return false }

// Key gives the key, without its space. It is valid until the iterator moves.
func (i *Iter) Key() []byte { return nil }

// Value gives the value. It is valid until the iterator moves.
func (i *Iter) Value() ([]byte, error) { return nil, nil }

// Error gives the error that ended the walk, if any.
func (i *Iter) Error() error { return nil }

// Close ends the view. It must be called.
func (i *Iter) Close() error { return nil }

// A Cut collects the tables of one atomic install. It is not safe for
// concurrent use.
type Cut struct{}

// Set gives a key its value.
func (c *Cut) Set(s Space, key, value []byte) error { return nil }

// Delete removes a key.
func (c *Cut) Delete(s Space, key []byte) error { return nil }

// Add adds delta to the sum that a key holds.
func (c *Cut) Add(s Space, key []byte, delta int64) error { return nil }

// DeleteRange removes the older keys in [lower, upper).
func (c *Cut) DeleteRange(s Space, lower, upper []byte) error { return nil }

// Install finishes and installs the cut.
func (c *Cut) Install() error { return nil }

// Abort throws the cut away.
func (c *Cut) Abort() {}

// Bytes says how many bytes of tables were built so far, about.
func (c *Cut) Bytes() int64 { return 0 }
