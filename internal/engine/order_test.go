package engine

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// crashed opens what a power cut leaves of a disk.
func crashed(t *testing.T, disk *vfs.MemFS, o Options) (*Engine, *vfs.MemFS) {
	t.Helper()
	clone := disk.CrashClone(vfs.CrashCloneCfg{RNG: rand.New(rand.NewPCG(1, 9))})
	o.FS = clone
	return open(t, o), clone
}

// entries gives all that can be read of a topic's first queue.
func entries(t *testing.T, e *Engine, tp *Topic) (all []queue.Entry) {
	t.Helper()
	low, next, err := e.Bounds(tp.FirstQueue)
	for err == nil && low < next {
		n := len(all)
		all, err = e.Entries(all, tp.FirstQueue, low, 1000)
		low += record.Offset(len(all) - n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sentRef is the reference of a message as it was sent.
func sentRef(t *testing.T, e *Engine, id record.ID) record.Ref {
	t.Helper()
	_, r, err := e.Find(id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func steer(t *testing.T, e *Engine, id record.ID, due int64) {
	t.Helper()
	out, err := e.Reschedule(t.Context(), sentRef(t, e, id), Delay{DelayAt, due})
	if err != nil || out.Verdict != timeline.Done || out.Due != due {
		t.Fatalf("reschedule %v for %d: %+v, %v", id, due, out, err)
	}
}

// TestEqualDuesInOrderOfSending has messages fall due at one moment that were
// sent before and after a carry, given that due later, before or after they were
// carried, moved away and back, and recovered: they come in the order of
// sending.
func TestEqualDuesInOrderOfSending(t *testing.T) {
	disk := fs.NewMem()
	c := clock.NewFake(testStart)
	o := small(disk, c)
	o.Retention = Retention{Time: time.Hour, CarryAfter: time.Minute}
	e := open(t, o)
	tp := topic(t, e, "t", 1)
	due := testStart.Add(10 * time.Hour).UnixMilli()
	var ids []record.ID
	sendSome := func(fill int) {
		for i := range 20 {
			d := Delay{DelayAt, due}
			switch i % 4 {
			case 1:
				d = Delay{DelayAfter, 20 * hourMs}
			case 2:
				d = Delay{DelayLevel, 18}
			}
			ids = append(ids, send(t, e, tp, strconv.Itoa(len(ids)), d).ID)
		}
		sendMany(t, e, tp, fill, 80) // the segment is full
	}
	sendSome(0)
	for _, id := range ids {
		if id%2 == 0 {
			steer(t, e, id, due) // before they are carried
		}
	}
	c.Advance(2 * time.Minute)
	keepUp(t, e)
	if e.Stats().Carried == 0 {
		t.Fatal("nothing was carried")
	}
	sendSome(80)
	c.Advance(2 * time.Minute)
	keepUp(t, e)
	for i, id := range ids {
		if i%3 == 0 {
			steer(t, e, id, due+1) // away
		}
	}
	e, disk = crashed(t, disk, o)
	rng := rand.New(rand.NewPCG(3, 3))
	for _, i := range rng.Perm(len(ids)) {
		steer(t, e, ids[i], due) // and back, in any order
	}
	keepUp(t, e)
	e, _ = crashed(t, disk, o)
	tp = e.TopicNamed("t")
	c.Advance(10*time.Hour - 4*time.Minute - time.Millisecond)
	settle(t, e)
	before := len(entries(t, e, tp))
	c.Advance(time.Millisecond)
	settle(t, e)
	var got []record.ID
	for _, x := range entries(t, e, tp)[before:] {
		if x.Due != due || x.VisibleAt != due {
			t.Errorf("message %v due %d visible at %d, want %d", x.ID, x.Due, x.VisibleAt, due)
		}
		got = append(got, x.ID)
	}
	if !slices.Equal(got, ids) {
		t.Errorf("came as %v\nwere sent as %v", got, ids)
	}
}

// TestChain moves a message before and after it is carried, crashes in between,
// and cancels it by its first id: it is gone, and stays gone.
func TestChain(t *testing.T) {
	disk := fs.NewMem()
	c := clock.NewFake(testStart)
	o := small(disk, c)
	o.Retention = Retention{Time: time.Hour, CarryAfter: time.Minute}
	e := open(t, o)
	tp := topic(t, e, "t", 1)
	at := func(hours int) int64 { return testStart.Add(time.Duration(hours) * time.Hour).UnixMilli() }
	id := send(t, e, tp, "chained", Delay{DelayAt, at(5)}).ID
	other := send(t, e, tp, "beside", Delay{DelayAt, at(30)}).ID
	sendMany(t, e, tp, 0, 80)
	steer(t, e, id, at(40))
	e, disk = crashed(t, disk, o)
	c.Advance(2 * time.Minute)
	keepUp(t, e)
	if n := e.Stats().Carried; n != 2 {
		t.Fatalf("%d messages carried, want 2", n)
	}
	steer(t, e, id, at(7))
	e, disk = crashed(t, disk, o) // before its bytes have moved
	steer(t, e, id, at(20))
	keepUp(t, e)
	e, disk = crashed(t, disk, o) // and afterwards
	tp = e.TopicNamed("t")
	for h := range 8 { // what it was to come at passes, and its segment is given up
		c.Advance(time.Hour)
		settle(t, e)
		sendMany(t, e, tp, 80+80*h, 80)
		keepUp(t, e)
	}
	if first := e.Stats().LogFirst; first <= uint64(id) {
		t.Fatalf("the log is kept from %d on", first)
	}
	m, r, err := e.Find(id)
	if err != nil || string(m.Body) != "chained" {
		t.Fatalf("find by the first id: %q, %v", m.Body, err)
	}
	out, err := e.Cancel(t.Context(), r)
	if err != nil || out.Verdict != timeline.Done || out.Due != at(20) {
		t.Fatalf("cancel: %+v, %v", out, err)
	}
	e, _ = crashed(t, disk, o)
	tp = e.TopicNamed("t")
	if out, err := e.Cancel(t.Context(), r); err != nil || out.Verdict == timeline.Done {
		t.Errorf("cancel again: %+v, %v", out, err)
	}
	if out, err := e.Reschedule(t.Context(), r, Delay{DelayAfter, 1000}); err != nil || out.Verdict == timeline.Done {
		t.Errorf("reschedule what was cancelled: %+v, %v", out, err)
	}
	c.Advance(35 * time.Hour)
	settle(t, e)
	for _, x := range entries(t, e, tp) {
		if x.ID == id {
			t.Errorf("a cancelled message became visible at %d", x.VisibleAt)
		}
	}
	if all := entries(t, e, tp); all[len(all)-1].ID != other {
		t.Errorf("last came %v, want %v", all[len(all)-1].ID, other)
	}
}
