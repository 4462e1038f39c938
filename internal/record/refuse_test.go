package record_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/duemq/duemq/internal/record"
)

// Whatever is cut short is refused at every length, and so is whatever has a
// byte too many.
func TestTruncatedCommandsAreRefused(t *testing.T) {
	for _, c := range codecs() {
		for i, v := range c.samples {
			whole, payload := framed(t, c, v)
			for n := range payload {
				if got, err := c.decode(payload[:n]); !errors.Is(err, record.ErrCorrupt) {
					t.Errorf("%s, sample %d: %d of %d payload bytes gave %+v, %v; want ErrCorrupt", c.name, i, n, len(payload), got, err)
				}
			}
			if got, err := c.decode(append(bytes.Clone(payload), 0)); !errors.Is(err, record.ErrCorrupt) {
				t.Errorf("%s, sample %d: a byte too many gave %+v, %v; want ErrCorrupt", c.name, i, got, err)
			}
			for n := range whole {
				if got, err := record.NextCommand(whole[:n], 0); !errors.Is(err, record.ErrCorrupt) {
					t.Errorf("%s, sample %d: frame cut at %d of %d gave %+v, %v; want ErrCorrupt", c.name, i, n, len(whole), got, err)
				}
			}
		}
	}
}

// With the checksum repaired, a message cut anywhere before its body is
// refused for what is missing; only its body may be any length.
func TestTruncatedMessageWithGoodChecksum(t *testing.T) {
	m := fullMessage()
	payload := payloadOf(t, record.AppendSend(nil, &m))
	head := len(payload) - len(m.Body)
	for n := 4; n <= len(payload); n++ {
		var got record.Message
		err := record.DecodeSend(sealed(payload[4:n]), &got)
		if n < head && !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("%d of %d bytes gave %+v, %v; want ErrCorrupt", n, len(payload), got, err)
		}
		if n >= head && (err != nil || len(got.Body) != n-head) {
			t.Errorf("%d of %d bytes gave a body of %d, %v", n, len(payload), len(got.Body), err)
		}
	}
}

// sealed puts a good checksum before a message's bytes.
func sealed(message []byte) []byte {
	payload := binary.LittleEndian.AppendUint32(nil, record.Checksum(0, message))
	return append(payload, message...)
}

// A glance at a send sees what a full reading sees, and refuses what is cut
// within the parts that it looks at.
func TestPeekSend(t *testing.T) {
	for _, m := range messages() {
		c, err := record.NextCommand(record.AppendSend(nil, &m), 0)
		if err != nil {
			t.Fatalf("NextCommand: %v", err)
		}
		if p, err := record.PeekSend(&c, 7); err != nil || !equal(p, peekOf(&m, c.Size)) {
			t.Errorf("PeekSend of %+v = %+v, %v; want %+v", m, p, err, peekOf(&m, c.Size))
		}
	}
	m := fullMessage()
	c := record.Command{Type: record.CommandSend, Payload: payloadOf(t, record.AppendSend(nil, &m))}
	payload := c.Payload
	seen := bytes.Index(payload, []byte("\x04paid")) + len("\x04paid")
	for n := range seen {
		c.Payload = payload[:n]
		if p, err := record.PeekSend(&c, 7); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("PeekSend of %d bytes = %+v, %v; want ErrCorrupt", n, p, err)
		}
	}
}

func TestDamagedMessageIsRefused(t *testing.T) {
	m := fullMessage()
	payload := payloadOf(t, record.AppendSend(nil, &m))
	eachBit(payload, func(damaged []byte, bit int) {
		var got record.Message
		if err := record.DecodeSend(damaged, &got); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("bit %d of %d flipped: %v, want ErrCorrupt", bit, 8*len(payload), err)
		}
	})
}

func TestDamagedBatchIsRefused(t *testing.T) {
	src := sampleBatch(t)
	eachBit(src, func(damaged []byte, bit int) {
		if _, _, err := record.DecodeBatch(damaged); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("bit %d of %d flipped: %v, want ErrCorrupt", bit, 8*len(src), err)
		}
	})
	for n := range src {
		if _, _, err := record.DecodeBatch(src[:n]); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("%d of %d bytes: %v, want ErrCorrupt", n, len(src), err)
		}
		if _, err := record.BatchLength(src[:n]); (err == nil) != (n >= record.BatchHeader) {
			t.Errorf("BatchLength of %d bytes: %v", n, err)
		}
	}
}

func sampleBatch(t testing.TB) []byte {
	t.Helper()
	m := fullMessage()
	src, err := record.AppendBatch(nil, &record.Batch{
		Type: record.EntryCommands, Flags: record.FlagRebase, Index: 7, Term: 2, Stamp: now, Limit: 2000,
		AppendedAt: now * 1_000_000, Extensions: []byte("ext"), Data: record.AppendSend(nil, &m),
	})
	if err != nil {
		t.Fatalf("AppendBatch: %v", err)
	}
	return src
}

func eachBit(src []byte, fn func(damaged []byte, bit int)) {
	damaged := bytes.Clone(src)
	for bit := range 8 * len(src) {
		damaged[bit/8] ^= 1 << (bit % 8)
		fn(damaged, bit)
		damaged[bit/8] ^= 1 << (bit % 8)
	}
}

// reseal gives a batch a good checksum again.
func reseal(src []byte) []byte {
	binary.LittleEndian.PutUint32(src[12:], record.Checksum(record.Checksum(0, src[:12]), src[16:]))
	return src
}

// What a newer binary wrote is never called damage: recovery may cut damage off.
func TestNewerBatchIsAnotherVersion(t *testing.T) {
	tests := []struct {
		name string
		at   int
		b    byte
		text string
	}{
		{"version", 4, 2, "batch version 2"},
		{"version 0", 4, 0, "batch version 0"},
		{"type", 5, 5, "type 5"},
		{"type 0", 5, 0, "type 0"},
		{"flag", 6, 2, "flags 0x0002"},
		{"high flag", 7, 0x80, "flags 0x8001"},
		{"extension length", 54, 0x10, "bytes of extensions"},
		{"reserved", 56, 1, "reserved field 0x1"},
		{"reserved, last byte", 63, 1, "reserved field 0x100000000000000"},
	}
	for _, tt := range tests {
		src := sampleBatch(t)
		src[tt.at] = tt.b
		_, _, err := record.DecodeBatch(reseal(src))
		if !errors.Is(err, record.ErrVersion) || errors.Is(err, record.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrVersion and not ErrCorrupt", tt.name, err)
		} else if !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want %q in it", tt.name, err, tt.text)
		}
	}
	err := record.UnknownCommand(99)
	if !errors.Is(err, record.ErrVersion) || !strings.Contains(err.Error(), "command 99") {
		t.Errorf("UnknownCommand(99) = %v", err)
	}
}

func TestAppendBatchRefusesWhatItCannotRead(t *testing.T) {
	for _, b := range []record.Batch{
		{},
		{Type: record.EntryBarrier + 1},
		{Type: record.EntryCommands, Flags: record.FlagRebase << 1},
	} {
		dst, err := record.AppendBatch([]byte("before"), &b)
		if !errors.Is(err, record.ErrVersion) || string(dst) != "before" {
			t.Errorf("AppendBatch(%+v) = %q, %v; want nothing appended and ErrVersion", b, dst, err)
		}
	}
}

func TestBatchLengthBelievesNothingImpossible(t *testing.T) {
	src := sampleBatch(t)
	for _, n := range []uint32{0, record.BatchHeader - 1, record.MaxBatch + 1, 1 << 31, u32} {
		binary.LittleEndian.PutUint32(src[8:], n)
		if got, err := record.BatchLength(src); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("BatchLength with length %d = %d, %v; want ErrCorrupt", n, got, err)
		}
		if _, _, err := record.DecodeBatch(src); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("DecodeBatch with length %d: %v, want ErrCorrupt", n, err)
		}
	}
	for _, n := range []uint32{record.BatchHeader, record.MaxBatch} {
		binary.LittleEndian.PutUint32(src[8:], n)
		if got, err := record.BatchLength(src); err != nil || got != int(n) {
			t.Errorf("BatchLength with length %d = %d, %v", n, got, err)
		}
	}
}

// A count or length that claims more than there is gets an error, not memory.
func TestForgedCountsAllocateNothing(t *testing.T) {
	counts := [][]byte{uvarint(1 << 20), uvarint(1 << 31), uvarint(1 << 32), uvarint(1 << 62), uvarint(u64), {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}}
	byType := make(map[record.CommandType]codec)
	for _, c := range codecs() {
		byType[c.typ] = c
	}
	tests := []struct {
		name string
		typ  record.CommandType
		head []byte // payload before the count or length
	}{
		{"ranges", record.CommandAck, []byte{1, 1}},
		{"entries", record.CommandRelease, []byte{1, 1, 1}},
		{"topic name", record.CommandTopic, []byte{1, 1, 1}},
		{"topic attributes", record.CommandTopic, []byte{1, 1, 1, 0}},
		{"attribute name", record.CommandTopic, []byte{1, 1, 1, 0, 1}},
		{"attribute value", record.CommandTopic, []byte{1, 1, 1, 0, 1, 0}},
		{"group name", record.CommandGroup, []byte{1, 1, 0}},
		{"group attributes", record.CommandGroup, []byte{1, 1, 0, 0}},
		{"setting name", record.CommandSetting, nil},
		{"setting value", record.CommandSetting, []byte{0}},
		{"key", record.CommandSend, []byte{1 << 3, 1, 1}},
		{"tag", record.CommandSend, []byte{1 << 4, 1, 1}},
		{"properties", record.CommandSend, []byte{1 << 5, 1, 1}},
		{"property value", record.CommandSend, []byte{1 << 5, 1, 1, 1, 0}},
		{"extensions", record.CommandSend, []byte{1 << 6, 1, 1}},
		{"extension value", record.CommandSend, []byte{1 << 6, 1, 1, 1, 5}},
		{"runs", record.CommandLease, []byte{1, 1}},
		{"producer", record.CommandPost, []byte{1 << 2}},
		{"key under terms", record.CommandPost, []byte{0, 1 << 3, 1, 1}},
		{"spec", record.CommandOperation, []byte{1, 1}},
		{"steered entries", record.CommandOperate, []byte{1, 1, 1, 1, 1}},
	}
	for _, tt := range tests {
		for _, count := range counts {
			payload := append(append(bytes.Clone(tt.head), count...), make([]byte, 64)...)
			if tt.typ == record.CommandSend || tt.typ == record.CommandPost {
				payload = sealed(payload)
			}
			var err error
			n := allocated(func() { _, err = byType[tt.typ].decode(payload) })
			if !errors.Is(err, record.ErrCorrupt) {
				t.Errorf("%s, count % x: %v, want ErrCorrupt", tt.name, count, err)
			}
			if n > allowance(len(payload)) {
				t.Errorf("%s, count % x: %d bytes allocated for %d of input", tt.name, count, n, len(payload))
			}
		}
	}
}

func uvarint(v uint64) []byte { return binary.AppendUvarint(nil, v) }

// The worst that honest-looking bytes can ask for is items of no content.
func TestManyEmptyItemsStayWithinTheMultiple(t *testing.T) {
	const n = 1 << 18
	zeros := func(head []byte, size int) []byte {
		return append(append(head, uvarint(n)...), make([]byte, size*n)...)
	}
	tests := []struct {
		name    string
		payload []byte
		decode  func([]byte) error
	}{
		{"properties", sealed(zeros([]byte{1 << 5, 1, 1}, 2)), decodeError(into(record.DecodeSend))},
		{"extensions", sealed(zeros([]byte{1 << 6, 1, 1}, 2)), decodeError(into(record.DecodeSend))},
		{"entries", zeros([]byte{1, 1, 1}, 3), decodeError(into(record.DecodeRelease))},
		{"attributes", zeros([]byte{1, 1, 1, 0}, 2), decodeError(record.DecodeTopic)},
		{"runs", append(append([]byte{1, 1}, uvarint(n)...), bytes.Repeat([]byte{0, 1, 0}, n)...), decodeError(into(record.DecodeLease))},
		{"steered entries", zeros([]byte{1, 1, 1, 1, 1}, 11), decodeError(into(record.DecodeOperate))},
	}
	for _, tt := range tests {
		var err error
		got := allocated(func() { err = tt.decode(tt.payload) })
		if err != nil || got > allowance(len(tt.payload)) {
			t.Errorf("%s: %v, %d bytes allocated for %d of input", tt.name, err, got, len(tt.payload))
		}
	}
}

func decodeError[T any](dec func([]byte) (T, error)) func([]byte) error {
	return func(b []byte) error {
		_, err := dec(b)
		return err
	}
}

func TestDecodersRefuse(t *testing.T) {
	ack := func(b []byte) error { return record.DecodeAck(b, new(record.Ack)) }
	big := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 1) // 1<<64 - 1
	tests := []struct {
		name    string
		payload []byte
		decode  func([]byte) error
	}{
		{"empty range", []byte{1, 1, 1, 0, 0}, ack},
		{"range that wraps around", append([]byte{1, 1, 1, 1}, big...), ack},
		{"gap that wraps around", append(append([]byte{1, 1, 2, 9, 1}, big...), 1), ack},
		{"queue above 32 bits", append([]byte{1}, uvarint(1<<32)...), ack},
		{"number of eleven bytes", append([]byte{1, 1}, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1), decodeError(record.DecodeCommit)},
		{"too many queues", append([]byte{1, 1}, append(uvarint(record.MaxQueues+1), 0, 0)...), decodeError(record.DecodeTopic)},
		{"purge neither 0 nor 1", []byte{1, 2, 0}, decodeError(record.DecodeEndTopic)},
		{"paused neither 0 nor 1", []byte{1, 0xff}, decodeError(record.DecodePause)},
		{"extension above 16 bits", sealed(append(append([]byte{1 << 6, 1, 1, 1}, uvarint(1<<16)...), 0)), decodeError(into(record.DecodeSend))},
		{"flags above 32 bits", sealed(append(append([]byte{1 << 2, 1, 1}, uvarint(1<<32)...), 0)), decodeError(into(record.DecodeSend))},
	}
	for _, tt := range tests {
		if err := tt.decode(tt.payload); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("%s: % x gave %v, want ErrCorrupt", tt.name, tt.payload, err)
		}
	}
}

// An ack that breaks its own rule is refused however its encoder wrote it.
func TestBrokenAckIsNotReadAsAnother(t *testing.T) {
	for _, ranges := range [][]record.OffsetRange{
		{{From: 5, To: 5}},
		{{From: 5, To: 4}},
		{{From: 5, To: 9}, {From: 8, To: 10}},
		{{From: 5, To: 9}, {From: 1, To: 2}},
	} {
		payload := payloadOf(t, record.AppendAck(nil, &record.Ack{Ranges: ranges}))
		var got record.Ack
		if err := record.DecodeAck(payload, &got); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("ranges %v came back as %v, %v; want ErrCorrupt", ranges, got.Ranges, err)
		}
	}
}

// Longer forms of a number are taken for the number: a command's length always
// has one.
func TestLongFormsAreAccepted(t *testing.T) {
	c, err := record.DecodeCommit([]byte{0x83, 0x80, 0, 0x89, 0, 0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0})
	want := record.Commit{Group: 3, Queue: 9, Offset: 127}
	if err != nil || c != want {
		t.Errorf("DecodeCommit = %+v, %v; want %+v", c, err, want)
	}
	short := []byte{byte(record.CommandEndGroup), 1, 3}
	cmd, err := record.NextCommand(short, 0)
	if err != nil || cmd.Size != 3 || !bytes.Equal(cmd.Payload, []byte{3}) {
		t.Errorf("NextCommand with a length of one byte = %+v, %v", cmd, err)
	}
}

func TestNextCommandRefuses(t *testing.T) {
	data := record.AppendTrim(nil, &record.Trim{Before: now})
	for _, offset := range []int{-1, len(data), len(data) + 1, 1 << 30} {
		if c, err := record.NextCommand(data, offset); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("NextCommand at %d of %d = %+v, %v; want ErrCorrupt", offset, len(data), c, err)
		}
	}
	for _, src := range [][]byte{
		{0, 0},
		{0, 1, 1},
		{1},
		{1, 1},
		{1, 0x80},
		append([]byte{1}, uvarint(u64)...), append([]byte{1}, uvarint(1<<63)...),
		{1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0},
	} {
		if c, err := record.NextCommand(src, 0); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("NextCommand(% x) = %+v, %v; want ErrCorrupt", src, c, err)
		}
	}
}

func TestCommandsStopsAtFirstError(t *testing.T) {
	data := record.AppendTrim(nil, &record.Trim{Before: 1})
	data = record.AppendTrim(data, &record.Trim{Before: 2})
	stop := errors.New("stop")
	calls := 0
	err := record.Commands(data, func(record.Command) error { calls++; return stop })
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("Commands = %v after %d calls, want the callback's error after 1", err, calls)
	}
	calls = 0
	err = record.Commands(data[:len(data)-1], func(record.Command) error { calls++; return nil })
	if !errors.Is(err, record.ErrCorrupt) || calls != 1 {
		t.Errorf("Commands over a cut second frame = %v after %d calls, want ErrCorrupt after 1", err, calls)
	}
	if err := record.Commands(nil, func(record.Command) error { return stop }); err != nil {
		t.Errorf("Commands of nothing = %v", err)
	}
}
