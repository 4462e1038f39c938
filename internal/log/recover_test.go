package log

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// FuzzRecover opens a log whose only segment holds arbitrary bytes behind its
// header, with one mark of epoch 2 at its beginning. It must not panic, nor
// accept a batch that a second reader, below, would not, nor take memory that
// the file does not account for.
func FuzzRecover(f *testing.F) {
	for _, sizes := range [][]int{{200}, {200, 300, 150}, {4000, 170, 5000}} {
		m, err := makeLog(sizes, 1)
		if err != nil {
			f.Fatal(err)
		}
		raw, err := readSmall(m.disk, segmentPath(m.disk, 0), MinSegmentBytes)
		if err != nil {
			f.Fatal(err)
		}
		body := raw[HeaderBytes:]
		f.Add(body)
		f.Add(body[:len(body)-100])
		cut := bytes.Clone(body)
		clear(cut[40:70])
		f.Add(cut)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		mem := vfs.NewMem()
		if err := mem.MkdirAll(testDir, 0o755); err != nil {
			t.Fatal(err)
		}
		h := header{id: testID, segmentBytes: MinSegmentBytes, epoch: 1}
		writeFile(t, mem, segmentPath(mem, 0), string(append(encodeHeader(&h), body...)))
		writeFile(t, mem, mem.PathJoin(testDir, marksName), string(encodeMarks(testID, marks{{1, 0}, {2, HeaderBytes}})))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		report, verr := Verify(testOptions(mem), nil)
		l, err := Open(testOptions(mem), Start{})
		runtime.ReadMemStats(&after)
		if grown, limit := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+64*len(body)); grown > limit {
			t.Errorf("%d bytes of memory for %d bytes of file", grown, len(body))
		}
		if err != nil {
			if !errors.Is(err, record.ErrCorrupt) && !errors.Is(err, record.ErrVersion) {
				t.Errorf("Open: %v", err)
			}
			if verr == nil && len(report.Damage) == 0 {
				t.Errorf("Open: %v, but Verify finds nothing", err)
			}
			return
		}
		if verr != nil || len(report.Damage) > 0 || report.Batches != l.LastIndex() {
			t.Errorf("opened %d batches, but Verify: %+v, %v", l.LastIndex(), report, verr)
		}
		second := secondReader(body)
		list, err := replay(l, Start{})
		if err != nil || len(list) != len(second) {
			t.Fatalf("replayed %d batches, %v; a second reader finds %d", len(list), err, len(second))
		}
		for i := range list {
			if got := fmt.Sprint(list[i].pos, list[i].batch); got != fmt.Sprint(second[i].pos, second[i].batch) {
				t.Errorf("batch %d: %s, a second reader finds %v", i, got, second[i])
			}
		}
	})
}

// secondReader reads a first segment of epoch 2 by the page, not by the code.
func secondReader(body []byte) []kept {
	var list []kept
	prev, at := uint32(0), 0
	for at+96 <= len(body) {
		f := body[at:]
		u32 := func(i int) uint32 { return binary.LittleEndian.Uint32(f[i:]) }
		pos := binary.LittleEndian.AppendUint64(nil, uint64(HeaderBytes+at))
		sum := record.Checksum(record.Checksum(record.Checksum(0, testID[:]), pos), f[8:48])
		if string(f[:4]) != "DqL1" || u32(4) != sum || binary.LittleEndian.Uint64(f[8:]) != 2 || u32(24) != prev || u32(28) != 0 {
			break
		}
		b, n, err := record.DecodeBatch(f[32:])
		if err != nil || b.Index != uint64(len(list)+1) {
			break
		}
		list = append(list, kept{uint64(HeaderBytes + at), b})
		prev = sum
		at += (32 + n + 15) / 16 * 16
	}
	return list
}

// TestOpenFrom opens a log from every place in it, and from places that are not.
func TestOpenFrom(t *testing.T) {
	mem := fs.NewMem()
	l := mustOpen(t, testOptions(mem), Start{})
	places := []Start{l.End()}
	for i := range uint64(12) {
		mustAppend(t, l, testBatch(i+1, 12000+int(i), 1))
		places = append(places, l.End())
	}
	end := l.End()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for i, from := range places {
		l, err := Open(testOptions(mem.CrashClone(crashNothing)), from)
		if err != nil {
			t.Fatalf("from batch %d: %v", i, err)
		}
		if r := l.Recovered(); r.Batches != uint64(len(places)-1-i) || r.End != end || l.End() != end {
			t.Errorf("from batch %d: recovered %+v", i, r)
		}
		list := mustReplay(t, l, from)
		if len(list) != len(places)-1-i {
			t.Errorf("from batch %d: replayed %d", i, len(list))
		}
		// What lies before is still found.
		for _, index := range []uint64{1, 6, 12} {
			if _, b, err := l.Get(index); err != nil || b.Index != index {
				t.Errorf("from batch %d: Get(%d): %v", i, index, err)
			}
		}
	}
	for _, i := range []int{1, 5, 6, 11, 12} {
		for name, from := range map[string]Start{
			"another checksum": {places[i].Position, places[i].Index, places[i].Checksum + 1},
			"another index":    {places[i].Position, places[i].Index + 1, places[i].Checksum},
			"within a batch":   {places[i].Position - 160, places[i].Index, places[i].Checksum},
			"ahead":            {places[i].Position + 30*MinSegmentBytes, 50, 1},
			"just ahead":       {end.Position + 160, 13, 1},
		} {
			var d *DamageError
			if _, err := Open(testOptions(mem.CrashClone(crashNothing)), from); !errors.As(err, &d) {
				t.Errorf("from batch %d, %s: %v, want a DamageError", i, name, err)
			}
		}
	}
	if _, err := Open(testOptions(fs.NewMem()), places[3]); !errors.Is(err, record.ErrCorrupt) {
		t.Errorf("an empty folder from batch 3: %v", err)
	}
}

// TestOlderMarks puts an older marks file back: then which batches are stale is
// not known.
func TestOlderMarks(t *testing.T) {
	mem := fs.NewMem()
	l := mustOpen(t, testOptions(mem), Start{})
	path := mem.PathJoin(testDir, marksName)
	old, err := readSmall(mem, path, maxMarksBytes)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, testBatch(1, 500, 1), testBatch(2, 500, 1))
	if err := l.TruncateSuffix(2); err != nil {
		t.Fatal(err)
	}
	pos := mustAppend(t, l, testBatch(2, 500, 2))
	mustSync(t, l)
	edit(t, mem, path, func([]byte) []byte { return old })
	var d *DamageError
	if _, err := Open(testOptions(mem), Start{}); !errors.As(err, &d) || d.Offset != int64(pos[0]) {
		t.Errorf("Open with older marks: %v, want damage at byte %d", err, pos[0])
	}
}

// TestOtherStore opens files of another store.
func TestOtherStore(t *testing.T) {
	m, err := makeLog([]int{300}, 1)
	if err != nil {
		t.Fatal(err)
	}
	o := testOptions(m.disk)
	o.StoreID[3]++
	if _, err := Open(o, Start{}); !errors.Is(err, record.ErrCorrupt) {
		t.Errorf("another store's log: %v", err)
	}
	o = testOptions(m.disk)
	o.SegmentBytes *= 2
	if _, err := Open(o, Start{}); !errors.Is(err, record.ErrCorrupt) {
		t.Errorf("another size of segments: %v", err)
	}
	for name, change := range map[string]func(*Options){
		"file system": func(o *Options) { o.FS = nil },
		"folder":      func(o *Options) { o.Dir = "" },
		"store id":    func(o *Options) { o.StoreID = [16]byte{} },
		"size":        func(o *Options) { o.SegmentBytes = 100 },
	} {
		o := testOptions(m.disk)
		change(&o)
		if _, err := Open(o, Start{}); err == nil {
			t.Errorf("options without a good %s: no error", name)
		}
		if _, err := Verify(o, nil); err == nil {
			t.Errorf("Verify without a good %s: no error", name)
		}
	}
}

// A built frame is one that FuzzRecoverFrames put into a segment.
type built struct {
	pos, end      uint64
	epoch, synced uint64
	good          bool // whole, of epoch 2 and linked to the frame before
}

// buildFrames follows a program of four bytes a step: frames with good
// checksums that say arbitrary things, frames with a bit wrong, and holes.
func buildFrames(t *testing.T, program []byte) (body []byte, frames []built) {
	t.Helper()
	last := Start{}
	for ; len(program) >= 4 && len(body) < MinSegmentBytes-1000; program = program[4:] {
		kind, a, b, c := program[0]%8, program[1], program[2], program[3]
		if kind == 0 {
			body = append(body, make([]byte, Align*(1+int64(a%40)))...)
			continue
		}
		at := len(body)
		f := built{pos: uint64(HeaderBytes + at), epoch: 2, good: true}
		f.synced = uint64(HeaderBytes+at) * uint64(min(b, 100)) / 100
		loc := local{epoch: 2, synced: f.synced, prev: last.Checksum}
		index := last.Index + 1
		switch kind {
		case 1:
			loc.epoch, f.good = 1, false
		case 2:
			loc.epoch, f.good = 3, false
		case 3:
			loc.prev, f.good = loc.prev+1, false
		case 4:
			index, f.good = index+1, false
		}
		f.epoch = loc.epoch
		raw, err := appendFrame(nil, testBatch(index, 140+int(a), uint64(c)), &loc, newSeed(testID), f.pos)
		if err != nil {
			t.Fatal(err)
		}
		if kind == 5 {
			raw[100] ^= 1
			f.good = false
		}
		body = append(body, raw...)
		f.end = uint64(HeaderBytes + len(body))
		frames = append(frames, f)
		last = Start{Index: index, Checksum: loc.checksum}
	}
	return body, frames
}

// FuzzRecoverFrames compares what recovery makes of such a segment with the
// rule, as the page has it.
func FuzzRecoverFrames(f *testing.F) {
	f.Add([]byte{7, 0, 0, 0, 7, 9, 50, 0, 0, 3, 0, 0, 7, 9, 0, 0})
	f.Add([]byte{7, 0, 0, 0, 5, 9, 0, 0, 7, 9, 0, 0, 7, 9, 100, 0})
	f.Add([]byte{1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4})
	f.Fuzz(func(t *testing.T, program []byte) {
		body, frames := buildFrames(t, program)
		n, end := 0, uint64(HeaderBytes)
		for n < len(frames) && frames[n].good && frames[n].pos == end {
			end = frames[n].end
			n++
		}
		damage := false
		for _, later := range frames[n:] {
			damage = damage || later.epoch > 2 || later.epoch == 2 && later.synced > end
		}
		mem := vfs.NewMem()
		if err := mem.MkdirAll(testDir, 0o755); err != nil {
			t.Fatal(err)
		}
		h := header{id: testID, segmentBytes: MinSegmentBytes, epoch: 1}
		writeFile(t, mem, segmentPath(mem, 0), string(append(encodeHeader(&h), body...)))
		writeFile(t, mem, mem.PathJoin(testDir, marksName), string(encodeMarks(testID, marks{{1, 0}, {2, HeaderBytes}})))
		report, err := Verify(testOptions(mem), nil)
		if err != nil || damage != (len(report.Damage) > 0) {
			t.Errorf("Verify: damage %v, %v, want damage %v", report.Damage, err, damage)
		}
		l, err := Open(testOptions(mem), Start{})
		if damage != errors.Is(err, record.ErrCorrupt) || err != nil && !damage {
			t.Fatalf("Open: %v, want damage %v", err, damage)
		}
		if err == nil && l.LastIndex() != uint64(n) {
			t.Errorf("log ends with batch %d, want %d", l.LastIndex(), n)
		}
	})
}
