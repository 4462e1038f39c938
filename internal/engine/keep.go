package engine

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/duemq/duemq/internal/record"
)

// hourMs is the stretch of dues whose carried messages are given up together.
const hourMs = 3_600_000

// keeping is what the state knows about which parts of the log are still
// needed. It is a function of the batches; when a segment's file really goes is
// each machine's own affair.
//
// What waits in a segment is counted one by one. A segment that is older than
// carry_after has what still waits in it moved into the index, once, and is from
// then on like one in which nothing waits; what was carried is kept by the hour
// in which it falls due.
type keeping struct {
	size    uint64 // bytes of a segment, the same on every machine of a group
	high    int64  // the highest stamp so far
	trim    int64  // what became visible before this stamp is given up
	ahead   int64  // as of the last trim, nothing carried waited for a due before this one
	gone    int64  // last stamp of the log before first
	first   uint64 // number of the first segment that is kept
	carried record.ID
	parts   []part          // of the log, from first on
	hours   map[int64]int64 // hour of a due: last stamp at which something carried left the timeline
}

// A part is one segment of the log.
type part struct {
	waiting int64 // messages that wait, halves too
	left    int64 // last stamp at which one became visible or was taken away
	stamp   int64 // of its last batch
}

func newKeeping(size int64) keeping {
	return keeping{size: uint64(size), hours: make(map[int64]int64)}
}

// reach makes room for the segment of a batch at pos.
func (k *keeping) reach(pos uint64, stamp int64) {
	n := pos/k.size - k.first
	for uint64(len(k.parts)) <= n {
		k.parts = append(k.parts, part{})
	}
	k.parts[n].stamp = stamp
}

// from is the position from which the log is kept.
func (k *keeping) from() uint64 { return k.first * k.size }

// waits notes that a message begins to wait.
func (k *keeping) waits(id record.ID) {
	if id >= k.carried {
		k.parts[uint64(id)/k.size-k.first].waiting++
	}
}

// leaves notes that a message that waited for due does not wait any more. What
// counts is the highest stamp: the time of becoming visible never falls within a
// queue, also when the clock was set back.
func (k *keeping) leaves(id record.ID, due int64) {
	if id < k.carried {
		k.hours[due/hourMs] = k.high
		return
	}
	p := &k.parts[uint64(id)/k.size-k.first]
	p.waiting--
	p.left = k.high
}

// shows notes that a message became visible without having waited.
func (k *keeping) shows(id record.ID) {
	k.parts[uint64(id)/k.size-k.first].left = k.high
}

// carry marks what lies before a position as carried. Only a whole number of
// segments is, and never the one that is written.
func (k *keeping) carry(to record.ID) bool {
	n := uint64(to) / k.size
	if uint64(to)%k.size != 0 || to <= k.carried || n < k.first || n >= k.first+uint64(len(k.parts)) {
		return false
	}
	for i := range k.parts[:n-k.first] {
		k.parts[i].waiting = 0
	}
	k.carried = to
	return true
}

// cut gives up what became visible before a stamp. ahead is the first due of
// what waits or is held back: hours from there on are still needed.
func (k *keeping) cut(before, ahead int64) {
	k.trim, k.ahead = max(k.trim, before), ahead
	for len(k.parts) > 1 && k.parts[0].waiting == 0 && k.parts[0].left < k.trim {
		k.gone = max(k.gone, k.parts[0].stamp)
		k.parts = k.parts[1:]
		k.first++
	}
	maps.DeleteFunc(k.hours, func(h, left int64) bool { return left < k.trim && (h+1)*hourMs <= ahead })
}

// A plan is what should be done next about the log: a trim, a carry, or nothing.
type plan struct {
	trim  int64     // give up what became visible before; 0: nothing
	carry record.ID // carry what waits before; 0: nothing
}

// plan looks what is old enough. halves is the first id of a half message.
func (k *keeping) plan(now int64, r Retention, halves record.ID) plan {
	if len(k.parts) < 2 {
		return plan{}
	}
	sealed := k.parts[:len(k.parts)-1]
	var p plan
	excess := 0
	if r.Bytes > 0 {
		excess = len(k.parts) - int(max(r.Bytes/int64(k.size), 1))
	}
	old := now - r.Time.Milliseconds()
	for i, s := range sealed {
		if i >= excess && (s.left >= old || r.Time <= 0) {
			break
		}
		if s.waiting > 0 {
			break // a carry comes first
		}
		p.trim = max(p.trim, s.left+1)
	}
	if i := slices.IndexFunc(sealed, func(s part) bool { return s.waiting > 0 }); i >= 0 {
		s := sealed[i]
		end := record.ID((k.first + uint64(i) + 1) * k.size)
		if (i < excess || s.stamp < now-r.CarryAfter.Milliseconds()) && halves >= end {
			p.carry = end
		}
	}
	return p
}

// keepVersion is the version of the state's value.
const keepVersion = 1

func (k *keeping) append(dst []byte) []byte {
	dst = append(dst, keepVersion)
	for _, v := range []uint64{k.size, uint64(k.high), uint64(k.trim), uint64(k.ahead), uint64(k.gone), k.first, uint64(k.carried), uint64(len(k.parts))} {
		dst = binary.AppendUvarint(dst, v)
	}
	for _, p := range k.parts {
		dst = binary.AppendUvarint(dst, uint64(p.waiting))
		dst = binary.AppendUvarint(dst, uint64(p.left))
		dst = binary.AppendUvarint(dst, uint64(p.stamp))
	}
	dst = binary.AppendUvarint(dst, uint64(len(k.hours)))
	for _, h := range slices.Sorted(maps.Keys(k.hours)) {
		dst = binary.AppendUvarint(dst, uint64(h))
		dst = binary.AppendUvarint(dst, uint64(k.hours[h]))
	}
	return dst
}

func (k *keeping) restore(value []byte) error {
	if len(value) == 0 || value[0] != keepVersion {
		return fmt.Errorf("%w: what is kept of the log, %d bytes", record.ErrVersion, len(value))
	}
	r := record.ReadFields(value[1:])
	if size := r.Uvarint(); size != k.size {
		return fmt.Errorf("%w: the index is of a store with segments of %d bytes, the log has %d", record.ErrCorrupt, size, k.size)
	}
	for _, v := range []*int64{&k.high, &k.trim, &k.ahead, &k.gone} {
		*v = int64(r.Uvarint())
	}
	k.first, k.carried = r.Uvarint(), record.ID(r.Uvarint())
	for range min(r.Uvarint(), uint64(r.Left())) {
		k.parts = append(k.parts, part{int64(r.Uvarint()), int64(r.Uvarint()), int64(r.Uvarint())})
	}
	for range min(r.Uvarint(), uint64(r.Left())) {
		h := int64(r.Uvarint())
		k.hours[h] = int64(r.Uvarint())
	}
	if !r.Done() {
		return fmt.Errorf("%w: what is kept of the log: %x", record.ErrCorrupt, value)
	}
	return nil
}

func (k *keeping) hash(w io.Writer) { fmt.Fprintf(w, "keep %x\n", k.append(nil)) }
