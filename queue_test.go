package duemq_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duemq/duemq"
	"github.com/duemq/duemq/duemqtest"
)

func TestOpenRefuses(t *testing.T) {
	for name, opts := range map[string][]duemq.Option{
		"no folder":               nil,
		"a token":                 {duemq.WithMemory(duemq.NewMemory()), duemq.WithToken("t")},
		"an HTTP client":          {duemq.WithMemory(duemq.NewMemory()), duemq.WithHTTPClient(http.DefaultClient)},
		"sync below zero":         {duemq.WithSync(duemq.Interval(-1))},
		"no levels":               {duemq.WithLevels()},
		"19 levels":               {duemq.WithLevels(make([]time.Duration, 19)...)},
		"a level of nothing":      {duemq.WithLevels(time.Second, 0)},
		"a level of microseconds": {duemq.WithLevels(1500 * time.Microsecond)},
		"a negative max delay":    {duemq.WithMaxDelay(-1)},
		"no queues":               {duemq.WithQueues(0)},
		"too many queues":         {duemq.WithQueues(1025)},
		"small segments":          {duemq.WithSegmentBytes(4 << 20)},
		"odd segments":            {duemq.WithSegmentBytes(8<<20 + 1)},
		"large segments":          {duemq.WithSegmentBytes(2 << 30)},
	} {
		if q, err := duemq.Open(t.Context(), "", opts...); q != nil || !errors.Is(err, duemq.ErrInvalid) {
			t.Errorf("%s: %v, %v; want %v", name, q, err, duemq.ErrInvalid)
		}
	}
	_, err := duemq.Open(t.Context(), "", duemq.WithQueues(0), duemq.WithLevels())
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("three things wrong: %v; want all three told", err)
	}
}

// TestOpenOnDisk: a folder of the machine, used twice at once, closed and opened
// again.
func TestOpenOnDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	open := func() *duemq.Queue {
		t.Helper()
		q, err := duemq.Open(t.Context(), dir)
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		return q
	}
	q := open()
	if r := q.Recovered(); !r.New || r.Waiting != 0 {
		t.Errorf("recovered %+v from nothing", r)
	}
	r := send(t, q, "x", duemq.After(time.Hour))
	if _, err := duemq.Open(t.Context(), dir); !errors.Is(err, duemq.ErrInUse) {
		t.Errorf("Open of a folder in use: %v, want %v", err, duemq.ErrInUse)
	}
	if err := q.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	q = open()
	if r := q.Recovered(); r.New || r.Waiting != 1 {
		t.Errorf("recovered %+v, want 1 waiting", r)
	}
	if m, err := q.Get(t.Context(), r.ID); err != nil || m.State != duemq.StateWaiting || !m.DueAt.Equal(r.DueAt) {
		t.Errorf("Get: %+v, %v", m, err)
	}
	if err := q.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "log", "*.seg"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("segments %v, %v", segments, err)
	}
	data, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	data[8] ^= 0xFF
	if err := os.WriteFile(segments[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := duemq.Open(t.Context(), dir); !errors.Is(err, duemq.ErrCorrupt) || !strings.Contains(err.Error(), segments[0]) {
		t.Errorf("Open of a damaged folder: %v; want %v and the file's name", err, duemq.ErrCorrupt)
	}
}

// TestFolderByAnyName: one folder is one store, however it is named, and stays
// it when the program goes to another folder of its own.
func TestFolderByAnyName(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	q, err := duemq.Open(t.Context(), "data", duemq.WithSegmentBytes(8<<20))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"data", "./data", filepath.Join(dir, "data")} {
		if again, err := duemq.Open(t.Context(), name); !errors.Is(err, duemq.ErrInUse) {
			t.Errorf("Open of %s, which is in use: %v, want %v", name, err, duemq.ErrInUse)
			if err == nil {
				_ = again.Close()
			}
		}
	}
	t.Chdir(t.TempDir())
	body := make([]byte, 3<<20)
	for range 4 { // into another segment
		if _, err := q.Send(t.Context(), topic, body); err != nil {
			t.Fatalf("Send: %v", err)
		}
	}
	if err := q.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	q, err = duemq.Open(t.Context(), filepath.Join(dir, "data"))
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	if s, err := q.Stats(); err != nil || s.Visible != 4 {
		t.Errorf("%d visible, %v; want 4", s.Visible, err)
	}
	if err := q.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestSharedMemory(t *testing.T) {
	m := duemq.NewMemory()
	q, err := duemq.Open(t.Context(), "", duemq.WithMemory(m))
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	if _, err := duemq.Open(t.Context(), "", duemq.WithMemory(m)); !errors.Is(err, duemq.ErrInUse) {
		t.Errorf("Open of a folder in use: %v, want %v", err, duemq.ErrInUse)
	}
	other, err := duemq.Open(t.Context(), "other", duemq.WithMemory(m))
	if err != nil {
		t.Fatalf("Open of another folder: %v", err)
	}
	if err := errors.Join(q.Close(), other.Close()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// everyCall makes each call once.
func everyCall(ctx context.Context, q *duemq.Queue, held *duemq.Message) map[string]error {
	errs := map[string]error{
		"Cancel":      q.Cancel(ctx, held.ID),
		"Reschedule":  q.Reschedule(ctx, held.ID, duemq.After(time.Hour)),
		"DeliverNow":  q.DeliverNow(ctx, held.ID),
		"Ack":         held.Ack(ctx),
		"AckAll":      q.AckAll(ctx, []*duemq.Message{held}),
		"Retry":       held.Retry(ctx, duemq.After(0)),
		"Extend":      held.Extend(ctx, time.Second),
		"Ready":       q.Ready(),
		"Settle":      q.Settle(ctx),
		"AcceptClock": q.AcceptClock(),
	}
	_, errs["Send"] = q.Send(ctx, topic, nil)
	_, errs["SendBatch"] = q.SendBatch(ctx, []duemq.Message{{Topic: topic}})
	_, errs["ReceiveBatch"] = q.ReceiveBatch(ctx, topic)
	_, errs["Get"] = q.Get(ctx, held.ID)
	_, errs["Count"] = q.Count(ctx)
	_, errs["Stats"] = q.Stats()
	errs["Bury"] = held.Bury(ctx, "")
	errs["Handle"] = q.Handle(ctx, topic, func(context.Context, *duemq.Message) error { return nil })
	errs["CancelNamed"] = q.CancelNamed(ctx, topic, "n")
	errs["Commit"] = q.Commit(ctx, "g", topic, map[int]int64{0: 0})
	errs["Pause"] = q.Pause(ctx, topic)
	errs["Resume"] = q.Resume(ctx, topic)
	errs["DeleteGroup"] = q.DeleteGroup(ctx, "g")
	errs["CommitTx"] = q.CommitTx(ctx, held.ID)
	errs["Backup"] = q.Backup(ctx, io.Discard, nil)
	_, errs["GetNamed"] = q.GetNamed(ctx, topic, "n")
	_, errs["Pull"] = q.Pull(ctx, topic, 0, 0)
	_, errs["Position"] = q.Position(ctx, "g", topic)
	_, errs["OffsetAt"] = q.OffsetAt(ctx, topic, 0, time.Now())
	_, errs["CreateTopic"] = q.CreateTopic(ctx, topic)
	_, errs["UpdateTopic"] = q.UpdateTopic(ctx, topic, duemq.MaxRate(1))
	_, errs["Topics"] = q.Topics(ctx)
	_, errs["TopicInfo"] = q.TopicInfo(ctx, topic)
	_, errs["Purge"] = q.Purge(ctx, topic)
	_, errs["DeleteTopic"] = q.DeleteTopic(ctx, topic)
	_, errs["CreateGroup"] = q.CreateGroup(ctx, "g")
	_, errs["UpdateGroup"] = q.UpdateGroup(ctx, "g")
	_, errs["Groups"] = q.Groups(ctx)
	_, errs["GroupInfo"] = q.GroupInfo(ctx, "g")
	_, errs["ResetGroup"] = q.ResetGroup(ctx, "g", topic, duemq.StartLatest())
	_, errs["Redrive"] = q.Redrive(ctx, "g")
	_, errs["PurgeDead"] = q.PurgeDead(ctx, "g", held.ID)
	_, errs["Begin"] = q.Begin(ctx, topic, nil)
	_, errs["Transactions"] = q.Transactions(ctx, "")
	_, errs["Timeline"] = q.Timeline(ctx)
	_, errs["CancelWhere"] = q.CancelWhere(ctx, duemq.All())
	_, errs["Operation"] = q.Operation(ctx, "op-1")
	_, errs["Operations"] = q.Operations(ctx)
	for _, err := range q.Receive(ctx, topic) {
		errs["Receive"] = err
	}
	for _, err := range q.Checks(ctx, "p") {
		errs["Checks"] = err
	}
	for _, err := range q.DeadLetters(ctx, "g") {
		errs["DeadLetters"] = err
	}
	for _, err := range q.Pending(ctx) {
		errs["Pending"] = err
	}
	return errs
}

func TestClosed(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		send(t, q.Queue, "x")
		got, err := q.ReceiveBatch(t.Context(), topic)
		if err != nil {
			t.Fatalf("ReceiveBatch: %v", err)
		}
		for range 2 {
			if err := q.Close(); err != nil {
				t.Fatalf("Close: %v", err)
			}
		}
		for name, err := range everyCall(t.Context(), q.Queue, got[0]) {
			if !errors.Is(err, duemq.ErrClosed) {
				t.Errorf("%s after Close: %v, want %v", name, err, duemq.ErrClosed)
			}
		}
		if _, ok := q.NextDue(); ok {
			t.Error("NextDue after Close")
		}
		if q.Err() != nil || q.Recovered().New == q.remote() {
			t.Errorf("after Close: Err %v, Recovered %+v", q.Err(), q.Recovered())
		}
	})
}

// TestFailedDisk: whatever writes fails from then on, also when the disk would
// work again; after a restart from a sound one, what was acknowledged is there
// and nothing else must be.
func TestFailedDisk(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		kept := send(t, q.Queue, "kept", duemq.After(time.Hour))
		q.FailDisk()
		if _, err := q.Send(ctx, topic, []byte("lost"), duemq.After(time.Hour)); !errors.Is(err, duemq.ErrFailed) {
			t.Fatalf("Send on a failed disk: %v, want %v", err, duemq.ErrFailed)
		}
		<-q.store.Failed()
		if err := q.store.Err(); !errors.Is(err, duemq.ErrFailed) {
			t.Errorf("Err: %v, want %v", err, duemq.ErrFailed)
		}
		errs := everyCall(ctx, q.Queue, &duemq.Message{ID: kept.ID})
		for _, name := range []string{"Send", "SendBatch", "Cancel", "Reschedule", "DeliverNow", "Ready", "Settle", "Receive", "ReceiveBatch"} {
			if !errors.Is(errs[name], duemq.ErrFailed) {
				t.Errorf("%s on a failed disk: %v, want %v", name, errs[name], duemq.ErrFailed)
			}
		}
		q.Crash()
		q.Advance(time.Hour)
		if got := take(t, q.Queue); bodies(got) != "kept" || got[0].ID != kept.ID {
			t.Errorf("after the crash: %q, want kept", bodies(got))
		}
	})
}

// TestCloseEndsWaiting: Receives end with ErrClosed, sends under way are
// answered, one way or the other.
func TestCloseEndsWaiting(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for m, err := range q.Receive(t.Context(), topic) {
					if err != nil && (m != nil || !errors.Is(err, duemq.ErrClosed)) {
						t.Errorf("Receive: %v, %v; want %v", m, err, duemq.ErrClosed)
					}
				}
			})
		}
		acknowledged := make([]int, 4)
		for i := range acknowledged {
			wg.Go(func() {
				for {
					_, err := q.Send(t.Context(), "elsewhere", nil, duemq.After(time.Hour))
					if errors.Is(err, duemq.ErrClosed) {
						return
					}
					if err != nil {
						t.Errorf("Send: %v", err)
						return
					}
					acknowledged[i]++
				}
			})
		}
		for {
			if s, err := q.Stats(); err != nil || s.Waiting > 100 {
				break
			}
			runtime.Gosched()
		}
		if err := q.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		wg.Wait()
		q.Reopen()
		total := int64(0)
		for _, n := range acknowledged {
			total += int64(n)
		}
		if n, err := q.Count(t.Context()); n != total || err != nil {
			t.Errorf("%d wait, %v; %d were acknowledged and none was left unanswered", n, err, total)
		}
	})
}

// TestNothingRunsAfterClose: a bubble ends only when all its goroutines have.
func TestNothingRunsAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := duemq.Open(t.Context(), "", duemq.WithMemory(duemq.NewMemory()))
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		send(t, q, "x", duemq.After(time.Hour))
		for range q.Receive(t.Context(), topic, duemq.Wait(time.Minute)) {
			t.Error("received before it was due")
		}
		for m, err := range q.Receive(t.Context(), topic) {
			if err != nil || m.Lateness() != 0 {
				t.Errorf("Receive: %+v, %v", m, err)
			}
			break
		}
		if err := q.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// TestNothingRunsAfterCloseOnDisk: the same, counted.
func TestNothingRunsAfterCloseOnDisk(t *testing.T) {
	stacks := func() string {
		buf := make([]byte, 1<<20)
		return string(buf[:runtime.Stack(buf, true)])
	}
	before := strings.Count(stacks(), "duemq/internal") + strings.Count(stacks(), "cockroachdb/pebble")
	q, err := duemq.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	send(t, q, "x", duemq.After(time.Millisecond))
	if got, err := q.ReceiveBatch(t.Context(), topic); err != nil || len(got) != 1 {
		t.Errorf("ReceiveBatch: %d, %v", len(got), err)
	}
	if err := q.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	after := stacks()
	if n := strings.Count(after, "duemq/internal") + strings.Count(after, "cockroachdb/pebble"); n > before {
		t.Errorf("goroutines after Close:\n%s", after)
	}
}

// TestNeverEarlyInRealTime: a real disk, the machine's clock, several senders
// and receivers.
func TestNeverEarlyInRealTime(t *testing.T) {
	q, err := duemq.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	defer q.Close()
	const senders, each = 8, 40
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range each {
				asked := time.Now()
				d := time.Duration(i*s) * time.Millisecond / 4
				r, err := q.Send(t.Context(), topic, fmt.Append(nil, asked.Add(d).UnixNano()), duemq.After(d))
				if err != nil || (d > 0 && r.DueAt.Before(asked.Add(d).Truncate(time.Millisecond))) {
					t.Errorf("Send: %+v, %v", r, err)
				}
			}
		})
	}
	seen := make(map[string]bool)
	for len(seen) < senders*each {
		got, err := q.ReceiveBatch(t.Context(), topic)
		if err != nil {
			t.Fatalf("ReceiveBatch: %v", err)
		}
		now := time.Now()
		for _, m := range got {
			var due int64
			if _, err := fmt.Sscan(string(m.Body), &due); err != nil || now.UnixNano() < due || seen[m.ID] || m.Lateness() < 0 {
				t.Errorf("message %s: received %v after it was asked for, seen before %v, lateness %v", m.ID, now.Sub(time.Unix(0, due)), seen[m.ID], m.Lateness())
			}
			seen[m.ID] = true
		}
		if err := q.AckAll(t.Context(), got); err != nil {
			t.Fatalf("AckAll: %v", err)
		}
	}
	wg.Wait()
}

// TestLoggerHears of what an operator should know.
func TestLoggerHears(t *testing.T) {
	var out bytes.Buffer
	q := duemqtest.New(t, duemq.WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
	q.Step(time.Minute)
	if err := q.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if !strings.Contains(out.String(), "clock has jumped") {
		t.Errorf("log: %s; want the step of the clock told", out.String())
	}
}

func TestStats(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		batch(t, q.Queue, numbered(10, func(i int, m *duemq.Message) { m.After = time.Duration(i) * time.Minute }))
		q.Advance(5 * time.Minute)
		s, err := q.Stats()
		if err != nil || s.Waiting != 4 || s.Visible != 6 || s.Overdue || s.Fruitless != 0 || s.Ticks != 5 || s.Syncs == 0 || s.LogBytes == 0 {
			t.Errorf("Stats: %+v, %v; want 4 waiting, 6 visible, 5 ticks, no fruitless wake-up", s, err)
		}
		q.Restart()
		if s, err := q.Stats(); err != nil || s.Waiting != 4 || s.Visible != 6 {
			t.Errorf("Stats after a restart: %+v, %v", s, err)
		}
	})
}
