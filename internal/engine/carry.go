package engine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/keys"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// The index's spaces of carried messages; see docs/formats/index.md. Bytes lie
// in the order in which they fall due, so that what comes together is read
// together; the directory says under which due those of an id lie.
const (
	SpaceBodies   index.Space = 'b'
	SpaceBodyDues index.Space = 'i'
)

const (
	bodyKeyBytes  = 16
	sweepMessages = 50_000 // carried messages that one cut forgets at most
)

// swept is how far this machine's own cleaning has come. It is no part of the
// state: what it cleans can be seen by nobody.
type swept struct {
	outcomes uint64 // position of the log before which outcomes were forgotten
	damaged  []damage
}

// A damage is a segment that keeps a message which could not be carried, and so
// is kept itself.
type damage struct {
	position uint64
	until    int64 // Unix ms: once this has been trimmed nobody asks for the message any more
}

func (s *swept) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, s.outcomes)
	dst = binary.AppendUvarint(dst, uint64(len(s.damaged)))
	for _, d := range s.damaged {
		dst = binary.AppendUvarint(dst, d.position)
		dst = binary.AppendUvarint(dst, uint64(d.until))
	}
	return dst
}

func (s *swept) restore(value []byte) error {
	r := record.ReadFields(value)
	s.outcomes = r.Uvarint()
	for range min(r.Uvarint(), uint64(r.Left())) {
		s.damaged = append(s.damaged, damage{r.Uvarint(), int64(r.Uvarint())})
	}
	if !r.Done() {
		return fmt.Errorf("%w: how far was swept: %x", record.ErrCorrupt, value)
	}
	return nil
}

// pinned is the first position that must stay although nothing in the state
// needs it.
func (s *swept) pinned(upTo uint64) uint64 {
	for _, d := range s.damaged {
		upTo = min(upTo, d.position)
	}
	return upTo
}

// A stretch of the log is to be carried, of which it is remembered what waited
// when that was decided: from then on nothing else keeps its bytes, also those of
// what becomes visible before the cut.
type stretch struct {
	from, to uint64
	head     timeline.Head
	lots     map[record.QueueNumber]lot
}

// A carrier is the part of a cut that moves the bytes of what still waits out
// of old segments, and forgets those that nobody can ask for any more.
type carrier struct {
	swept

	ranges  []stretch
	rekeyed map[record.ID]struct{} // carried messages that were moved since the last cut
	carried record.ID
	from    uint64 // the log is kept from here on
	ahead   int64  // no carried message waits for a due before
	hours   map[int64]int64
	trim    int64
	stamp   int64

	queues []bool // by number: lives
	lots   map[record.QueueNumber]lot

	keys   []keys.Change
	report []error // what could not be carried
	moves  int     // messages carried
	bugs   Bugs
}

// carrier notes what the next cut has to carry and to forget.
func (m *machine) carrier() carrier {
	c := carrier{
		swept: m.swept, ranges: m.carries, rekeyed: m.rekeyed, carried: m.keep.carried,
		from: m.keep.from(), trim: m.keep.trim, stamp: m.stamp, bugs: m.bugs,
		lots: m.parking.copy(),
	}
	c.damaged = slices.DeleteFunc(slices.Clone(c.damaged), func(d damage) bool { return d.until < c.trim })
	m.carries, m.rekeyed = nil, make(map[record.ID]struct{})
	c.ahead = min(m.keep.ahead, m.stamp, m.parking.oldest())
	if due, ok := m.line.Next(); ok {
		c.ahead = min(c.ahead, due)
	}
	c.hours = maps.Clone(m.keep.hours)
	c.queues = m.queues.Living()
	return c
}

func (c *carrier) lives(n record.QueueNumber) bool { return int(n) < len(c.queues) && c.queues[n] }

// within says whether a reference may be held back in one of some lots. It may
// say so of one that was delivered in between, whose bytes are then carried in
// vain.
func within(lots map[record.QueueNumber]lot, r record.Ref) bool {
	l, ok := lots[r.Queue]
	k := r.Key()
	return ok && r.Kind == record.KindMessage && k.Compare(l.first) >= 0 && k.Compare(l.last) <= 0
}

// segments is what a cut reads of the log: *log.Log, or what a test puts there.
type segments interface {
	Salvage(from, to uint64, fn func(pos uint64, b *record.Batch, err error) error) error
	ReadAt(dst []byte, pos uint64, n int) ([]byte, error)
}

// A body is a carried message: where its bytes go, and where they come from.
type body struct {
	due   int64
	id    record.ID
	size  uint32
	queue record.QueueNumber
	old   int64 // the due under which they lie in the index; 0: they lie in the log
	gone  bool
	bad   bool // cannot be read: it stays where it is
}

// write carries, re-keys and forgets.
func (c *carrier) write(cut *index.Cut, x *index.Index, l segments, f *frozenCut) error {
	var bodies []body
	for _, r := range c.ranges {
		found, err := c.collect(x, l, f.line, r)
		if err != nil {
			return err
		}
		bodies = append(bodies, found...)
		c.moves += len(found)
	}
	moved, err := c.moved(x, f.line)
	if err != nil {
		return err
	}
	gone, err := c.sweep(x, f.line, moved)
	if err != nil {
		return err
	}
	if err := c.sweepOutcomes(x, f.line); err != nil {
		return err
	}
	return c.writeBodies(cut, x, l, slices.Concat(bodies, moved, gone))
}

// collect finds what waits in a stretch of the log, or did when it was to be
// carried, reading it once from end to end beside the outcomes of what was moved
// or cancelled.
func (c *carrier) collect(x *index.Index, l segments, line *timeline.Frozen, r stretch) ([]body, error) {
	fates := make(map[record.ID]timeline.Outcome)
	err := line.Fates(x, record.ID(r.from), record.ID(r.to), func(f timeline.Fate) error {
		if f.Ref.Kind == record.KindMessage {
			fates[f.Ref.ID] = f.Outcome
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var bodies []body
	var m record.Message
	err = l.Salvage(r.from, r.to, func(pos uint64, b *record.Batch, damaged error) error {
		if damaged != nil {
			c.pin(pos, damaged)
		}
		if b == nil || b.Type != record.EntryCommands {
			return nil
		}
		data := pos + log.LocalBytes + uint64(b.DataOffset())
		for at := 0; at < len(b.Data); {
			cmd, err := record.NextCommand(b.Data, at)
			if err != nil {
				c.pin(pos, err)
				return nil
			}
			id := record.ID(data + uint64(at))
			at += cmd.Size
			if !cmd.HoldsMessage() {
				continue
			}
			if damaged != nil && record.MessageOf(&cmd, &m) != nil {
				continue // pinned above
			}
			ref, err := sentAs(&cmd, id, b.Stamp)
			if err != nil {
				c.pin(pos, err)
				continue
			}
			fate, moved := fates[id]
			due, waits := c.judge(line, ref, fate, moved)
			if !waits {
				due, waits = c.waited(&r, ref, fate, moved)
			}
			if waits && (!moved || !c.bugs.CarryLosesMoved) {
				bodies = append(bodies, body{due: due, id: id, size: uint32(cmd.Size), queue: ref.Queue})
			}
		}
		return nil
	})
	return bodies, err
}

// judge says whether a message waited when the cut was taken.
func (c *carrier) judge(line *timeline.Frozen, r record.Ref, fate timeline.Outcome, moved bool) (int64, bool) {
	if !c.lives(r.Queue) {
		return 0, false
	}
	due, waits := line.Judge(r, fate, moved)
	if waits || due == 0 {
		return due, waits
	}
	r.Due = due
	return due, within(c.lots, r)
}

// waited says whether a message that does not wait any more did when its stretch
// of the log was to be carried.
func (c *carrier) waited(s *stretch, r record.Ref, fate timeline.Outcome, moved bool) (int64, bool) {
	if !c.lives(r.Queue) {
		return 0, false
	}
	due, waited := s.head.Waited(r, fate, moved)
	if waited || due == 0 {
		return due, waited
	}
	r.Due = due
	return due, within(s.lots, r)
}

// sentAs is the reference with which a message was sent; its due is 0 if it did
// not wait by then. stamp is its batch's.
func sentAs(c *record.Command, id record.ID, stamp int64) (record.Ref, error) {
	var p record.Peek
	var err error
	if c.Type == record.CommandPost {
		var t record.Terms
		if p, err = record.PeekPost(c, id, &t); t.Half {
			p.Ref.Due = 0
		}
	} else {
		p, err = record.PeekSend(c, id)
	}
	p.Ref.Kind = record.KindMessage
	if p.Ref.Due <= stamp {
		p.Ref.Due = 0
	}
	return p.Ref, err
}

// pin keeps the segment of something that could not be carried.
func (c *carrier) pin(pos uint64, err error) {
	c.report = append(c.report, err)
	if !slices.ContainsFunc(c.damaged, func(d damage) bool { return d.position == pos }) {
		c.damaged = append(c.damaged, damage{pos, c.stamp + pinMs})
	}
}

// pinMs is how long a damaged segment is kept: nothing waits longer than a year.
const pinMs = 366 * 24 * hourMs

// moved finds the carried messages whose bytes lie under a due that is theirs no
// more, also those that have become visible under the new one: bytes are kept by
// the hour under which they lie.
func (c *carrier) moved(x *index.Index, line *timeline.Frozen) (bodies []body, err error) {
	for id := range c.rekeyed {
		old, ok, err := bodyDue(x, id)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue // carried by this cut, or gone
		}
		err = line.Fates(x, id, id+1, func(f timeline.Fate) error {
			if f.Ref.Kind != record.KindMessage || f.State == timeline.Cancelled || f.Due == old.due || !c.lives(f.Ref.Queue) {
				return nil
			}
			bodies = append(bodies, body{due: f.Due, id: id, size: old.size, queue: f.Ref.Queue, old: old.due})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return bodies, nil
}

// A bodyPlace is where the bytes of a carried message lie.
type bodyPlace struct {
	due  int64
	size uint32
}

func bodyDue(x *index.Index, id record.ID) (bodyPlace, bool, error) {
	v, ok, err := x.Get(nil, SpaceBodyDues, binary.BigEndian.AppendUint64(nil, uint64(id)))
	if err != nil || !ok {
		return bodyPlace{}, false, err
	}
	r := record.ReadFields(v)
	p := bodyPlace{due: int64(r.Uvarint()), size: uint32(r.Uvarint())}
	if !r.Done() {
		return bodyPlace{}, false, fmt.Errorf("%w: place of carried message %v: %x", record.ErrCorrupt, id, v)
	}
	return p, true, nil
}

func appendBodyKey(dst []byte, due int64, id record.ID) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, uint64(due)), uint64(id))
}

func decodeBodyKey(key []byte) (due int64, id record.ID, err error) {
	if len(key) != bodyKeyBytes {
		return 0, 0, fmt.Errorf("%w: key %x of a carried message", record.ErrCorrupt, key)
	}
	return int64(binary.BigEndian.Uint64(key)), record.ID(binary.BigEndian.Uint64(key[8:])), nil
}

// sweep finds the carried messages of hours that nobody can ask for any more:
// nothing waits in them, and what became visible has been trimmed. What this cut
// moves elsewhere is not theirs any more.
func (c *carrier) sweep(x *index.Index, line *timeline.Frozen, moved []body) (gone []body, err error) {
	elsewhere := make(map[record.ID]struct{}, len(moved))
	for i := range moved {
		elsewhere[moved[i].id] = struct{}{}
	}
	it, err := x.NewIter(SpaceBodies, nil, appendBodyKey(nil, c.ahead, 0))
	if err != nil {
		return nil, fmt.Errorf("sweep carried messages: %w", err)
	}
	var m record.Message
	for ok := it.First(); ok && err == nil && len(gone) < sweepMessages; {
		var due int64
		var id record.ID
		if due, id, err = decodeBodyKey(it.Key()); err != nil {
			break
		}
		h := due / hourMs
		if left, held := c.hours[h]; (held && left >= c.trim) || (h+1)*hourMs > c.ahead {
			ok = it.SeekGE(appendBodyKey(nil, (h+1)*hourMs, 0))
			continue
		}
		if _, moves := elsewhere[id]; moves {
			ok = it.Next()
			continue
		}
		b := body{due: due, id: id, gone: true}
		if record.DecodeMessageAt(it.Value(), &m) == nil {
			b.queue = m.Queue
			c.forgetKeys(&m, id)
			if uint64(id) < c.from { // else its cancel or move still counts; see sweepOutcomes
				line.ForgetFate(record.Ref{ID: id, Kind: record.KindMessage, Queue: m.Queue})
			}
		}
		gone = append(gone, b)
		ok = it.Next()
	}
	if err == nil {
		err = it.Error()
	}
	return gone, errors.Join(err, it.Close())
}

func (c *carrier) forgetKeys(m *record.Message, id record.ID) {
	for _, h := range keys.Sums(nil, []byte(m.Key)) {
		c.keys = append(c.keys, keys.Change{Hash: h, ID: id, Queue: m.Queue, Gone: true})
	}
}

// sweepOutcomes forgets what became of messages in the part of the log that is
// given up, unless they wait still. Of one that waits the outcome says for when.
func (c *carrier) sweepOutcomes(x *index.Index, line *timeline.Frozen) error {
	if c.outcomes >= c.from {
		return nil
	}
	err := line.Fates(x, record.ID(c.outcomes), record.ID(c.from), func(f timeline.Fate) error {
		if f.Ref.Kind == record.KindMessage {
			if _, waits := c.judge(line, f.Ref, f.Outcome, true); waits {
				return nil
			}
		}
		line.ForgetFate(f.Ref)
		return nil
	})
	c.outcomes = c.from
	return err
}

// A bodyChange is one row of the table of bytes.
type bodyChange struct {
	*body

	due    int64
	leaves bool
}

// bodyChanges orders what is to be written. What cannot be read where it lies in
// the index is left there.
func (c *carrier) bodyChanges(x *index.Index, bodies []body) ([]bodyChange, error) {
	changes := make([]bodyChange, 0, len(bodies))
	var buf []byte
	var m record.Message
	for i := range bodies {
		b := &bodies[i]
		if b.old != 0 {
			var err error
			if buf, err = b.read(buf[:0], x, nil, &m); errors.Is(err, record.ErrCorrupt) {
				b.bad = true
				c.report = append(c.report, fmt.Errorf("message %v: %w", b.id, err))
				continue
			} else if err != nil {
				return nil, err
			}
			changes = append(changes, bodyChange{b, b.old, true})
		}
		changes = append(changes, bodyChange{b, b.due, b.gone})
	}
	slices.SortFunc(changes, func(a, b bodyChange) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id)) })
	return changes, nil
}

// writeBodies writes the tables of bytes and places.
func (c *carrier) writeBodies(cut *index.Cut, x *index.Index, l segments, bodies []body) error {
	changes, err := c.bodyChanges(x, bodies)
	if err != nil {
		return err
	}
	var key, value []byte
	var m record.Message
	for _, ch := range changes {
		key = appendBodyKey(key[:0], ch.due, ch.id)
		if ch.leaves {
			if err := cut.Delete(SpaceBodies, key); err != nil {
				return err
			}
			continue
		}
		if value, err = ch.read(value[:0], x, l, &m); err != nil {
			if !errors.Is(err, record.ErrCorrupt) {
				return err
			}
			ch.bad = true
			c.pin(uint64(ch.id), fmt.Errorf("message %v: %w", ch.id, err))
			continue
		}
		for _, h := range keys.Sums(nil, []byte(m.Key)) {
			c.keys = append(c.keys, keys.Change{Hash: h, ID: ch.id, Queue: m.Queue})
		}
		if err := cut.Set(SpaceBodies, key, value); err != nil {
			return err
		}
	}
	return writePlaces(cut, bodies)
}

// read reads a message's bytes and proves them.
func (b *body) read(dst []byte, x *index.Index, l segments, m *record.Message) ([]byte, error) {
	var err error
	if b.old == 0 {
		dst, err = l.ReadAt(dst, uint64(b.id), int(b.size))
	} else {
		var ok bool
		dst, ok, err = x.Get(dst, SpaceBodies, appendBodyKey(nil, b.old, b.id))
		if err == nil && !ok {
			err = fmt.Errorf("%w: no bytes under due %d", record.ErrCorrupt, b.old)
		}
	}
	if err != nil {
		return dst, err
	}
	return dst, record.DecodeMessageAt(dst, m)
}

// writePlaces writes where the bytes lie, in the order of ids.
func writePlaces(cut *index.Cut, bodies []body) error {
	slices.SortFunc(bodies, func(a, b body) int { return cmp.Compare(a.id, b.id) })
	var key, value []byte
	for i := range bodies {
		b := &bodies[i]
		if b.bad {
			continue
		}
		key = binary.BigEndian.AppendUint64(key[:0], uint64(b.id))
		if b.gone {
			if err := cut.Delete(SpaceBodyDues, key); err != nil {
				return err
			}
			continue
		}
		value = binary.AppendUvarint(value[:0], uint64(b.due))
		value = binary.AppendUvarint(value, uint64(b.size))
		if err := cut.Set(SpaceBodyDues, key, value); err != nil {
			return err
		}
	}
	return nil
}
