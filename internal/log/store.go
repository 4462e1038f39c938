package log

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/record"
)

// The STORE file is text, for the eyes of whoever finds the folder; see
// docs/formats/store.md.
const (
	storeName     = "STORE"
	storeTitle    = "duemq store"
	storeFormat   = 1
	maxStoreBytes = 4 << 10
)

// StoreOptions say how a store is made. An existing store is as it was made.
type StoreOptions struct {
	SegmentBytes int64     // default 64 MiB; see Options.SegmentBytes
	Rand         io.Reader // required to make a store: where its id comes from
	Log          string    // folder of the log: no store is made beside segments that are there already
}

// StoreInfo is what the STORE file says.
type StoreInfo struct {
	ID           [16]byte // random; in every file header and local checksum
	Format       int      // version of the store's formats as a whole
	SegmentBytes int64    // fixed when the store was made
	Created      bool     // made by this call
}

// OpenStore reads the STORE file of dir or makes the store: the folder, an id
// and the file, synced with the folder and its parents when it returns. A crash
// leaves either no STORE file or a whole one.
//
// A store of another format is a [record.ErrVersion], bytes that cannot be a
// STORE file a [DamageError].
func OpenStore(fs vfs.FS, dir string, o StoreOptions) (StoreInfo, error) {
	name := fs.PathJoin(dir, storeName)
	raw, err := readSmall(fs, name, maxStoreBytes)
	if errors.Is(err, os.ErrNotExist) {
		return createStore(fs, dir, o)
	}
	if err != nil {
		return StoreInfo{}, err
	}
	info, err := decodeStore(raw)
	if errors.Is(err, record.ErrCorrupt) {
		return StoreInfo{}, &DamageError{File: name, Reason: string(reason(err))}
	}
	if err != nil {
		return StoreInfo{}, fmt.Errorf("%s: %w", name, err)
	}
	return info, nil
}

func createStore(fs vfs.FS, dir string, o StoreOptions) (StoreInfo, error) {
	info := StoreInfo{Format: storeFormat, SegmentBytes: o.SegmentBytes, Created: true}
	if info.SegmentBytes == 0 {
		info.SegmentBytes = DefaultSegmentBytes
	}
	if err := checkSegmentBytes(info.SegmentBytes); err != nil {
		return StoreInfo{}, err
	}
	if o.Rand == nil {
		return StoreInfo{}, fmt.Errorf("new store in %s: no source of randomness for its id", dir)
	}
	if _, err := io.ReadFull(o.Rand, info.ID[:]); err != nil {
		return StoreInfo{}, fmt.Errorf("id of the new store in %s: %w", dir, err)
	}
	if err := noSegments(fs, o.Log); err != nil {
		return StoreInfo{}, fmt.Errorf("%s is missing: %w", fs.PathJoin(dir, storeName), err)
	}
	d := disk{fs: fs, dir: dir}
	if err := d.open(); err != nil {
		return StoreInfo{}, err
	}
	if err := errors.Join(d.replace(storeName, encodeStore(&info)), d.close()); err != nil {
		return StoreInfo{}, err
	}
	return info, nil
}

// noSegments refuses a folder that holds the log of a store.
func noSegments(fs vfs.FS, dir string) error {
	if dir == "" {
		return nil
	}
	names, err := fs.List(dir)
	if err != nil {
		return nil //nolint:nilerr // no folder, no segments
	}
	for _, name := range names {
		if strings.HasSuffix(name, segmentSuffix) {
			return fmt.Errorf("%w: %s holds the log of a store; restore the file, or move the folder away to begin a new store",
				record.ErrCorrupt, dir)
		}
	}
	return nil
}

// encodeStore gives the STORE file's text.
func encodeStore(s *StoreInfo) []byte {
	dst := fmt.Appendf(nil, "%s\nformat %d\nid %x\nsegment-bytes %d\n", storeTitle, s.Format, s.ID, s.SegmentBytes)
	return fmt.Appendf(dst, "checksum %08x\n", record.Checksum(0, dst))
}

// decodeStore reads what encodeStore wrote, every byte of it. Another format is
// told from damage before anything else is looked at, and refused with a
// sentence that says what to do.
func decodeStore(src []byte) (StoreInfo, error) {
	head, rest, _ := bytes.Cut(src, []byte("\n"))
	format, _, _ := bytes.Cut(rest, []byte("\n"))
	number, isFormat := strings.CutPrefix(string(format), "format ")
	if string(head) != storeTitle || !isFormat {
		return StoreInfo{}, fmt.Errorf("%w: not a STORE file", record.ErrCorrupt)
	}
	s := StoreInfo{}
	var err error
	if s.Format, err = strconv.Atoi(number); err != nil || s.Format < 1 {
		return StoreInfo{}, fmt.Errorf("%w: store format %q", record.ErrCorrupt, number)
	}
	if s.Format > storeFormat {
		return StoreInfo{}, fmt.Errorf("%w: this store has format %d and was written by a newer duemq; "+
			"this one reads format %d, so run the newer one", record.ErrVersion, s.Format, storeFormat)
	}
	for line := range strings.Lines(string(src)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch name {
		case "id":
			if id, err := hex.DecodeString(value); err == nil && len(id) == len(s.ID) {
				s.ID = [16]byte(id)
			}
		case "segment-bytes":
			s.SegmentBytes, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	// One way to write a store is the only way to read it.
	if !bytes.Equal(encodeStore(&s), src) {
		return StoreInfo{}, fmt.Errorf("%w: STORE file with another text or checksum", record.ErrCorrupt)
	}
	if err := checkSegmentBytes(s.SegmentBytes); err != nil {
		return StoreInfo{}, fmt.Errorf("%w: %w", record.ErrCorrupt, err)
	}
	return s, nil
}
