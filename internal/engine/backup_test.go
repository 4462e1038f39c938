package engine

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
)

// A taken is one backup, and what had been acknowledged before it began.
type taken struct {
	stream bytes.Buffer
	info   BackupInfo
	acked  []Send
}

func take(t *testing.T, e *Engine, acked []Send) *taken {
	t.Helper()
	k := &taken{acked: acked}
	last := int64(-1)
	var err error
	k.info, err = e.Backup(t.Context(), &k.stream, func(done, total int64) {
		if done <= last || total < done {
			t.Errorf("progress %d of %d after %d", done, total, last)
		}
		last = done
	})
	if err != nil {
		t.Fatalf("Backup: %v", err)
	}
	if k.info.Bytes != int64(k.stream.Len()) || last != k.info.Bytes {
		t.Errorf("%d bytes written, result says %d, progress %d", k.stream.Len(), k.info.Bytes, last)
	}
	return k
}

// restoreTo makes a store in dir and checks what is said of it.
func (k *taken) restoreTo(t *testing.T, o Options) {
	t.Helper()
	o.Rand = crand.Reader // other tests want the same id each time
	last := int64(-1)
	info, err := RestoreBackup(t.Context(), o, bytes.NewReader(k.stream.Bytes()), func(done, total int64) {
		if done <= last || total < done {
			t.Errorf("progress %d of %d after %d", done, total, last)
		}
		last = done
	})
	if err != nil {
		t.Fatalf("RestoreBackup: %v", err)
	}
	want := k.info
	want.Restored = info.Restored
	if info != want || info.Restored == info.Store || info.Restored == [16]byte{} {
		t.Errorf("restored %+v\nof %+v", info, k.info)
	}
}

// hashAt is the state after the batch with that index, as the log of a closed
// store alone gives it.
func hashAt(t *testing.T, dir string, index uint64) string {
	t.Helper()
	replay := filepath.Join(t.TempDir(), "replay")
	if err := errors.Join(os.CopyFS(replay, os.DirFS(dir)), os.RemoveAll(filepath.Join(replay, "index"))); err != nil {
		t.Fatal(err)
	}
	l, err := openLog(replay)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.TruncateSuffix(index+1), l.Close()); err != nil {
		t.Fatal(err)
	}
	return hashOfStore(t, replay)
}

func openLog(dir string) (*log.Log, error) {
	o, err := logOptions(dir)
	if err != nil {
		return nil, err
	}
	return log.Open(o, log.Start{})
}

func logOptions(dir string) (log.Options, error) {
	store, err := log.OpenStore(fs.Real(), dir, log.StoreOptions{})
	return log.Options{FS: fs.Real(), Dir: filepath.Join(dir, "log"), StoreID: store.ID, SegmentBytes: store.SegmentBytes}, err
}

// traffic sends, cancels, acknowledges and lets time pass until stopped.
type traffic struct {
	e     *Engine
	c     *clock.Fake
	topic *Topic
	group record.GroupNumber

	mu    sync.Mutex
	acked []Send
}

func (f *traffic) send(ctx context.Context, rng *rand.Rand) error {
	sends := make([]Send, 1+rng.IntN(5))
	for i := range sends {
		body := []byte(strings.Repeat("b", rng.IntN(1500)))
		sends[i] = Send{Topic: f.topic.Number, Turn: f.topic, Message: record.Message{Body: body, Key: strconv.Itoa(rng.IntN(50))}}
		switch rng.IntN(4) {
		case 0:
			sends[i].Delay = Delay{DelayLevel, int64(1 + rng.IntN(18))}
		case 1:
			sends[i].Delay = Delay{DelayAfter, int64(rng.IntN(5000))}
		case 2:
			sends[i].Delay = Delay{DelayAfter, 3_600_000 + int64(rng.IntN(5000))}
		}
	}
	if err := f.e.Send(ctx, sends); err != nil {
		return err
	}
	f.mu.Lock()
	f.acked = append(f.acked, sends...)
	f.mu.Unlock()
	if rng.IntN(3) > 0 {
		return nil
	}
	_, r, err := f.e.Find(sends[0].ID)
	if err != nil {
		return err
	}
	if _, err := f.e.Cancel(ctx, r); err != nil {
		return err
	}
	o := record.Offset(rng.IntN(200))
	return f.e.Ack(ctx, []record.Ack{{Group: f.group, Queue: f.topic.FirstQueue, Ranges: []record.OffsetRange{{From: o, To: o + 3}}}})
}

// run runs senders, and one that lets time pass and takes cuts, until stop is
// closed.
func (f *traffic) run(t *testing.T, stop chan struct{}) *sync.WaitGroup {
	var wg sync.WaitGroup
	until := func(fn func() error) {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := fn(); err != nil {
				t.Error(err)
				return
			}
		}
	}
	for i := range 3 {
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		wg.Go(func() { until(func() error { return f.send(context.Background(), rng) }) })
	}
	rng := rand.New(rand.NewPCG(4, 7))
	wg.Go(func() {
		until(func() error {
			f.c.Advance(time.Duration(rng.IntN(200)) * time.Millisecond)
			if rng.IntN(4) > 0 {
				return f.e.Settle(context.Background())
			}
			return f.e.Cut()
		})
	})
	return &wg
}

func (f *traffic) acknowledged() []Send {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Send(nil), f.acked...)
}

// TestBackupUnderTraffic takes backups while messages are sent, fall due, are
// cancelled and acknowledged, and cuts are taken. Each restored store has the
// state that the source's log gives at the batch where the backup ends, and
// everything that was acknowledged before it began, under the same ids.
func TestBackupUnderTraffic(t *testing.T) {
	o := fixtureOptions(t.TempDir())
	c := clock.NewFake(testStart)
	o.Clock, o.CutCommands = c, 400
	e, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	f := &traffic{e: e, c: c, topic: topic(t, e, "orders", 3)}
	g, err := e.MakeGroup(t.Context(), record.Group{Name: "billing", Start: record.StartEarliest})
	if err != nil {
		t.Fatal(err)
	}
	f.group = g.Number
	stop := make(chan struct{})
	wg := f.run(t, stop)
	var all []*taken
	for i := range 4 {
		for len(f.acknowledged()) < i*300 {
			if err := e.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, take(t, e, f.acknowledged()))
	}
	close(stop)
	wg.Wait()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for i, k := range all {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "not", "there", "yet")
			k.restoreTo(t, fixtureOptions(dir))
			k.verify(t, dir, o.Dir)
			if got, want := hashOfStore(t, dir), hashAt(t, o.Dir, k.info.End); got != want {
				t.Errorf("restored at batch %d: state %s, the source's log gives %s", k.info.End, got, want)
			}
			k.holds(t, dir)
		})
	}
}

// verify reads the restored log as `duemq verify` does and compares it with the
// source's, batch by batch.
func (k *taken) verify(t *testing.T, dir, source string) {
	t.Helper()
	o, err := logOptions(dir)
	if err != nil {
		t.Fatal(err)
	}
	if o.StoreID != k.infoRestored(t, dir) || o.StoreID == k.info.Store {
		t.Errorf("store id %x of a copy of %x", o.StoreID, k.info.Store)
	}
	report, err := log.Verify(o, nil)
	if err != nil || len(report.Damage) > 0 || report.Batches != k.info.Batches || report.End.Index != k.info.End || report.End.Position != k.info.Position {
		t.Errorf("verify: %+v, %v; want %+v", report, err, k.info)
	}
	restored, original := positions(t, dir), positions(t, source)
	if len(restored) == 0 && k.info.Batches > 0 {
		t.Fatal("no batches")
	}
	for index, at := range restored {
		if original[index] != at {
			t.Fatalf("batch %d stands at %d and was at %d", index, at, original[index])
		}
	}
}

func (k *taken) infoRestored(t *testing.T, dir string) [16]byte {
	t.Helper()
	store, err := log.OpenStore(fs.Real(), dir, log.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return store.ID
}

// positions are where the batches of a closed store stand.
func positions(t *testing.T, dir string) map[uint64]uint64 {
	t.Helper()
	l, err := openLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	at := make(map[uint64]uint64)
	err = l.Replay(log.Start{}, func(pos uint64, b *record.Batch) error {
		at[b.Index] = pos
		return nil
	})
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	return at
}

// holds demands every message that was acknowledged before the backup began.
func (k *taken) holds(t *testing.T, dir string) {
	t.Helper()
	e := open(t, fixtureOptions(dir))
	defer e.Close()
	for i := range k.acked {
		s := &k.acked[i]
		m, _, err := e.Find(s.ID)
		if err != nil || !bytes.Equal(m.Body, s.Message.Body) || m.Key != s.Message.Key {
			t.Fatalf("message %v: %v, %d bytes of body for %d", s.ID, err, len(m.Body), len(s.Message.Body))
		}
	}
}

// filled is a closed store with something of everything, of several segments.
func filled(t *testing.T) (o Options, k *taken, hash string) {
	t.Helper()
	dir := t.TempDir()
	unpack(t, filepath.Join("testdata", "store-"+formatNow+".zip"), dir)
	o = fixtureOptions(dir)
	o.Clock = clock.NewFake(testStart.Add(-time.Hour)) // suspect: nothing falls due
	e := open(t, o)
	k = take(t, e, nil)
	hash, err := e.Hash()
	if err := errors.Join(err, e.Close()); err != nil {
		t.Fatal(err)
	}
	return o, k, hash
}

// TestBackupOfNothing copies a store that was just made.
func TestBackupOfNothing(t *testing.T) {
	o := fixtureOptions(t.TempDir())
	e := open(t, o)
	k := take(t, e, nil)
	want, err := e.Hash()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	k.restoreTo(t, fixtureOptions(dir))
	restored := open(t, fixtureOptions(dir))
	if got, err := restored.Hash(); err != nil || got != want || restored.Recovered().New {
		t.Errorf("state %s, want %s; %+v, %v", got, want, restored.Recovered(), err)
	}
	send(t, restored, topic(t, restored, "t", 1), "it lives", Delay{})
}

// TestBackupOfTrimmedStore copies a store that retention has worked on: its log
// begins late, and what has waited long lies in the index.
func TestBackupOfTrimmedStore(t *testing.T) {
	o := fixtureOptions(t.TempDir())
	c := clock.NewFake(testStart)
	o.Clock, o.Retention = c, Retention{Time: 10 * time.Minute, CarryAfter: 5 * time.Minute}
	e := open(t, o)
	tp := topic(t, e, "orders", 2)
	var long []Send
	for i := range 5 {
		long = append(long, send(t, e, tp, fmt.Sprintf("waits long %d", i), Delay{DelayAfter, 48 * 3_600_000}))
	}
	for n := 0; e.log.FirstPosition() == 0; n++ {
		if n == 500 {
			t.Fatalf("nothing was removed: %+v", e.log.Segments())
		}
		send(t, e, tp, strings.Repeat("short", 2000), Delay{DelayAfter, 1000})
		c.Advance(time.Minute)
		settle(t, e)
		if err := e.Cut(); err != nil {
			t.Fatal(err)
		}
	}
	k := take(t, e, long)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if k.info.First == 1 {
		t.Error("the backup begins with batch 1")
	}
	dir := t.TempDir()
	k.restoreTo(t, fixtureOptions(dir))
	k.verify(t, dir, o.Dir)
	if got, want := hashOfStore(t, dir), hashOfStore(t, o.Dir); got != want {
		t.Errorf("restored state %s, want %s", got, want)
	}
	k.holds(t, dir)
	o.Dir = dir
	c.Advance(48 * time.Hour)
	restored := open(t, o)
	settle(t, restored)
	got := strings.Join(visible(t, restored, restored.TopicNamed("orders")), " ")
	for i := range long {
		if want := fmt.Sprintf("waits long %d", i); !strings.Contains(got, want) {
			t.Errorf("%q is not visible when it is due: %.300s", want, got)
		}
	}
}

// contentOf lists the index of a closed store, all but the place in the log.
func contentOf(t *testing.T, dir string) (pairs []string, applied log.Start) {
	t.Helper()
	x, err := index.Open(index.Options{FS: fs.Real(), Dir: filepath.Join(dir, "index")})
	if err != nil {
		t.Fatal(err)
	}
	v, err := x.View()
	if err != nil {
		t.Fatal(err)
	}
	err = v.Each(func(s index.Space, key, value []byte) error {
		if s == SpaceState && string(key) == string(stateApplied) {
			applied, value, err = splitApplied(value)
		}
		pairs = append(pairs, fmt.Sprintf("%c %x %x", s, key, value))
		return err
	})
	if err := errors.Join(err, v.Close(), x.Close()); err != nil {
		t.Fatal(err)
	}
	return pairs, applied
}

// TestBackupOfTrimmedLog copies a store whose oldest segments were removed: the
// copy begins where the source does, with the same positions, and its index
// says so in the terms of its own log.
func TestBackupOfTrimmedLog(t *testing.T) {
	o, _, _ := filled(t)
	e := open(t, o)
	list := e.log.Segments()
	if len(list) < 3 {
		t.Fatalf("%d segments", len(list))
	}
	if err := e.log.RemoveBefore(list[len(list)-2].Base); err != nil { // the writer is idle
		t.Fatal(err)
	}
	k := take(t, e, nil)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if k.info.First == 1 || k.info.First != list[len(list)-2].First {
		t.Errorf("first batch %d, want %d", k.info.First, list[len(list)-2].First)
	}
	dir := t.TempDir()
	k.restoreTo(t, fixtureOptions(dir))
	k.verify(t, dir, o.Dir)
	got, applied := contentOf(t, dir)
	want, appliedThere := contentOf(t, o.Dir)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("index of %d keys, want %d", len(got), len(want))
	}
	if applied.Index != appliedThere.Index || applied.Position != appliedThere.Position || applied.Checksum == appliedThere.Checksum {
		t.Errorf("index ends at %+v, the source's at %+v", applied, appliedThere)
	}
	l, err := openLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	if end := l.End(); end != applied {
		t.Errorf("log ends at %+v, index at %+v", end, applied)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	lo, err := logOptions(dir)
	if err != nil {
		t.Fatal(err)
	}
	if l, err = log.Open(lo, applied); err != nil {
		t.Fatalf("open the log from where the index ends: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// gate is a writer that stops at its nth write until it is opened.
type gate struct {
	n       int
	reached chan struct{}
	open    chan struct{}
}

func (g *gate) Write(p []byte) (int, error) {
	g.n--
	if g.n == 0 {
		close(g.reached)
		<-g.open
	}
	return len(p), nil
}

// TestBackupPinsTheLog: the engine is told while a backup runs, and another one
// may run beside it.
func TestBackupPinsTheLog(t *testing.T) {
	o, _, _ := filled(t)
	e := open(t, o)
	g := &gate{n: 2, reached: make(chan struct{}), open: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		_, err := e.Backup(context.Background(), g, nil)
		done <- err
	}()
	<-g.reached
	if n := e.pinned.Load(); n != 1 {
		t.Errorf("%d pins while a backup runs", n)
	}
	var second bytes.Buffer
	if _, err := e.Backup(t.Context(), &second, nil); err != nil {
		t.Errorf("a second backup beside the first: %v", err)
	}
	close(g.open)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := e.pinned.Load(); n != 0 {
		t.Errorf("%d pins when no backup runs", n)
	}
}

// TestBackupEnds with its context, with its writer and with the engine.
func TestBackupEnds(t *testing.T) {
	o, _, _ := filled(t)
	e := open(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	g := &gate{n: 2, reached: make(chan struct{}), open: make(chan struct{})}
	done := make(chan error, 1)
	run := func() {
		_, err := e.Backup(ctx, g, nil)
		done <- err
	}
	go run()
	<-g.reached
	cancel()
	close(g.open)
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("context ended: %v", err)
	}
	r, w := io.Pipe()
	_ = r.Close()
	if _, err := e.Backup(t.Context(), w, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("nobody reads: %v", err)
	}
	ctx = context.Background()
	g = &gate{n: 2, reached: make(chan struct{}), open: make(chan struct{})}
	go run()
	<-g.reached
	closed := make(chan error, 1)
	go func() { closed <- e.Close() }()
	<-e.closing
	select {
	case err := <-closed:
		t.Errorf("closed under a backup: %v", err)
	default:
	}
	close(g.open)
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("engine closed: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := e.Backup(context.Background(), io.Discard, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestBackupWithoutACut: a disk without room for a cut is no reason to have no
// backup. The log holds what the older cut does not.
func TestBackupWithoutACut(t *testing.T) {
	disk := fs.NewFaulty(fs.NewMem())
	e := open(t, options(disk, clock.NewFake(testStart)))
	tp := topic(t, e, "t", 1)
	send(t, e, tp, "before the cut", Delay{DelayAfter, 1000})
	if err := e.Cut(); err != nil {
		t.Fatal(err)
	}
	send(t, e, tp, "after it", Delay{DelayAfter, 2000})
	want, err := e.Hash()
	if err != nil {
		t.Fatal(err)
	}
	disk.Inject(fs.Fault{At: 1, Forever: true, Err: syscall.ENOSPC, Match: func(op fs.Op) bool {
		return op.Kind == fs.OpCreate && strings.Contains(op.Path, "/cuts/")
	}})
	k := take(t, e, nil)
	disk.Inject(fs.Fault{})
	if k.info.Applied >= k.info.End {
		t.Errorf("index up to batch %d of %d: the cut did not fail", k.info.Applied, k.info.End)
	}
	o := options(fs.NewMem(), clock.NewFake(testStart))
	k.restoreTo(t, o)
	restored := open(t, o)
	if got, err := restored.Hash(); err != nil || got != want {
		t.Errorf("state %s, want %s (%v)", got, want, err)
	}
}

// TestBackupRefusesDamage: a log that is damaged below the newest cut is found by
// a backup, and the stream is not whole.
func TestBackupRefusesDamage(t *testing.T) {
	o, _, _ := filled(t)
	segments, err := filepath.Glob(filepath.Join(o.Dir, "log", "*.seg"))
	if err != nil || len(segments) < 2 {
		t.Fatal(segments, err)
	}
	raw, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	raw[30_000] ^= 1
	if err := os.WriteFile(segments[0], raw, 0o600); err != nil {
		t.Fatal(err)
	}
	e := open(t, o)
	var s bytes.Buffer
	_, err = e.Backup(t.Context(), &s, nil)
	if d, ok := errors.AsType[*log.DamageError](err); !ok || d.File != segments[0] {
		t.Errorf("Backup: %v", err)
	}
	if _, err := RestoreBackup(t.Context(), fixtureOptions(t.TempDir()), &s, nil); err == nil {
		t.Error("restored")
	}
}
