package record_test

import (
	"math"

	"github.com/duemq/duemq/internal/record"
)

// posted is what a post command holds.
type posted struct {
	Terms   record.Terms
	Message record.Message
}

func appendPost(dst []byte, p *posted) []byte { return record.AppendPost(dst, &p.Terms, &p.Message) }

func decodePost(payload []byte) (p posted, err error) {
	err = record.DecodePost(payload, &p.Terms, &p.Message)
	return p, err
}

var (
	onceHash = record.Hash([]byte("0123456789abcdef"))
	nameHash = record.Hash([]byte("the name's hash."))
	fullHash = record.Hash([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
)

// fullTerms has every part that terms can have.
func fullTerms() record.Terms {
	return record.Terms{
		Once: onceHash, Print: 0x1122_3344_5566_7788, Until: now + 86_400_000,
		Name: nameHash,
		Half: true, Producer: "order-producers", Check: now + 6_000, Kind: 2, Delay: 1_800_000,
	}
}

// terms uses each part alone, all of them together, and every edge.
func terms() []record.Terms {
	return []record.Terms{
		{Once: onceHash, Print: 0x1122_3344_5566_7788, Until: now + 86_400_000, Name: nameHash},
		fullTerms(),
		{},
		{Once: onceHash},
		{Once: record.Hash{15: 1}, Until: -1},
		{Name: nameHash},
		{Half: true},
		{Half: true, Check: math.MinInt64, Delay: math.MinInt64},
		{Once: fullHash, Print: u64, Until: math.MaxInt64, Name: fullHash, Half: true, Producer: "\x00\xff", Check: math.MaxInt64, Kind: 255, Delay: math.MaxInt64},
	}
}

// posts has every kind of terms with every kind of message, but the edges of
// times once only: those are the message's own.
func posts() []posted {
	var ps []posted
	for i, t := range terms() {
		ps = append(ps, posted{t, messages()[i%2]})
	}
	for _, m := range messages() {
		ps = append(ps, posted{record.Terms{Name: nameHash}, m})
	}
	return ps
}

// laterCodecs are those of commands 15 and up.
func laterCodecs() []codec {
	half := record.Ref{Due: now + 6_000, ID: waitingKey.ID, Size: 300, Queue: 9, Tag: record.TagHash("paid"), Kind: record.KindCheck}
	waits := record.Ref{
		Due: waitingKey.Due, ID: waitingKey.ID, Size: 300, Queue: 9, Tag: record.TagHash("paid"), Kind: record.KindMessage, Level: 16,
	}
	edge := record.Ref{Due: math.MinInt64, ID: u64, Size: u32, Queue: u32, Tag: u32, Kind: 255, Level: 255}
	return []codec{
		newCodec(record.CommandLease, "lease", record.AppendLease, into(record.DecodeLease),
			record.Lease{Group: 3, Queue: 300, Runs: []record.LeaseRun{{From: 10, To: 14, Attempt: 1}, {From: 14, To: 15, Attempt: 2}, {From: 1000, To: 1001, Attempt: 1}}},
			record.Lease{Runs: []record.LeaseRun{{From: 0, To: 1}}},
			record.Lease{Group: u32, Queue: u32, Runs: []record.LeaseRun{{From: 0, To: 7, Attempt: u32}, {From: u64 - 1, To: u64, Attempt: u32}}},
			record.Lease{Runs: []record.LeaseRun{{From: 0, To: u64}}},
			record.Lease{}),
		newCodec(record.CommandPost, "post", appendPost, decodePost, posts()...),
		newCodec(record.CommandEndHalf, "end-half", record.AppendEndHalf, record.DecodeEndHalf,
			record.EndHalf{Ref: half, Commit: true, Due: now + 1_800_000, Level: 16}, record.EndHalf{},
			record.EndHalf{Ref: edge, Due: math.MaxInt64, Level: 255}),
		newCodec(record.CommandReset, "reset", record.AppendReset, record.DecodeReset,
			record.Reset{Group: 3, Queue: 300, Offset: 70_000}, record.Reset{}, record.Reset{Group: u32, Queue: u32, Offset: u64}),
		newCodec(record.CommandOperation, "operation", record.AppendOperation, record.DecodeOperation,
			record.Operation{Number: 300, State: record.OperationRunning, Spec: `{"do":"cancel"}`}, record.Operation{},
			record.Operation{Number: u64, State: 255, Spec: "\x00\xff"}),
		newCodec(record.CommandOperate, "operate", record.AppendOperate, into(record.DecodeOperate),
			record.Operate{Number: 300, Cursor: waitingKey, Entries: []record.Steer{{Ref: waits, Due: now + 60_000}, {Ref: waits}}},
			record.Operate{},
			record.Operate{
				Number: u64, Cursor: record.Key{Due: -1, ID: u64, Kind: 255, Queue: u32},
				Entries: []record.Steer{{Ref: edge, Due: math.MaxInt64}, {Due: math.MinInt64}},
			}),
	}
}
