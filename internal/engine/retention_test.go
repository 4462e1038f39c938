package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/record"
)

// keepUp does what the keeper does once a second until nothing is left to do.
func keepUp(t *testing.T, e *Engine) {
	t.Helper()
	for {
		// The keeper itself may have asked for a carry at any moment: its cut comes
		// first, for the clock here is faster than any disk.
		if err := e.Cut(); err != nil {
			t.Fatal(err)
		}
		p := e.plan()
		e.mu.RLock()
		carried := uint64(e.m.keep.carried)
		e.mu.RUnlock()
		if p == (plan{}) && carried == e.carriedTo.Load() {
			return
		}
		if err := e.trimAndCarry(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

func mustHash(t *testing.T, e *Engine) string {
	t.Helper()
	h, err := e.Hash()
	if err != nil {
		t.Fatalf("Hash: %v", err)
	}
	return h
}

func mustClose(t *testing.T, e *Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

// small gives options with segments of 64 KiB.
func small(disk fs.FS, c clock.Clock) Options {
	o := options(disk, c)
	o.SegmentBytes = 64 << 10
	return o
}

// sendMany sends n messages of about a kilobyte whose bodies are numbered.
func sendMany(t *testing.T, e *Engine, tp *Topic, from, n int) {
	t.Helper()
	sends := make([]Send, n)
	for i := range sends {
		body := fmt.Sprintf("%06d %s", from+i, strings.Repeat("x", 1000))
		sends[i] = Send{Message: record.Message{Body: []byte(body)}, Topic: tp.Number, To: tp.FirstQueue}
	}
	if err := e.Send(t.Context(), sends); err != nil {
		t.Fatal(err)
	}
	for i := range sends {
		if sends[i].Err != nil {
			t.Fatal(sends[i].Err)
		}
	}
}

// numbered demands that a queue holds messages with consecutive numbers, that
// each is at the offset of its number, and gives the bounds.
func numbered(t *testing.T, e *Engine, q record.QueueNumber) (low, next record.Offset) {
	t.Helper()
	low, next, err := e.Bounds(q)
	if err != nil {
		t.Fatal(err)
	}
	for o := low; o < next; {
		entries, err := e.Entries(nil, q, o, 100)
		if err != nil {
			t.Fatal(err)
		}
		e.Messages(entries, func(i int, m *record.Message, err error) {
			if want := fmt.Sprintf("%06d ", o+record.Offset(i)); err != nil || !strings.HasPrefix(string(m.Body), want) {
				t.Fatalf("offset %d: %.10q, %v", o+record.Offset(i), m.Body, err)
			}
		})
		o += record.Offset(len(entries))
	}
	return low, next
}

// TestRetention gives up what is older than its time, or more than its bytes:
// offsets stay what they are, a group that is behind is moved up and what it
// skipped is counted, and a store that is opened again is the same.
func TestRetention(t *testing.T) {
	for name, r := range map[string]Retention{
		"time":  {Time: 10 * time.Minute, CarryAfter: time.Minute},
		"bytes": {Time: -1, Bytes: 5 * 64 << 10, CarryAfter: time.Minute},
		"both":  {Time: 10 * time.Minute, Bytes: 3 * 64 << 10, CarryAfter: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			c := clock.NewFake(testStart)
			o := small(fs.NewMem(), c)
			o.Retention = r
			e := open(t, o)
			tp := topic(t, e, "t", 1)
			g, err := e.MakeGroup(t.Context(), record.Group{Name: "g", Start: record.StartEarliest})
			if err != nil {
				t.Fatal(err)
			}
			acked := []record.Ack{{Group: g.Number, Queue: tp.FirstQueue, Ranges: []record.OffsetRange{{From: 2, To: 5}}}}
			const n = 1200
			for i := 0; i < n; i += 40 {
				sendMany(t, e, tp, i, 40)
				if i == 0 {
					if err := e.Ack(t.Context(), acked); err != nil {
						t.Fatal(err)
					}
				}
				c.Advance(time.Minute)
				settle(t, e)
				keepUp(t, e)
			}
			low, next := numbered(t, e, tp.FirstQueue)
			if next != n || low == 0 || low > n-80 {
				t.Fatalf("offsets %d to %d", low, next)
			}
			if s := e.Stats(); r.Bytes > 0 && int64(s.LogBytes-s.LogFirst) > r.Bytes+64<<10 {
				t.Errorf("the log holds %d bytes, limit %d", s.LogBytes-s.LogFirst, r.Bytes)
			}
			skipped := func(e *Engine) (base record.Offset, skipped uint64) {
				err := e.Progress(e.GroupNamed("g"), tp.FirstQueue, func(p *group.Progress, b Bounds) { base, skipped = p.Behind(b.Low) })
				if err != nil {
					t.Fatal(err)
				}
				return base, skipped
			}
			if base, n := skipped(e); base != low || n != uint64(low)-3 {
				t.Errorf("the group is at %d and skipped %d, of %d that were given up it had done 3", base, n, low)
			}
			if _, err := e.Entries(nil, tp.FirstQueue, low-1, 1); !errors.Is(err, ErrNotFound) {
				t.Errorf("below the bounds: %v", err)
			}
			want := mustHash(t, e)
			mustClose(t, e)
			e = open(t, o)
			if got := mustHash(t, e); got != want {
				t.Error("another state after opening")
			}
			if l, n := numbered(t, e, tp.FirstQueue); l != low || n != next {
				t.Errorf("offsets %d to %d, were %d to %d", l, n, low, next)
			}
			if base, _ := skipped(e); base != low {
				t.Errorf("the group is at %d, want %d", base, low)
			}
		})
	}
}

// segmentsOf gives the names of the log's segments, oldest first.
func segmentsOf(t *testing.T, disk fs.FS) (names []string) {
	t.Helper()
	all, err := disk.List("data/log")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		if strings.HasSuffix(n, ".seg") {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

// trimmed makes a store of which the beginning was given up, with messages that
// were carried, and closes it.
func trimmed(t *testing.T, disk *vfs.MemFS) (o Options, hash string) {
	t.Helper()
	c := clock.NewFake(testStart)
	o = small(disk, c)
	o.Retention = Retention{Time: 10 * time.Minute, CarryAfter: time.Minute}
	e := open(t, o)
	tp := topic(t, e, "t", 1)
	for i := 0; i < 1200; i += 40 {
		sendMany(t, e, tp, i, 40)
		send(t, e, tp, "waits", Delay{DelayAfter, 24 * hourMs})
		c.Advance(time.Minute)
		settle(t, e)
		keepUp(t, e)
	}
	if s := e.Stats(); s.LogFirst == 0 || s.Carried == 0 {
		t.Fatalf("log from %d, %d carried: nothing was given up", s.LogFirst, s.Carried)
	}
	hash = mustHash(t, e)
	mustClose(t, e)
	return o, hash
}

// TestTrimmedStoreNeedsItsIndex: once the beginning of the log is gone, the index
// is not to be had from it any more.
func TestTrimmedStoreNeedsItsIndex(t *testing.T) {
	disk := fs.NewMem()
	o, hash := trimmed(t, disk)
	if err := disk.Rename("data/index", "data/aside"); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), o)
	if !errors.Is(err, record.ErrCorrupt) || !strings.Contains(err.Error(), "restore a backup") {
		t.Fatalf("Open without the index: %v", err)
	}
	if err := errors.Join(disk.RemoveAll("data/index"), disk.Rename("data/aside", "data/index")); err != nil {
		t.Fatal(err)
	}
	if got := mustHash(t, open(t, o)); got != hash {
		t.Error("another state with the index back")
	}
}

// TestMissingSegmentRefuses takes each segment of a trimmed log away in turn. The
// store refuses to open, writes nothing, and is whole when the file is back.
func TestMissingSegmentRefuses(t *testing.T) {
	disk := fs.NewMem()
	o, hash := trimmed(t, disk)
	for _, name := range segmentsOf(t, disk) {
		if err := disk.Rename("data/log/"+name, "data/aside"); err != nil {
			t.Fatal(err)
		}
		e, err := Open(t.Context(), o)
		if err == nil {
			_ = e.Close()
			t.Fatalf("opened without %s", name)
		}
		if !errors.Is(err, record.ErrCorrupt) || !strings.Contains(err.Error(), "data/log") {
			t.Errorf("without %s: %v", name, err)
		}
		if err := disk.Rename("data/aside", "data/log/"+name); err != nil {
			t.Fatal(err)
		}
	}
	if got := mustHash(t, open(t, o)); got != hash {
		t.Error("another state with all segments back")
	}
}

// everything does something of each kind, so that a state has all its parts.
func everything(t *testing.T, e *Engine, c *clock.Fake) {
	t.Helper()
	ctx := t.Context()
	paused, capped, plain := topic(t, e, "paused", 2), topic(t, e, "capped", 1), topic(t, e, "plain", 2)
	if err := errors.Join(
		e.Pause(ctx, paused, true),
		e.Configure(ctx, capped, []record.Property{{Name: RateAttribute, Value: "2"}}),
	); err != nil {
		t.Fatal(err)
	}
	var refs []record.Ref
	for i := range 60 {
		for _, tp := range []*Topic{paused, capped, plain} {
			s := []Send{{Topic: tp.Number, Turn: tp, Delay: Delay{DelayAfter, int64(i%7) * 900}, Message: record.Message{Body: make([]byte, 1000), Key: "k"}}}
			switch i % 6 {
			case 0:
				s[0].Terms.Once = record.Hash{1, byte(i)}
			case 1:
				s[0].Terms.Name = record.Hash{2, byte(i % 12)}
				s[0].Delay.Value = 50_000
			case 2:
				s[0].Terms = record.Terms{Half: true, Producer: "p"}
			}
			if err := e.Send(ctx, s); err != nil || s[0].Err != nil {
				t.Fatal(err, s[0].Err)
			}
			switch {
			case i%6 == 2 && i%12 == 2:
				if _, err := e.EndHalf(ctx, s[0].ID, i%24 == 2); err != nil {
					t.Fatal(err)
				}
			case i%6 > 2:
				_, r, err := e.Find(s[0].ID)
				if err != nil {
					t.Fatal(err)
				}
				refs = append(refs, r)
			}
		}
		c.Advance(100 * time.Millisecond)
		settle(t, e)
	}
	number, err := e.BeginOperation(ctx, "spec")
	if err != nil {
		t.Fatal(err)
	}
	o := record.Operate{Number: number, Entries: []record.Steer{{Ref: refs[len(refs)-1]}, {Ref: refs[len(refs)-2], Due: e.Now() + 5000}}}
	if err := e.Operate(ctx, o); err != nil {
		t.Fatal(err)
	}
	consume(t, e, plain)
	if err := e.EndTopic(ctx, topic(t, e, "purged", 1), true); err != nil {
		t.Fatal(err)
	}
}

// consume has a group lease, give back and finish some of a topic.
func consume(t *testing.T, e *Engine, tp *Topic) {
	t.Helper()
	g, err := e.MakeGroup(t.Context(), record.Group{Name: "g", Start: record.StartEarliest})
	if err != nil {
		t.Fatal(err)
	}
	q := tp.FirstQueue
	err = errors.Join(
		e.Lease(t.Context(), []record.Lease{{Group: g.Number, Queue: q, Runs: []record.LeaseRun{{From: 0, To: 6, Attempt: 1}}}}),
		e.Release(t.Context(), record.Release{Group: g.Number, Queue: q, Reason: record.ReasonNack, Entries: []record.Released{{Offset: 1, Attempt: 1, Due: e.Now() + 4000}}}),
		e.Ack(t.Context(), []record.Ack{{Group: g.Number, Queue: q, Ranges: []record.OffsetRange{{From: 3, To: 5}}}}),
	)
	if err != nil {
		t.Fatal(err)
	}
}

// TestIndexComesBackFromTheLog deletes the index of a store with a paused topic,
// one with a rate, half messages, names, keys, an operation that is not done,
// leases and a carry; nothing was given up yet. What is held back goes on
// alike.
func TestIndexComesBackFromTheLog(t *testing.T) {
	for _, carried := range []bool{false, true} {
		disk := fs.NewMem()
		c := clock.NewFake(testStart)
		o := small(disk, c)
		o.Retention = Retention{Time: time.Hour, CarryAfter: time.Hour}
		e := open(t, o)
		everything(t, e, c)
		if carried {
			for _, h := range e.Halves("") { // they hold a carry up
				if _, err := e.EndHalf(t.Context(), h.Ref.ID, true); err != nil {
					t.Fatal(err)
				}
			}
			err := e.trimAndCarry(t.Context(), plan{carry: record.ID(e.Stats().LogBytes &^ (64<<10 - 1))})
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Cut(); err != nil || e.Stats().Carried == 0 {
				t.Fatalf("nothing was carried (%v)", err)
			}
		}
		want := mustHash(t, e)
		stats := e.Stats()
		mustClose(t, e)
		for _, drop := range []bool{false, true} {
			if drop {
				if err := disk.RemoveAll("data/index"); err != nil {
					t.Fatal(err)
				}
			}
			e = open(t, o)
			if got := mustHash(t, e); got != want {
				t.Errorf("carried %v, index dropped %v: another state (batch %d, was %d)", carried, drop, e.Stats().LogBatches, stats.LogBatches)
			}
			mustClose(t, e)
		}
	}
}
