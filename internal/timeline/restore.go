package timeline

import (
	"encoding/binary"
	"fmt"

	"github.com/duemq/duemq/internal/record"
)

// Restore makes the timeline of an installed cut from its small state. stamp is
// the stamp of the last batch in the cut.
func Restore(src Source, state []byte, stamp int64) (*Timeline, error) {
	t := New(src, stamp)
	if err := t.decodeState(state); err != nil {
		return nil, err
	}
	t.live = newGeneration(max(stamp, t.popped.Due))
	t.floor = record.Key{} // the cut that carried this state also deleted up to its floor
	it, err := openStored(src, t.popped)
	if err != nil {
		return nil, err
	}
	t.stored.swap(it, t.popped, t.live)
	return t, t.stored.err
}

// Close releases the iterator. The timeline is not used afterwards.
func (t *Timeline) Close() error {
	if t.stored.it == nil {
		return nil
	}
	err := t.stored.it.Close()
	t.stored = stored{}
	return err
}

// readKey reads a key as the keys of the references have it.
func readKey(r *record.Fields) record.Key {
	b := r.Take(refKeyBytes)
	if b == nil {
		return record.Key{}
	}
	be := binary.BigEndian
	return record.Key{
		Due:   int64(be.Uint64(b)),
		ID:    record.ID(be.Uint64(b[8:])),
		Kind:  record.Kind(b[16]),
		Queue: record.QueueNumber(be.Uint32(b[17:])),
	}
}

func (t *Timeline) decodeState(state []byte) error {
	if len(state) == 0 || state[0] != stateVersion {
		return fmt.Errorf("%w: timeline state of %d bytes", record.ErrVersion, len(state))
	}
	r := record.ReadFields(state[1:])
	t.popped, t.floor, t.waiting = readKey(&r), readKey(&r), r.Varint()
	for i := range t.levels {
		t.levels[i] = LevelCount{Total: r.Uvarint(), Delivered: r.Uvarint(), Waiting: r.Varint()}
	}
	for range min(r.Uvarint(), uint64(r.Left())) {
		f, position := readKey(&r), r.Take(8)
		if position == nil {
			break
		}
		t.rebases = append(t.rebases, rebase{f, record.ID(binary.BigEndian.Uint64(position))})
	}
	if !r.Done() {
		return fmt.Errorf("%w: timeline state %x", record.ErrCorrupt, state)
	}
	return nil
}
