package record_test

import (
	"testing"

	"github.com/duemq/duemq/internal/record"
)

func plainMessage() record.Message {
	return record.Message{Queue: 9, Stored: now, Born: now - 3, Due: now + 1_800_000, Level: 16, Body: make([]byte, 256)}
}

func wantNoAllocations(t *testing.T, what string, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%s allocates %v times, want 0", what, n)
	}
}

func TestSendAllocatesNothingWhenWarm(t *testing.T) {
	m := plainMessage()
	m.Extensions = []record.Extension{{Number: record.ExtOrigin, Value: make([]byte, 8)}}
	buf := record.AppendSend(nil, &m)
	wantNoAllocations(t, "AppendSend into a warm buffer", func() { buf = record.AppendSend(buf[:0], &m) })
	payload := payloadOf(t, buf)
	var got record.Message
	var failed error
	wantNoAllocations(t, "DecodeSend into a reused message", func() {
		if err := record.DecodeSend(payload, &got); err != nil {
			failed = err
		}
	})
	wantNoAllocations(t, "DecodeMessageAt into a reused message", func() {
		if err := record.DecodeMessageAt(buf, &got); err != nil {
			failed = err
		}
	})
	if failed != nil || !equal(m, got) {
		t.Errorf("came back as %+v, %v", got, failed)
	}
	full := fullMessage()
	wantNoAllocations(t, "AppendSend with every part", func() { buf = record.AppendSend(buf[:0], &full) })
}

func TestBatchAllocatesNothingWhenWarm(t *testing.T) {
	m := plainMessage()
	ack := record.Ack{Group: 1, Queue: 2, Ranges: []record.OffsetRange{{From: 3, To: 9}, {From: 10, To: 11}}}
	release := record.Release{Group: 1, Queue: 2, Reason: record.ReasonExpiry, Entries: []record.Released{{Offset: 3, Attempt: 1}}}
	data := make([]byte, 0, 4096)
	buf := make([]byte, 0, 4096)
	var failed error
	note := func(err error) {
		if err != nil {
			failed = err
		}
	}
	wantNoAllocations(t, "a batch of a send, an ack, a release and a commit", func() {
		data = record.AppendSend(data[:0], &m)
		data = record.AppendAck(data, &ack)
		data = record.AppendRelease(data, &release)
		data = record.AppendCommit(data, &record.Commit{Group: 1, Queue: 2, Offset: 9})
		data = record.AppendCancel(data, &record.Cancel{Key: waitingKey})
		var err error
		buf, err = record.AppendBatch(buf[:0], &record.Batch{Type: record.EntryCommands, Index: 1, Term: 1, Stamp: now, Data: data})
		note(err)
	})
	var gotAck record.Ack
	var gotRelease record.Release
	wantNoAllocations(t, "reading it", func() {
		b, _, err := record.DecodeBatch(buf)
		note(err)
		note(record.Commands(b.Data, func(c record.Command) error {
			switch c.Type {
			case record.CommandAck:
				return record.DecodeAck(c.Payload, &gotAck)
			case record.CommandRelease:
				return record.DecodeRelease(c.Payload, &gotRelease)
			case record.CommandCommit:
				_, err := record.DecodeCommit(c.Payload)
				return err
			default:
				return nil
			}
		}))
	})
	if failed != nil || !equal(ack, gotAck) || !equal(release, gotRelease) {
		t.Errorf("came back as %+v and %+v, %v", gotAck, gotRelease, failed)
	}
}

func TestPostAndLeaseAllocateNothingWhenWarm(t *testing.T) {
	m := plainMessage()
	m.Key = "order-42"
	terms := record.Terms{Once: onceHash, Print: 1, Until: now, Name: nameHash}
	lease := record.Lease{Group: 1, Queue: 2, Runs: []record.LeaseRun{{From: 3, To: 9, Attempt: 1}, {From: 10, To: 11, Attempt: 2}}}
	buf := make([]byte, 0, 4096)
	wantNoAllocations(t, "a post and a lease into a warm buffer", func() {
		buf = record.AppendPost(buf[:0], &terms, &m)
		buf = record.AppendLease(buf, &lease)
	})
	post, err := record.NextCommand(buf, 0)
	if err != nil {
		t.Fatal(err)
	}
	next, err := record.NextCommand(buf, post.Size)
	if err != nil {
		t.Fatal(err)
	}
	var gotTerms record.Terms
	var gotLease record.Lease
	var peek record.Peek
	var failed error
	wantNoAllocations(t, "a glance at the post and the lease into a reused value", func() {
		var err error
		if peek, err = record.PeekPost(&post, 7, &gotTerms); err != nil {
			failed = err
		}
		if err := record.DecodeLease(next.Payload, &gotLease); err != nil {
			failed = err
		}
	})
	if failed != nil || gotTerms != terms || !equal(gotLease, lease) || string(peek.Key) != m.Key {
		t.Errorf("came back as %+v, key %q and %+v, %v", gotTerms, peek.Key, gotLease, failed)
	}
}

func BenchmarkAppendSend(b *testing.B) {
	m := plainMessage()
	buf := record.AppendSend(nil, &m)
	b.SetBytes(int64(len(m.Body)))
	b.ReportAllocs()
	for b.Loop() {
		buf = record.AppendSend(buf[:0], &m)
	}
}

func BenchmarkDecodeSend(b *testing.B) {
	m := plainMessage()
	payload := payloadOf(b, record.AppendSend(nil, &m))
	b.SetBytes(int64(len(m.Body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := record.DecodeSend(payload, &m); err != nil {
			b.Fatal(err)
		}
	}
}
