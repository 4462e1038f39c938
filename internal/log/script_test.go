package log

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// TestScript runs the conversations in testdata/script. -rewrite writes the
// answers anew; read the difference.
func TestScript(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		s := &script{disk: fs.NewMem(), places: map[string]Start{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t, s.d, s.salt = t, d, s.salt+1
			out, err := s.run()
			if err != nil {
				return out + s.fault(err) + "\n"
			}
			return out
		})
	})
}

type script struct {
	t      *testing.T
	d      *datadriven.TestData
	disk   *vfs.MemFS
	log    *Log
	places map[string]Start // what `place` remembered
	salt   uint64
}

// fault is the error and its class.
func (s *script) fault(err error) string {
	for name, class := range map[string]error{
		"removed": ErrRemoved, "range": ErrRange, "gap": ErrGap, "closed": ErrClosed, "damage": record.ErrCorrupt,
		"too large": record.ErrTooLarge,
	} {
		if errors.Is(err, class) {
			return fmt.Sprintf("error (%s): %v", name, err)
		}
	}
	return "error: " + err.Error()
}

func (s *script) number(key string, otherwise int) int {
	s.d.MaybeScanArgs(s.t, key, &otherwise)
	return otherwise
}

// from is the place that the argument of that name was remembered as.
func (s *script) from() Start {
	var name string
	s.d.MaybeScanArgs(s.t, "from", &name)
	return s.places[name]
}

func (s *script) run() (string, error) {
	if s.log == nil && s.d.Cmd != "open" {
		switch s.d.Cmd {
		case "verify", "crash", "flip", "files":
		default:
			return "", ErrClosed
		}
	}
	switch s.d.Cmd {
	case "open":
		return s.open()
	case "append":
		return s.append()
	case "sync":
		return "", s.log.Sync()
	case "close":
		err := s.log.Close()
		s.log = nil
		return "", err
	case "crash": // nothing that was not synced survives, or all of it
		cfg := crashNothing
		if s.d.HasArg("keep") {
			cfg = vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: crashRNG()}
		}
		s.disk, s.log = s.disk.CrashClone(cfg), nil
		return "", nil
	case "flip":
		base, off := s.number("segment", 0), s.number("byte", 0)
		return "", flipBit(s.disk, segmentPath(s.disk, uint64(base)*MinSegmentBytes), int64(off)*8)
	case "place":
		s.places[s.d.CmdArgs[0].Key] = s.log.End()
		return fmt.Sprintf("behind batch %d at %s\n", s.log.End().Index, at(s.log.End().Position)), nil
	case "truncate":
		return "", s.log.TruncateSuffix(uint64(s.number("from", 0)))
	case "remove":
		return "", s.log.RemoveBefore(uint64(s.number("before", 0)) * MinSegmentBytes)
	case "verify":
		return s.verify()
	case "files":
		return s.files()
	}
	return s.look()
}

// look answers what changes nothing.
func (s *script) look() (string, error) {
	var b strings.Builder
	switch s.d.Cmd {
	case "replay":
		err := s.log.Replay(s.from(), func(pos uint64, batch *record.Batch) error {
			fmt.Fprintf(&b, "batch %d at %s, %d bytes\n", batch.Index, at(pos), frameBytes(batch.Size()))
			return nil
		})
		return b.String(), err
	case "get":
		pos, batch, err := s.log.Get(uint64(s.number("index", 0)))
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("batch %d at %s\n", batch.Index, at(pos)), nil
	case "locate":
		pos, batch, err := s.log.Locate(uint64(s.number("position", 0)))
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("in batch %d at %s\n", batch.Index, at(pos)), nil
	case "segments":
		for _, g := range s.log.Segments() {
			fmt.Fprintf(&b, "%s to %s, first batch %d\n", at(g.Base), at(g.End), g.First)
		}
		fmt.Fprintf(&b, "log %d to %d, synced to %s\n", s.log.FirstIndex(), s.log.LastIndex(), at(s.log.Synced()))
		return b.String(), nil
	}
	return "", fmt.Errorf("unknown command %s", s.d.Cmd)
}

// at is a position as number of the segment and offset in it.
func at(pos uint64) string { return fmt.Sprintf("%d:%d", pos/MinSegmentBytes, pos%MinSegmentBytes) }

func (s *script) open() (string, error) {
	l, err := Open(testOptions(s.disk), s.from())
	if err != nil {
		return "", err
	}
	s.log = l
	r := l.Recovered()
	out := fmt.Sprintf("%d batches recovered, log ends with %d at %s, epoch %d\n", r.Batches, r.End.Index, at(r.End.Position), r.Epoch)
	if r.Torn > 0 {
		out += fmt.Sprintf("%d bytes dropped: %s\n", r.Torn, r.Reason)
	}
	return out, nil
}

func (s *script) append() (string, error) {
	n, size := s.number("n", 1), s.number("size", 1000)
	batches, pos := make([]*record.Batch, n), make([]uint64, n)
	for i := range batches {
		batches[i] = testBatch(s.log.LastIndex()+1+uint64(i), size, s.salt)
	}
	if skip := s.number("skip", 0); skip > 0 {
		batches[0].Index += uint64(skip)
	}
	if err := s.log.Append(batches, pos); err != nil {
		return "", err
	}
	var b strings.Builder
	for i := range batches {
		fmt.Fprintf(&b, "batch %d at %s\n", batches[i].Index, at(pos[i]))
	}
	return b.String(), nil
}

func (s *script) verify() (string, error) {
	r, err := Verify(testOptions(s.disk), nil)
	var b strings.Builder
	fmt.Fprintf(&b, "%d segments, %d batches, %d messages, %d torn bytes\n", r.Segments, r.Batches, r.Messages, r.Torn)
	for _, d := range r.Damage {
		fmt.Fprintf(&b, "damage: %v\n", d)
	}
	return b.String(), err
}

func (s *script) files() (string, error) {
	names, err := s.disk.List(testDir)
	sort.Strings(names)
	return strings.Join(names, "\n") + "\n", err
}
