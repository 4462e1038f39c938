package engine

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"

	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
)

// parking holds back what is due but may not become visible yet: its topic is
// paused, or has a rate that is used up. It keeps a list for each queue, in the
// order of falling due. The lists are queues of a second set, so that they are
// bounded in memory as the visible ones are.
type parking struct {
	set   *queue.Set
	lots  map[record.QueueNumber]*lot // those that hold something
	order []*lot                      // by number
	dirty map[record.QueueNumber]struct{}
}

// A lot is the list of one queue.
type lot struct {
	q     *queue.Queue
	head  record.Offset
	first record.Key // of the entry at head
	last  record.Key
	gone  *group.Progress // entries that were cancelled or moved away and will be passed over

	ahead []queue.Entry // read from the index, from head on
}

func newParking(src queue.Source) *parking {
	return &parking{
		set:   queue.NewSet(src, queue.Parked()),
		lots:  make(map[record.QueueNumber]*lot),
		dirty: make(map[record.QueueNumber]struct{}),
	}
}

func entryKey(n record.QueueNumber, e *queue.Entry) record.Key {
	return record.Key{Due: e.Due, ID: e.ID, Kind: record.KindMessage, Queue: n}
}

// park appends a reference and answers how it waits: its due is lifted above
// what is held back already, where a clock that was set back would break the
// order.
func (p *parking) park(r record.Ref, stamp int64) record.Ref {
	l := p.lots[r.Queue]
	if l == nil {
		q := p.set.Get(r.Queue)
		if q == nil {
			q = p.set.Add(r.Queue, 0)
		}
		l = &lot{q: q, head: q.Next(), last: record.Key{Due: math.MinInt64}, gone: group.StartAt(q.Next())}
		p.lots[r.Queue] = l
		i, _ := slices.BinarySearchFunc(p.order, r.Queue, func(l *lot, n record.QueueNumber) int { return int(int64(l.q.Number) - int64(n)) })
		p.order = slices.Insert(p.order, i, l)
	}
	r.Kind = record.KindMessage
	if r.Key().Compare(l.last) <= 0 {
		r.Due = l.last.Due + 1
	}
	l.last = r.Key()
	if l.head == l.q.Next() {
		l.first = l.last
	}
	p.set.Append(l.q, queue.Entry{ID: r.ID, Due: r.Due, Size: r.Size, Tag: r.Tag}, stamp)
	p.dirty[r.Queue] = struct{}{}
	return r
}

// peek is the entry at the head of a lot.
func (p *parking) peek(l *lot) (*queue.Entry, error) {
	if len(l.ahead) == 0 {
		var err error
		if l.ahead, err = p.read(l.ahead, l, l.head, 256); err != nil {
			return nil, err
		}
	}
	return &l.ahead[0], nil
}

// read reads at least one entry.
func (p *parking) read(dst []queue.Entry, l *lot, from record.Offset, limit int) ([]queue.Entry, error) {
	got, ok := l.q.Memory(dst[:0], from, limit)
	if !ok {
		place, stored := l.q.Place(from)
		if !stored {
			return dst, fmt.Errorf("%w: parked queue %d has no entry at offset %d", record.ErrCorrupt, l.q.Number, from)
		}
		var err error
		if got, err = p.set.Read(dst[:0], place, from, limit); err != nil {
			return dst, err
		}
	}
	if len(got) == 0 {
		return dst, fmt.Errorf("%w: parked queue %d ends before offset %d", record.ErrCorrupt, l.q.Number, from)
	}
	return got, nil
}

// next goes on to the entry behind the head that has not been taken away. A lot
// that holds nothing any more is forgotten.
func (p *parking) next(l *lot) error {
	p.dirty[l.q.Number] = struct{}{}
	for {
		if l.head++; len(l.ahead) > 0 {
			l.ahead = l.ahead[1:]
		}
		if l.head == l.q.Next() {
			p.forget(l)
			return nil
		}
		if !l.gone.Finished(l.head) {
			break
		}
	}
	e, err := p.peek(l)
	if err == nil {
		l.first = entryKey(l.q.Number, e)
	}
	return err
}

func (p *parking) forget(l *lot) {
	delete(p.lots, l.q.Number)
	p.order = slices.DeleteFunc(p.order, func(o *lot) bool { return o == l })
}

// end forgets a queue whose number ended.
func (p *parking) end(n record.QueueNumber) {
	if l := p.lots[n]; l != nil {
		p.forget(l)
		p.dirty[n] = struct{}{}
	}
	if p.set.Get(n) != nil {
		p.set.End(n)
	}
}

// find looks for the place of a reference that waits for its due. Readers may
// ask at once with the applier at rest.
func (p *parking) find(r record.Ref) (record.Offset, bool, error) {
	l := p.lots[r.Queue]
	if l == nil || r.Kind != record.KindMessage {
		return 0, false, nil
	}
	k := r.Key()
	if k.Compare(l.first) < 0 || k.Compare(l.last) > 0 {
		return 0, false, nil
	}
	at, exact, err := p.search(l, k)
	return at, exact && !l.gone.Finished(at), err
}

// remove has an entry passed over that a reference stands for.
func (p *parking) remove(n record.QueueNumber, at record.Offset) error {
	l := p.lots[n]
	p.dirty[n] = struct{}{}
	l.gone.Ack([]record.OffsetRange{{From: at, To: at + 1}}, l.q.Next())
	if at != l.head {
		return nil
	}
	return p.next(l)
}

// search finds a key by halving.
func (p *parking) search(l *lot, k record.Key) (at record.Offset, exact bool, err error) {
	var buf []queue.Entry
	n := sort.Search(int(l.q.Next()-l.head), func(i int) bool {
		if err != nil {
			return true
		}
		if buf, err = p.read(buf, l, l.head+record.Offset(i), 1); err != nil {
			return true
		}
		c := entryKey(l.q.Number, &buf[0]).Compare(k)
		exact = exact || c == 0
		return c >= 0
	})
	return l.head + record.Offset(n), exact && err == nil, err
}

// oldest is the first due that is held back, MaxInt64 if nothing is.
func (p *parking) oldest() int64 {
	due := int64(math.MaxInt64)
	for _, l := range p.order {
		due = min(due, l.first.Due)
	}
	return due
}

// copy is the lots as they are now.
func (p *parking) copy() map[record.QueueNumber]lot {
	lots := make(map[record.QueueNumber]lot, len(p.lots))
	for n, l := range p.lots {
		lots[n] = *l
	}
	return lots
}

// trim is the stamp before which no entry of the set is needed.
func (p *parking) trim(stamp int64) int64 {
	at := stamp + 1
	for _, l := range p.order {
		e, err := p.peek(l)
		if err != nil {
			return 0
		}
		at = min(at, e.VisibleAt)
	}
	return at
}

// lotState is the version of a lot's value.
const lotState = 1

func (l *lot) append(dst []byte) []byte {
	dst = append(dst, lotState)
	dst = binary.AppendUvarint(dst, uint64(l.head))
	for _, k := range []record.Key{l.first, l.last} {
		dst = binary.AppendVarint(dst, k.Due)
		dst = binary.AppendUvarint(dst, uint64(k.ID))
	}
	var gone []record.OffsetRange // behind the head, which is never gone
	for _, r := range l.gone.Acked {
		if r.To > l.head {
			gone = append(gone, r)
		}
	}
	return record.AppendAck(dst, &record.Ack{Ranges: gone})
}

// freeze gives the lots that changed; an empty value is one that holds nothing.
func (p *parking) freeze() (states []keyValue, dirty map[record.QueueNumber]struct{}) {
	for n := range p.dirty {
		var value []byte
		if l := p.lots[n]; l != nil {
			value = l.append(nil)
		}
		states = append(states, keyValue{number32(stateLot, uint32(n)), value})
	}
	dirty, p.dirty = p.dirty, make(map[record.QueueNumber]struct{})
	return states, dirty
}

func (p *parking) restore(n record.QueueNumber, value []byte) error {
	q := p.set.Get(n)
	if len(value) == 0 || value[0] != lotState || q == nil {
		return fmt.Errorf("%w: parked queue %d", record.ErrVersion, n)
	}
	r := record.ReadFields(value[1:])
	l := &lot{q: q, head: record.Offset(r.Uvarint())}
	for _, k := range []*record.Key{&l.first, &l.last} {
		*k = record.Key{Due: r.Varint(), ID: record.ID(r.Uvarint()), Kind: record.KindMessage, Queue: n}
	}
	c, err := record.NextCommand(r.Take(r.Left()), 0)
	var gone record.Ack
	if err == nil {
		err = record.DecodeAck(c.Payload, &gone)
	}
	if err != nil || r.Bad() || l.head >= q.Next() {
		return fmt.Errorf("%w: parked queue %d: %x", record.ErrCorrupt, n, value)
	}
	l.gone = group.StartAt(l.head)
	l.gone.Ack(gone.Ranges, q.Next())
	p.lots[n] = l
	p.order = append(p.order, l) // in the order of numbers, as the keys are
	return nil
}

func (p *parking) hash(w io.Writer) error {
	for _, l := range p.order {
		fmt.Fprintf(w, "parked %d %x\n", l.q.Number, l.append(nil))
		var buf []queue.Entry
		for o := l.head; o < l.q.Next(); o += record.Offset(len(buf)) {
			var err error
			if buf, err = p.read(buf, l, o, 4096); err != nil {
				return err
			}
			if err := binary.Write(w, binary.BigEndian, buf); err != nil {
				return fmt.Errorf("hash: %w", err)
			}
		}
	}
	return nil
}
