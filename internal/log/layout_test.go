package log

import (
	"bytes"
	"errors"
	"testing"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

func TestPlace(t *testing.T) {
	const seg = MinSegmentBytes
	for _, c := range []struct {
		name   string
		end    uint64
		framed int64
		want   uint64
	}{
		{"the first batch stands behind the header", 0, 96, HeaderBytes},
		{"the largest batch fills a segment", 0, seg - HeaderBytes, HeaderBytes},
		{"the next one stands behind", 224, 96, 224},
		{"to the last byte", seg - 96, 96, seg - 96},
		{"one step too many", seg - 96, 112, seg + HeaderBytes},
		{"no room at all", seg - 16, 96, seg + HeaderBytes},
		{"a full segment", seg, 96, seg + HeaderBytes},
		{"full again", 2 * seg, seg - HeaderBytes, 2*seg + HeaderBytes},
		{"a later segment", 7*seg + 4000, 96, 7*seg + 4000},
	} {
		if got := place(c.end, c.framed, seg); got != c.want {
			t.Errorf("%s: place(%d, %d) = %d, want %d", c.name, c.end, c.framed, got, c.want)
		}
	}
}

// TestRollAtExactBoundary appends batches that end on, before and behind a
// segment's last byte, in one run and one by one: the places are the same.
func TestRollAtExactBoundary(t *testing.T) {
	const room = MinSegmentBytes - HeaderBytes
	for _, sizes := range [][]int{
		{room, 200, room, room, 200},       // filled to the last byte
		{room - 16, 200, room - 112, 112},  // one step left, then exactly one more batch
		{room - 96, 112, 96, room - 96},    // the last place is one step too small
		{30000, 30000, 5000, 400, 60, 200}, // the usual
	} {
		var list []*record.Batch
		for i, size := range sizes {
			list = append(list, testBatch(uint64(i+1), max(size, 130), 1))
		}
		want := positions(list, MinSegmentBytes)
		together := mustOpen(t, testOptions(fs.NewMem()), Start{})
		got := mustAppend(t, together, list...)
		single := mustOpen(t, testOptions(fs.NewMem()), Start{})
		for i, b := range list {
			if pos := mustAppend(t, single, b)[0]; got[i] != want[i] || pos != want[i] {
				t.Errorf("%v: batch %d at %d in a run, at %d alone, want %d", sizes, i+1, got[i], pos, want[i])
			}
		}
		if together.End().Position != single.End().Position || together.End().Index != single.End().Index {
			t.Errorf("%v: ends %+v and %+v", sizes, together.End(), single.End())
		}
		if n := len(mustReplay(t, together, Start{})); n != len(list) {
			t.Errorf("%v: replayed %d batches", sizes, n)
		}
	}
}

func TestSeed(t *testing.T) {
	s := newSeed(testID)
	var b [8]byte
	for i := range b {
		b[i] = byte(0xf0 + i)
	}
	if got, want := s.at(0xf7f6f5f4f3f2f1f0), record.Checksum(uint32(s), b[:]); got != want {
		t.Errorf("seed.at = %08x, want the CRC-32C of the position's bytes, %08x", got, want)
	}
}

// TestOtherVersions: what a newer binary wrote is not damage.
func TestOtherVersions(t *testing.T) {
	reseal := func(b []byte) []byte { // of a segment header
		sum := record.Checksum(0, b[:HeaderBytes-4])
		b[124], b[125], b[126], b[127] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		return b
	}
	h := header{id: testID, segmentBytes: MinSegmentBytes, epoch: 1}
	for name, change := range map[string]func([]byte){
		"version":       func(b []byte) { b[4] = 2 },
		"reserved bits": func(b []byte) { b[100] = 1 },
	} {
		raw := encodeHeader(&h)
		change(raw)
		if _, err := decodeHeader(reseal(raw)); !errors.Is(err, record.ErrVersion) {
			t.Errorf("segment header with another %s: %v, want ErrVersion", name, err)
		}
	}
	raw := encodeMarks(testID, marks{{1, 0}})
	raw[4] = 2
	sum := marksChecksum(raw)
	raw[28], raw[29], raw[30], raw[31] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
	if _, _, err := decodeMarks(raw); !errors.Is(err, record.ErrVersion) {
		t.Errorf("marks of another version: %v, want ErrVersion", err)
	}
}

// TestNewerBatchIsNotATornTail: a batch that checks out but that this binary
// does not know stops the opening instead of being cut off.
func TestNewerBatchIsNotATornTail(t *testing.T) {
	for name, change := range map[string]func(frame []byte){
		"reserved bits of the local part": func(f []byte) { f[28] = 1 },
		"version of the batch": func(f []byte) {
			f[LocalBytes+4] = 9
			b := f[LocalBytes:160]
			sum := record.Checksum(record.Checksum(0, b[:12]), b[16:])
			b[12], b[13], b[14], b[15] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		},
	} {
		mem := fs.NewMem()
		l := mustOpen(t, testOptions(mem), Start{})
		b := testBatch(1, 160, 1)
		b.Data = b.Data[:160-LocalBytes-record.BatchHeader]
		mustAppend(t, l, b)
		mustSync(t, l)
		edit(t, mem, segmentPath(mem, 0), func(data []byte) []byte {
			f := data[HeaderBytes:]
			change(f)
			sum := record.Checksum(newSeed(testID).at(HeaderBytes), f[8:checkedBytes])
			f[4], f[5], f[6], f[7] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
			return data
		})
		if _, err := Open(testOptions(mem), Start{}); !errors.Is(err, record.ErrVersion) {
			t.Errorf("%s: Open: %v, want ErrVersion", name, err)
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(encodeHeader(&header{id: testID, segmentBytes: 65536, base: 131072, epoch: 3, prev: Start{131000, 7, 0xabcd}}))
	f.Fuzz(func(t *testing.T, src []byte) {
		h, err := decodeHeader(src)
		if err != nil {
			return
		}
		if got := encodeHeader(&h); !bytes.Equal(got, src[:HeaderBytes]) {
			t.Errorf("decoded %+v, which encodes to %x, not %x", h, got, src[:HeaderBytes])
		}
	})
}

// FuzzFrame reads arbitrary bytes as a frame, and writes and reads a batch made
// of them.
func FuzzFrame(f *testing.F) {
	frame, err := appendFrame(nil, testBatch(4, 200, 1), &local{epoch: 2, synced: 128, prev: 9}, newSeed(testID), 4096)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(frame, uint64(4096))
	f.Fuzz(func(t *testing.T, src []byte, pos uint64) {
		pos = pos &^ (Align - 1) % (1 << 62)
		s := newSeed(testID)
		sc := scanner{file: bytes.NewReader(src), seed: s, base: pos, limit: int64(len(src)), size: 64}
		if got, err := sc.next(0); err == nil {
			again, err := appendFrame(nil, &got.batch, &local{epoch: got.epoch, synced: got.synced, prev: got.prev}, s, pos)
			n := LocalBytes + got.batch.Size()
			if err != nil || !bytes.Equal(again[:n], src[:n]) {
				t.Errorf("read a frame that is written as other bytes: %v", err)
			}
		}
		b := record.Batch{Type: record.EntryCommands, Index: pos, Term: 1, Data: src}
		want := local{epoch: pos / 3, synced: pos / 2, prev: uint32(pos)}
		frame, err := appendFrame(nil, &b, &want, s, pos)
		if err != nil {
			t.Fatal(err)
		}
		sc = scanner{file: bytes.NewReader(frame), seed: s, base: pos, limit: int64(len(frame)), size: 64}
		got, err := sc.next(0)
		if err != nil || got.local != want || got.length != int64(len(frame)) {
			t.Fatalf("a written frame reads as %+v, %v", got.local, err)
		}
		if err := same(&got.batch, &b); err != nil {
			t.Error(err)
		}
		sc = scanner{file: bytes.NewReader(frame), seed: s, base: pos + Align, limit: int64(len(frame)), size: 64}
		if _, err := sc.next(0); err == nil {
			t.Error("a frame reads at another position than its own")
		}
	})
}
