package log

import (
	"testing"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

func TestVerifyWhole(t *testing.T) {
	mem := fs.NewMem()
	l := mustOpen(t, testOptions(mem), Start{})
	noop := &record.Batch{Type: record.EntryNoop, Index: 1, Term: 1}
	two := testBatch(2, 300, 1)
	two.Data = append(record.AppendCommit(two.Data, &record.Commit{Group: 1, Queue: 2, Offset: 3}), testBatch(9, 400, 1).Data...)
	mustAppend(t, l, noop, two)
	for i := range uint64(80) {
		mustAppend(t, l, testBatch(i+3, 40000, 1))
	}
	end := l.End()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	f := fs.NewFaulty(mem)
	var calls, last int64
	r, err := Verify(testOptions(f), func(done, total int64) {
		if calls++; done <= last || done > total {
			t.Errorf("progress %d of %d after %d", done, total, last)
		}
		last = done
	})
	if err != nil || len(r.Damage) > 0 || r.Batches != 82 || r.Messages != 82 || r.End != end || r.Segments != 80 || r.Torn != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if calls == 0 || f.Ops() > 0 {
		t.Errorf("%d calls of progress, %d changes of the disk", calls, f.Ops())
	}
}

// TestVerifyNamesEveryPlace damages three batches in two segments, and one
// message whose batch is whole.
func TestVerifyNamesEveryPlace(t *testing.T) {
	mem := fs.NewMem()
	l := mustOpen(t, testOptions(mem), Start{})
	wrong := testBatch(3, 300, 1)
	wrong.Data[20] ^= 1
	unframed := testBatch(8, 300, 1)
	unframed.Data = append(unframed.Data, 1, 0xff)
	list := []*record.Batch{
		testBatch(1, 300, 1), testBatch(2, 300, 1), wrong, testBatch(4, 300, 1), testBatch(5, 60000, 1),
		testBatch(6, 20000, 1), testBatch(7, 300, 1), unframed, testBatch(9, 300, 1),
	}
	pos := mustAppend(t, l, list...)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	base := func(i int) uint64 { return pos[i] / MinSegmentBytes * MinSegmentBytes }
	for i, byteInFrame := range map[int]uint64{1: 150, 4: 2, 8: 100} {
		if err := flipBit(mem, segmentPath(mem, base(i)), int64(pos[i]-base(i)+byteInFrame)*8); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Verify(testOptions(mem), nil)
	if err != nil {
		t.Fatal(err)
	}
	type place struct {
		file string
		off  uint64
	}
	data := uint64(LocalBytes + record.BatchHeader)
	want := []place{
		{segmentPath(mem, 0), pos[1]},
		{segmentPath(mem, 0), pos[2] + data},
		{segmentPath(mem, 0), pos[4]},
		{segmentPath(mem, MinSegmentBytes), pos[7] + data - MinSegmentBytes},
		{segmentPath(mem, MinSegmentBytes), pos[8] - MinSegmentBytes},
	}
	for i, d := range r.Damage {
		if i < len(want) && (d.File != want[i].file || d.Offset != int64(want[i].off)) {
			t.Errorf("place %d: %v, want %v", i, d, want[i])
		}
	}
	if len(r.Damage) != len(want) || r.Batches != 6 {
		t.Errorf("%d places, %d good batches: %v", len(r.Damage), r.Batches, r.Damage)
	}
}

func TestVerifyTornTail(t *testing.T) {
	m, err := makeLog([]int{300, 300, 300, 300}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := flipBit(m.disk, segmentPath(m.disk, 0), int64(m.frames[2].Position)*8+999); err != nil {
		t.Fatal(err)
	}
	r, err := Verify(testOptions(m.disk), nil)
	if err != nil || len(r.Damage) > 0 || r.Batches != 2 || r.Torn != int64(m.end.Position-m.frames[2].Position) {
		t.Errorf("%+v, %v", r, err)
	}
	// A folder where nothing was ever written is whole.
	empty := fs.NewMem()
	if err := empty.MkdirAll(testDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if r, err := Verify(testOptions(empty), nil); err != nil || r.Batches != 0 || len(r.Damage) > 0 {
		t.Errorf("an empty folder: %+v, %v", r, err)
	}
	if _, err := Verify(testOptions(fs.NewMem()), nil); err == nil {
		t.Error("no folder: no error")
	}
}

func TestVerifyManyPlaces(t *testing.T) {
	sizes := make([]int, 3*maxDamage)
	for i := range sizes {
		sizes[i] = 200
	}
	m, err := makeLog(sizes, len(sizes))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(sizes); i += 2 {
		path, off := m.place(i)
		if err := flipBit(m.disk, path, (off+150)*8); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Verify(testOptions(m.disk), nil)
	if err != nil || len(r.Damage) != maxDamage || len(r.Damage)+r.More != len(sizes)/2 || r.Batches != uint64(len(sizes)/2) {
		t.Errorf("%d places and %d more, %d good batches, %v", len(r.Damage), r.More, r.Batches, err)
	}
}
