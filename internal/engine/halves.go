package engine

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/duemq/duemq/internal/record"
)

// Checks of half messages: RocketMQ's transactionTimeOut, transactionCheckInterval
// and transactionCheckMax.
const (
	CheckAfter = 6_000  // ms after the half message was sent
	CheckEvery = 30_000 // ms between two checks
	MaxChecks  = 15     // without an answer: rolled back
)

// A Half is a message whose producer has yet to say whether it is to be
// delivered.
type Half struct {
	Ref      record.Ref // as it waits for its next check
	Producer string     // the producer group that is asked
	Kind     DelayKind  // of the delay that counts from the commit
	Delay    int64
	Checks   uint32 // times that its moment came
}

// halves is all half messages, by id.
type halves struct {
	all   map[record.ID]*Half
	dirty map[record.ID]struct{}
}

func newHalves() *halves {
	return &halves{all: make(map[record.ID]*Half), dirty: make(map[record.ID]struct{})}
}

func (h *halves) put(half *Half) {
	h.all[half.Ref.ID] = half
	h.dirty[half.Ref.ID] = struct{}{}
}

func (h *halves) drop(id record.ID) {
	delete(h.all, id)
	h.dirty[id] = struct{}{}
}

// oldest is the first id, the greatest there can be if there is none.
func (h *halves) oldest() record.ID {
	id := record.ID(math.MaxUint64)
	for k := range h.all {
		id = min(id, k)
	}
	return id
}

func (h *Half) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(h.Ref.Due))
	dst = binary.AppendUvarint(dst, uint64(h.Ref.Queue))
	dst = binary.AppendUvarint(dst, uint64(h.Ref.Size))
	dst = binary.LittleEndian.AppendUint32(dst, h.Ref.Tag)
	dst = append(dst, byte(h.Kind))
	dst = binary.AppendVarint(dst, h.Delay)
	dst = binary.AppendUvarint(dst, uint64(h.Checks))
	return append(dst, h.Producer...)
}

// freeze gives the halves that changed; an empty value is one that has ended.
func (h *halves) freeze() (states []keyValue, dirty map[record.ID]struct{}) {
	for id := range h.dirty {
		key := binary.BigEndian.AppendUint64([]byte{stateHalf}, uint64(id))
		var value []byte
		if half := h.all[id]; half != nil {
			value = half.append(nil)
		}
		states = append(states, keyValue{key, value})
	}
	dirty, h.dirty = h.dirty, make(map[record.ID]struct{})
	return states, dirty
}

func (h *halves) restore(key, value []byte) error {
	if len(key) != 8 {
		return fmt.Errorf("%w: half message key %x", record.ErrCorrupt, key)
	}
	r := record.ReadFields(value)
	half := &Half{Ref: record.Ref{ID: record.ID(binary.BigEndian.Uint64(key)), Kind: record.KindCheck}}
	half.Ref.Due = int64(r.Uvarint())
	q, size := r.Uvarint(), r.Uvarint()
	half.Ref.Tag = r.Uint32()
	if b := r.Take(1); b != nil {
		half.Kind = DelayKind(b[0])
	}
	half.Delay = r.Varint()
	checks := r.Uvarint()
	half.Producer = string(r.Take(r.Left()))
	if !r.Done() || q > math.MaxUint32 || size > record.MaxBatch || checks > MaxChecks+1 {
		return fmt.Errorf("%w: half message %x", record.ErrCorrupt, value)
	}
	half.Ref.Queue, half.Ref.Size, half.Checks = record.QueueNumber(q), uint32(size), uint32(checks)
	h.all[half.Ref.ID] = half
	return nil
}

func (h *halves) hash(w io.Writer) {
	for _, id := range slices.Sorted(maps.Keys(h.all)) {
		fmt.Fprintf(w, "half %d %x\n", id, h.all[id].append(nil))
	}
}

// sorted is the half messages in the order of their next checks.
func (h *halves) sorted() []*Half {
	return slices.SortedFunc(maps.Values(h.all), func(a, b *Half) int {
		return cmp.Compare(a.Ref.ID, b.Ref.ID)
	})
}
