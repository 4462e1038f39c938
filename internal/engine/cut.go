package engine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/duemq/duemq/internal/count"
	"github.com/duemq/duemq/internal/dedupe"
	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/keys"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// SpaceState is the index's space of small state; see docs/formats/index.md.
const SpaceState index.Space = 's'

// Keys of the small state begin with these.
const (
	stateApplied   = 'a'
	stateGroup     = 'g'
	stateHalf      = 'h'
	stateKeep      = 'k'
	stateLot       = 'l'
	stateSwept     = 'n'
	stateOperation = 'o'
	stateProgress  = 'p'
	stateQueue     = 'q'
	stateTopic     = 't'
	stateParked    = 'u'
	stateSetting   = 'x'
)

type keyValue struct{ key, value []byte } // without a value the key is deleted

// exciseEvery is after how many cuts what was delivered before the last one is
// removed from the index. It is only garbage by then: readers begin at the head.
const exciseEvery = 16

// A frozenCut is a consistent state between two batches, on its way to the
// index. Nothing in it changes any more except what the timeline goes on
// delivering.
type frozenCut struct {
	number uint32
	end    log.Start
	stamp  int64
	high   int64

	line    *timeline.Frozen
	queues  *queue.Frozen
	parked  *queue.Frozen
	groups  *group.Frozen
	count   *count.Frozen
	keys    *keys.Frozen
	dedupe  *dedupe.Frozen
	topics  frozenTopics
	small   []keyValue // in key order, as one table wants it
	carrier carrier

	settings   map[string]struct{}
	lots       map[record.QueueNumber]struct{}
	halves     map[record.ID]struct{}
	operations map[uint64]struct{}
}

// freeze takes a cut of the machine. The caller holds the engine's lock; it
// costs a pointer swap for what waits and what is visible, and the encoding of
// the small state that changed. end is the place after the last batch.
func (m *machine) freeze(end log.Start) *frozenCut {
	m.cuts++
	f := &frozenCut{
		number: m.cuts, end: end, stamp: m.stamp, high: m.keep.high,
		carrier:  m.carrier(), // before the line is frozen: it looks for what is next
		queues:   m.queues.Freeze(m.cuts, m.keep.trim),
		parked:   m.parking.set.Freeze(m.cuts, m.parking.trim(m.stamp)),
		line:     m.line.Freeze(m.stamp),
		groups:   m.groups.Freeze(),
		count:    m.count.Freeze(m.line.Popped().Due),
		keys:     m.keys.Freeze(),
		dedupe:   m.dedupe.Freeze(),
		topics:   m.topics.freeze(),
		settings: m.changed,
	}
	m.changed = make(map[string]struct{})
	m.freezeSmall(f)
	return f
}

// freezeSmall encodes the small state.
func (m *machine) freezeSmall(f *frozenCut) {
	add := func(prefix byte, key, value []byte) {
		f.small = append(f.small, keyValue{append([]byte{prefix}, key...), value})
	}
	add(stateApplied, nil, m.appendApplied(nil, f.end, f.line.State()))
	add(stateKeep, nil, m.keep.append(nil))
	for _, s := range f.groups.Groups {
		add(stateGroup, s.Key, s.Value)
	}
	for _, s := range f.groups.Progress {
		add(stateProgress, s.Key, s.Value)
	}
	for n, value := range f.queues.States() {
		f.small = append(f.small, keyValue{number32(stateQueue, uint32(n)), value})
	}
	for n, value := range f.parked.States() {
		f.small = append(f.small, keyValue{number32(stateParked, uint32(n)), value})
	}
	for n := range f.settings {
		add(stateSetting, []byte(n), []byte(m.settings[n]))
	}
	var states []keyValue
	f.small = append(f.small, f.topics.states...)
	states, f.lots = m.parking.freeze()
	f.small = append(f.small, states...)
	states, f.halves = m.halves.freeze()
	f.small = append(f.small, states...)
	states, f.operations = m.operations.freeze()
	f.small = append(f.small, states...)
}

// write writes the cut and installs it; it is durable on return. It may run
// beside the machine, of which waits asks. The log is on disk up to the cut's end.
func (f *frozenCut) write(x *index.Index, l segments, waits dedupe.Waits) error {
	c := x.NewCut()
	if err := f.fill(c, x, l, waits); err != nil {
		c.Abort()
		return err
	}
	if err := c.Install(); err != nil {
		return fmt.Errorf("cut %d: %w", f.number, err)
	}
	return nil
}

// clean takes what nobody reads any more out of the index, now and then. The
// cut is durable already; what cannot be cleaned now is so later.
func (f *frozenCut) clean(x *index.Index) error {
	if f.number%exciseEvery != 0 {
		return nil
	}
	return errors.Join(f.line.Excise(x), f.queues.Excise(x), f.parked.Excise(x), f.count.Excise(x))
}

func (f *frozenCut) fill(c *index.Cut, x *index.Index, l segments, waits dedupe.Waits) error {
	if err := f.carrier.write(c, x, l, f); err != nil {
		return err
	}
	for _, write := range []func(*index.Cut) error{f.line.Write, f.queues.Write, f.parked.Write, f.count.Write} {
		if err := write(c); err != nil {
			return err
		}
	}
	if err := f.keys.Write(c, f.carrier.keys); err != nil {
		return err
	}
	if err := f.dedupe.Write(c, f.high, waits); err != nil {
		return err
	}
	return f.writeSmall(c)
}

func (f *frozenCut) writeSmall(c *index.Cut) error {
	f.small = append(f.small, keyValue{[]byte{stateSwept}, f.carrier.append(nil)})
	slices.SortFunc(f.small, func(a, b keyValue) int { return bytes.Compare(a.key, b.key) })
	for _, kv := range f.small {
		var err error
		if kv.value == nil {
			err = c.Delete(SpaceState, kv.key)
		} else {
			err = c.Set(SpaceState, kv.key, kv.value)
		}
		if err != nil {
			return fmt.Errorf("cut state: %w", err)
		}
	}
	return nil
}

// install has the index take over from a cut that is durable. It returns the
// timeline's old iterator for the caller to close. The caller holds the lock.
func (m *machine) install(f *frozenCut, it *index.Iter) *index.Iter {
	m.queues.Install(f.queues)
	m.parking.set.Install(f.parked)
	m.count.Install(f.count)
	m.keys.Install(f.keys)
	m.dedupe.Install(f.dedupe)
	m.swept = f.carrier.swept
	return m.line.Install(f.line, it)
}

// abandon takes a cut back that could not be written. The caller holds the lock.
func (m *machine) abandon(f *frozenCut) {
	m.queues.Abandon(f.queues)
	m.parking.set.Abandon(f.parked)
	m.groups.Abandon(f.groups)
	m.line.Abandon(f.line)
	m.count.Abandon(f.count)
	m.keys.Abandon(f.keys)
	m.dedupe.Abandon(f.dedupe)
	m.topics.abandon(&f.topics)
	m.carries = append(f.carrier.ranges, m.carries...)
	for id := range f.carrier.rekeyed {
		m.rekeyed[id] = struct{}{}
	}
	again(m.changed, f.settings)
	again(m.parking.dirty, f.lots)
	again(m.halves.dirty, f.halves)
	again(m.operations.dirty, f.operations)
}

// again marks what changed before a cut that failed.
func again[K comparable](dirty, frozen map[K]struct{}) {
	for k := range frozen {
		dirty[k] = struct{}{}
	}
}
