package log

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/record"
)

// testID is the store id of all tests.
var testID = [16]byte{0xd0, 0xe5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}

const testDir = "store/log"

// testOptions are small segments, so that a test rolls and copies little.
func testOptions(f vfs.FS) Options {
	return Options{FS: f, Dir: testDir, StoreID: testID, SegmentBytes: MinSegmentBytes}
}

func mustOpen(t testing.TB, o Options, from Start) *Log {
	t.Helper()
	l, err := Open(o, from)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return l
}

// testBatch is the batch with that index whose whole frame takes about size
// bytes: one message. Other salts give other bytes.
func testBatch(index uint64, size int, salt uint64) *record.Batch {
	const around = LocalBytes + record.BatchHeader + 16
	body := make([]byte, max(size-around, 0))
	rng := rand.New(rand.NewPCG(index, salt))
	for i := range body {
		body[i] = byte(rng.Uint32())
	}
	m := record.Message{Queue: 1, Stored: int64(1000 + index), Born: int64(1000 + index), Body: body}
	return &record.Batch{
		Type: record.EntryCommands, Index: index, Term: 1, Stamp: m.Stored, Limit: 10, Data: record.AppendSend(nil, &m),
	}
}

func mustAppend(t testing.TB, l *Log, batches ...*record.Batch) []uint64 {
	t.Helper()
	pos := make([]uint64, len(batches))
	if err := l.Append(batches, pos); err != nil {
		t.Fatalf("Append: %v", err)
	}
	return pos
}

func mustSync(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Sync(); err != nil {
		t.Fatalf("Sync: %v", err)
	}
}

// kept is a batch as a replay showed it.
type kept struct {
	pos   uint64
	batch record.Batch
}

func replay(l *Log, from Start) ([]kept, error) {
	var list []kept
	err := l.Replay(from, func(pos uint64, b *record.Batch) error {
		c := *b
		c.Data, c.Extensions = bytes.Clone(b.Data), bytes.Clone(b.Extensions)
		list = append(list, kept{pos, c})
		return nil
	})
	return list, err
}

func mustReplay(t testing.TB, l *Log, from Start) []kept {
	t.Helper()
	list, err := replay(l, from)
	if err != nil {
		t.Fatalf("Replay: %v", err)
	}
	return list
}

// same says how two batches differ, or nothing.
func same(got, want *record.Batch) error {
	g, err := record.AppendBatch(nil, got)
	if err != nil {
		return err
	}
	w, err := record.AppendBatch(nil, want)
	if err != nil {
		return err
	}
	if !bytes.Equal(g, w) {
		return fmt.Errorf("batch %d (%d bytes) differs from batch %d (%d bytes) as it was appended", got.Index, len(g), want.Index, len(w))
	}
	return nil
}

// edit changes a file's bytes under a closed log.
func edit(t testing.TB, f vfs.FS, path string, change func(data []byte) []byte) {
	t.Helper()
	data, err := readSmall(f, path, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	data = change(data)
	file, err := f.Create(path, category)
	if err != nil {
		t.Fatal(err)
	}
	if err := fill(file, data); err != nil {
		t.Fatal(err)
	}
	if err := syncDir(f, f.PathDir(path)); err != nil {
		t.Fatal(err)
	}
}

func segmentPath(f vfs.FS, base uint64) string {
	return f.PathJoin(testDir, fileName(base, segmentSuffix))
}

// crashNothing is a power cut after which only what was synced is there.
var crashNothing = vfs.CrashCloneCfg{}

// crashRNG is for crashes that keep everything and draw nothing.
func crashRNG() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }
