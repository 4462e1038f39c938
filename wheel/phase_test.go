package wheel

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// Faults that checkPhases finds.
var (
	errEarly = errors.New("fired early")
	errLate  = errors.New("fired more than a tick late")
	errNever = errors.New("never fired")
)

// A subject is a wheel as checkPhases sees it: one task, told the time.
type subject interface {
	add(now, delay int64)
	tell(now int64) (fired bool)
}

// A trial is one task. The wheel is told the time at every tick and, if told is
// not nil, also at those instants between.
type trial struct {
	tick, slots  int64
	start        int64 // a whole number of ticks
	phase, delay int64 // the task is added at start + phase
}

// run returns nil if the task fires at or after its time and at most a tick
// later.
func (tr trial) run(s subject, every int64) error {
	added := tr.start + tr.phase
	s.tell(added - added%every)
	s.add(added, tr.delay)
	due := added + tr.delay
	for now := added - added%every + every; now <= due+3*tr.tick; now += every {
		if !s.tell(now) {
			continue
		}
		switch {
		case now < due:
			return fmt.Errorf("%w: %+v, told every %d ms: at %d, due %d", errEarly, tr, every, now, due)
		case now > due+tr.tick:
			return fmt.Errorf("%w: %+v, told every %d ms: at %d, due %d", errLate, tr, every, now, due)
		}
		return nil
	}
	return fmt.Errorf("%w: %+v, told every %d ms", errNever, tr, every)
}

// checkPhases tries a task at every phase between two ticks with every delay of
// up to three ticks, with delays near every turn of the rings, and with random
// ones. It returns how many trials there were and the faults, one for each.
func checkPhases(build func(tr trial) subject) (trials int, faults []error) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, tick := range []int64{1, 2, 7, 10} {
		for phase := range tick {
			for _, delay := range delays(rng, tick) {
				tr := trial{tick: tick, slots: 8, phase: phase, delay: delay, start: tick * rng.Int64N(1000)}
				for _, every := range []int64{1, tick} {
					trials++
					if err := tr.run(build(tr), every); err != nil {
						faults = append(faults, err)
					}
				}
			}
		}
	}
	return trials, faults
}

func delays(rng *rand.Rand, tick int64) (ms []int64) {
	for d := range 3 * tick {
		ms = append(ms, d)
	}
	for _, turn := range []int64{8, 64, 512} { // of three rings of 8 slots, the last one's end is the overflow
		for d := (turn - 1) * tick; d <= (turn+1)*tick; d++ {
			ms = append(ms, d)
		}
	}
	for range 50 {
		ms = append(ms, rng.Int64N(700*tick))
	}
	return ms
}

// told drives one of our wheels.
type told struct{ w ring[int] }

func (d told) add(now, delay int64) { d.w.Add(now+delay, 1) }

func (d told) tell(now int64) bool { return d.w.Advance(now, func(int64, int) {}) > 0 }

// A textbook wheel is the one that is usually shown: one ring, the delay
// truncated to slots, and at each tick the slot is run before the pointer moves.
type textbook struct {
	tick   int64
	slots  []int // rounds + 1 of the one task, 0 for none
	pos    int
	ticked int64
}

func (b *textbook) add(_, delay int64) {
	steps := int(delay / b.tick)
	b.slots[(b.pos+steps)%len(b.slots)] = steps/len(b.slots) + 1
}

// tell runs a tick if now is one.
func (b *textbook) tell(now int64) (fired bool) {
	if now/b.tick <= b.ticked {
		return false
	}
	b.ticked = now / b.tick
	if rounds := b.slots[b.pos]; rounds > 0 {
		b.slots[b.pos]--
		fired = rounds == 1
	}
	b.pos = (b.pos + 1) % len(b.slots)
	return fired
}

// TestNeverEarly is the promise: whenever between two ticks a task is added, and
// whatever its delay, it never fires early and at most one tick late.
func TestNeverEarly(t *testing.T) {
	for name, build := range map[string]func(tr trial) subject{
		"hierarchical": func(tr trial) subject {
			return told{mustHierarchical[int](t, Config{Tick: tr.tick, Slots: int(tr.slots), Levels: 3}, tr.start)}
		},
		"single": func(tr trial) subject {
			return told{mustSingle[int](t, SingleConfig{Tick: tr.tick, Slots: int(tr.slots)}, tr.start)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			trials, faults := checkPhases(build)
			if len(faults) > 0 {
				t.Errorf("%d of %d tasks, the first: %v", len(faults), trials, faults[0])
			}
		})
	}
}

// TestNeverEarlyFindsTextbookWheel is the control: the same property must fail
// for the textbook wheel, or it would prove nothing.
func TestNeverEarlyFindsTextbookWheel(t *testing.T) {
	trials, faults := checkPhases(func(tr trial) subject {
		return &textbook{tick: tr.tick, slots: make([]int, tr.slots), ticked: tr.start/tr.tick - 1}
	})
	if len(faults) == 0 {
		t.Fatalf("none of %d tasks in the textbook wheel was early or late", trials)
	}
	if err := errors.Join(faults...); !errors.Is(err, errEarly) {
		t.Errorf("none of %d tasks in the textbook wheel was early, but: %v", trials, faults[0])
	}
	t.Logf("textbook wheel: %d of %d tasks, the first: %v", len(faults), trials, faults[0])
}
