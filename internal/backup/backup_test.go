package backup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/duemq/duemq/internal/record"
)

func testHead() Head {
	return Head{
		Store: [16]byte{0xd0, 0xe5, 1, 2, 3}, SegmentBytes: 64 << 10, Created: 1_796_000_000_000,
		First: Place{Index: 7, Position: 128 << 10}, Applied: Place{Index: 8, Position: 128<<10 + 320},
		End: Place{Index: 9, Position: 192<<10 + 300}, Estimate: 1000,
	}
}

func testBatch(index uint64, size int) *record.Batch {
	return &record.Batch{Type: record.EntryCommands, Index: index, Term: 1, Stamp: int64(1000 + index), Limit: 3, Data: bytes.Repeat([]byte{byte(index)}, size)}
}

// A pair of the index, for tests.
type pair struct {
	space      byte
	key, value string
}

// A content is what a stream holds.
type content struct {
	head      Head
	pairs     []pair
	positions []uint64
	batches   []*record.Batch
}

func small() content {
	return content{
		head:      testHead(),
		pairs:     []pair{{'q', "", "empty key"}, {'q', "a", ""}, {'s', "a", "applied"}},
		positions: []uint64{128<<10 + 128, 192<<10 + 128},
		batches:   []*record.Batch{testBatch(8, 20), testBatch(9, 5)},
	}
}

func (c *content) write(w io.Writer) (Totals, error) {
	b, err := NewWriter(w, c.head)
	if err != nil {
		return Totals{}, err
	}
	for _, p := range c.pairs {
		if err := b.Pair(p.space, []byte(p.key), []byte(p.value)); err != nil {
			return Totals{}, err
		}
	}
	for i, x := range c.batches {
		if err := b.Batch(c.positions[i], x); err != nil {
			return Totals{}, err
		}
	}
	return b.Close()
}

func (c *content) stream(t testing.TB) []byte {
	t.Helper()
	var s bytes.Buffer
	totals, err := c.write(&s)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Totals{uint64(len(c.pairs)), uint64(len(c.batches)), int64(s.Len() - frameHead - tailBytes)}); totals != want {
		t.Fatalf("totals %+v, want %+v", totals, want)
	}
	return s.Bytes()
}

// read reads a whole stream.
func read(r io.Reader) (c content, err error) {
	b, err := NewReader(r)
	if err != nil {
		return c, err
	}
	c.head = b.Head()
	for {
		e, err := b.Next()
		if errors.Is(err, io.EOF) {
			if got, want := b.Totals(), (Totals{Pairs: uint64(len(c.pairs)), Batches: uint64(len(c.batches))}); got.Pairs != want.Pairs || got.Batches != want.Batches {
				return c, fmt.Errorf("totals %+v, read %+v", got, want)
			}
			return c, nil
		}
		if err != nil {
			return c, err
		}
		if e.Position == 0 {
			c.pairs = append(c.pairs, pair{e.Space, string(e.Key), string(e.Value)})
			continue
		}
		x := e.Batch
		x.Extensions, x.Data = bytes.Clone(x.Extensions), bytes.Clone(x.Data)
		c.positions, c.batches = append(c.positions, e.Position), append(c.batches, &x)
	}
}

// text is a content for comparing.
func (c *content) text() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%+v\n%q\n%v\n", c.head, c.pairs, c.positions)
	for _, b := range c.batches {
		fmt.Fprintf(&s, "%+v\n", *b)
	}
	return s.String()
}

func same(t *testing.T, got, want content) {
	t.Helper()
	if got, want := got.text(), want.text(); got != want {
		t.Errorf("read:\n%.2000s\nwant:\n%.2000s", got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	empty := content{head: Head{SegmentBytes: 64 << 10}}
	for _, c := range []content{small(), empty} {
		stream := c.stream(t)
		got, err := read(iotest.OneByteReader(bytes.NewReader(stream)))
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, c)
	}
}

// TestLarge has entries that share frames and entries that need one of their
// own, up to the largest batch there may be.
func TestLarge(t *testing.T) {
	c := small()
	c.pairs, c.batches, c.positions = nil, nil, nil
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 3000 {
		size := rng.IntN(2000)
		if i == 1500 {
			size = target + 5
		}
		c.pairs = append(c.pairs, pair{'r', fmt.Sprintf("%08d", i), strings.Repeat("v", size)})
	}
	sizes := []int{100, target - 200, 100, record.MaxBatch - record.BatchHeader, 100, 100}
	for i, size := range sizes {
		c.positions = append(c.positions, c.head.First.Position+uint64(i+1)<<24)
		c.batches = append(c.batches, testBatch(c.head.First.Index+1+uint64(i), size))
	}
	c.head.End = Place{Index: c.head.First.Index + uint64(len(sizes)), Position: 1 << 40}
	stream := c.stream(t)
	got, err := read(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, c)
	for at := 0; at < len(stream); {
		n := int(binary.LittleEndian.Uint32(stream[at+4:]))
		if n > target && n != record.MaxBatch+8 && n > 2*target {
			t.Errorf("frame of %d bytes at %d", n, at)
		}
		at += frameHead + n
	}
}

// frames are where a stream's frames begin, and its end.
func frames(stream []byte) (at []int) {
	for i := 0; i < len(stream); i += frameHead + int(binary.LittleEndian.Uint32(stream[i+4:])) {
		at = append(at, i)
	}
	return append(at, len(stream))
}

// TestTruncated cuts a stream at every byte: each is refused as incomplete, and
// at the end of a frame the error says what is missing.
func TestTruncated(t *testing.T) {
	c := small()
	stream := c.stream(t)
	for n := range stream {
		if _, err := read(bytes.NewReader(stream[:n])); !errors.Is(err, ErrIncomplete) {
			t.Fatalf("cut after %d of %d bytes: %v, want ErrIncomplete", n, len(stream), err)
		}
	}
	want := []string{
		"it ends after 0 bytes, within its head",
		"it ends after 104 bytes, within the index (0 keys) or behind it; batches 8 to 9 of the log and its tail are missing",
		"it ends after 143 bytes, within the index (3 keys) or behind it; batches 8 to 9 of the log and its tail are missing",
		"it ends after 324 bytes, behind the last batch; its tail is missing",
	}
	at := frames(stream)
	for i, n := range at[:len(at)-1] {
		_, err := read(bytes.NewReader(stream[:n]))
		if err == nil || !strings.HasSuffix(err.Error(), want[i]) {
			t.Errorf("cut before frame %d: %v, want %s", i, err, want[i])
		}
	}
}

// TestFlipped flips every bit of a stream, one at a time.
func TestFlipped(t *testing.T) {
	c := small()
	stream := c.stream(t)
	for i := range len(stream) * 8 {
		bad := bytes.Clone(stream)
		bad[i/8] ^= 1 << (i % 8)
		_, err := read(bytes.NewReader(bad))
		if !errors.Is(err, record.ErrCorrupt) && !errors.Is(err, ErrIncomplete) {
			t.Fatalf("bit %d of byte %d: %v", i%8, i/8, err)
		}
	}
}

// TestFramesBelongTogether leaves out, doubles and swaps whole frames: the
// checksums go on from frame to frame.
func TestFramesBelongTogether(t *testing.T) {
	c := small()
	for i := range 6000 {
		c.pairs = append(c.pairs, pair{'t', fmt.Sprintf("%08d", i), strings.Repeat("v", 1000)})
	}
	stream := c.stream(t)
	at := frames(stream)
	if len(at) < 8 {
		t.Fatalf("%d frames only", len(at)-1)
	}
	part := func(i int) []byte { return stream[at[i]:at[i+1]] }
	n := len(at) - 1
	build := func(order ...int) []byte {
		var s []byte
		for _, i := range order {
			s = append(s, part(i)...)
		}
		return s
	}
	all := func(f func(i int) []int) []byte {
		var order []int
		for i := range n {
			order = append(order, f(i)...)
		}
		return build(order...)
	}
	for bad := range n {
		without := all(func(i int) []int {
			if i == bad {
				return nil
			}
			return []int{i}
		})
		twice := all(func(i int) []int {
			if i == bad {
				return []int{i, i}
			}
			return []int{i}
		})
		swapped := all(func(i int) []int {
			switch i {
			case bad:
				return []int{(i + 1) % n}
			case (bad + 1) % n:
				return []int{bad}
			}
			return []int{i}
		})
		for name, s := range map[string][]byte{"left out": without, "doubled": twice, "swapped": swapped} {
			_, err := read(bytes.NewReader(s))
			if name == "left out" && bad == n-1 {
				if !errors.Is(err, ErrIncomplete) {
					t.Errorf("tail left out: %v", err)
				}
			} else if !errors.Is(err, record.ErrCorrupt) {
				t.Errorf("frame %d %s: %v", bad, name, err)
			}
		}
	}
}

// seal writes frames with good checksums, whatever they hold.
func seal(frames ...[]byte) (s []byte) {
	var chain uint32
	for _, f := range frames {
		f = bytes.Clone(f)
		binary.LittleEndian.PutUint32(f[4:], uint32(len(f)-frameHead))
		chain = checksum(chain, f)
		binary.LittleEndian.PutUint32(f[8:], chain)
		s = append(s, f...)
	}
	return s
}

func frame(kind frameType, payload []byte) []byte {
	f := binary.LittleEndian.AppendUint32(nil, uint32(kind))
	return append(append(f, make([]byte, 8)...), payload...)
}

func pairBytes(space byte, key, value string) []byte {
	b := append([]byte{space}, byte(len(key)), byte(len(value)))
	return append(append(b, key...), value...)
}

func batchBytes(t *testing.T, position uint64, b *record.Batch) []byte {
	t.Helper()
	dst, err := record.AppendBatch(binary.LittleEndian.AppendUint64(nil, position), b)
	if err != nil {
		t.Fatal(err)
	}
	return dst
}

// TestRefused has good checksums over what must not be.
func TestRefused(t *testing.T) {
	h := testHead()
	head := frame(typeHead, appendHead(nil, &h))
	first := frame(typeLog, batchBytes(t, 128<<10+128, testBatch(8, 20)))
	second := frame(typeLog, batchBytes(t, 192<<10+128, testBatch(9, 5)))
	tail := func(pairs, batches uint64, frames ...[]byte) []byte {
		n := int64(len(seal(frames...)))
		return frame(typeTail, appendTail(nil, &Totals{pairs, batches, n}))
	}
	good := tail(0, 2, head, first, second)
	if _, err := read(bytes.NewReader(seal(head, first, second, good))); err != nil {
		t.Fatalf("the sound one: %v", err)
	}
	newer := frame(typeHead, append(binary.LittleEndian.AppendUint32(nil, version+1), "anything"...))
	tests := []struct {
		name   string
		stream []byte
		text   string
		class  error
	}{
		{"not a backup", []byte("PK\x03\x04 something else entirely"), "does not begin like a backup", record.ErrCorrupt},
		{"newer", seal(newer), "this backup has format 2, this duemq reads format 1", record.ErrVersion},
		{"short head", seal(frame(typeHead, appendHead(nil, &h)[:80])), "head of 80 bytes", record.ErrCorrupt},
		{"unknown frame", seal(head, frame(0x5a427144, nil)), "frame type 0x5a427144", record.ErrVersion},
		{"second head", seal(head, head), "a second head", record.ErrCorrupt},
		{"empty frame", seal(head, frame(typePairs, nil)), "an empty frame of the index", record.ErrCorrupt},
		{"keys out of order", seal(head, frame(typePairs, append(pairBytes('b', "k", "v"), pairBytes('b', "k", "v")...))), "key 6b of space 0x62 after 626b", record.ErrCorrupt},
		{"spaces out of order", seal(head, frame(typePairs, append(pairBytes('b', "k", "v"), pairBytes('a', "z", "v")...))), "after 626b", record.ErrCorrupt},
		{"pair cut short", seal(head, frame(typePairs, pairBytes('b', "key", "value")[:6])), "key of 3 bytes and value of 5 bytes", record.ErrCorrupt},
		{"no length", seal(head, frame(typePairs, []byte{'b'})), "length of a key", record.ErrCorrupt},
		{"no second length", seal(head, frame(typePairs, []byte{'b', 1})), "length of a value", record.ErrCorrupt},
		{"index after log", seal(head, first, frame(typePairs, pairBytes('b', "k", "v"))), "a frame of the index after the log", record.ErrCorrupt},
		{"batch cut short", seal(head, frame(typeLog, first[frameHead:len(first)-1])), "behind batch 7", record.ErrCorrupt},
		{"no position", seal(head, frame(typeLog, []byte{1, 2})), "2 bytes where a batch", record.ErrCorrupt},
		{"batch missing", seal(head, second), "batch 9 at position", record.ErrCorrupt},
		{"batch at an old position", seal(head, first, frame(typeLog, batchBytes(t, 128<<10+128, testBatch(9, 5)))), "batch 9 at position 131200 after batch 8", record.ErrCorrupt},
		{"log ends early", seal(head, first, tail(0, 1, head, first)), "log ends with batch 8, its head says 9", record.ErrCorrupt},
		{"other count", seal(head, first, second, tail(1, 2, head, first, second)), "holds 0 pairs and 2 batches", record.ErrCorrupt},
		{"short tail", seal(head, first, second, frame(typeTail, good[frameHead:len(good)-1])), "tail of 23 bytes", record.ErrCorrupt},
		{"bytes behind the tail", append(seal(head, first, second, good), 0), "bytes follow its tail", record.ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := read(bytes.NewReader(tt.stream))
			if !errors.Is(err, tt.class) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%v, want %v with %q", err, tt.class, tt.text)
			}
		})
	}
}

// TestImpossibleHeads are refused by both sides.
func TestImpossibleHeads(t *testing.T) {
	for name, change := range map[string]func(h *Head){
		"within a segment":  func(h *Head) { h.First.Position += 16 },
		"no segment size":   func(h *Head) { h.SegmentBytes = 0 },
		"index before log":  func(h *Head) { h.Applied.Index = 6 },
		"index ahead":       func(h *Head) { h.Applied.Index = 10 },
		"end before first":  func(h *Head) { h.End.Position = 0 },
		"negative estimate": func(h *Head) { h.Estimate = -1 },
	} {
		h := testHead()
		change(&h)
		if _, err := NewWriter(io.Discard, h); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("%s: writer says %v", name, err)
		}
		if _, err := NewReader(bytes.NewReader(seal(frame(typeHead, appendHead(nil, &h))))); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("%s: reader says %v", name, err)
		}
	}
}

// TestWriterOrder: what could not be read back is not written.
func TestWriterOrder(t *testing.T) {
	begin := func() *Writer {
		w, err := NewWriter(io.Discard, testHead())
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	w := begin()
	if err := errors.Join(w.Pair('b', []byte("k"), nil), w.Pair('b', []byte("l"), nil)); err != nil {
		t.Fatal(err)
	}
	if err := w.Pair('b', []byte("l"), nil); !errors.Is(err, errOrder) {
		t.Errorf("key again: %v", err)
	}
	w = begin()
	if err := w.Batch(128<<10+128, testBatch(9, 1)); !errors.Is(err, errOrder) {
		t.Errorf("gap: %v", err)
	}
	if err := w.Batch(128<<10+128, testBatch(8, 1)); err != nil {
		t.Fatal(err)
	}
	if err := w.Pair('b', nil, nil); !errors.Is(err, errOrder) {
		t.Errorf("pair after the log: %v", err)
	}
	if _, err := w.Close(); !errors.Is(err, errOrder) {
		t.Errorf("log not whole: %v", err)
	}
	if err := begin().Pair('b', nil, make([]byte, maxPayload)); !errors.Is(err, record.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

// failing fails at its nth write.
type failing struct {
	n     int
	short bool
}

var errFull = errors.New("full")

func (f *failing) Write(p []byte) (int, error) {
	f.n--
	switch {
	case f.n >= 0:
		return len(p), nil
	case f.short:
		return len(p) / 2, nil
	}
	return 0, errFull
}

func TestWriteFails(t *testing.T) {
	c := small()
	for n := range len(frames(c.stream(t))) - 1 {
		if _, err := c.write(&failing{n: n}); !errors.Is(err, errFull) {
			t.Errorf("write %d fails: %v", n, err)
		}
		if _, err := c.write(&failing{n: n, short: true}); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("write %d is short: %v", n, err)
		}
	}
}

// TestReadFails: an error of the source is that error, and stays.
func TestReadFails(t *testing.T) {
	c := small()
	stream := c.stream(t)
	for n := range stream {
		r, err := NewReader(io.MultiReader(bytes.NewReader(stream[:n]), iotest.ErrReader(errFull)))
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, errFull) {
			t.Fatalf("read fails after %d bytes: %v", n, err)
		}
		if r == nil {
			continue
		}
		if _, again := r.Next(); !errors.Is(again, errFull) {
			t.Fatalf("and then: %v", again)
		}
	}
}

// TestForgedLength: a length alone makes nobody allocate.
func TestForgedLength(t *testing.T) {
	f := frame(typeHead, make([]byte, 40))
	binary.LittleEndian.PutUint32(f[4:], maxPayload)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := NewReader(bytes.NewReader(f)); !errors.Is(err, ErrIncomplete) {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
		t.Errorf("%d bytes allocated for %d", n, len(f))
	}
	binary.LittleEndian.PutUint32(f[4:], maxPayload+1)
	if _, err := NewReader(bytes.NewReader(f)); !errors.Is(err, record.ErrCorrupt) {
		t.Errorf("frame beyond the limit: %v", err)
	}
}

// FuzzReader: no panic, and what is accepted is written to something that reads
// the same. Seal makes the checksums good, or nothing would get past them.
func FuzzReader(f *testing.F) {
	c := small()
	stream := c.stream(f)
	f.Add(stream, false)
	f.Add(stream[:len(stream)-1], true)
	f.Fuzz(func(t *testing.T, src []byte, sealed bool) {
		if sealed {
			src = reseal(src)
		}
		got, err := read(bytes.NewReader(src))
		if err != nil {
			return
		}
		again, err := read(bytes.NewReader(got.stream(t)))
		if err != nil {
			t.Fatal(err)
		}
		same(t, again, got)
	})
}

// reseal gives the frames in src good checksums as far as they go, and a tail
// that counts right its bytes.
func reseal(src []byte) []byte {
	src = bytes.Clone(src)
	var chain uint32
	for at := 0; at+frameHead <= len(src); {
		n := int(binary.LittleEndian.Uint32(src[at+4:]))
		if n > len(src)-at-frameHead {
			break
		}
		f := src[at : at+frameHead+n]
		if frameType(binary.LittleEndian.Uint32(f)) == typeTail && n == tailBytes {
			binary.LittleEndian.PutUint64(f[frameHead+16:], uint64(at))
		}
		chain = checksum(chain, f)
		binary.LittleEndian.PutUint32(f[8:], chain)
		at += len(f)
	}
	return src
}
