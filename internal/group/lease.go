package group

import (
	"math"
	"sync"

	"github.com/duemq/duemq/internal/record"
)

// MaxInflight is how many unfinished offsets above its base a group may have in
// one queue; a receiver gets no more until some are acknowledged.
const MaxInflight = 10_000

// Leases are what one group holds of one queue: a window of offsets from the
// group's base on. They are memory: after a restart the window is built anew
// from the group's progress. Instants are monotonic milliseconds. Safe for
// concurrent use.
type Leases struct {
	mu     sync.Mutex
	base   record.Offset
	slots  []slot // slots[i] is offset base+i
	counts [4]int // of slots by state
	first  int    // no slot before it is back

	// No later than the first instant at which a slot comes back, and than the
	// first end of a lease. The first spares the sweep.
	earliest, ends int64

	wake    int64 // what Next answers
	blocked bool  // what Blocked answers
}

type slot struct {
	until    int64 // the lease's end, or that of a back-off
	attempts uint32
	state    state
	held     bool // somebody has a lease, be it one that has ended
	prior    bool // held before this lease, by somebody whose own had ended
}

// A state is what may come of a slot.
type state uint8

const (
	waits state = iota // given back, for until
	runs               // leased, to until
	back               // may be leased again; the lease or the wait is over
	done               // finished
)

// never is later than every instant.
const never = math.MaxInt64

// Reset forgets everything. It follows the command that moved the group to
// another offset; what was leased before is unknown from then on.
func (l *Leases) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reset(0)
}

func (l *Leases) reset(base record.Offset) {
	l.base, l.slots, l.counts, l.first = base, nil, [4]int{}, 0
	l.earliest, l.ends, l.wake, l.blocked = never, never, never, false
}

// Next is the earliest instant at which Grant may have something that is in
// this window already: a lease ends, or a back-off does. It is as the last
// Grant saw it and what has been given back or extended since; a Grant at that
// instant may still find nothing. ok is false if there is no such instant.
func (l *Leases) Next() (at int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wake, len(l.slots) > 0 && l.wake < never
}

// Blocked says that the last Grant gave less than was asked because of Ask.Max,
// of order or of a full window. Then what is acknowledged or given back may
// make room, and whoever does that wakes those who wait.
func (l *Leases) Blocked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.blocked
}

// A Standing is how an offset stands with a lease that names an attempt.
type Standing uint8

// The standings.
const (
	Holds    Standing = iota + 1 // the lease runs, or ended and nobody else got it
	Finished                     // it was acknowledged, or lies below what is kept
	Lost                         // the lease ended and the message was given again, or was given back
	Unknown                      // never leased, or leased before a restart
)

func (l *Leases) slot(o record.Offset, attempt uint32) (*slot, Standing) {
	if o < l.base {
		return nil, Finished
	}
	if uint64(o-l.base) >= uint64(len(l.slots)) {
		return nil, Unknown
	}
	s := &l.slots[o-l.base]
	switch {
	case s.state == done:
		return s, Finished
	case s.attempts != attempt || !s.held:
		return s, Lost
	}
	return s, Holds
}

// set gives a slot another state.
func (l *Leases) set(s *slot, to slot) {
	l.counts[s.state]--
	*s = to
	l.count(&to)
}

// count takes a slot's state and instant into account.
func (l *Leases) count(s *slot) {
	l.counts[s.state]++
	if s.state == runs {
		l.ends = min(l.ends, s.until)
	}
	if s.state <= runs {
		l.earliest = min(l.earliest, s.until)
	}
}

// Finish ends a lease for good. An acknowledgement whose lease has ended holds
// as long as nobody else got the message.
func (l *Leases) Finish(o record.Offset, attempt uint32) Standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, st := l.slot(o, attempt)
	if st == Holds {
		l.set(s, slot{attempts: s.attempts, state: done})
	}
	return st
}

// Extend has a lease run until another instant.
func (l *Leases) Extend(o record.Offset, attempt uint32, until int64) Standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, st := l.slot(o, attempt)
	if st == Holds {
		l.set(s, slot{until: until, attempts: s.attempts, state: runs, held: true, prior: s.prior})
		l.wake = min(l.wake, until)
	}
	return st
}

// Back gives a message back after a try that failed. It may be leased again
// from an instant on, and that is another attempt.
func (l *Leases) Back(o record.Offset, attempt uint32, until int64) Standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, st := l.slot(o, attempt)
	if st == Holds {
		l.set(s, slot{until: until, attempts: s.attempts, state: waits})
		l.wake = min(l.wake, until)
	}
	return st
}

// Return ends a lease as if it had never been granted: the message was not
// shown to anybody, so the attempt does not count. It may be leased again at
// once; who had it before, with a lease that has ended, holds it until then.
func (l *Leases) Return(o record.Offset, attempt uint32) Standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, st := l.slot(o, attempt)
	if st == Holds {
		l.set(s, slot{attempts: s.attempts - 1, state: waits, held: s.prior})
		l.wake = 0
	}
	return st
}

// Standing tells how an offset stands, whatever the attempt. What is not in the
// window has no attempts here; see [Progress.Attempts].
func (l *Leases) Standing(o record.Offset, now int64) (inflight bool, attempts uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o < l.base || uint64(o-l.base) >= uint64(len(l.slots)) {
		return false, 0
	}
	s := l.slots[o-l.base]
	return s.state == runs && s.until > now, s.attempts
}
