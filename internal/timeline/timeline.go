// Package timeline holds what waits: 18 FIFOs for the delay levels (the
// counterpart of RocketMQ's ScheduleMessageService), a timing wheel for any
// other time, and the references of older cuts in the index, merged into one
// head.
//
// New references stay in memory, those of a level in its FIFO (equal delays
// are in order already, nothing is sorted), any other in the wheel. At a cut
// they are frozen, written to the index in due order and dropped once that is
// installed; so memory is bounded by the interval between cuts and not by how
// many messages wait. A message that is due before the next cut never touches
// the index.
//
// The package is told the time and has no goroutine. The engine's applier is
// the only writer; readers take a [View]. Everything that decides is a function
// of the commands applied so far, never of when a cut happened: a reference is
// alive if its key stands above the popped key and no mark says otherwise,
// wherever its bytes are.
package timeline

import (
	"math"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// Levels is how many delay levels there can be.
const Levels = 18

// A Source opens iterators over the references of installed cuts.
type Source interface {
	NewIter(s index.Space, lower, upper []byte) (*index.Iter, error)
	Get(dst []byte, s index.Space, key []byte) ([]byte, bool, error)
}

// LevelCount is one delay level as SCHEDULE_TOPIC_XXXX shows it to tools: its
// queue's total offset and how far delivery has come. Cancelled and moved
// messages leave their level without being delivered from it, so waiting is
// counted and not the difference.
type LevelCount struct {
	Total     uint64 // messages ever filed under the level
	Delivered uint64 // messages delivered from it
	Waiting   int64  // messages that wait in it now
}

// Timeline holds what waits. Its methods are for one goroutine at a time,
// unless they say otherwise.
type Timeline struct {
	src Source

	ended   func(record.QueueNumber) bool // says that a queue's number has ended
	endings bool                          // there may be such numbers

	popped  record.Key // all keys up to here are gone, and none is ever added below
	floor   record.Key // all keys of the index up to here are gone; above popped only after a rebase
	floors  record.Key // the same for the index as it will be after the cut that is being written
	rebases []rebase

	live   *generation
	frozen *generation // being written to the index; nil between cuts
	stored stored

	outcomes *outcomes

	kept record.ID // what was sent before is known only while it waits

	waiting int64
	levels  [Levels + 1]LevelCount
	peeked  int64      // what Next last said
	out     record.Ref // being handed out; a field, so that it does not escape
}

// A rebase remembers that the clock was set back: what was added before
// position and stands up to floor had been delivered by then.
type rebase struct {
	floor    record.Key
	position record.ID
}

// New makes an empty timeline whose wheel begins at stamp (Unix ms).
func New(src Source, stamp int64) *Timeline {
	t := &Timeline{src: src, live: newGeneration(stamp), outcomes: newOutcomes(src), peeked: math.MaxInt64}
	t.stored.owner = t.live
	return t
}

// Waiting is the number of references alive.
func (t *Timeline) Waiting() int64 { return t.waiting }

// Endings has the timeline pass over references whose queue has ended, as ended
// tells. The machine calls it when it is made and when a topic ends; ended is a
// function of the state, asked by readers and the applier alike.
func (t *Timeline) Endings(ended func(record.QueueNumber) bool) {
	t.ended, t.endings = ended, true
}

// Forget no longer counts references of queues that have ended: how many waited
// under each level. They themselves are passed over when their time comes.
func (t *Timeline) Forget(waiting [Levels + 1]int64) {
	for i, n := range waiting {
		t.waiting -= n
		t.levels[i].Waiting -= n
	}
}

// Level tells how level n (1..18) stands; 0 is every other time.
func (t *Timeline) Level(n int) LevelCount { return t.levels[n] }

// Popped is the key up to which everything has been delivered.
func (t *Timeline) Popped() record.Key { return t.popped }

// Add files a reference that is to wait. at is the position of the command
// that adds it, stamp the batch's. It returns the reference as filed: a due at
// or below what was already popped is lifted, so that nothing ever lands
// behind the head. overdue says that it is due already and joins a backlog;
// that is remembered, as a lifted due is, so that cancel finds it: a message
// due by its own stamp is otherwise taken never to have waited.
func (t *Timeline) Add(r record.Ref, stamp int64, at record.ID, overdue bool) record.Ref {
	filed := t.lift(r, stamp)
	if overdue || filed.Due != r.Due {
		t.outcomes.set(nameOf(filed), Outcome{State: Moved, Due: filed.Due, At: at})
	}
	t.live.oldest = min(t.live.oldest, filed.ID)
	t.file(filed)
	t.levels[filed.Level].Total++
	return filed
}

func (t *Timeline) file(r record.Ref) {
	t.live.revive(r.Key())
	t.live.add(r)
	t.waiting++
	t.levels[r.Level].Waiting++
}

// lift gives the reference the least due not before its own whose key exceeds
// the popped key.
func (t *Timeline) lift(r record.Ref, stamp int64) record.Ref {
	if r.Key().Compare(t.popped) > 0 {
		return r
	}
	r.Due = max(r.Due, stamp)
	if r.Key().Compare(t.popped) <= 0 {
		r.Due = t.popped.Due + 1
	}
	return r
}

// PopDue hands out the references due at stamp, in key order, at most limit,
// and forgets them. The pointer holds during the call of fn only.
func (t *Timeline) PopDue(stamp int64, limit int, fn func(*record.Ref)) int {
	t.live.turn(stamp)
	if t.frozen != nil {
		t.frozen.turn(stamp)
	}
	n := 0
	for n < limit {
		first, second := t.heads()
		if first.source == nil || first.key.Due > stamp {
			break
		}
		n += t.drain(first.source, second, stamp, limit-n, fn)
	}
	return n
}

// drain pops from one source while it stays ahead of all others.
func (t *Timeline) drain(s source, until record.Key, stamp int64, limit int, fn func(*record.Ref)) int {
	for n := 0; ; n++ {
		r := s.head(t)
		if r == nil || n == limit || r.Due > stamp {
			return n
		}
		if k := r.Key(); k.Compare(until) > 0 {
			return n
		}
		t.out = *r
		s.advance()
		t.popped = t.out.Key()
		t.waiting--
		t.levels[t.out.Level].Waiting--
		t.levels[t.out.Level].Delivered++
		fn(&t.out)
	}
}

// Peek is like [Timeline.Next] for readers that hold only a read lock: it
// changes nothing.
func (t *Timeline) Peek() (int64, bool) { return t.peeked, t.peeked != math.MaxInt64 }

// Next is the due of the first reference alive, and false when none waits. It
// forgets dead references on its way.
func (t *Timeline) Next() (int64, bool) {
	first, _ := t.heads()
	due, ok := int64(math.MaxInt64), false
	if first.source != nil {
		due, ok = first.key.Due, true
	}
	if d, found := t.live.wheelNext(t); found && d < due {
		due, ok = d, true
	}
	if t.frozen != nil {
		if d, found := t.frozen.wheelNext(t); found && d < due {
			due, ok = d, true
		}
	}
	t.peeked = due
	return due, ok
}

// Err is the first error of reading the index; the state machine stops on it.
func (t *Timeline) Err() error {
	return t.stored.err
}

// A source yields references in key order. head skips what is not alive and
// returns nil at the end; the pointer holds until the next call.
type source interface {
	head(t *Timeline) *record.Ref
	advance()
}

type headed struct {
	source source
	key    record.Key
}

// maxKey stands above every key.
var maxKey = record.Key{Due: math.MaxInt64, ID: math.MaxUint64, Kind: math.MaxUint8, Queue: math.MaxUint32}

// heads finds the source with the smallest head, and the smallest key among
// the others: the first may be drained up to it without asking again.
func (t *Timeline) heads() (first headed, second record.Key) {
	second = maxKey
	look := func(s source) {
		r := s.head(t)
		if r == nil {
			return
		}
		k := r.Key()
		switch {
		case first.source == nil:
			first = headed{s, k}
		case k.Compare(first.key) < 0:
			second, first = first.key, headed{s, k}
		case k.Compare(second) < 0:
			second = k
		}
	}
	t.live.each(look)
	if t.frozen != nil {
		t.frozen.each(look)
	}
	look(&t.stored)
	return first, second
}

// Rebase follows a clock that was set back to stamp by a batch at position.
// What was delivered stays delivered; new references count from the new now.
// Until the next cut is installed the old popped key stays the floor of the
// index, where delivered references still stand; that cut deletes them.
func (t *Timeline) Rebase(stamp int64, position record.ID) {
	old := t.popped
	if old.Due <= stamp {
		return
	}
	t.rebases = append(t.rebases, rebase{floor: old, position: position})
	t.floor = higher(t.floor, old)
	if t.frozen != nil {
		t.floors = higher(t.floors, old)
	}
	t.live.refile(t, stamp)
	t.popped = record.Key{Due: stamp}
}

func higher(a, b record.Key) record.Key {
	if a.Compare(b) < 0 {
		return b
	}
	return a
}

// NeedsCut says that the index still holds delivered references above the
// popped key, after a rebase: a cut is wanted now.
func (t *Timeline) NeedsCut() bool { return t.floor.Compare(t.popped) > 0 }
