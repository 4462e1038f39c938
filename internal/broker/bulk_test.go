package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

func (s *stand) bulk(r Bulk) Operation {
	s.t.Helper()
	op, err := s.b.StartBulk(s.t.Context(), r)
	if err != nil {
		s.t.Fatalf("StartBulk %+v: %v", r, err)
	}
	return op
}

// TestDryRun: it counts exactly, shows a few and changes nothing.
func TestDryRun(t *testing.T) {
	s := newStand(t)
	for i, m := range numbered("t", 20, func(i int) Delay { return after(time.Duration(i+1) * time.Minute) }) {
		m.Tag = []string{"odd", "even"}[(i+1)%2]
		s.send(m)
	}
	s.send(Message{Topic: "u", Tag: "odd", Delay: after(time.Minute)})
	before, _ := s.b.Hash()
	for _, c := range []struct {
		f    Filter
		want int64
	}{
		{Filter{}, 21},
		{Filter{Topic: "t"}, 20},
		{Filter{Topic: "t", Tag: "odd"}, 10},
		{Filter{Topic: "t", From: s.now() + 90_000, To: s.now() + 600_000}, 8},
		{Filter{Key: "7"}, 1},
		{Filter{Overdue: true}, 0},
	} {
		op := s.bulk(Bulk{Kind: BulkCancel, Filter: c.f, DryRun: true})
		if op.State != OperationDryRun || op.Matched != c.want || len(op.Samples) != int(min(c.want, 3)) || op.ID != "" {
			t.Errorf("%+v: %+v, want %d", c.f, op, c.want)
		}
	}
	if op := s.bulk(Bulk{Kind: BulkDeliver, DryRun: true, Sample: 5}); len(op.Samples) != 5 {
		t.Errorf("%d samples, want 5", len(op.Samples))
	}
	if hash, _ := s.b.Hash(); hash != before {
		t.Error("a dry run changed the state")
	}
}

// crashDuring takes what a power cut leaves at the n-th sync of the disk while an
// operation runs.
func (s *stand) crashDuring(n int, begin func() Operation) (op Operation, left *vfs.MemFS) {
	s.t.Helper()
	var mu sync.Mutex
	syncs := 0
	s.disk.Hooks(func(o fs.Op) {
		mu.Lock()
		defer mu.Unlock()
		if o.Kind != fs.OpSync || left != nil {
			return
		}
		if syncs++; syncs == n {
			clone := s.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 30, RNG: rand.New(rand.NewPCG(uint64(n), 2))})
			left = clone
		}
	}, nil)
	op = begin()
	if _, err := s.b.WaitOperation(s.t.Context(), op.ID); err != nil {
		s.t.Fatal(err)
	}
	s.disk.Hooks(nil, nil)
	if left == nil {
		s.t.Fatalf("the operation ended before sync %d", n)
	}
	return op, left
}

// TestCancelSurvivesACrash: a cancel by filter of 10,000 messages that a power
// cut stops in the middle goes on, and its counts are exact.
func TestCancelSurvivesACrash(t *testing.T) {
	s := newStand(t)
	const n = 10_000
	msgs := numbered("t", n, func(i int) Delay { return after(time.Hour + time.Duration(i)*time.Second) })
	s.send(msgs...)
	s.send(numbered("u", 100, func(int) Delay { return after(time.Hour) })...)
	op, left := s.crashDuring(9, func() Operation { return s.bulk(Bulk{Kind: BulkCancel, Filter: Filter{Topic: "t"}}) })
	s.finish(op.ID, n)
	s.b.Close()
	s.open(left)
	if done := s.finish(op.ID, n); done.Began != s.now() || done.Ended == 0 || done.Kind != "cancel" || done.Filter.Topic != "t" {
		t.Errorf("operation %+v", done)
	}
	if got := len(s.pending(Filter{})); got != 100 {
		t.Errorf("%d wait, want the 100 of the other topic", got)
	}
	s.step(24 * time.Hour)
	s.wantVisible("t")
	if got := s.b.Operations(); len(got) != 1 || got[0].ID != op.ID {
		t.Errorf("operations: %+v", got)
	}
}

// TestResumedInTheMiddle: what was left at the power cut is really the middle.
func TestResumedInTheMiddle(t *testing.T) {
	s := newStand(t)
	s.send(numbered("t", 3000, func(int) Delay { return after(time.Hour) })...)
	_, left := s.crashDuring(4, func() Operation { return s.bulk(Bulk{Kind: BulkCancel}) })
	e, err := engine.Open(t.Context(), engine.Options{
		FS: left, Dir: "data", Clock: s.clock, Rand: rand.NewChaCha8([32]byte{}), SegmentBytes: 256 << 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if op, ok := e.Operation(1); !ok || op.State != record.OperationRunning || op.Done == 0 || op.Done >= 3000 {
		t.Errorf("operation %+v, want it running and partly done", op)
	}
}

// TestShiftMovesEachOnce: messages that are moved ahead of where the operation
// looks are not moved again, and what is sent or moved after it began is left
// alone.
func TestShiftMovesEachOnce(t *testing.T) {
	s := newStand(t)
	base := s.now()
	const n = 1200
	s.send(numbered("t", n, func(i int) Delay { return Delay{Kind: DelayAt, Value: base + 60_000 + int64(i)*1000} })...)
	r := Bulk{Kind: BulkReschedule, Filter: Filter{From: base + 60_000}, By: 5 * time.Minute}
	sp, err := s.b.specify(t.Context(), &r)
	if err != nil {
		t.Fatal(err)
	}
	late := s.send(Message{Topic: "t", Key: "late", Delay: Delay{Kind: DelayAt, Value: base + 700_000}})[0]
	moved := s.pending(Filter{Key: "1199"})[0]
	if _, err := s.b.Reschedule(t.Context(), moved.ID.String(), Delay{Kind: DelayAt, Value: base + 800_000}); err != nil {
		t.Fatal(err)
	}
	op, err := s.b.start(t.Context(), sp)
	if err != nil {
		t.Fatal(err)
	}
	s.finish(op.ID, n-1)
	for _, v := range s.pending(Filter{}) {
		want := base + 700_000
		switch v.ID {
		case late.ID:
		case moved.ID:
			want = base + 800_000
		default:
			var i int64
			fmt.Sscan(v.Key, &i)
			want = base + 360_000 + i*1000
		}
		if v.Due != want {
			t.Fatalf("message %s waits for +%d ms, want +%d", v.Key, v.Due-base, want-base)
		}
	}
}

// TestShiftEarlier: a shift into the past has everything delivered in its order.
func TestShiftEarlier(t *testing.T) {
	s := newStand(t)
	s.send(numbered("t", 5, func(i int) Delay { return after(time.Duration(5-i) * time.Second) })...)
	op := s.bulk(Bulk{Kind: BulkReschedule, By: -time.Hour})
	s.finish(op.ID, 5)
	s.step(0)
	s.wantVisible("t", "4", "3", "2", "1", "0")
}

func TestBulkRescheduleAndDeliver(t *testing.T) {
	s := newStand(t)
	r := s.send(numbered("t", 6, func(int) Delay { return after(time.Hour) })...)
	op := s.bulk(Bulk{Kind: BulkReschedule, Filter: Filter{Key: "3"}, Delay: after(2 * time.Hour)})
	s.finish(op.ID, 1)
	if v := s.pending(Filter{Key: "3"}); len(v) != 1 || v[0].Due != s.now()+7_200_000 {
		t.Errorf("by key: %+v", v)
	}
	op = s.bulk(Bulk{Kind: BulkDeliver, Filter: Filter{IDs: []string{r[4].ID.String(), r[1].Handle, r[1].ID.String(), "00000000000000ff"}}})
	s.finish(op.ID, 2)
	s.step(0)
	s.wantVisible("t", "1", "4")
	if err := s.b.PauseTopic(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	s.step(time.Hour)
	op = s.bulk(Bulk{Kind: BulkCancel, Filter: Filter{State: StatePaused, From: 1}})
	s.finish(op.ID, 3)
	s.b.ResumeTopic(t.Context(), "t")
	s.step(2 * time.Hour)
	s.wantVisible("t", "1", "4", "3")
}

// TestSpread: a herd is spread evenly over a window, in its order, and a power
// cut in the middle changes nothing about that.
func TestSpread(t *testing.T) {
	s := newStand(t)
	const n = 3000
	s.send(numbered("t", n, func(int) Delay { return after(time.Hour) })...)
	from := s.now() + 2*3_600_000
	op, left := s.crashDuring(4, func() Operation {
		return s.bulk(Bulk{Kind: BulkSpread, Filter: Filter{Topic: "t"}, SpreadFrom: from, SpreadOver: 10_001})
	})
	s.b.Close()
	s.open(left)
	if done := s.finish(op.ID, n); done.Matched != n {
		t.Errorf("matched %d, want %d", done.Matched, n)
	}
	for i, v := range s.pending(Filter{}) {
		if want := from + 10_001*int64(i)/n; v.Due != want || v.Key != strconv.Itoa(i) {
			t.Fatalf("message %d: key %s due +%d, want +%d", i, v.Key, v.Due-from, want-from)
		}
	}
}

// TestBulkByTag: the record decides, not the hash of its tag.
func TestBulkByTag(t *testing.T) {
	s := newStand(t)
	s.send(Message{Topic: "t", Key: "a", Tag: "x", Delay: after(time.Hour)}, Message{Topic: "t", Key: "b", Tag: "y", Delay: after(time.Hour)})
	s.finish(s.bulk(Bulk{Kind: BulkCancel, Filter: Filter{Tag: "x"}}).ID, 1)
	if got := keysOf(s.pending(Filter{})); !slices.Equal(got, []string{"b"}) {
		t.Errorf("left: %q", got)
	}
}

func TestBulkIsChecked(t *testing.T) {
	s := newStand(t)
	s.send(Message{Topic: "t", Delay: after(300 * 24 * time.Hour)})
	year := 366 * 24 * time.Hour
	for _, c := range []struct {
		r    Bulk
		want error
	}{
		{Bulk{Kind: "explode"}, ErrInvalid},
		{Bulk{}, ErrInvalid},
		{Bulk{Kind: BulkCancel, Sample: -1}, ErrInvalid},
		{Bulk{Kind: BulkCancel, Filter: Filter{Topic: "nobody"}}, ErrTopicUnknown},
		{Bulk{Kind: BulkCancel, Filter: Filter{State: StateAcked}}, ErrInvalid},
		{Bulk{Kind: BulkCancel, Filter: Filter{IDs: []string{"x"}}}, ErrInvalid},
		{Bulk{Kind: BulkCancel, Filter: Filter{IDs: make([]string, MaxPage+1)}}, ErrInvalid},
		{Bulk{Kind: BulkReschedule}, ErrInvalid},
		{Bulk{Kind: BulkReschedule, By: time.Hour, Delay: after(time.Hour)}, ErrInvalid},
		{Bulk{Kind: BulkReschedule, By: time.Microsecond}, ErrInvalid},
		{Bulk{Kind: BulkReschedule, By: 100 * 24 * time.Hour}, ErrDelayTooLong},
		{Bulk{Kind: BulkReschedule, Delay: after(year)}, ErrDelayTooLong},
		{Bulk{Kind: BulkReschedule, Delay: Delay{Kind: DelayAt, Value: s.now() + year.Milliseconds()}}, ErrDelayTooLong},
		{Bulk{Kind: BulkSpread}, ErrInvalid},
		{Bulk{Kind: BulkSpread, SpreadOver: year.Milliseconds()}, ErrInvalid},
		{Bulk{Kind: BulkSpread, SpreadOver: 1000, SpreadFrom: s.now() + year.Milliseconds()}, ErrDelayTooLong},
	} {
		if _, err := s.b.StartBulk(t.Context(), c.r); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.r, err, c.want)
		}
	}
	if got := s.b.Operations(); len(got) != 0 {
		t.Errorf("operations: %+v", got)
	}
	// A shift that cannot pass the limit, for what is selected is near.
	op := s.bulk(Bulk{Kind: BulkReschedule, By: 100 * 24 * time.Hour, Filter: Filter{To: s.now() + 3_600_000}})
	s.finish(op.ID, 0)
}

// TestOperationsAreStopped: one that was stopped does not go on, here or after a
// restart, and what is not understood waits for who understands it.
func TestOperationsAreStopped(t *testing.T) {
	s := newStand(t)
	s.send(numbered("t", 10, func(int) Delay { return after(time.Hour) })...)
	for _, spec := range []string{`{"kind":"of the future"}`, `no JSON`, `{"kind":"cancel","before":"x"}`} {
		if _, err := s.b.e.BeginOperation(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	s.reopen()
	for _, op := range s.b.Operations() {
		if op.State != OperationRunning || op.Error == "" {
			t.Errorf("operation %+v, want it not to go on, and why", op)
		}
		if got, err := s.b.WaitOperation(t.Context(), op.ID); err != nil || got.Error == "" {
			t.Errorf("WaitOperation: %+v, %v", got, err)
		}
		for range 2 {
			if err := s.b.StopOperation(t.Context(), op.ID); err != nil {
				t.Errorf("StopOperation: %v", err)
			}
		}
	}
	s.reopen()
	for _, op := range s.b.Operations() {
		if op.State != OperationStopped || op.Ended == 0 {
			t.Errorf("operation %+v, want it stopped", op)
		}
	}
	if got := len(s.pending(Filter{})); got != 10 {
		t.Errorf("%d wait, want 10", got)
	}
	for id, want := range map[string]error{"op-99": ErrOperationUnknown, "99": ErrInvalid, "op-": ErrInvalid, "op--1": ErrInvalid} {
		if _, err := s.b.Operation(id); !errors.Is(err, want) {
			t.Errorf("Operation(%q): %v, want %v", id, err, want)
		}
		if err := s.b.StopOperation(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("StopOperation(%q): %v, want %v", id, err, want)
		}
	}
}

// TestStopInTheMiddle stops operations that run, at every moment.
func TestStopInTheMiddle(t *testing.T) {
	s := newStand(t)
	s.send(numbered("t", 4000, func(int) Delay { return after(time.Hour) })...)
	for range 8 {
		op := s.bulk(Bulk{Kind: BulkReschedule, By: time.Second})
		if err := s.b.StopOperation(t.Context(), op.ID); err != nil {
			t.Fatal(err)
		}
		got, err := s.b.WaitOperation(t.Context(), op.ID)
		if err != nil || got.State == OperationRunning || got.State == OperationDone && got.Done != 4000 || got.Error != "" {
			t.Errorf("operation %+v, %v", got, err)
		}
		if again, _ := s.b.Operation(op.ID); again.Done != got.Done {
			t.Errorf("after it was stopped it went from %d to %d", got.Done, again.Done)
		}
	}
	if got := len(s.pending(Filter{})); got != 4000 {
		t.Errorf("%d wait, want 4000", got)
	}
}

// TestOperationsAreBounded: so many run at once and no more.
func TestOperationsAreBounded(t *testing.T) {
	s := newStand(t)
	s.b.operations.mu.Lock()
	s.b.operations.running = make(map[uint64]*run)
	for i := range uint64(MaxOperations) {
		s.b.operations.running[1000+i] = &run{stop: func() {}, ended: make(chan struct{})}
	}
	s.b.operations.mu.Unlock()
	if _, err := s.b.StartBulk(t.Context(), Bulk{Kind: BulkCancel}); !errors.Is(err, ErrFull) {
		t.Errorf("one more: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.b.WaitOperation(ctx, "op-1000"); !errors.Is(err, ErrOperationUnknown) {
		t.Errorf("WaitOperation: %v", err)
	}
}

// TestCloseStopsOperations: after Close nothing runs, and nothing begins.
func TestCloseStopsOperations(t *testing.T) {
	s := newStand(t)
	s.send(numbered("t", 5000, func(int) Delay { return after(time.Hour) })...)
	var ids []string
	for range 3 {
		ids = append(ids, s.bulk(Bulk{Kind: BulkReschedule, By: time.Second}).ID)
	}
	s.reopen()
	for _, id := range ids {
		if op, err := s.b.WaitOperation(t.Context(), id); err != nil || op.State != OperationDone {
			t.Errorf("operation %+v, %v; want it done after the restart", op, err)
		}
	}
	s.b.Close()
	if _, err := s.b.StartBulk(t.Context(), Bulk{Kind: BulkCancel}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestMissedIsCounted: what was delivered or cancelled between being looked for
// and its turn is counted apart.
func TestMissedIsCounted(t *testing.T) {
	s := newStand(t)
	r := s.send(numbered("t", 3, func(i int) Delay { return after(time.Duration(i+1) * time.Minute) })...)
	number, err := s.b.e.BeginOperation(t.Context(), `{"kind":"not run here"}`)
	if err != nil {
		t.Fatal(err)
	}
	var o record.Operate
	o.Number = number
	for _, l := range must(s.b.selects(t.Context(), Filter{IDs: []string{r[0].ID.String(), r[1].ID.String(), r[2].ID.String()}})).list {
		o.Entries = append(o.Entries, record.Steer{Ref: l.Ref})
	}
	s.step(time.Minute)
	if _, err := s.b.Cancel(t.Context(), r[1].ID.String()); err != nil {
		t.Fatal(err)
	}
	if err := s.b.e.Operate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	s.crash()
	if op := s.b.Operations()[0]; op.Done != 1 || op.Missed != 2 {
		t.Errorf("operation %+v, want one done and two missed", op)
	}
	s.step(time.Hour)
	s.wantVisible("t", "0")
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
