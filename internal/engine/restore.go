package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/duemq/duemq/internal/backup"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
)

// ErrNotEmpty refuses a folder for a restored store that holds something.
var ErrNotEmpty = errors.New("data folder is not empty")

const (
	// restoreName is the folder in which the STORE file waits until all else is
	// there. Without that file nothing opens the log beside it.
	restoreName = ".restore"

	// restoreCut is about how many bytes of tables are installed in the index at
	// a time. All at once would need tables of any size.
	restoreCut = 64 << 20
)

// RestoreBackup makes a store in o.Dir of what [Engine.Backup] wrote. Of o it
// reads FS, Dir, Rand, CacheBytes and Logger; the size of segments is that of
// the source. The folder is empty or missing, or holds what an earlier restore
// left that was cut off, else it is an [ErrNotEmpty]. The store has an id of its
// own; positions, and with them the ids of messages, are those of the source.
// [Open] opens it.
//
// The store is durable and whole when it returns nil. Otherwise nothing in the
// folder opens as a store with messages, whenever a crash comes. Whatever is
// wrong with the stream is a [backup.ErrIncomplete], a [record.ErrCorrupt] or a
// [record.ErrVersion]; what was made of it is removed. progress, if not nil,
// hears of the bytes read and of an estimate of all. Memory is bounded by a few
// mebibytes.
func RestoreBackup(ctx context.Context, o Options, r io.Reader, progress func(done, total int64)) (BackupInfo, error) {
	o.setDefaults()
	in, err := backup.NewReader(r)
	if err != nil {
		return BackupInfo{}, fmt.Errorf("restore: %w", err)
	}
	s := &restoring{o: o, in: in, head: in.Head(), progress: progress}
	s.info = infoOf(&s.head)
	if err := s.claim(); err != nil {
		return s.info, fmt.Errorf("restore: %w", err)
	}
	err = s.run(ctx)
	if err != nil {
		err = fmt.Errorf("restore: %w", errors.Join(err, s.undo()))
	}
	return s.info, errors.Join(err, s.lock.Close())
}

// A restoring is one RestoreBackup under way.
type restoring struct {
	o        Options
	in       *backup.Reader
	head     backup.Head
	info     BackupInfo
	progress func(done, total int64)
	lock     io.Closer
	log      *log.Log
	index    *index.Index

	cut       *index.Cut
	applied   []byte // the state's place in the log as the source knew it
	batches   []record.Batch
	wanted    []uint64 // their positions
	appliedAt uint64   // position of the last batch that the index holds
	placed    bool     // from now on the store may be there
}

func (s *restoring) path(names ...string) string {
	path := s.o.Dir
	for _, n := range names {
		path = s.o.FS.PathJoin(path, n)
	}
	return path
}

// claim takes the folder, or refuses it and changes nothing in it.
func (s *restoring) claim() error {
	if err := s.vacant(); err != nil {
		return err
	}
	if err := makeFolder(s.o.FS, s.o.Dir); err != nil {
		return err
	}
	lock, err := s.o.FS.Lock(s.path("LOCK"))
	if err != nil {
		return cannotLock(s.o.Dir, err)
	}
	if err := s.vacant(); err != nil { // somebody was faster
		return errors.Join(err, lock.Close())
	}
	s.lock = lock
	return nil
}

// vacant says whether the folder may be filled.
func (s *restoring) vacant() error {
	names, err := s.o.FS.List(s.o.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	allowed := []string{"LOCK", "lost+found"}
	if slices.Contains(names, restoreName) && !slices.Contains(names, "STORE") {
		allowed = append(allowed, restoreName, "log", "index") // left by a restore that did not finish
	}
	for _, n := range names {
		if !slices.Contains(allowed, n) {
			return fmt.Errorf("%w: %s holds %s; name one that is empty or does not exist", ErrNotEmpty, s.o.Dir, n)
		}
	}
	return nil
}

func (s *restoring) run(ctx context.Context) error {
	if err := s.clear(); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	s.cut = s.index.NewCut()
	defer func() { s.cut.Abort() }()
	for {
		entry, err := s.in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := s.take(&entry); err != nil {
			return err
		}
		if s.in.More() {
			continue
		}
		if err := errors.Join(ctx.Err(), s.flush()); err != nil { //nolint:contextcheck // a cut is finished, not left half way
			return err
		}
	}
	if err := s.finish(); err != nil { //nolint:contextcheck // as above
		return err
	}
	return s.place()
}

// clear removes what an earlier restore left. The folder that says what the rest
// is goes last, and not before the rest is gone from the disk.
func (s *restoring) clear() error {
	for _, n := range []string{"log", "index", restoreName} {
		if n == restoreName {
			if err := syncFolder(s.o.FS, s.o.Dir); err != nil {
				return err
			}
		}
		if err := s.o.FS.RemoveAll(s.path(n)); err != nil {
			return fmt.Errorf("data folder: %w", err)
		}
	}
	return nil
}

// open makes the parts of the store: a log that begins where the source's does.
func (s *restoring) open() error {
	store, err := log.OpenStore(s.o.FS, s.path(restoreName), log.StoreOptions{SegmentBytes: s.head.SegmentBytes, Rand: s.o.Rand})
	if err != nil {
		return err
	}
	s.info.Restored = store.ID
	// Whoever finds a log later must also find what says that it is half of one.
	if err := syncFolder(s.o.FS, s.o.Dir); err != nil {
		return err
	}
	s.log, err = log.Open(log.Options{
		FS: s.o.FS, Dir: s.path("log"), StoreID: store.ID, SegmentBytes: store.SegmentBytes, Origin: s.origin(),
		Preallocate: true, Logger: s.o.Logger, Bugs: s.o.Bugs.Log,
	}, log.Start{})
	if err != nil {
		return err
	}
	s.index, err = index.Open(index.Options{
		FS: s.o.FS, Dir: s.path("index"), CacheBytes: s.o.CacheBytes, Logger: s.o.Logger, Bugs: s.o.Bugs.Index,
	})
	return err
}

func (s *restoring) origin() log.Start {
	return log.Start{Index: s.head.First.Index, Position: s.head.First.Position}
}

// take keeps a batch for flush, or puts a pair into the index; the state's place
// in the log waits until the log is there.
func (s *restoring) take(entry *backup.Entry) error {
	switch {
	case entry.Position != 0:
		s.batches = append(s.batches, entry.Batch)
		s.wanted = append(s.wanted, entry.Position)
		return nil
	case index.Space(entry.Space) == SpaceState && string(entry.Key) == string(stateApplied):
		s.applied = slices.Clone(entry.Value)
		return nil
	}
	return s.cut.Set(index.Space(entry.Space), entry.Key, entry.Value)
}

// flush ends a frame of the stream.
func (s *restoring) flush() error {
	if s.cut.Bytes() >= restoreCut {
		if err := s.install(); err != nil {
			return err
		}
	}
	if err := s.append(); err != nil {
		return err
	}
	if s.progress != nil {
		done := s.in.Bytes()
		s.progress(done, max(done, s.head.Estimate))
	}
	return nil
}

func (s *restoring) install() error {
	err := s.cut.Install()
	s.cut = s.index.NewCut()
	return err
}

// append writes the batches of a frame to the log and demands that each stands
// where it did: its position is in the ids of its messages.
func (s *restoring) append() error {
	pointers := make([]*record.Batch, len(s.batches))
	for i := range s.batches {
		pointers[i] = &s.batches[i]
	}
	positions := make([]uint64, len(pointers))
	if err := s.log.Append(pointers, positions); err != nil {
		return err
	}
	for i, at := range positions {
		b := pointers[i]
		if at != s.wanted[i] {
			return fmt.Errorf("%w: batch %d stands at position %d and was at %d", record.ErrCorrupt, b.Index, at, s.wanted[i])
		}
		if b.Index == s.head.Applied.Index {
			s.appliedAt = at
		}
	}
	s.batches, s.wanted = s.batches[:0], s.wanted[:0]
	return nil
}

// finish makes log and index durable, the state's place in the log last.
func (s *restoring) finish() error {
	totals := s.in.Totals()
	s.info.Pairs, s.info.Batches, s.info.Bytes = totals.Pairs, totals.Batches, s.in.Bytes()
	if end := s.log.End(); end.Index != s.head.End.Index || end.Position != s.head.End.Position {
		return fmt.Errorf("%w: log ends with batch %d at position %d, the backup says %d at %d",
			record.ErrCorrupt, end.Index, end.Position, s.head.End.Index, s.head.End.Position)
	}
	if err := s.log.Sync(); err != nil {
		return err
	}
	if err := s.install(); err != nil {
		return err
	}
	if err := s.installApplied(); err != nil {
		return err
	}
	x, l := s.index, s.log
	s.index, s.log = nil, nil
	return errors.Join(x.Close(), l.Close())
}

// installApplied writes up to where the index holds the log. The place is the
// source's, but its checksum is this log's: it depends on the store's id.
func (s *restoring) installApplied() error {
	if s.applied == nil {
		if s.head.Applied.Index != 0 {
			return fmt.Errorf("%w: index of the backup without its place in the log", record.ErrCorrupt)
		}
		return nil
	}
	said, rest, err := splitApplied(s.applied)
	if err != nil {
		return err
	}
	at := s.origin()
	if s.appliedAt != 0 {
		if at, err = s.log.After(s.appliedAt); err != nil {
			return err
		}
	}
	if at.Index != said.Index || s.appliedAt != 0 && at.Position != said.Position {
		return fmt.Errorf("%w: index holds batch %d up to position %d, that is batch %d up to %d in the log",
			record.ErrCorrupt, said.Index, said.Position, at.Index, at.Position)
	}
	if err := s.cut.Set(SpaceState, []byte{stateApplied}, joinApplied(s.applied[0], at, rest)); err != nil {
		return err
	}
	return s.install()
}

// place puts the STORE file where it makes a store of the folder.
func (s *restoring) place() error {
	s.placed = true
	if err := s.o.FS.Rename(s.path(restoreName, "STORE"), s.path("STORE")); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if err := syncFolder(s.o.FS, s.o.Dir); err != nil {
		return err
	}
	if err := s.o.FS.RemoveAll(s.path(restoreName)); err != nil {
		s.o.Logger.Warn("restored, but a folder is left over", slog.String("folder", s.path(restoreName)), slog.Any("error", err))
	}
	return nil
}

// makeFolder makes a folder and its missing parents. Their names are durable when
// it returns, or a power cut could take away the store with its folder.
func makeFolder(disk fs.FS, dir string) error {
	above := []string{disk.PathDir(dir)} // to be synced even if dir is there: who knows whether its name ever was
	for at := above[0]; at != disk.PathDir(at); at = disk.PathDir(at) {
		if _, err := disk.Stat(at); err == nil {
			break
		}
		above = append(above, disk.PathDir(at))
	}
	if err := disk.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	for _, at := range slices.Backward(above) {
		if err := syncFolder(disk, at); err != nil && !errors.Is(err, os.ErrPermission) {
			return err
		}
	}
	return nil
}

func syncFolder(disk fs.FS, dir string) error {
	d, err := disk.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync of folder %s: %w", dir, err)
	}
	return nil
}

// undo removes what was made, unless it may be a store already.
func (s *restoring) undo() error {
	var errs []error
	if s.index != nil {
		errs = append(errs, s.index.Close())
	}
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	if s.placed {
		return errors.Join(errs...)
	}
	_ = s.clear() // what remains does not open, and the next restore removes it
	return nil
}

// splitApplied reads the place in the log out of the applied state of a cut, as
// appendApplied wrote it, and gives what follows.
func splitApplied(value []byte) (at log.Start, rest []byte, err error) {
	if len(value) == 0 || value[0] == 0 {
		return at, nil, fmt.Errorf("%w: applied state %x", record.ErrCorrupt, value)
	}
	if value[0] > appliedVersion {
		return at, nil, fmt.Errorf("%w: applied state %d of the index", record.ErrVersion, value[0])
	}
	var v [3]uint64
	rest = value[1:]
	for i := range v {
		x, n := binary.Uvarint(rest)
		if n <= 0 {
			return at, nil, fmt.Errorf("%w: applied state %x", record.ErrCorrupt, value)
		}
		v[i], rest = x, rest[n:]
	}
	return log.Start{Index: v[0], Position: v[1], Checksum: uint32(v[2])}, rest, nil
}

// joinApplied is splitApplied's reverse.
func joinApplied(version byte, at log.Start, rest []byte) []byte {
	dst := []byte{version}
	dst = binary.AppendUvarint(dst, at.Index)
	dst = binary.AppendUvarint(dst, at.Position)
	dst = binary.AppendUvarint(dst, uint64(at.Checksum))
	return append(dst, rest...)
}
