package engine

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// SpaceState is the index's space of small state; see docs/formats/index.md.
const SpaceState index.Space = 's'

// Keys of the small state begin with these.
const (
	stateApplied  = 'a'
	stateGroup    = 'g'
	stateProgress = 'p'
	stateQueue    = 'q'
	stateTopic    = 't'
	stateSetting  = 'x'
)

type keyValue struct{ key, value []byte } // without a value the key is deleted

// exciseEvery is after how many cuts what was delivered before the last one is
// removed from the index. It is only garbage by then: readers begin at the head.
const exciseEvery = 16

// A frozenCut is a consistent state between two batches, on its way to the
// index. Nothing in it changes any more except what the timeline goes on
// delivering.
type frozenCut struct {
	number   uint32
	end      log.Start
	line     *timeline.Frozen
	queues   *queue.Frozen
	groups   *group.Frozen
	topics   []*Topic
	settings map[string]struct{}
	small    []keyValue // in key order, as one table wants it
}

// freeze takes a cut of the machine. The caller holds the engine's lock; it
// costs a pointer swap for what waits and what is visible, and the encoding of
// the small state that changed. end is the place after the last batch.
func (m *machine) freeze(end log.Start) *frozenCut {
	m.cuts++
	f := &frozenCut{
		number:   m.cuts,
		end:      end,
		line:     m.line.Freeze(m.stamp),
		queues:   m.queues.Freeze(m.cuts, 0),
		groups:   m.groups.Freeze(),
		settings: m.changed,
	}
	m.changed = make(map[string]struct{})
	f.small = append(f.small, keyValue{[]byte{stateApplied}, m.appendApplied(nil, end, f.line.State())})
	for _, s := range f.groups.Groups {
		f.small = append(f.small, keyValue{slices.Concat([]byte{stateGroup}, s.Key), s.Value})
	}
	for _, s := range f.groups.Progress {
		f.small = append(f.small, keyValue{slices.Concat([]byte{stateProgress}, s.Key), s.Value})
	}
	for n, value := range f.queues.States() {
		f.small = append(f.small, keyValue{number32(stateQueue, uint32(n)), value})
	}
	states, topics := m.topics.freeze()
	f.topics = topics
	f.small = append(f.small, states...)
	for _, n := range sortedKeys(f.settings) {
		f.small = append(f.small, keyValue{append([]byte{stateSetting}, n...), []byte(m.settings[n])})
	}
	return f
}

func sortedKeys(set map[string]struct{}) []string {
	keys := make([]string, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// write writes the cut and installs it; it is durable on return. It may run
// beside the machine. The log is on disk up to the cut's end.
func (f *frozenCut) write(x *index.Index) error {
	c := x.NewCut()
	if err := f.fill(c); err != nil {
		c.Abort()
		return err
	}
	if err := c.Install(); err != nil {
		return fmt.Errorf("cut %d: %w", f.number, err)
	}
	if f.number%exciseEvery != 0 {
		return nil
	}
	if err := f.line.Excise(x); err != nil {
		return err
	}
	return f.queues.Excise(x)
}

func (f *frozenCut) fill(c *index.Cut) error {
	if err := f.line.Write(c); err != nil {
		return err
	}
	if err := f.queues.Write(c); err != nil {
		return err
	}
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
	return m.line.Install(f.line, it)
}

// abandon takes a cut back that could not be written. The caller holds the lock.
func (m *machine) abandon(f *frozenCut) {
	m.queues.Abandon(f.queues)
	m.groups.Abandon(f.groups)
	m.line.Abandon(f.line)
	for _, t := range f.topics {
		m.topics.touch(t)
	}
	for n := range f.settings {
		m.changed[n] = struct{}{}
	}
}

// appliedVersion is the version of the applied state's value.
const appliedVersion = 1

func (m *machine) appendApplied(dst []byte, end log.Start, line []byte) []byte {
	dst = append(dst, appliedVersion)
	dst = binary.AppendUvarint(dst, end.Index)
	dst = binary.AppendUvarint(dst, end.Position)
	dst = binary.AppendUvarint(dst, uint64(end.Checksum))
	dst = binary.AppendUvarint(dst, m.last)
	dst = binary.AppendUvarint(dst, m.term)
	dst = binary.AppendUvarint(dst, uint64(m.stamp))
	dst = binary.AppendUvarint(dst, uint64(m.topics.next()))
	dst = binary.AppendUvarint(dst, uint64(m.nextQueue))
	dst = binary.AppendUvarint(dst, uint64(m.cuts))
	return append(dst, line...)
}

// restore makes the machine of the newest cut in the index, or an empty one.
func restore(x *index.Index) (m *machine, end log.Start, err error) {
	m = &machine{
		topics:    newTopics(),
		queues:    queue.NewSet(x, queue.Visible()),
		groups:    group.NewSet(),
		settings:  make(map[string]string),
		changed:   make(map[string]struct{}),
		nextQueue: 1,
	}
	applied, ok, err := x.Get(nil, SpaceState, []byte{stateApplied})
	if err != nil {
		return nil, end, fmt.Errorf("read the newest cut: %w", err)
	}
	if !ok {
		m.line = timeline.New(x, 0)
		return m, end, nil
	}
	end, line, err := m.decodeApplied(applied)
	if err != nil {
		return nil, end, err
	}
	if err := m.restoreSmall(x); err != nil {
		return nil, end, err
	}
	if err := m.queues.RestoreDirectory(); err != nil {
		return nil, end, err
	}
	m.line, err = timeline.Restore(x, line, m.stamp)
	return m, end, err
}

func (m *machine) decodeApplied(value []byte) (end log.Start, line []byte, err error) {
	if len(value) == 0 {
		return end, nil, fmt.Errorf("%w: applied state is empty", record.ErrCorrupt)
	}
	if value[0] != appliedVersion {
		return end, nil, fmt.Errorf("%w: applied state %d of the index", record.ErrVersion, value[0])
	}
	var v [9]uint64
	rest := value[1:]
	for i := range v {
		x, n := binary.Uvarint(rest)
		if n <= 0 {
			return end, nil, fmt.Errorf("%w: applied state %x", record.ErrCorrupt, value)
		}
		v[i], rest = x, rest[n:]
	}
	end = log.Start{Index: v[0], Position: v[1], Checksum: uint32(v[2])}
	m.index, m.last, m.term, m.stamp = end.Index, v[3], v[4], int64(v[5])
	if v[6] == 0 || v[6] > maxTopicNumber || v[7] > 1<<32-1 || v[8] > 1<<32-1 || v[2] > 1<<32-1 || v[5] > 1<<63-1 {
		return end, nil, fmt.Errorf("%w: applied state %x", record.ErrCorrupt, value)
	}
	m.topics.reserve(record.TopicNumber(v[6]) - 1)
	m.nextQueue, m.cuts = record.QueueNumber(v[7]), uint32(v[8])
	return end, rest, nil
}

func (m *machine) restoreSmall(x *index.Index) error {
	it, err := x.NewIter(SpaceState, nil, nil)
	if err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	for it.First(); it.Valid() && err == nil; it.Next() {
		err = m.restoreOne(it.Key(), it.Value())
	}
	if err == nil {
		err = it.Error()
	}
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("restore state: %w", err)
	}
	m.topics.dirty = nil
	m.topics.each(func(t *Topic) { t.dirty = false })
	return nil
}

func (m *machine) restoreOne(key, value []byte) error {
	if len(key) == 0 {
		return fmt.Errorf("%w: state without a key", record.ErrCorrupt)
	}
	rest := key[1:]
	switch key[0] {
	case stateApplied:
		return nil
	case stateGroup:
		return m.groups.RestoreGroup(value)
	case stateProgress:
		return m.groups.RestoreProgress(rest, value)
	case stateQueue:
		if len(rest) != 4 {
			return fmt.Errorf("%w: state key %x", record.ErrCorrupt, key)
		}
		return m.queues.Restore(record.QueueNumber(binary.BigEndian.Uint32(rest)), value)
	case stateTopic:
		return m.topics.restore(value)
	case stateSetting:
		if len(value) > 0 {
			m.settings[strings.Clone(string(rest))] = string(value)
		}
		return nil
	}
	return fmt.Errorf("%w: state key %x", record.ErrVersion, key)
}
