package group

import (
	"sync"

	"github.com/duemq/duemq/internal/record"
)

// MaxInflight is how many unfinished offsets above its base a group may have in
// one queue; a receiver gets no more until some are acknowledged.
const MaxInflight = 10_000

// Leases are what one group holds of one queue: a window of offsets from the
// group's base on. They are memory. Instants are monotonic milliseconds. Safe
// for concurrent use.
type Leases struct {
	mu    sync.Mutex
	base  record.Offset
	slots []slot // slots[i] is offset base+i
	// earliest is no later than the first lease's end; it spares the scan.
	earliest int64
}

type slot struct {
	until    int64 // the lease's end; 0 finished
	attempts uint32
	held     bool // false: given back, nobody holds it
}

// A Grant is one leased offset and how often it has now been delivered.
type Grant struct {
	Offset  record.Offset
	Attempt uint32
}

// never is later than every instant.
const never = 1<<63 - 1

// advance drops what the group has finished with, up to base. The caller holds
// the lock.
func (l *Leases) advance(p *Progress) {
	if p.Base > l.base {
		n := min(uint64(p.Base-l.base), uint64(len(l.slots)))
		l.slots = l.slots[n:] // append moves what is left now and then
		l.base = p.Base
	}
}

// A Term is how long leases run: from now until an instant.
type Term struct{ Now, Until int64 }

// Grant leases up to limit offsets for a term: first those whose lease ended,
// oldest first, then new ones below next (the queue's next offset).
func (l *Leases) Grant(p *Progress, next record.Offset, limit int, term Term) (dst []Grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(p)
	if term.Now >= l.earliest {
		dst = l.again(limit, term)
	}
	for len(dst) < limit && len(l.slots) < MaxInflight {
		o := l.base + record.Offset(len(l.slots))
		if o >= next {
			break
		}
		if p.Finished(o) {
			l.slots = append(l.slots, slot{})
			continue
		}
		l.slots = append(l.slots, slot{until: term.Until, attempts: 1, held: true})
		l.earliest = min(l.earliest, term.Until)
		dst = append(dst, Grant{o, 1})
	}
	return dst
}

// again leases what came back.
func (l *Leases) again(limit int, term Term) (dst []Grant) {
	earliest := int64(never)
	for i := range l.slots {
		s := &l.slots[i]
		if s.until == 0 {
			continue
		}
		if s.until <= term.Now && len(dst) < limit {
			s.until, s.held = term.Until, true
			s.attempts++
			dst = append(dst, Grant{l.base + record.Offset(i), s.attempts})
		}
		earliest = min(earliest, s.until)
	}
	l.earliest = earliest
	return dst
}

// Next is the instant at which the next lease ends; ok is false if none runs.
func (l *Leases) Next() (at int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.earliest, len(l.slots) > 0 && l.earliest < never
}

// Room says whether more can be leased before something is acknowledged.
func (l *Leases) Room(p *Progress) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(p)
	return len(l.slots) < MaxInflight
}

// A Standing is how an offset stands with a lease that names an attempt.
type Standing uint8

// The standings.
const (
	Holds    Standing = iota + 1 // the lease runs, or ended and nobody else got it
	Finished                     // it was acknowledged
	Lost                         // the lease ended and the message was given again
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
	case s.until == 0:
		return s, Finished
	case s.attempts != attempt || !s.held:
		return s, Lost
	}
	return s, Holds
}

// Finish ends a lease for good. An acknowledgement whose lease has ended holds
// as long as nobody else got the message.
func (l *Leases) Finish(o record.Offset, attempt uint32) Standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, st := l.slot(o, attempt)
	if st == Holds {
		*s = slot{attempts: s.attempts}
	}
	return st
}

// Extend has a lease run until another instant; with held false it is given
// back and may be leased again from then on.
func (l *Leases) Extend(o record.Offset, attempt uint32, until int64, held bool) Standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, st := l.slot(o, attempt)
	if st == Holds {
		s.until, s.held = max(until, 1), held
		l.earliest = min(l.earliest, s.until)
	}
	return st
}

// Return ends a lease as if it had never been granted: the message was not
// shown to anybody, so the attempt does not count. It may be leased again at
// once.
func (l *Leases) Return(o record.Offset, attempt uint32) Standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, st := l.slot(o, attempt)
	if st == Holds {
		*s = slot{until: 1, attempts: s.attempts - 1}
		l.earliest = min(l.earliest, s.until)
	}
	return st
}

// Standing tells how an offset stands, whatever the attempt.
func (l *Leases) Standing(o record.Offset, now int64) (inflight bool, attempts uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o < l.base || uint64(o-l.base) >= uint64(len(l.slots)) {
		return false, 0
	}
	s := l.slots[o-l.base]
	return s.held && s.until > now, s.attempts
}
