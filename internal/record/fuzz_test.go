package record_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/duemq/duemq/internal/record"
)

func FuzzDecodeAck(f *testing.F)        { fuzzPayload(f, record.CommandAck) }
func FuzzDecodeRelease(f *testing.F)    { fuzzPayload(f, record.CommandRelease) }
func FuzzDecodeCommit(f *testing.F)     { fuzzPayload(f, record.CommandCommit) }
func FuzzDecodeCancel(f *testing.F)     { fuzzPayload(f, record.CommandCancel) }
func FuzzDecodeReschedule(f *testing.F) { fuzzPayload(f, record.CommandReschedule) }
func FuzzDecodeTopic(f *testing.F)      { fuzzPayload(f, record.CommandTopic) }
func FuzzDecodeEndTopic(f *testing.F)   { fuzzPayload(f, record.CommandEndTopic) }
func FuzzDecodeGroup(f *testing.F)      { fuzzPayload(f, record.CommandGroup) }
func FuzzDecodeEndGroup(f *testing.F)   { fuzzPayload(f, record.CommandEndGroup) }
func FuzzDecodeSetting(f *testing.F)    { fuzzPayload(f, record.CommandSetting) }
func FuzzDecodePause(f *testing.F)      { fuzzPayload(f, record.CommandPause) }
func FuzzDecodeTrim(f *testing.F)       { fuzzPayload(f, record.CommandTrim) }
func FuzzDecodeCarry(f *testing.F)      { fuzzPayload(f, record.CommandCarry) }

// fuzzPayload feeds arbitrary bytes to one command's decoder.
func fuzzPayload(f *testing.F, typ record.CommandType) {
	f.Helper()
	c := codecs()[typ-1]
	for _, v := range c.samples {
		_, payload := framed(f, c, v)
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload []byte) { acceptOrRefuse(t, c, payload) })
}

// acceptOrRefuse is what every decoder owes to every input: no panic, no more
// memory than a small multiple of the input, and either an ErrCorrupt or a
// value whose encoding is read as the same value and encoded to the same bytes.
func acceptOrRefuse(t *testing.T, c codec, payload []byte) {
	t.Helper()
	kept := bytes.Clone(payload)
	var v any
	var err error
	if n := roughlyAllocated(func() { v, err = c.decode(payload) }); n > allowance(len(payload))+fuzzNoise {
		t.Errorf("%s: %d bytes allocated for %d of input", c.name, n, len(payload))
	}
	if err != nil {
		if !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", c.name, err)
		}
		return
	}
	whole, again := framed(t, c, v)
	w, err := c.decode(again)
	if err != nil || !equal(v, w) {
		t.Errorf("%s: % x was read as %+v, its encoding as %+v, %v", c.name, payload, v, w, err)
	}
	if third := c.append(nil, w); !bytes.Equal(third, whole) {
		t.Errorf("%s: % x is encoded as % x, then as % x", c.name, payload, whole, third)
	}
	if !bytes.Equal(payload, kept) {
		t.Errorf("%s: the decoder changed its input", c.name)
	}
}

// fuzzNoise is what others may have allocated meanwhile.
const fuzzNoise = 1 << 20

// FuzzDecodeSend takes bytes as they are and once more with a good checksum,
// or nothing would ever reach the message behind it.
func FuzzDecodeSend(f *testing.F) {
	c := codecs()[record.CommandSend-1]
	for _, m := range messages()[:20] {
		_, payload := framed(f, c, m)
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		acceptOrRefuse(t, c, payload)
		if len(payload) >= 4 {
			acceptOrRefuse(t, c, sealed(payload[4:]))
		}
	})
}

// FuzzDecodeMessageAt reads arbitrary bytes as if an id pointed at them.
func FuzzDecodeMessageAt(f *testing.F) {
	for _, m := range messages()[:3] {
		f.Add(record.AppendTrim(record.AppendSend(nil, &m), &record.Trim{Before: 1}))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		var m, again record.Message
		if err := record.DecodeMessageAt(src, &m); err != nil {
			if !errors.Is(err, record.ErrCorrupt) {
				t.Errorf("DecodeMessageAt(% x) = %v, want ErrCorrupt", src, err)
			}
			return
		}
		if err := record.DecodeMessageAt(record.AppendSend(nil, &m), &again); err != nil || !equal(m, again) {
			t.Errorf("% x was read as %+v, its encoding as %+v, %v", src, m, again, err)
		}
	})
}

// FuzzPeekSend proves that a glance sees what a full reading sees.
func FuzzPeekSend(f *testing.F) {
	for _, m := range messages()[:20] {
		f.Add(payloadOf(f, record.AppendSend(nil, &m))[4:])
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		c := record.Command{Type: record.CommandSend, Size: len(message) + 9, Payload: sealed(message)}
		p, peeked := record.PeekSend(&c, 7)
		var m record.Message
		if err := record.DecodeSend(c.Payload, &m); err != nil {
			return // a glance stops before the properties
		}
		if want := peekOf(&m, c.Size); peeked != nil || !equal(p, want) {
			t.Errorf("% x: PeekSend = %+v, %v; want %+v", message, p, peeked, want)
		}
	})
}

// peekOf is what a glance at a message must see, written down plainly.
func peekOf(m *record.Message, size int) record.Peek {
	return record.Peek{
		Ref: record.Ref{
			Due: m.Due, ID: 7, Size: uint32(size), Queue: m.Queue,
			Tag: record.TagHash(m.Tag), Kind: record.KindMessage, Level: m.Level,
		},
		Key: []byte(m.Key),
	}
}

// FuzzDecodeBatch takes bytes as they are and once more with a good checksum.
func FuzzDecodeBatch(f *testing.F) {
	f.Add(sampleBatch(f))
	noop, err := record.AppendBatch(nil, &record.Batch{Type: record.EntryNoop, Index: 1, Term: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(noop)
	f.Add(noop[:record.BatchHeader-1])
	f.Fuzz(func(t *testing.T, src []byte) {
		fuzzBatch(t, src)
		if n, err := record.BatchLength(src); err == nil && n <= len(src) {
			fuzzBatch(t, reseal(bytes.Clone(src[:n])))
		}
	})
}

func fuzzBatch(t *testing.T, src []byte) {
	t.Helper()
	var b record.Batch
	var n int
	var err error
	if got := roughlyAllocated(func() { b, n, err = record.DecodeBatch(src) }); got > allowance(0)+fuzzNoise {
		t.Errorf("%d bytes allocated for a batch, which shares its source", got)
	}
	if err != nil {
		if !errors.Is(err, record.ErrCorrupt) && !errors.Is(err, record.ErrVersion) {
			t.Errorf("DecodeBatch: %v, want ErrCorrupt or ErrVersion", err)
		}
		return
	}
	again, err := record.AppendBatch(nil, &b)
	if err != nil || !bytes.Equal(again, src[:n]) {
		t.Errorf("batch % x is encoded as % x, %v", src[:n], again, err)
	}
}

// FuzzCommands walks arbitrary data as a batch's commands and decodes each.
func FuzzCommands(f *testing.F) {
	list := codecs()
	var all []byte
	for _, c := range list {
		all = c.append(all, c.samples[0])
	}
	f.Add(all)
	f.Add(list[1].append(nil, list[1].samples[0]))
	f.Add([]byte{0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		at := 0
		err := record.Commands(data, func(c record.Command) error {
			if c.Offset != at || c.Size <= 0 || c.Offset+c.Size > len(data) || len(c.Payload) >= c.Size {
				t.Fatalf("command %d at %d, %d bytes with a payload of %d; %d of %d were read", c.Type, c.Offset, c.Size, len(c.Payload), at, len(data))
			}
			at += c.Size
			if int(c.Type) <= len(list) {
				acceptOrRefuse(t, list[c.Type-1], c.Payload)
			}
			return nil
		})
		if err == nil && at != len(data) || err != nil && !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("Commands read %d of %d bytes: %v", at, len(data), err)
		}
	})
}
