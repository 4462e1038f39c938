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

// stateReader reads the small state; its first failure sticks.
type stateReader struct {
	src []byte
	bad bool
}

func (r *stateReader) key() record.Key {
	if len(r.src) < refKeyBytes {
		r.bad, r.src = true, nil
		return record.Key{}
	}
	be, b := binary.BigEndian, r.src
	r.src = b[refKeyBytes:]
	return record.Key{
		Due:   int64(be.Uint64(b)),
		ID:    record.ID(be.Uint64(b[8:])),
		Kind:  record.Kind(b[16]),
		Queue: record.QueueNumber(be.Uint32(b[17:])),
	}
}

func (r *stateReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.src)
	if n <= 0 {
		r.bad, r.src = true, nil
		return 0
	}
	r.src = r.src[n:]
	return v
}

func (r *stateReader) varint() int64 {
	v, n := binary.Varint(r.src)
	if n <= 0 {
		r.bad, r.src = true, nil
		return 0
	}
	r.src = r.src[n:]
	return v
}

func (t *Timeline) decodeState(state []byte) error {
	if len(state) == 0 || state[0] != stateVersion {
		return fmt.Errorf("%w: timeline state of %d bytes", record.ErrVersion, len(state))
	}
	r := stateReader{src: state[1:]}
	t.popped, t.floor, t.waiting = r.key(), r.key(), r.varint()
	for i := range t.levels {
		t.levels[i] = LevelCount{Total: r.uvarint(), Delivered: r.uvarint(), Waiting: r.varint()}
	}
	for range min(r.uvarint(), uint64(len(r.src))) {
		f := r.key()
		if len(r.src) < 8 {
			r.bad = true
			break
		}
		t.rebases = append(t.rebases, rebase{f, record.ID(binary.BigEndian.Uint64(r.src))})
		r.src = r.src[8:]
	}
	if r.bad || len(r.src) != 0 {
		return fmt.Errorf("%w: timeline state %x", record.ErrCorrupt, state)
	}
	return nil
}
