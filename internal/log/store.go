package log

import (
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// StoreOptions configure the creation of a store.
type StoreOptions struct {
	SegmentBytes int64     // default 64 MiB; only used when the store is created
	Rand         io.Reader // required; where a new store's id comes from
}

// StoreInfo is what the STORE file says.
type StoreInfo struct {
	ID           [16]byte
	Format       int
	SegmentBytes int64
	Created      bool // by this call
}

// OpenStore reads dir's STORE file or creates it.
func OpenStore(fs vfs.FS, dir string, o StoreOptions) (StoreInfo, error) {
	return StoreInfo{}, errSkeleton
}
