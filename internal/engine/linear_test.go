package engine

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

var linearSeeds = flag.Int("linear", 200, "how many concurrent histories of cancel, reschedule and delivery")

// What is asked of one message, and what was answered.
type (
	linearInput struct {
		kind linearKind
		due  int64 // with linearDeliver: under which it was delivered
	}
	linearOutput struct {
		unknown bool // a crash cut the answer off
		verdict timeline.Verdict
		due     int64
		visible bool
	}
)

type linearKind uint8

const (
	linearCancel linearKind = iota + 1
	linearMove
	linearLook
	linearDeliver
)

// A linearState is how a message stands. anyDue is of one that was moved by who
// knows which due.
type linearState struct {
	verdict timeline.Verdict // of a cancel: Done while it waits
	due     int64
}

const anyDue = -1

// linearModel is one message as a thing that takes one operation at a time: it
// waits, until it is either cancelled or delivered under the due that it has then.
func linearModel(due int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return linearState{timeline.Done, due} },
		Step: func(state, input, output any) (bool, any) {
			return state.(linearState).step(input.(linearInput), output.(linearOutput)) //nolint:forcetypeassert // ours
		},
	}
}

func (s linearState) step(in linearInput, out linearOutput) (bool, any) {
	waits := s.verdict == timeline.Done
	next := s
	switch in.kind {
	case linearLook:
		return out.visible == (s.verdict == timeline.NotWaiting), s
	case linearDeliver:
		return waits && (s.due == in.due || s.due == anyDue), linearState{verdict: timeline.NotWaiting}
	case linearCancel:
		if waits {
			next.verdict = timeline.AlreadyCancelled
		}
	case linearMove:
		if waits && out.unknown {
			next.due = anyDue
		} else if waits {
			next.due = out.due
		}
	}
	return out.unknown || out.verdict == s.verdict, next
}

// A linearRun has several clients at work on a few messages, each in a queue of
// its own.
type linearRun struct {
	t     *testing.T
	seed  uint64
	clock *clock.Fake
	e     *Engine
	tp    *Topic
	refs  []record.Ref
	now   atomic.Int64 // orders calls and answers

	mu        sync.Mutex
	histories [][]porcupine.Operation // by message
}

func (r *linearRun) add(i int, op porcupine.Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.histories[i] = append(r.histories[i], op)
}

// clients runs them until each has done its share. Time goes by beside them.
func (r *linearRun) clients(phase uint64, each int) error {
	const perMessage = 3
	var wg sync.WaitGroup
	errs := make([]error, len(r.refs)*perMessage)
	for n := range errs {
		rng := rand.New(rand.NewPCG(r.seed, phase<<32|uint64(n)))
		wg.Go(func() {
			for range each {
				if errs[n] = r.ask(n/perMessage, n, rng); errs[n] != nil {
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for {
		select {
		case <-done:
			return errors.Join(errs...)
		default:
			r.clock.Advance(50 * time.Microsecond)
			runtime.Gosched()
		}
	}
}

// ask does one operation and notes when it began and ended.
func (r *linearRun) ask(i, client int, rng *rand.Rand) error {
	op := porcupine.Operation{ClientId: client}
	var out linearOutput
	var o Outcome
	var err error
	kind := []linearKind{linearCancel, linearMove, linearMove, linearMove, linearLook, linearLook}[rng.IntN(6)]
	op.Input = linearInput{kind: kind}
	op.Call = r.now.Add(1)
	switch kind {
	case linearCancel:
		if rng.IntN(3) > 0 {
			return nil // seldom, or nothing else is seen
		}
		o, err = r.e.Cancel(context.Background(), r.refs[i])
	case linearMove:
		o, err = r.e.Reschedule(context.Background(), r.refs[i], Delay{DelayAfter, int64(rng.IntN(3))})
	default:
		_, next, berr := r.e.Bounds(r.refs[i].Queue)
		if out.visible, err = next > 0, berr; next > 1 {
			err = fmt.Errorf("message %v was delivered %d times", r.refs[i].ID, next)
		}
	}
	out.verdict, out.due = o.Verdict, o.Due
	op.Return, op.Output = r.now.Add(1), out
	r.add(i, op)
	return err
}

// traffic fills segments, so that what waits is carried while it is steered.
func (r *linearRun) traffic() error {
	sends := make([]Send, 40)
	for i := range sends {
		sends[i] = Send{Message: record.Message{Body: make([]byte, 1000)}, Topic: r.tp.Number, To: r.tp.FirstQueue + record.QueueNumber(len(r.refs))}
	}
	err := r.e.Send(context.Background(), sends)
	return errors.Join(err, r.e.trimAndCarry(context.Background(), r.e.plan()))
}

// forget takes back what was answered after a moment: the crash may have cut it
// off. What was only looked at is nothing that the next process knows of.
func (r *linearRun) forget(after int64) {
	for i, h := range r.histories {
		kept := h[:0]
		for _, op := range h {
			if op.Return > after {
				if op.Input.(linearInput).kind == linearLook { //nolint:forcetypeassert // ours
					continue
				}
				op.Return, op.Output = math.MaxInt64, linearOutput{unknown: true}
			}
			kept = append(kept, op)
		}
		r.histories[i] = kept
	}
}

// run lets clients work, crashes beside them, and lets others go on.
func (r *linearRun) run(messages int) {
	r.t.Helper()
	disk := fs.NewFaulty(fs.NewMem())
	o := small(disk, r.clock)
	o.CutCommands = 40
	o.Retention = Retention{Time: -1, CarryAfter: time.Millisecond}
	r.e = open(r.t, o)
	r.tp = topic(r.t, r.e, "t", uint32(messages)+1)
	sends := make([]Send, messages)
	for i := range sends {
		sends[i] = Send{Message: record.Message{Body: []byte("x")}, Topic: r.tp.Number, To: r.tp.FirstQueue + record.QueueNumber(i), Delay: Delay{DelayAfter, 3}}
	}
	if err := r.e.Send(r.t.Context(), sends); err != nil {
		r.t.Fatal(err)
	}
	for i := range sends {
		r.refs = append(r.refs, sentRef(r.t, r.e, sends[i].ID))
		r.histories = append(r.histories, nil)
	}
	var clone *vfs.MemFS
	var crash int64
	var wg sync.WaitGroup
	errs := make([]error, 2)
	wg.Go(func() {
		for range 3 {
			errs[0] = errors.Join(errs[0], r.traffic())
		}
		crash = r.now.Load()
		clone, errs[1] = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 30, RNG: rand.New(rand.NewPCG(r.seed, 8))})
	})
	err := r.clients(1, 12)
	wg.Wait()
	if err := errors.Join(err, errs[0], errs[1]); err != nil {
		r.t.Fatalf("seed %d: %v", r.seed, err)
	}
	r.forget(crash)
	mustClose(r.t, r.e)
	o.FS = clone
	r.e = open(r.t, o)
	r.tp = r.e.TopicNamed("t")
	if err := r.clients(2, 6); err != nil {
		r.t.Fatalf("seed %d, after the crash: %v", r.seed, err)
	}
	r.clock.Advance(time.Second)
	settle(r.t, r.e)
	for i := range sends {
		r.check(i, sends[i].Due)
	}
	mustClose(r.t, r.e)
}

// check adds what became of a message and asks whether there is an order in
// which all that was answered makes sense.
func (r *linearRun) check(i int, due int64) {
	r.t.Helper()
	q := r.refs[i].Queue
	_, next, err := r.e.Bounds(q)
	if err != nil || next > 1 {
		r.t.Fatalf("seed %d: message %d was delivered %d times, %v", r.seed, i, next, err)
	}
	end := r.now.Add(1)
	r.add(i, porcupine.Operation{Input: linearInput{kind: linearLook}, Call: end, Output: linearOutput{visible: next == 1}, Return: r.now.Add(1)})
	if next == 1 {
		x, err := r.e.Entries(nil, q, 0, 1)
		if err != nil || x[0].VisibleAt < x[0].Due {
			r.t.Fatalf("seed %d: message %d: %+v, %v", r.seed, i, x, err)
		}
		r.add(i, porcupine.Operation{Input: linearInput{kind: linearDeliver, due: x[0].Due}, Output: linearOutput{}, Return: end})
	}
	if !porcupine.CheckOperations(linearModel(due), r.histories[i]) {
		for _, op := range r.histories[i] {
			r.t.Logf("%+v", op)
		}
		r.t.Fatalf("seed %d: there is no order for what message %d went through", r.seed, i)
	}
}

// TestSteeringIsLinearizable has several clients cancel, move and look at the same
// messages while they fall due and are carried, crashes beside them and goes on:
// cancel and delivery exclude each other, and each answer is true at one moment
// between its call and its return.
func TestSteeringIsLinearizable(t *testing.T) {
	n := *linearSeeds
	if testing.Short() {
		n = min(n, 20)
	}
	var delivered, cancelled int
	for seed := range n {
		r := &linearRun{t: t, seed: uint64(seed) + 1, clock: clock.NewFake(testStart)}
		r.run(6)
		for _, h := range r.histories {
			if op := h[len(h)-1]; op.Input.(linearInput).kind == linearDeliver { //nolint:forcetypeassert // ours
				delivered++
			} else {
				cancelled++
			}
		}
	}
	if delivered == 0 || cancelled == 0 {
		t.Errorf("%d delivered, %d cancelled: nothing excluded anything", delivered, cancelled)
	}
	t.Logf("%d delivered, %d cancelled", delivered, cancelled)
}

// TestLinearModelRefuses shows the model histories that no store may have.
func TestLinearModelRefuses(t *testing.T) {
	op := func(in linearInput, out linearOutput, call, end int64) porcupine.Operation {
		return porcupine.Operation{Input: in, Output: out, Call: call, Return: end}
	}
	cancel, move, look := linearInput{kind: linearCancel}, linearInput{kind: linearMove}, linearInput{kind: linearLook}
	deliver := func(due, end int64) porcupine.Operation {
		return op(linearInput{kind: linearDeliver, due: due}, linearOutput{}, 0, end)
	}
	done := linearOutput{verdict: timeline.Done, due: 7}
	for name, h := range map[string][]porcupine.Operation{
		"cancelled and delivered":        {op(cancel, done, 1, 2), deliver(5, 9)},
		"cancelled twice":                {op(cancel, done, 1, 2), op(cancel, done, 3, 4)},
		"moved when it was seen":         {op(look, linearOutput{visible: true}, 1, 2), op(move, done, 3, 4), deliver(5, 9)},
		"delivered under its old due":    {op(move, done, 1, 2), deliver(5, 9)},
		"a move that came back":          {op(move, done, 1, 2), op(move, linearOutput{verdict: timeline.Done, due: 8}, 3, 4), deliver(7, 9)},
		"seen and then not":              {deliver(5, 9), op(look, linearOutput{visible: true}, 1, 2), op(look, linearOutput{}, 3, 4)},
		"not waiting, and never visible": {op(cancel, linearOutput{verdict: timeline.NotWaiting}, 1, 2)},
	} {
		if porcupine.CheckOperations(linearModel(5), h) {
			t.Errorf("%s: the model takes it", name)
		}
	}
	good := []porcupine.Operation{op(move, linearOutput{unknown: true}, 1, math.MaxInt64), deliver(6, 9), op(look, linearOutput{visible: true}, 3, 4)}
	if !porcupine.CheckOperations(linearModel(5), good) {
		t.Error("a move whose answer was cut off may have happened")
	}
}
