package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// What an engine has told somebody, in the order in which it did. A store that
// comes back from a crash has to stand by all of it.
type told struct {
	sent      []Send
	earliest  []int64 // per sent: the instant (Unix ns) before which it must not be visible
	moved     map[record.ID]int64
	cancelled map[record.ID]bool
	shown     map[place]record.ID
	asked     record.ID // being cancelled or moved: the answer is still out
}

type place struct {
	queue  record.QueueNumber
	offset record.Offset
}

// A witness drives one engine, single-threaded, and notes what it was told.
// Crashes are taken beside it, at any operation of the disk.
type witness struct {
	rng   *rand.Rand
	clock *clock.Fake
	o     Options
	e     *Engine
	topic *Topic
	seen  map[place]struct{}

	mu   sync.Mutex
	told told
}

func newWitness(seed uint64, disk fs.FS, bugs Bugs) *witness {
	// A fraction of a millisecond shows whether dues are rounded up.
	w := &witness{
		rng:   rand.New(rand.NewPCG(seed, 2)),
		clock: clock.NewFake(testStart.Add(400 * time.Microsecond)),
		seen:  make(map[place]struct{}),
		told:  told{moved: make(map[record.ID]int64), cancelled: make(map[record.ID]bool), shown: make(map[place]record.ID)},
	}
	w.o = options(disk, w.clock)
	w.o.SegmentBytes, w.o.CutCommands, w.o.Bugs = 64<<10, 60, bugs
	return w
}

// copy is what had been told by now.
func (w *witness) copy() told {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.told
	c.moved, c.cancelled, c.shown = maps.Clone(c.moved), maps.Clone(c.cancelled), maps.Clone(c.shown)
	return c
}

// run opens the engine and does n random things, until the first error.
func (w *witness) run(n int) (err error) {
	ctx := context.Background()
	if w.e, err = Open(ctx, w.o); err != nil {
		return err
	}
	defer func() {
		if cerr := w.e.Close(); err == nil {
			err = cerr
		}
	}()
	if w.topic, err = w.e.MakeTopic(ctx, "t", 2, nil); err != nil {
		return err
	}
	for range n {
		if err := w.step(ctx); err != nil {
			return err
		}
		if err := w.look(); err != nil {
			return err
		}
	}
	return nil
}

func (w *witness) step(ctx context.Context) error {
	switch k := w.rng.IntN(10); {
	case k < 5:
		return w.send(ctx)
	case k < 6 && len(w.told.sent) > 0:
		return w.steer(ctx)
	default:
		w.clock.Advance(time.Duration(w.rng.IntN(40_000)) * time.Microsecond)
		return w.e.Settle(ctx)
	}
}

func (w *witness) send(ctx context.Context) error {
	now := w.clock.Now().Wall
	sends := make([]Send, 1+w.rng.IntN(4))
	earliest := make([]int64, len(sends))
	for i := range sends {
		body := make([]byte, w.rng.IntN(3000))
		sends[i] = Send{Message: record.Message{Body: body, Key: strconv.FormatUint(w.rng.Uint64(), 36)}, Topic: w.topic.Number, Turn: w.topic}
		if w.rng.IntN(4) > 0 {
			ms := int64(w.rng.IntN(60))
			sends[i].Delay = Delay{Kind: DelayAfter, Value: ms}
			earliest[i] = now + ms*int64(time.Millisecond)
		}
	}
	if err := w.e.Send(ctx, sends); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told.sent = append(w.told.sent, sends...)
	w.told.earliest = append(w.told.earliest, earliest...)
	return nil
}

// steer cancels or moves one of the last messages.
func (w *witness) steer(ctx context.Context) error {
	i := len(w.told.sent) - 1 - w.rng.IntN(min(len(w.told.sent), 12))
	_, r, err := w.e.Find(w.told.sent[i].ID)
	if err != nil {
		return err
	}
	w.ask(r.ID)
	defer w.ask(0)
	if w.rng.IntN(2) == 0 {
		out, err := w.e.Cancel(ctx, r)
		if err != nil || out.Verdict != timeline.Done {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told.cancelled[r.ID] = true
		return nil
	}
	due := clock.CeilMs(w.clock.Now().Wall) + int64(w.rng.IntN(60))
	out, err := w.e.Reschedule(ctx, r, Delay{Kind: DelayAt, Value: due})
	if err != nil || out.Verdict != timeline.Done {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told.moved[r.ID] = out.Due
	return nil
}

func (w *witness) ask(id record.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told.asked = id
}

// look reads what is visible, as a consumer would.
func (w *witness) look() error {
	shown, err := readAll(w.e, w.topic)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.Copy(w.told.shown, shown)
	return nil
}

func readAll(e *Engine, t *Topic) (map[place]record.ID, error) {
	shown := make(map[place]record.ID)
	for i := range t.Queues {
		n := t.FirstQueue + record.QueueNumber(i)
		from, next, err := e.Bounds(n)
		if err != nil {
			return nil, err
		}
		for from < next {
			entries, err := e.Entries(nil, n, from, 50)
			if err != nil {
				return nil, err
			}
			for k, x := range entries {
				if x.VisibleAt < x.Due {
					return nil, fmt.Errorf("message %v visible at %d, due %d: early", x.ID, x.VisibleAt, x.Due)
				}
				shown[place{n, from + record.Offset(k)}] = x.ID
			}
			from += record.Offset(len(entries))
		}
	}
	return shown, nil
}

// verify opens a disk as a crash left it and says in what the store goes back
// on its word.
func (w *witness) verify(disk *vfs.MemFS, t told, at time.Time) error {
	o := w.o
	o.FS, o.Bugs = disk, Bugs{Log: log.Bugs{CutBadMiddle: w.o.Bugs.Log.CutBadMiddle}}
	// Under a clock that is suspect nothing falls due: what was visible has to
	// be so by itself, and not because it is delivered again.
	o.Clock = clock.NewFake(at.Add(-time.Hour))
	if err := t.stillShown(o); err != nil {
		return err
	}
	o.Clock = clock.NewFake(at)
	e, err := Open(context.Background(), o)
	if err != nil {
		return fmt.Errorf("reopen: %w", err)
	}
	err = t.holds(e)
	var hash string
	if err == nil {
		hash, err = e.Hash()
	}
	if cerr := e.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return sameWithoutIndex(o, hash)
}

// sameWithoutIndex deletes the index and demands the same state from the log.
func sameWithoutIndex(o Options, want string) error {
	if err := o.FS.RemoveAll("data/index"); err != nil {
		return err
	}
	e, err := Open(context.Background(), o)
	if err != nil {
		return fmt.Errorf("reopen without index: %w", err)
	}
	got, err := e.Hash()
	if cerr := e.Close(); err == nil {
		err = cerr
	}
	if err == nil && got != want {
		err = errors.New("the index and the log tell different states")
	}
	return err
}

// stillShown checks that what was visible is so at once.
func (t told) stillShown(o Options) error {
	e, err := Open(context.Background(), o)
	if err != nil {
		return fmt.Errorf("reopen: %w", err)
	}
	if topic := e.TopicNamed("t"); topic != nil {
		var shown map[place]record.ID
		shown, err = readAll(e, topic)
		for at, id := range t.shown {
			if err == nil && shown[at] != id {
				err = fmt.Errorf("queue %d offset %d was %v and is %v", at.queue, at.offset, id, shown[at])
			}
		}
	}
	if cerr := e.Close(); err == nil {
		err = cerr
	}
	return err
}

// holds checks that every word still holds.
func (t told) holds(e *Engine) error {
	topic := e.TopicNamed("t")
	if topic == nil {
		if len(t.sent) > 0 {
			return errors.New("the topic is lost")
		}
		return nil
	}
	if err := e.Settle(context.Background()); err != nil {
		return err
	}
	shown, err := readAll(e, topic)
	if err != nil {
		return err
	}
	times := make(map[record.ID]int)
	for _, id := range shown {
		if times[id]++; times[id] > 1 {
			return fmt.Errorf("message %v is visible twice", id)
		}
	}
	for i := range t.sent {
		if err := t.check(e, &t.sent[i], t.earliest[i], times[t.sent[i].ID]); err != nil {
			return err
		}
	}
	return nil
}

// check looks at one message that was acknowledged. What was answered last may
// have been followed by a change whose answer the crash cut off.
func (t told) check(e *Engine, s *Send, earliest int64, visible int) error {
	m, r, err := e.Find(s.ID)
	if err != nil {
		return fmt.Errorf("acknowledged message %v: %w", s.ID, err)
	}
	if m.Key != s.Message.Key || len(m.Body) != len(s.Message.Body) {
		return fmt.Errorf("message %v comes back changed", s.ID)
	}
	if s.Due != 0 && s.Due*int64(time.Millisecond) < earliest {
		return fmt.Errorf("message %v: due %d is before the %d ns asked for", s.ID, s.Due, earliest)
	}
	st, err := e.Standing(r)
	if err != nil {
		return err
	}
	now, verdict := st.Ref, st.Verdict
	switch {
	case t.cancelled[s.ID]:
		if verdict != timeline.AlreadyCancelled || visible > 0 {
			return fmt.Errorf("message %v was cancelled and is not (verdict %d, visible %d)", s.ID, verdict, visible)
		}
	case verdict == timeline.NotWaiting && visible == 0:
		return fmt.Errorf("acknowledged message %v is neither waiting nor visible", s.ID)
	case verdict == timeline.Done && visible > 0:
		return fmt.Errorf("message %v is visible and waits", s.ID)
	case verdict == timeline.Done && t.asked != s.ID && now.Due != cmp.Or(t.moved[s.ID], s.Due):
		return fmt.Errorf("message %v waits for %d, was sent for %d", s.ID, now.Due, s.Due)
	}
	return nil
}

// A trial is a workload on a disk that crashes, and what it had been told by then.
type trial[T any] struct {
	disk   *fs.Faulty
	clock  *clock.Fake
	run    func() error
	word   func() T
	verify func(disk *vfs.MemFS, word T, at time.Time) error
}

// crashAtEvery runs the workload and takes a crash before every stride-th
// operation of the disk, keeping part of what was not synced.
func (x *trial[T]) crashAtEvery(seed uint64, stride int) error {
	type crash struct {
		disk *vfs.MemFS
		word T
		at   time.Time
		op   fs.Op
	}
	var mu sync.Mutex
	var crashes []crash
	rng := rand.New(rand.NewPCG(seed, 3))
	n := 0
	x.disk.Hooks(func(op fs.Op) {
		mu.Lock()
		defer mu.Unlock()
		if n++; n%stride != 0 {
			return
		}
		word := x.word() // before the disk: what is told later is not asked for
		c, err := x.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 0, 30, 70}[n/stride%4], RNG: rng})
		if err == nil {
			crashes = append(crashes, crash{c, word, x.clock.Now().Time(), op})
		}
	}, nil)
	err := x.run()
	x.disk.Hooks(nil, nil)
	if err != nil {
		return fmt.Errorf("seed %d: %w", seed, err)
	}
	for i, c := range crashes {
		if err := x.verify(c.disk, c.word, c.at); err != nil {
			return fmt.Errorf("seed %d, crash %d of %d before %v: %w", seed, i, len(crashes), c.op, err)
		}
	}
	return nil
}

func crashAtEvery(seed uint64, stride int, bugs Bugs) error {
	disk := fs.NewFaulty(fs.NewMem())
	w := newWitness(seed, disk, bugs)
	x := trial[told]{disk, w.clock, func() error { return w.run(120) }, w.copy, w.verify}
	return x.crashAtEvery(seed, stride)
}

// TestCrashAtEveryOperation cuts the power before each write, sync, rename and
// directory sync of a workload with cuts and rolling segments, and checks that
// the store stands by everything that was acknowledged before.
func TestCrashAtEveryOperation(t *testing.T) {
	stride := 1
	if testing.Short() {
		stride = 12
	}
	for seed := uint64(1); seed <= 3; seed++ {
		if err := crashAtEvery(seed, stride, Bugs{}); err != nil {
			t.Fatal(err)
		}
	}
}

// A kind of failure of the disk.
var failures = []fs.Fault{
	{Err: syscall.EIO},
	{Err: syscall.ENOSPC},
	{Err: syscall.EIO, Short: true},
	{Err: syscall.EIO, Lose: true},
	{Err: syscall.ENOSPC, Forever: true},
}

// failAt fails the n-th operation of a workload and checks the store that is
// left; done says that the workload ended before.
func failAt(seed uint64, n int, fault fs.Fault, bugs Bugs) (done bool, err error) {
	disk := fs.NewFaulty(fs.NewMem())
	w := newWitness(seed, disk, bugs)
	fault.At = n
	disk.Inject(fault)
	rerr := w.run(60)
	if disk.Fired() == 0 {
		return true, rerr
	}
	if rerr != nil && !errors.Is(rerr, fault.Err) && !errors.Is(rerr, ErrFailed) {
		return false, fmt.Errorf("operation %d: the error of the disk became %w", n, rerr)
	}
	c, err := disk.CrashClone(vfs.CrashCloneCfg{RNG: rand.New(rand.NewPCG(seed, 4))})
	if err != nil {
		return false, err
	}
	if err := w.verify(c, w.copy(), w.clock.Now().Time()); err != nil {
		return false, fmt.Errorf("operation %d fails with %q (short %v, lost %v): %w", n, fault.Err.Error(), fault.Short, fault.Lose, err)
	}
	return false, nil
}

// TestFailAtEveryOperation fails each operation of the disk once: the error
// surfaces, nothing acknowledged is lost, and what the index suffers only
// postpones its cut.
func TestFailAtEveryOperation(t *testing.T) {
	stride := 1
	if testing.Short() {
		stride = 17
	}
	for i, fault := range failures {
		for n := 1 + i; ; n += stride {
			done, err := failAt(uint64(i+1), n, fault, Bugs{})
			if err != nil {
				t.Fatal(err)
			}
			if done {
				break
			}
		}
	}
}

// flip changes some bits in the middle of the log and demands that the store
// refuses to open, naming file and byte.
func flip(seed uint64, bugs Bugs) error {
	disk := fs.NewMem()
	w := newWitness(seed, disk, bugs)
	w.o.CutCommands = 1 << 40 // no cut: all of the log counts
	if err := w.run(60); err != nil {
		return err
	}
	names, err := disk.List("data/log")
	if err != nil {
		return err
	}
	if err := disk.RemoveAll("data/index"); err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".seg") {
			continue
		}
		data, err := disk.UnsafeGetFileDataBuffer("data/log/" + name)
		if err != nil {
			return err
		}
		// Sixteen bytes, since up to fifteen between two batches mean nothing.
		at := 128 + w.rng.IntN(len(data)-128-16)
		for i := range 16 {
			data[at+i] ^= 4
		}
		break
	}
	e, err := Open(context.Background(), w.o)
	if err == nil {
		_ = e.Close()
		return errors.New("a damaged log was opened as if nothing had happened")
	}
	if _, ok := errors.AsType[*log.DamageError](err); !ok {
		return fmt.Errorf("damage is reported without file and byte: %w", err)
	}
	return nil
}

func TestDamagedMiddleRefusesToOpen(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		if err := flip(seed, Bugs{}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
