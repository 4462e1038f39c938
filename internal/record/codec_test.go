package record_test

import (
	"math"
	"reflect"
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/duemq/duemq/internal/record"
)

// A codec is one command's pair of encoder and decoder with samples that
// between them use every part of its bytes. Table, truncation, fuzz and golden
// tests walk the same list.
type codec struct {
	typ     record.CommandType
	name    string
	decode  func(payload []byte) (any, error)
	append  func(dst []byte, v any) []byte
	samples []any
}

func newCodec[T any](
	typ record.CommandType, name string,
	app func([]byte, *T) []byte, dec func([]byte) (T, error), samples ...T,
) codec {
	c := codec{
		typ: typ, name: name,
		decode: func(payload []byte) (any, error) { return dec(payload) },
		append: func(dst []byte, v any) []byte {
			x, ok := v.(T)
			if !ok {
				panic("sample of another command")
			}
			return app(dst, &x)
		},
	}
	for _, s := range samples {
		c.samples = append(c.samples, s)
	}
	return c
}

// into turns a decoder that fills a value into one that returns it.
func into[T any](dec func([]byte, *T) error) func([]byte) (T, error) {
	return func(payload []byte) (v T, err error) {
		err = dec(payload, &v)
		return v, err
	}
}

const (
	now = 1_790_000_000_123 // a stamp of 2026
	u32 = math.MaxUint32
	u64 = math.MaxUint64
)

var waitingKey = record.Key{Due: now + 1_800_000, ID: 0x1234_5678, Kind: record.KindMessage, Queue: 9}

func codecs() []codec {
	return append(append(messageCodecs(), adminCodecs()...), laterCodecs()...)
}

func messageCodecs() []codec {
	return []codec{
		newCodec(record.CommandSend, "send", record.AppendSend, into(record.DecodeSend), messages()...),
		newCodec(record.CommandAck, "ack", record.AppendAck, into(record.DecodeAck),
			record.Ack{Group: 3, Queue: 300, Ranges: []record.OffsetRange{{From: 10, To: 14}, {From: 14, To: 15}, {From: 1000, To: 1001}}},
			record.Ack{Ranges: []record.OffsetRange{{From: 0, To: 1}}},
			record.Ack{Group: u32, Queue: u32, Ranges: []record.OffsetRange{{From: 0, To: 7}, {From: u64 - 1, To: u64}}},
			record.Ack{Ranges: []record.OffsetRange{{From: 0, To: u64}}},
			record.Ack{}),
		newCodec(record.CommandRelease, "release", record.AppendRelease, into(record.DecodeRelease),
			record.Release{Group: 3, Queue: 300, Reason: record.ReasonNack, Entries: []record.Released{
				{Offset: 10, Attempt: 1, Due: now + 10_000}, {Offset: 9, Attempt: 2},
			}},
			record.Release{Group: u32, Queue: u32, Reason: 255, Entries: []record.Released{
				{Offset: u64, Attempt: u32, Due: math.MaxInt64}, {Due: math.MinInt64}, {Due: -1},
			}},
			record.Release{Reason: record.ReasonExpiry}),
		newCodec(record.CommandCommit, "commit", record.AppendCommit, record.DecodeCommit,
			record.Commit{Group: 3, Queue: 300, Offset: 70_000}, record.Commit{},
			record.Commit{Group: u32, Queue: u32, Offset: u64}),
		newCodec(record.CommandCancel, "cancel", record.AppendCancel, record.DecodeCancel,
			record.Cancel{Key: waitingKey, Level: 16}, record.Cancel{},
			record.Cancel{Key: record.Key{Due: -1, ID: u64, Kind: 255, Queue: u32}, Level: 255}),
		newCodec(record.CommandReschedule, "reschedule", record.AppendReschedule, record.DecodeReschedule,
			record.Reschedule{
				Ref: record.Ref{
					Due: waitingKey.Due, ID: waitingKey.ID, Size: 300, Queue: waitingKey.Queue,
					Tag: record.TagHash("paid"), Kind: record.KindMessage, Level: 16,
				},
				Due: now + 60_000,
			},
			record.Reschedule{},
			record.Reschedule{
				Ref: record.Ref{Due: math.MinInt64, ID: u64, Size: u32, Queue: u32, Tag: u32, Kind: 255, Level: 255},
				Due: math.MaxInt64,
			}),
	}
}

func adminCodecs() []codec {
	attributes := []record.Property{{Name: "message.type", Value: "DELAY"}, {Name: "note"}}
	return []codec{
		newCodec(record.CommandTopic, "topic", record.AppendTopic, record.DecodeTopic,
			record.Topic{Number: 5, FirstQueue: 300, Queues: 8, Name: "orders", Attributes: attributes}, record.Topic{},
			record.Topic{Number: u32, FirstQueue: u32, Queues: record.MaxQueues, Name: "\x00\xff"}),
		newCodec(record.CommandEndTopic, "end-topic", record.AppendEndTopic, record.DecodeEndTopic,
			record.EndTopic{Number: 5, Purge: true, FirstQueue: 308}, record.EndTopic{},
			record.EndTopic{Number: u32, FirstQueue: u32}),
		newCodec(record.CommandGroup, "group", record.AppendGroup, record.DecodeGroup,
			record.Group{Number: 3, Start: record.StartAt, StartTime: now, Name: "billing", Attributes: attributes}, record.Group{},
			record.Group{Number: u32, Start: 255, StartTime: -1, Name: "g"}),
		newCodec(record.CommandEndGroup, "end-group", record.AppendEndGroup, record.DecodeEndGroup,
			record.EndGroup{Number: 3}, record.EndGroup{}, record.EndGroup{Number: u32}),
		newCodec(record.CommandSetting, "setting", record.AppendSetting, record.DecodeSetting,
			record.Setting{Name: "messageDelayLevel", Value: "1s 5s 10s"}, record.Setting{}, record.Setting{Name: "x"}),
		newCodec(record.CommandPause, "pause", record.AppendPause, record.DecodePause,
			record.Pause{Topic: 5, Paused: true}, record.Pause{}, record.Pause{Topic: u32}),
		newCodec(record.CommandTrim, "trim", record.AppendTrim, record.DecodeTrim,
			record.Trim{Before: now}, record.Trim{}, record.Trim{Before: math.MinInt64}, record.Trim{Before: math.MaxInt64}),
		newCodec(record.CommandCarry, "carry", record.AppendCarry, record.DecodeCarry,
			record.Carry{From: 0x4000_0000, To: 0x8000_0000}, record.Carry{}, record.Carry{From: u64, To: u64}),
	}
}

// messages uses each optional part alone, all of them together, and times at
// every edge.
func messages() []record.Message {
	ms := []record.Message{
		{Queue: 9, Stored: now, Born: now, Body: []byte("hello")},
		fullMessage(),
		{},
		{Stored: now, Born: now},
		{Stored: now, Born: now - 5_000},
		{Stored: now, Born: now + 5_000, Due: now + 1},
		{Stored: now, Born: now, Due: now},
		{Stored: now, Born: now, Due: now - 1_000},
		{Stored: now, Born: now, Level: 1},
		{Stored: now, Born: now, Flags: 1},
		{Stored: now, Born: now, SysFlags: 1},
		{Stored: now, Born: now, Flags: u32, SysFlags: u32},
		{Stored: now, Born: now, Key: "k"},
		{Stored: now, Born: now, Tag: "t"},
		{Stored: now, Born: now, Properties: []record.Property{{}}},
		{Stored: now, Born: now, Properties: []record.Property{{Name: "n", Value: "v"}, {Name: "n", Value: "again"}}},
		{Stored: now, Born: now, Extensions: []record.Extension{{Number: math.MaxUint16}}},
		{Stored: now, Born: now, Extensions: []record.Extension{{Number: record.ExtName, Value: []byte("name")}}},
	}
	edges := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, now, math.MaxInt64}
	for _, stored := range edges {
		for _, other := range edges {
			ms = append(ms, record.Message{Queue: u32, Stored: stored, Born: other, Due: other, Level: 255})
		}
	}
	return ms
}

// fullMessage has every part that a message can have.
func fullMessage() record.Message {
	return record.Message{
		Queue: 300, Stored: now, Born: now - 12, Due: now + 1_800_000, Level: 16, Flags: 7, SysFlags: 0x100,
		Key: "order-42", Tag: "paid",
		Properties: []record.Property{{Name: "UNIQ_KEY", Value: "7F000001"}, {Name: "region", Value: "eu"}},
		Extensions: []record.Extension{
			{Number: record.ExtOrigin, Value: []byte{0x78, 0x56, 0x34, 0x12, 0, 0, 0, 0}},
			{Number: record.ExtAttempts, Value: []byte{3, 0, 0, 0}},
			{Number: record.ExtIdempotency, Value: []byte("0123456789abcdef")},
			{Number: record.ExtName, Value: []byte("close-42")},
			{Number: record.ExtBornHost, Value: []byte{127, 0, 0, 1, 0x9f, 0x2a}},
		},
		Body: []byte("close the order"),
	}
}

// framed encodes v and gives the whole command and its payload.
func framed(t testing.TB, c codec, v any) (whole, payload []byte) {
	t.Helper()
	whole = c.append(nil, v)
	cmd, err := record.NextCommand(whole, 0)
	if err != nil {
		t.Fatalf("%s: NextCommand of what was encoded: %v", c.name, err)
	}
	if cmd.Type != c.typ || cmd.Offset != 0 || cmd.Size != len(whole) {
		t.Fatalf("%s: frame of type %d at %d, %d bytes; want type %d at 0, %d bytes", c.name, cmd.Type, cmd.Offset, cmd.Size, c.typ, len(whole))
	}
	return whole, cmd.Payload
}

// equal compares what was encoded with what came back: no slice and an empty
// one are the same thing on disk.
func equal(a, b any) bool {
	return reflect.DeepEqual(normal(reflect.ValueOf(a)), normal(reflect.ValueOf(b)))
}

func normal(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Struct:
		fields := make(map[string]any, v.NumField())
		for i := range v.NumField() {
			fields[v.Type().Field(i).Name] = normal(v.Field(i))
		}
		return fields
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return string(v.Bytes())
		}
		items := make([]any, v.Len())
		for i := range v.Len() {
			items[i] = normal(v.Index(i))
		}
		return items
	default:
		return v.Interface()
	}
}

// allocated gives the bytes that f allocates, live or not.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// roughlyAllocated is allocated without stopping the world: quick enough for
// fuzzing, but small allocations are counted late, f's and others'.
func roughlyAllocated(f func()) uint64 {
	before := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	after := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(before)
	f()
	metrics.Read(after)
	return after[0].Value.Uint64() - before[0].Value.Uint64()
}

// allowance is what a decoder may allocate for n bytes of input: a pair of
// empty strings takes 2 bytes in the log and 32 in memory, strings are copied,
// and the race detector makes room twice. The constant is for an error and the
// runtime.
func allowance(n int) uint64 { return 40*uint64(n) + 16<<10 }
