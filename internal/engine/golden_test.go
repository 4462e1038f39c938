package engine

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
)

// goldenCut makes a small state with something in every space and writes a cut
// of it, then a second one after the clock was set back.
func goldenCut(t *testing.T, x *index.Index) {
	t.Helper()
	m, _, err := restore(x, testSegment)
	if err != nil {
		t.Fatal(err)
	}
	const stamp = 1_796_115_600_000
	pos := uint64(128)
	apply := func(at int64, flags record.BatchFlags, data []byte) {
		b := record.Batch{Type: record.EntryCommands, Index: m.index + 1, Term: 1, Stamp: at, Limit: 100, Flags: flags, Data: data}
		if err := m.apply(pos, &b, &effects{}); err != nil {
			t.Fatal(err)
		}
		pos += 4096
	}
	cut := func() {
		f := m.freeze(log.Start{Position: pos, Index: m.index, Checksum: 0xfeedface})
		if err := f.write(x, noSegments{}, m.waits); err != nil {
			t.Fatal(err)
		}
		it, err := f.line.Open(x)
		if err != nil {
			t.Fatal(err)
		}
		if old := m.install(f, it); old != nil {
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	data := record.AppendTopic(nil, &record.Topic{Number: 1, FirstQueue: 1, Queues: 2, Name: "orders"})
	data = record.AppendGroup(data, &record.Group{Name: "billing", Start: record.StartEarliest})
	data = record.AppendSetting(data, &record.Setting{Name: "note", Value: "golden"})
	var refs []record.Ref
	for i := range 8 {
		msg := record.Message{Queue: record.QueueNumber(1 + i%2), Stored: stamp, Born: stamp - 5, Body: []byte("body")}
		if i >= 2 {
			msg.Due = stamp + int64(i)*1000
		}
		if i%3 == 0 {
			msg.Tag = "blue"
		}
		if i >= 6 {
			msg.Level = 3
		}
		at := len(data)
		data = record.AppendSend(data, &msg)
		refs = append(refs, record.Ref{
			Due: msg.Due, ID: record.ID(pos + log.LocalBytes + record.BatchHeader + uint64(at)), Size: uint32(len(data) - at),
			Queue: msg.Queue, Tag: record.TagHash(msg.Tag), Kind: record.KindMessage, Level: msg.Level,
		})
	}
	apply(stamp, 0, data)
	data = record.AppendCancel(nil, &record.Cancel{Key: refs[3].Key(), Level: refs[3].Level})
	data = record.AppendReschedule(data, &record.Reschedule{Ref: refs[4], Due: stamp + 90_000})
	data = record.AppendAck(data, &record.Ack{Group: 0, Queue: 1, Ranges: []record.OffsetRange{{From: 0, To: 1}}})
	data = record.AppendCommit(data, &record.Commit{Group: 0, Queue: 2, Offset: 1})
	apply(stamp+2500, 0, data)
	cut()
	apply(stamp+2600, 0, goldenTerms(stamp+2600))
	data = record.AppendPause(nil, &record.Pause{Topic: 1, Paused: true})
	data = record.AppendSend(data, &record.Message{Queue: 1, Stored: stamp + 2700, Born: stamp + 2700, Key: "held back", Body: []byte("body")})
	data = record.AppendLease(data, &record.Lease{Queue: 2, Runs: []record.LeaseRun{{From: 0, To: 1, Attempt: 2}}})
	data = record.AppendOperation(data, &record.Operation{Number: 1, State: record.OperationRunning, Spec: "{}"})
	data = record.AppendCarry(data, &record.Carry{To: testSegment})
	apply(stamp+2700, 0, data)
	apply(stamp+5500, 0, nil)
	apply(stamp+1000, record.FlagRebase, record.AppendSetting(nil, &record.Setting{Name: "note"}))
	cut()
	if err := m.line.Close(); err != nil {
		t.Fatal(err)
	}
}

// goldenTerms is messages under terms: a name and a key, and a half one.
func goldenTerms(stamp int64) []byte {
	m := record.Message{Queue: 1, Stored: stamp, Born: stamp, Due: stamp + 86_400_000, Key: "o-1 o-2", Body: []byte("body")}
	data := record.AppendPost(nil, &record.Terms{Once: record.Hash{1}, Print: 7, Until: stamp + 90_000_000, Name: record.Hash{2}}, &m)
	m.Due = 0
	return record.AppendPost(data, &record.Terms{Half: true, Producer: "shop", Check: stamp + CheckAfter, Kind: uint8(DelayAfter), Delay: 5000}, &m)
}

// goldenSpaces is every space of the index.
const goldenSpaces = "bcdeikopqrsyz"

// TestIndexGolden compares every key and value that a cut writes with a recorded
// list. The bytes of the index are frozen: a change needs a new version of the
// value, another line in docs/formats/index.md, and -rewrite.
func TestIndexGolden(t *testing.T) {
	x, err := index.Open(index.Options{FS: fs.NewMem(), Dir: "index"})
	if err != nil {
		t.Fatal(err)
	}
	goldenCut(t, x)
	var got bytes.Buffer
	for _, s := range []byte(goldenSpaces) {
		it, err := x.NewIter(index.Space(s), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for it.First(); it.Valid(); it.Next() {
			fmt.Fprintf(&got, "%c %x = %x\n", s, it.Key(), it.Value())
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join("testdata", "index.golden")
	if *rewrite {
		if err := os.WriteFile(name, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the index's bytes have changed:\n%s\nwant\n%s", got.Bytes(), want)
	}
}

func FuzzDecodeApplied(f *testing.F) {
	m := empty(nil, testSegment)
	m.index, m.last, m.term, m.stamp, m.nextQueue, m.cuts = 9, 4096, 1, 1_796_115_600_000, 3, 2
	f.Add(m.appendApplied(nil, log.Start{Position: 8192, Index: 9, Checksum: 7}, []byte{1, 2, 3}))
	f.Fuzz(func(t *testing.T, value []byte) {
		m := empty(nil, testSegment)
		end, line, err := m.decodeApplied(value)
		if err != nil {
			return
		}
		again := empty(nil, testSegment)
		end2, line2, err := again.decodeApplied(m.appendApplied(nil, end, line))
		if err != nil || end2 != end || !bytes.Equal(line, line2) || again.stamp != m.stamp {
			t.Errorf("%x became %+v %x, %v", value, end2, line2, err)
		}
	})
}

func FuzzRestoreState(f *testing.F) {
	f.Add([]byte{stateTopic, 0, 0, 0, 1}, (&Topic{Topic: record.Topic{Number: 1, FirstQueue: 1, Queues: 2, Name: "t"}, waiting: 3}).append(nil))
	f.Add([]byte{stateSetting, 'n'}, []byte("v"))
	k := newKeeping(testSegment)
	k.reach(3*testSegment, 5)
	k.hours[7] = 9
	f.Add([]byte{stateKeep}, k.append(nil))
	f.Add([]byte{stateSwept}, (&swept{outcomes: 4096, damaged: []damage{{4096, 7}}}).append(nil))
	f.Add(append([]byte{stateHalf}, 0, 0, 0, 0, 0, 0, 0, 9), (&Half{Producer: "p", Checks: 2}).append(nil))
	f.Add(append([]byte{stateOperation}, 0, 0, 0, 0, 0, 0, 0, 9), (&Operation{Operation: record.Operation{Number: 9, State: record.OperationRunning, Spec: "{}"}}).append(nil))
	f.Add([]byte{stateGroup, 0, 0, 0, 0}, record.AppendGroup(nil, &record.Group{Name: "g", Start: record.StartEarliest}))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		x := empty(nil, testSegment)
		_ = x.restoreOne(key, value) // it may refuse; it must not panic or grow without bound
	})
}
