package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

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

// appliedVersion is the version of the applied state's value, and with it of
// everything that the index holds.
const appliedVersion = 2

// errOldIndex says that the index was written by an older version. The log of
// such a store is whole, and fills a new one.
var errOldIndex = errors.New("index of an older version")

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
	dst = binary.AppendUvarint(dst, m.operations.next)
	dst = binary.AppendUvarint(dst, uint64(m.cuts))
	return append(dst, line...)
}

// empty makes a machine to which nothing has happened, over an index.
func empty(x *index.Index, segment int64) *machine {
	m := &machine{
		topics:     newTopics(),
		queues:     queue.NewSet(x, queue.Visible()),
		parking:    newParking(x),
		groups:     group.NewSet(),
		halves:     newHalves(),
		operations: newOperations(),
		dedupe:     dedupe.New(x),
		count:      count.New(x),
		keys:       keys.New(x),
		keep:       newKeeping(segment),
		settings:   make(map[string]string),
		changed:    make(map[string]struct{}),
		rekeyed:    make(map[record.ID]struct{}),
		nextQueue:  1,
	}
	return m
}

// restore makes the machine of the newest cut in the index, or an empty one.
// segment is the size of the log's segments in bytes.
func restore(x *index.Index, segment int64) (m *machine, end log.Start, err error) {
	m = empty(x, segment)
	applied, ok, err := x.Get(nil, SpaceState, []byte{stateApplied})
	if err != nil {
		return nil, end, fmt.Errorf("read the newest cut: %w", err)
	}
	if !ok {
		m.line = timeline.New(x, 0)
		m.line.Endings(m.ended)
		return m, end, nil
	}
	end, line, err := m.decodeApplied(applied)
	if err != nil {
		return nil, end, err
	}
	if m.count, _, err = count.Restore(x); err != nil {
		return nil, end, err
	}
	if err := m.restoreSmall(x); err != nil {
		return nil, end, err
	}
	m.line, err = timeline.Restore(x, line, m.stamp)
	if err != nil {
		return nil, end, err
	}
	m.line.Endings(m.ended)
	m.line.Keep(record.ID(m.keep.from()))
	return m, end, nil
}

// ended says that there is no queue of that number any more.
func (m *machine) ended(n record.QueueNumber) bool { return m.queues.Get(n) == nil }

func (m *machine) decodeApplied(value []byte) (end log.Start, line []byte, err error) {
	if len(value) == 0 {
		return end, nil, fmt.Errorf("%w: applied state is empty", record.ErrCorrupt)
	}
	if value[0] < appliedVersion {
		return end, nil, errOldIndex
	}
	if value[0] != appliedVersion {
		return end, nil, fmt.Errorf("%w: applied state %d of the index", record.ErrVersion, value[0])
	}
	var v [10]uint64
	r := record.ReadFields(value[1:])
	for i := range v {
		v[i] = r.Uvarint()
	}
	line = r.Take(r.Left())
	end = log.Start{Index: v[0], Position: v[1], Checksum: uint32(v[2])}
	m.index, m.last, m.term, m.stamp = end.Index, v[3], v[4], int64(v[5])
	if r.Bad() || v[6] == 0 || v[6] > maxTopicNumber || v[7] > queue.MaxNumber || v[9] > 1<<32-1 || v[2] > 1<<32-1 || v[5] > 1<<63-1 {
		return end, nil, fmt.Errorf("%w: applied state %x", record.ErrCorrupt, value)
	}
	m.topics.reserve(record.TopicNumber(v[6]) - 1)
	m.nextQueue, m.operations.next, m.cuts = record.QueueNumber(v[7]), v[8], uint32(v[9])
	return end, line, nil
}

// restoreSmall reads the small state. The lots come before the queues that they
// are of, in the order of keys, and so are put off.
func (m *machine) restoreSmall(x *index.Index) error {
	var lots []keyValue
	it, err := x.NewIter(SpaceState, nil, nil)
	if err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	for it.First(); it.Valid() && err == nil; it.Next() {
		if k := it.Key(); len(k) > 0 && k[0] == stateLot {
			lots = append(lots, keyValue{append([]byte(nil), k[1:]...), append([]byte(nil), it.Value()...)})
			continue
		}
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
	if err := m.queues.RestoreDirectory(); err != nil {
		return err
	}
	if err := m.parking.set.RestoreDirectory(); err != nil {
		return err
	}
	for _, kv := range lots {
		n, err := queueOf(kv.key)
		if err == nil {
			err = m.parking.restore(n, kv.value)
		}
		if err != nil {
			return fmt.Errorf("restore state: %w", err)
		}
	}
	return nil
}

func queueOf(key []byte) (record.QueueNumber, error) {
	if len(key) != 4 {
		return 0, fmt.Errorf("%w: state key %x", record.ErrCorrupt, key)
	}
	return record.QueueNumber(binary.BigEndian.Uint32(key)), nil
}

func (m *machine) restoreOne(key, value []byte) error {
	if len(key) == 0 {
		return fmt.Errorf("%w: state without a key", record.ErrCorrupt)
	}
	rest := key[1:]
	switch key[0] {
	case stateApplied:
		return nil
	case stateKeep:
		return m.keep.restore(value)
	case stateSwept:
		return m.swept.restore(value)
	case stateGroup:
		return m.groups.RestoreGroup(value)
	case stateProgress:
		return m.groups.RestoreProgress(rest, value)
	case stateHalf:
		return m.halves.restore(rest, value)
	case stateOperation:
		return m.operations.restore(value)
	case stateTopic:
		return m.topics.restore(value)
	case stateSetting:
		if len(value) > 0 {
			m.settings[strings.Clone(string(rest))] = string(value)
		}
		return nil
	case stateQueue, stateParked:
		n, err := queueOf(rest)
		if err != nil {
			return err
		}
		if key[0] == stateParked {
			return m.parking.set.Restore(n, value)
		}
		return m.queues.Restore(n, value)
	}
	return fmt.Errorf("%w: state key %x", record.ErrVersion, key)
}
