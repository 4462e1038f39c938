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
	mu      sync.Mutex
	base    record.Offset
	slots   []slot // slots[i] is offset base+i
	running int    // leases whose end the last sweep had not seen
	back    int    // slots that the last sweep found to have come back and nobody got since

	// No later than the first instant at which a slot may be leased again, and
	// than the first end of a lease. The first spares the sweep.
	earliest, ends int64

	wake    int64 // what Next answers
	blocked bool  // what Blocked answers
}

type slot struct {
	until    int64 // the lease's end, or from when on it may be leased again
	attempts uint32
	held     bool // false: given back, nobody holds it
	prior    bool // held before this lease, by somebody whose own had ended
	running  bool // counted in Leases.running
	done     bool // finished
}

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
	l.base, l.slots, l.running, l.back = base, nil, 0, 0
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
	case s.done:
		return s, Finished
	case s.attempts != attempt || !s.held:
		return s, Lost
	}
	return s, Holds
}

// run counts a lease as running.
func (l *Leases) run(s *slot) {
	if !s.running {
		s.running = true
		l.running++
	}
}

// stop does not any more.
func (l *Leases) stop(s *slot) {
	if s.running {
		s.running = false
		l.running--
	}
}

// notice takes note that a slot may be leased again from its instant on.
func (l *Leases) notice(s *slot) {
	l.earliest, l.wake = min(l.earliest, s.until), min(l.wake, s.until)
}

// Finish ends a lease for good. An acknowledgement whose lease has ended holds
// as long as nobody else got the message.
func (l *Leases) Finish(o record.Offset, attempt uint32) Standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, st := l.slot(o, attempt)
	if st == Holds {
		l.stop(s)
		*s = slot{attempts: s.attempts, done: true}
	}
	return st
}

// Extend has a lease run until another instant.
func (l *Leases) Extend(o record.Offset, attempt uint32, until int64) Standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, st := l.slot(o, attempt)
	if st == Holds {
		s.until = until
		l.run(s)
		l.ends = min(l.ends, until)
		l.notice(s)
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
		l.stop(s)
		*s = slot{until: until, attempts: s.attempts}
		l.notice(s)
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
		l.stop(s)
		*s = slot{attempts: s.attempts - 1, held: s.prior}
		l.notice(s)
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
	return s.held && !s.done && s.until > now, s.attempts
}
