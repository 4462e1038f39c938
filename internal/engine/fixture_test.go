package engine

import (
	"context"
	"flag"
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
const formatNow = "1"

// fixtureClock is where the clock stands when a fixture was closed.
var fixtureClock = testStart.Add(10 * time.Minute)

// TestFixtures opens a data folder of each format version, with its index and
// from its log alone, and demands the state that was recorded with it.
func TestFixtures(t *testing.T) {
	if *rewrite {
		writeFixture(t, filepath.Join("testdata", "store-"+formatNow))
	}
	dirs, err := filepath.Glob(filepath.Join("testdata", "store-*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, dir := range dirs {
		want, err := os.ReadFile(filepath.Join(dir, "HASH"))
		if err != nil {
			t.Fatal(err)
		}
		for _, index := range []bool{true, false} {
			data := t.TempDir()
			if err := os.CopyFS(data, os.DirFS(filepath.Join(dir, "data"))); err != nil {
				t.Fatal(err)
			}
			if !index {
				if err := os.RemoveAll(filepath.Join(data, "index")); err != nil {
					t.Fatal(err)
				}
			}
			got := hashOfStore(t, data)
			if got != strings.TrimSpace(string(want)) {
				t.Errorf("%s with index %v: state %s, want %s", dir, index, got, want)
			}
		}
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
func writeFixture(t *testing.T, dir string) {
	t.Helper()
	data := filepath.Join(dir, "data")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
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
	if err := e.Cut(); err != nil {
		t.Fatal(err)
	}
	c.Step(-3 * time.Second)
	c.Advance(time.Second) // seen
	settle(t, e)
	c.Advance(6 * time.Second) // followed
	settle(t, e)
	send(t, e, tp, "after the last cut", Delay{DelayLevel, 4})
	hash, err := e.Hash()
	if err != nil {
		t.Fatal(err)
	}
	copyStore(t, data)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(data+".copy", data); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "HASH"), []byte(hash+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// copyStore copies a store that is open, as a kill would leave it: there are
// batches after its last cut.
func copyStore(t *testing.T, data string) {
	t.Helper()
	if err := os.CopyFS(data+".copy", os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
}
