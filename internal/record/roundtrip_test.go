package record_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/duemq/duemq/internal/record"
)

func TestRoundTripSamples(t *testing.T) {
	for _, c := range codecs() {
		for i, v := range c.samples {
			if msg := roundTrip(c, v); msg != "" {
				t.Errorf("%s, sample %d, %+v: %s", c.name, i, v, msg)
			}
		}
	}
}

// roundTrip says what is wrong with the pair, or nothing.
func roundTrip(c codec, v any) string {
	prefix := []byte("before")
	whole := c.append(append([]byte(nil), prefix...), v)
	if !bytes.HasPrefix(whole, prefix) {
		return "the encoder changed what stood before"
	}
	whole = whole[len(prefix):]
	if again := c.append(nil, v); !bytes.Equal(again, whole) {
		return "two encodings differ"
	}
	cmd, err := record.NextCommand(whole, 0)
	if err != nil {
		return "frame: " + err.Error()
	}
	if cmd.Type != c.typ || cmd.Size != len(whole) {
		return "frame of another type or size"
	}
	got, err := c.decode(cmd.Payload)
	if err != nil {
		return "decode: " + err.Error()
	}
	if !equal(v, got) {
		return "came back as something else"
	}
	if back := c.append(nil, got); !bytes.Equal(back, whole) {
		return "decoded and encoded again, the bytes differ"
	}
	return ""
}

func TestRoundTripAny(t *testing.T) {
	generators := map[record.CommandType]*rapid.Generator[any]{
		record.CommandSend:       rapid.Make[record.Message]().AsAny(),
		record.CommandAck:        rapid.Custom(drawAck).AsAny(),
		record.CommandRelease:    rapid.Make[record.Release]().AsAny(),
		record.CommandCommit:     rapid.Make[record.Commit]().AsAny(),
		record.CommandCancel:     rapid.Make[record.Cancel]().AsAny(),
		record.CommandReschedule: rapid.Make[record.Reschedule]().AsAny(),
		record.CommandTopic:      rapid.Custom(drawTopic).AsAny(),
		record.CommandEndTopic:   rapid.Make[record.EndTopic]().AsAny(),
		record.CommandGroup:      rapid.Make[record.Group]().AsAny(),
		record.CommandEndGroup:   rapid.Make[record.EndGroup]().AsAny(),
		record.CommandSetting:    rapid.Make[record.Setting]().AsAny(),
		record.CommandPause:      rapid.Make[record.Pause]().AsAny(),
		record.CommandTrim:       rapid.Make[record.Trim]().AsAny(),
		record.CommandCarry:      rapid.Make[record.Carry]().AsAny(),
		record.CommandLease:      rapid.Custom(drawLease).AsAny(),
		record.CommandPost:       rapid.Custom(drawPosted).AsAny(),
		record.CommandEndHalf:    rapid.Make[record.EndHalf]().AsAny(),
		record.CommandReset:      rapid.Make[record.Reset]().AsAny(),
		record.CommandOperation:  rapid.Make[record.Operation]().AsAny(),
		record.CommandOperate:    rapid.Make[record.Operate]().AsAny(),
	}
	for _, c := range codecs() {
		t.Run(c.name, func(t *testing.T) {
			g := generators[c.typ]
			if g == nil {
				t.Fatalf("no generator for command %d", c.typ)
			}
			rapid.Check(t, func(t *rapid.T) {
				v := g.Draw(t, c.name)
				if msg := roundTrip(c, v); msg != "" {
					t.Fatalf("%+v: %s", v, msg)
				}
			})
		})
	}
}

func drawAck(t *rapid.T) record.Ack {
	a := record.Ack{
		Group: rapid.Make[record.GroupNumber]().Draw(t, "group"),
		Queue: rapid.Make[record.QueueNumber]().Draw(t, "queue"),
	}
	var last uint64
	for range rapid.IntRange(0, 20).Draw(t, "ranges") {
		if last == u64 {
			break
		}
		from := rapid.Uint64Range(last, u64-1).Draw(t, "from")
		last = rapid.Uint64Range(from+1, u64).Draw(t, "to")
		a.Ranges = append(a.Ranges, record.OffsetRange{From: record.Offset(from), To: record.Offset(last)})
	}
	return a
}

func drawTopic(t *rapid.T) record.Topic {
	topic := rapid.Make[record.Topic]().Draw(t, "topic")
	topic.Queues %= record.MaxQueues + 1
	return topic
}

// A reused value must not keep anything of what it held before.
func TestDecodeIntoUsedValue(t *testing.T) {
	check := func(name string, used, fresh any) {
		t.Helper()
		if !equal(used, fresh) {
			t.Errorf("%s: reused value holds %+v, want %+v", name, used, fresh)
		}
	}
	for _, m := range messages() {
		used := fullMessage()
		if err := record.DecodeMessageAt(record.AppendSend(nil, &m), &used); err != nil {
			t.Fatalf("DecodeMessageAt: %v", err)
		}
		check("message", used, m)
	}
	used := record.Ack{Group: 1, Queue: 1, Ranges: []record.OffsetRange{{From: 1, To: 2}, {From: 3, To: 4}}}
	ack := record.Ack{Queue: 2, Ranges: []record.OffsetRange{{From: 7, To: 8}}}
	if err := record.DecodeAck(payloadOf(t, record.AppendAck(nil, &ack)), &used); err != nil {
		t.Fatalf("DecodeAck: %v", err)
	}
	check("ack", used, ack)
	usedRelease := record.Release{Group: 1, Reason: 1, Entries: []record.Released{{Offset: 1, Attempt: 1, Due: 1}, {Offset: 2}}}
	release := record.Release{Queue: 2, Reason: 2, Entries: []record.Released{{Offset: 9}}}
	if err := record.DecodeRelease(payloadOf(t, record.AppendRelease(nil, &release)), &usedRelease); err != nil {
		t.Fatalf("DecodeRelease: %v", err)
	}
	check("release", usedRelease, release)
	usedLease := record.Lease{Group: 1, Runs: []record.LeaseRun{{From: 1, To: 2, Attempt: 1}, {From: 3, To: 4}}}
	lease := record.Lease{Queue: 2, Runs: []record.LeaseRun{{From: 7, To: 8, Attempt: 3}}}
	if err := record.DecodeLease(payloadOf(t, record.AppendLease(nil, &lease)), &usedLease); err != nil {
		t.Fatalf("DecodeLease: %v", err)
	}
	check("lease", usedLease, lease)
	usedOperate := record.Operate{Number: 1, Cursor: waitingKey, Entries: []record.Steer{{Due: 1}, {Due: 2}}}
	operate := record.Operate{Number: 2, Entries: []record.Steer{{Due: 3}}}
	if err := record.DecodeOperate(payloadOf(t, record.AppendOperate(nil, &operate)), &usedOperate); err != nil {
		t.Fatalf("DecodeOperate: %v", err)
	}
	check("operate", usedOperate, operate)
	for _, p := range posts() {
		used := posted{fullTerms(), fullMessage()}
		if err := record.DecodePost(payloadOf(t, appendPost(nil, &p)), &used.Terms, &used.Message); err != nil {
			t.Fatalf("DecodePost: %v", err)
		}
		check("post", used, p)
	}
}

func payloadOf(t testing.TB, whole []byte) []byte {
	t.Helper()
	c, err := record.NextCommand(whole, 0)
	if err != nil {
		t.Fatalf("NextCommand: %v", err)
	}
	return c.Payload
}

func TestBatchRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.Make[record.Batch]().Draw(t, "batch")
		b.Type = rapid.SampledFrom([]record.EntryType{
			record.EntryCommands, record.EntryNoop, record.EntryConfiguration, record.EntryBarrier,
		}).Draw(t, "type")
		b.Flags &= record.FlagRebase
		src, err := record.AppendBatch([]byte("before"), &b)
		if err != nil {
			t.Fatalf("AppendBatch: %v", err)
		}
		src = append(src[len("before"):], "after"...)
		got, n, err := record.DecodeBatch(src)
		if err != nil {
			t.Fatalf("DecodeBatch: %v", err)
		}
		if n != b.Size() || n != len(src)-len("after") {
			t.Fatalf("DecodeBatch took %d bytes; Size says %d, appended %d", n, b.Size(), len(src)-len("after"))
		}
		if !equal(b, got) {
			t.Fatalf("came back as %+v, want %+v", got, b)
		}
		if !bytes.Equal(src[b.DataOffset():n], b.Data) {
			t.Fatalf("Data does not begin at DataOffset %d", b.DataOffset())
		}
		again, err := record.AppendBatch(nil, &got)
		if err != nil || !bytes.Equal(again, src[:n]) {
			t.Fatalf("decoded and encoded again, the bytes differ (%v)", err)
		}
	})
}

// The slices that a decoder hands out share the source's bytes, but growing
// one of them must not write into its neighbour.
func TestSharedSlicesAreClipped(t *testing.T) {
	m := fullMessage()
	data := record.AppendTrim(record.AppendSend(nil, &m), &record.Trim{Before: 1})
	src, err := record.AppendBatch(nil, &record.Batch{Type: record.EntryCommands, Extensions: []byte("ext"), Data: data})
	if err != nil {
		t.Fatalf("AppendBatch: %v", err)
	}
	src = append(src, "the next batch"...)
	whole := bytes.Clone(src)
	b, _, err := record.DecodeBatch(src)
	if err != nil {
		t.Fatalf("DecodeBatch: %v", err)
	}
	var got record.Message
	c, err := record.NextCommand(b.Data, 0)
	if err != nil {
		t.Fatalf("NextCommand: %v", err)
	}
	if err := record.DecodeSend(b.Data[c.Size-len(c.Payload):c.Size], &got); err != nil {
		t.Fatalf("DecodeSend: %v", err)
	}
	_ = append(c.Payload, "XXXX"...)
	_ = append(b.Extensions, "XXXX"...)
	_ = append(b.Data, "XXXX"...)
	_ = append(got.Body, "XXXX"...)
	_ = append(got.Extensions[0].Value, "XXXX"...)
	if !bytes.Equal(src, whole) {
		t.Errorf("growing a decoded slice changed the batch")
	}
}

func TestCommandsInOrder(t *testing.T) {
	var data []byte
	type place struct{ Offset, Size int }
	var want []place
	for _, c := range codecs() {
		for _, v := range c.samples {
			at := len(data)
			data = c.append(data, v)
			want = append(want, place{at, len(data) - at})
		}
	}
	want = append(want, place{len(data), 3}, place{len(data) + 3, 2})
	data = append(data, byte(record.CommandEndGroup), 1, 3, 99, 0) // lengths of one byte
	var got []place
	err := record.Commands(data, func(c record.Command) error {
		got = append(got, place{c.Offset, c.Size})
		again, err := record.NextCommand(data, c.Offset)
		if err != nil || again.Type != c.Type || !bytes.Equal(again.Payload, c.Payload) {
			t.Errorf("NextCommand at %d: %v %+v, want %+v", c.Offset, err, again, c)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("Commands: %v", err)
	}
	if !equal(got, want) {
		t.Errorf("Commands visited %v, want %v", got, want)
	}
}
