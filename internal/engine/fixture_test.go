package engine

import (
	"archive/zip"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

var rewrite = flag.Bool("rewrite", false, "write the fixture of the current format anew")

// formatNow names the newest fixture. A change of any format adds one and keeps
// the others: this binary reads its own and the previous format.
const formatNow = "2"

// fixtureClock is where the clock stands when a fixture was closed.
var fixtureClock = testStart.Add(10 * time.Minute)

// TestFixtures opens a data folder of each format version, with its index and
// from its log alone, and demands the state that was recorded with it in
// testdata/hashes.golden. The hash is this binary's: when it takes in more of the
// state, -rewrite records it anew, and only the bytes of the archives stay.
func TestFixtures(t *testing.T) {
	if *rewrite {
		writeFixture(t, filepath.Join("testdata", "store-"+formatNow+".zip"))
	}
	var hashes strings.Builder
	archives, err := filepath.Glob(filepath.Join("testdata", "store-*.zip"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, name := range archives {
		for _, index := range []bool{true, false} {
			data := t.TempDir()
			unpack(t, name, data)
			if !index {
				if err := os.RemoveAll(filepath.Join(data, "index")); err != nil {
					t.Fatal(err)
				}
			}
			fmt.Fprintf(&hashes, "%s index=%v %s\n", filepath.Base(name), index, hashOfStore(t, data))
		}
	}
	golden := filepath.Join("testdata", "hashes.golden")
	if *rewrite {
		if err := os.WriteFile(golden, []byte(hashes.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := hashes.String(); got != string(want) {
		t.Errorf("states\n%swant\n%s", got, want)
	}
}

func unpack(t *testing.T, name, dir string) {
	t.Helper()
	z, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if err := os.CopyFS(dir, z); err != nil {
		t.Fatal(err)
	}
}

func pack(t *testing.T, name, dir string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	if err := errors.Join(z.AddFS(os.DirFS(dir)), z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func fixtureOptions(dir string) Options {
	o := options(fs.Real(), clock.NewFake(fixtureClock))
	o.Dir, o.SegmentBytes = dir, 64<<10
	return o
}

func hashOfStore(t *testing.T, dir string) string {
	t.Helper()
	o := fixtureOptions(dir)
	o.Clock = clock.NewFake(testStart.Add(-time.Hour)) // suspect: opening moves nothing
	e, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	hash, err := e.Hash()
	if err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	if err := e.Close(); err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	return hash
}

// writeFixture makes a store with something of everything: all kinds of delay,
// visible, waiting, moved and cancelled messages, groups with gaps, a setting,
// several cuts, batches after the last one, and a clock that was set back.
func writeFixture(t *testing.T, name string) {
	t.Helper()
	data := t.TempDir()
	o := fixtureOptions(data)
	o.Levels = []time.Duration{time.Second, 5 * time.Second, time.Minute, time.Hour}
	c := clock.NewFake(testStart)
	o.Clock, o.CutCommands = c, 150
	e, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	tp := topic(t, e, "orders", 2)
	g, err := e.MakeGroup(ctx, record.Group{Name: "billing", Start: record.StartEarliest})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Set(ctx, record.Setting{Name: "note", Value: "fixture"}); err != nil {
		t.Fatal(err)
	}
	var refs []record.Ref
	for i := range 400 {
		d := []Delay{{}, {DelayLevel, int64(i%4 + 1)}, {DelayAfter, int64(i) * 37}, {DelayAt, testStart.UnixMilli() + int64(i)*100}}[i%4]
		s := []Send{{Topic: tp.Number, Turn: tp, Delay: d, Message: record.Message{
			Key: "k", Tag: []string{"", "blue"}[i%2], Body: make([]byte, i),
			Properties: []record.Property{{Name: "n", Value: strings.Repeat("v", i%7)}},
		}}}
		if err := e.Send(ctx, s); err != nil || s[0].Err != nil {
			t.Fatal(err, s[0].Err)
		}
		_, r, err := e.Find(s[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, r)
		c.Advance(15 * time.Millisecond)
		settle(t, e)
	}
	for i := 0; i < len(refs); i += 9 {
		if _, err := e.Cancel(ctx, refs[i]); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Reschedule(ctx, refs[i+1-i/399], Delay{DelayAfter, 90_000}); err != nil {
			t.Fatal(err)
		}
	}
	acks := []record.Ack{{Group: g.Number, Queue: tp.FirstQueue, Ranges: []record.OffsetRange{{From: 0, To: 20}, {From: 25, To: 30}}}}
	if err := e.Ack(ctx, acks); err != nil {
		t.Fatal(err)
	}
	moreOfEverything(t, e, tp)
	if err := e.Cut(); err != nil {
		t.Fatal(err)
	}
	c.Step(-3 * time.Second)
	c.Advance(time.Second) // seen
	settle(t, e)
	c.Advance(6 * time.Second) // followed
	settle(t, e)
	send(t, e, tp, "after the last cut", Delay{DelayLevel, 4})
	if steps := e.Stats().ClockSteps; steps != 1 {
		t.Fatalf("%d clock steps in the fixture, want 1", steps)
	}
	// As a kill would leave it: there are batches after the last cut.
	pack(t, name, data)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// moreOfEverything adds what came with format 2: terms, a transaction, a paused
// topic with what it holds back, a bulk operation, leases and a retry.
func moreOfEverything(t *testing.T, e *Engine, tp *Topic) {
	t.Helper()
	ctx := context.Background()
	held := topic(t, e, "held", 2)
	if err := e.Pause(ctx, held, true); err != nil {
		t.Fatal(err)
	}
	sends := []Send{
		{Topic: tp.Number, Turn: tp, Terms: record.Terms{Once: record.Hash{1}, Print: 1}, Delay: Delay{DelayAfter, 100_000}, Message: record.Message{Key: "a b", Body: []byte("once")}},
		{Topic: tp.Number, Turn: tp, Terms: record.Terms{Once: record.Hash{1}, Print: 1}, Message: record.Message{Body: []byte("again")}},
		{Topic: tp.Number, Turn: tp, Terms: record.Terms{Name: record.Hash{2}}, Delay: Delay{DelayAfter, 100_000}, Message: record.Message{Body: []byte("first of its name")}},
		{Topic: tp.Number, Turn: tp, Terms: record.Terms{Name: record.Hash{2}}, Delay: Delay{DelayAfter, 200_000}, Message: record.Message{Body: []byte("second")}},
		{Topic: tp.Number, Turn: tp, Terms: record.Terms{Half: true, Producer: "shop"}, Delay: Delay{DelayAfter, 1000}, Message: record.Message{Body: []byte("half")}},
		{Topic: held.Number, Turn: held, Message: record.Message{Body: []byte("held at once")}},
		{Topic: held.Number, Turn: held, Message: record.Message{Body: []byte("held and cancelled")}},
	}
	if err := e.Send(ctx, sends); err != nil || !sends[1].Repeat || sends[3].Took != sends[2].ID {
		t.Fatal(err, sends)
	}
	_, r, err := e.Find(sends[6].ID)
	if err != nil {
		t.Fatal(err)
	}
	n, err := e.BeginOperation(ctx, "{}")
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		e.Operate(ctx, record.Operate{Number: n, Cursor: r.Key(), Entries: []record.Steer{{Ref: r}}}),
		e.Lease(ctx, []record.Lease{{Queue: tp.FirstQueue + 1, Runs: []record.LeaseRun{{From: 0, To: 5, Attempt: 1}}}}),
		e.Release(ctx, record.Release{Queue: tp.FirstQueue + 1, Reason: record.ReasonNack, Entries: []record.Released{{Offset: 2, Attempt: 1, Due: testStart.UnixMilli() + 1_000_000}}}),
	)
	if op, ok := e.Operation(n); err != nil || !ok || op.Done != 1 {
		t.Fatal(err, op)
	}
}
