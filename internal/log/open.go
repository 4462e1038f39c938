package log

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/duemq/duemq/internal/record"
)

// maxMarksBytes bounds what is read as marks: four million openings, each with
// something written after it, within the segments that are kept.
const maxMarksBytes = 64 << 20

// Open opens the log in o.Dir or makes it. It reads from the place from on,
// which the caller knows to be synced, and verifies every batch there; the zero
// Start reads all. What it found is synced, and a mark of a new epoch that
// begins at its end, when it returns.
//
// It refuses with a [DamageError] where acknowledged bytes are gone or changed,
// also when from is ahead of the log, and with a [record.ErrVersion] where
// another version wrote. from below what is kept is an ErrRemoved. A failed
// opening changes nothing that another one would miss.
//
// The caller sees to it that one process at a time has the folder open.
func Open(o Options, from Start) (*Log, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Log{
		options: o,
		seed:    newSeed(o.StoreID),
		disk:    disk{fs: o.FS, dir: o.Dir, skip: o.Bugs.SkipDirSync},
	}
	if err := l.disk.open(); err != nil {
		return nil, err
	}
	if err := l.recover(from); err != nil {
		if l.file != nil {
			err = errors.Join(err, l.file.Close())
		}
		return nil, errors.Join(err, l.disk.close())
	}
	return l, nil
}

// recover finds the log's end and makes it the end on the disk too.
func (l *Log) recover(from Start) error {
	kept, err := survey(&l.disk, &l.options)
	if err != nil {
		return err
	}
	l.marks = kept.marks
	e := ending{l: l, kept: kept}
	if len(kept.segments) > 0 {
		if err := e.find(from); err != nil {
			return err
		}
	} else if from != (Start{}) && from != l.options.Origin {
		return &DamageError{File: l.disk.dir, Reason: fmt.Sprintf("no log here, but batch %d was applied", from.Index)}
	}
	l.view = view{segments: kept.segments, last: e.last}
	if err := l.clear(kept); err != nil {
		return err
	}
	if err := l.settle(&e); err != nil {
		return err
	}
	l.recovered = Recovery{
		From: from, End: l.view.last, Batches: e.batches, Bytes: e.bytes, Torn: e.torn, Reason: e.reason,
		Epoch: l.epoch(), Fresh: kept.fresh,
	}
	return nil
}

// settle makes what was found durable, begins an epoch behind it and opens the
// segment that is written.
func (l *Log) settle(e *ending) error {
	if len(l.view.segments) > 0 {
		if err := l.write(l.active()); err != nil {
			return err
		}
		if err := e.rewrite(); err != nil {
			return err
		}
		if err := l.file.Sync(); err != nil {
			return fmt.Errorf("%s: sync: %w", l.active().path, err)
		}
	}
	if err := l.mark(e.last.Position); err != nil { // syncs the folder too
		return err
	}
	l.synced.Store(e.last.Position)
	if len(l.view.segments) > 0 {
		return nil
	}
	origin := l.options.Origin
	name, err := l.obtain(origin.Position)
	if err != nil {
		return err
	}
	if err := l.begin(name, origin.Position, origin); err != nil {
		return err
	}
	// From now on a folder without segments is not a log that is new.
	if err := l.mark(origin.Position); err != nil {
		return err
	}
	l.synced.Store(origin.Position)
	return nil
}

// A holding is what a log's folder holds before anything in it is believed
// beyond its own checksum.
type holding struct {
	fresh    bool       // neither marks nor segments
	marks    marks      //
	segments []*segment // in order and without gaps
	stale    []*segment // from before the newest mark that is at or below them
	spares   []string
	leftover []string // files that never got their name
}

// survey reads the folder, the marks and all headers.
func survey(d *disk, o *Options) (*holding, error) {
	names, err := d.fs.List(d.dir)
	if err != nil {
		return nil, fmt.Errorf("folder of the log: %w", err)
	}
	sort.Strings(names)
	kept := &holding{}
	var bases []uint64
	for _, name := range names {
		if base, ok := parseName(name, segmentSuffix); ok {
			bases = append(bases, base)
		} else if _, ok := parseName(name, spareSuffix); ok {
			kept.spares = append(kept.spares, name)
		} else if strings.HasSuffix(name, tempSuffix) {
			kept.leftover = append(kept.leftover, name)
		}
	}
	if err := kept.readMarks(d, o, len(bases)); err != nil {
		return nil, err
	}
	for _, base := range bases {
		name := fileName(base, segmentSuffix)
		h, err := readHeader(d, name, base, o)
		if err != nil {
			return nil, err
		}
		if err := kept.place(&segment{header: h, path: d.path(name)}); err != nil {
			return nil, err
		}
	}
	if newest := kept.marks.newest(); len(kept.segments) == 0 && newest.start > 0 {
		return nil, &DamageError{File: d.path(marksName), Reason: fmt.Sprintf("everything before position %d was synced, but there is no segment", newest.start)}
	}
	return kept, nil
}

func (k *holding) readMarks(d *disk, o *Options, segments int) error {
	path := d.path(marksName)
	raw, err := readSmall(d.fs, path, maxMarksBytes)
	if errors.Is(err, os.ErrNotExist) {
		if segments > 0 {
			return &DamageError{File: path, Reason: "marks are missing beside segments, so which batches are stale is unknown"}
		}
		k.fresh = true
		return nil
	}
	if err != nil {
		return err
	}
	id, m, err := decodeMarks(raw)
	switch {
	case errors.Is(err, record.ErrCorrupt):
		return &DamageError{File: path, Reason: string(reason(err))}
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case id != o.StoreID:
		return &DamageError{File: path, Offset: 8, Reason: fmt.Sprintf("marks of store %x, this is store %x", id, o.StoreID)}
	}
	k.marks = m
	return nil
}

// place puts a segment where it belongs: with the log, or with what is stale.
// Segments come in order.
func (k *holding) place(s *segment) error {
	want := k.marks.epochAt(s.base + HeaderBytes)
	switch {
	case s.base%uint64(s.segmentBytes) != 0:
		return &DamageError{File: s.path, Offset: 32, Reason: "segment begins within another"}
	case len(k.segments)+len(k.stale) == 0 && s.prev.Position == s.base && s.epoch <= want:
		// A log's first segment stays when all is cut off it: what replaces its
		// first batch has no place before it.
	case s.epoch < want:
		k.stale = append(k.stale, s)
		return nil
	case s.epoch > want:
		return &DamageError{File: s.path, Offset: 40, Reason: fmt.Sprintf("segment of epoch %d where the marks know %d, so they are older than the log", s.epoch, want)}
	}
	if n := len(k.segments); n > 0 {
		if next := k.segments[n-1].base + uint64(s.segmentBytes); s.base != next {
			return &DamageError{File: strings.TrimSuffix(s.path, fileName(s.base, segmentSuffix)) + fileName(next, segmentSuffix), Reason: "segment is missing"}
		}
	}
	k.segments = append(k.segments, s)
	return nil
}

// clear removes what is stale, empty or left over. What it removes would be
// removed as well by a later opening.
func (l *Log) clear(kept *holding) error {
	for _, name := range kept.leftover {
		if err := l.disk.fs.Remove(l.disk.path(name)); err != nil {
			return err
		}
	}
	l.spares = kept.spares
	for len(l.spares) > l.options.Spares {
		last := len(l.spares) - 1
		if err := l.disk.fs.Remove(l.disk.path(l.spares[last])); err != nil {
			return err
		}
		l.spares = l.spares[:last]
	}
	// A segment without a batch goes too: the next batch may be a smaller one
	// that has its place in the segment before.
	keep := l.view.filled()
	empty := l.view.segments[keep:]
	l.view.segments = l.view.segments[:keep]
	for _, s := range slices.Concat(empty, kept.stale) {
		l.options.Logger.Info("log segment removed at recovery", slog.String("file", s.path), slog.Uint64("epoch", s.epoch))
		if err := l.retire(s); err != nil {
			return err
		}
	}
	return nil
}

// filled is how many of the segments hold a batch of the log, and at least the
// first.
func (v *view) filled() int {
	n := len(v.segments)
	for n > 1 && v.segments[n-1].base+HeaderBytes >= v.last.Position {
		n--
	}
	return n
}

// retire takes away a segment's file: it becomes a spare, or is removed. The
// folder is not synced yet.
func (l *Log) retire(s *segment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked()
	l.handles.drop(s)
	if len(l.spares) >= l.options.Spares {
		if err := l.disk.fs.Remove(s.path); err != nil {
			return fmt.Errorf("segment %s: %w", s.path, err)
		}
		s.gone = true
		return nil
	}
	name := fileName(s.base, spareSuffix)
	if err := l.disk.fs.Rename(s.path, l.disk.path(name)); err != nil {
		return fmt.Errorf("segment %s: %w", s.path, err)
	}
	s.gone = true
	if !slices.Contains(l.spares, name) { // else it took the place of an older one
		l.spares = append(l.spares, name)
	}
	return nil
}
