package timeline

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// SpaceOutcomes is the index's space of outcomes: key (id, kind, queue), value
// state, due or time, and position. See docs/formats/index.md.
const SpaceOutcomes index.Space = 'o'

// A State is what became of a reference that did not simply wait and leave.
type State uint8

// The states of an outcome. Append, never renumber.
const (
	Moved     State = 1 // it waits, or waited, for another due than it was sent with
	Cancelled State = 2
	Delivered State = 3 // though its due stands above the popped key: it was held back outside
)

// An Outcome is remembered for a reference that was moved or cancelled.
type Outcome struct {
	State State
	Due   int64     // Moved: its due now. Cancelled: the due it had
	At    record.ID // position of the batch that decided
	Stamp int64     // Cancelled: when, Unix ms
}

// A name is what a reference is called whatever its due becomes.
type name struct {
	id    record.ID
	kind  record.Kind
	queue record.QueueNumber
}

func nameOf(r record.Ref) name { return name{r.ID, r.Kind, r.Queue} }

func (n name) compare(m name) int {
	a, b := n.bytes(), m.bytes()
	return bytes.Compare(a[:], b[:])
}

func (n name) bytes() [13]byte {
	var b [13]byte
	binary.BigEndian.PutUint64(b[:], uint64(n.id))
	b[8] = byte(n.kind)
	binary.BigEndian.PutUint32(b[9:], uint32(n.queue))
	return b
}

func decodeName(key []byte) (name, error) {
	if len(key) != 13 {
		return name{}, fmt.Errorf("%w: outcome key %x in the index", record.ErrCorrupt, key)
	}
	return name{
		id:    record.ID(binary.BigEndian.Uint64(key)),
		kind:  record.Kind(key[8]),
		queue: record.QueueNumber(binary.BigEndian.Uint32(key[9:])),
	}, nil
}

// outcomes are kept in memory since the last cut and in the index before it.
type outcomes struct {
	src    Source
	live   map[name]Outcome
	frozen map[name]Outcome
}

func newOutcomes(src Source) *outcomes {
	return &outcomes{src: src, live: make(map[name]Outcome)}
}

func (o *outcomes) set(n name, out Outcome) { o.live[n] = out }

// get may be called by several readers at once while nobody writes.
func (o *outcomes) get(n name) (Outcome, bool, error) {
	if out, ok := o.live[n]; ok {
		return out, true, nil
	}
	if out, ok := o.frozen[n]; ok {
		return out, true, nil
	}
	key := n.bytes()
	v, ok, err := o.src.Get(nil, SpaceOutcomes, key[:])
	if err != nil || !ok {
		return Outcome{}, false, err
	}
	out, err := decodeOutcome(v)
	return out, err == nil, err
}

func appendOutcome(dst []byte, o Outcome) []byte {
	dst = append(dst, byte(o.State))
	dst = binary.AppendUvarint(dst, uint64(o.Due))
	dst = binary.AppendUvarint(dst, uint64(o.At))
	return binary.AppendUvarint(dst, uint64(o.Stamp))
}

func decodeOutcome(src []byte) (Outcome, error) {
	r := record.ReadFields(src)
	var o Outcome
	if b := r.Take(1); b != nil {
		o.State = State(b[0])
	}
	o.Due, o.At, o.Stamp = int64(r.Uvarint()), record.ID(r.Uvarint()), int64(r.Uvarint())
	if !r.Done() {
		return Outcome{}, fmt.Errorf("%w: outcome %x in the index", record.ErrCorrupt, src)
	}
	return o, nil
}
