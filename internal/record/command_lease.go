package record

import (
	"encoding/binary"
	"slices"
)

// A LeaseRun is the offsets From up to but not including To, handed to a
// consumer for the Attempt-th time: 1 is the first delivery.
type LeaseRun struct {
	From, To Offset
	Attempt  uint32
}

// A Lease says that offsets of one queue went to consumers of a group, so that
// the attempt of a consumer that dies with its message, or takes the broker
// along, is counted. It is written before a consumer sees the messages, but not
// synced for its own sake: a power cut that loses it leaves the count one too
// low. Two receives whose leases change places on their way may leave it one too
// high.
//
// Runs are in order, disjoint and not empty; they may touch. The encoder takes
// that for granted, the decoder refuses anything else.
type Lease struct {
	Group GroupNumber
	Queue QueueNumber
	Runs  []LeaseRun
}

// AppendLease appends a lease command.
func AppendLease(dst []byte, l *Lease) []byte {
	return appendFrame(dst, CommandLease, func(dst []byte) []byte {
		dst = binary.AppendUvarint(dst, uint64(l.Group))
		dst = binary.AppendUvarint(dst, uint64(l.Queue))
		dst = binary.AppendUvarint(dst, uint64(len(l.Runs)))
		var last Offset
		for _, r := range l.Runs {
			dst = appendRange(dst, last, r.From, r.To)
			dst = binary.AppendUvarint(dst, uint64(r.Attempt))
			last = r.To
		}
		return dst
	})
}

// DecodeLease reads a lease command's payload into l, whose slice is used
// again. Runs that are empty, overlap or go back are an ErrCorrupt.
func DecodeLease(payload []byte, l *Lease) error {
	r := reader{src: payload}
	l.Group = GroupNumber(r.uvarint32())
	l.Queue = QueueNumber(r.uvarint32())
	n := r.count(3)
	l.Runs = slices.Grow(l.Runs[:0], n)
	var last Offset
	for ; n > 0 && r.err == nil; n-- {
		from, to := r.offsets(last)
		attempt := r.uvarint32()
		if r.err != nil {
			break
		}
		l.Runs = append(l.Runs, LeaseRun{From: from, To: to, Attempt: attempt})
		last = to
	}
	return r.end()
}

// appendRange appends offsets as how far they begin behind last and how many
// they are.
func appendRange(dst []byte, last, from, to Offset) []byte {
	dst = binary.AppendUvarint(dst, uint64(from-last))
	return binary.AppendUvarint(dst, uint64(to-from))
}

// offsets reads what appendRange wrote and refuses what is empty or stands
// before last.
func (r *reader) offsets(last Offset) (from, to Offset) {
	from = last + Offset(r.uvarint())
	to = from + Offset(r.uvarint())
	if from < last || to <= from { // the sums wrap around
		r.fail("offset ranges out of order")
	}
	return from, to
}

// A Reset sets where a group stands in one queue: what lies before Offset
// counts as finished, what lies from there on as never delivered. Ranges that
// were acknowledged beyond it, attempts and leases are forgotten.
type Reset struct {
	Group  GroupNumber
	Queue  QueueNumber
	Offset Offset
}

// AppendReset appends a reset command.
func AppendReset(dst []byte, c *Reset) []byte {
	return appendFrame(dst, CommandReset, func(dst []byte) []byte {
		dst = binary.AppendUvarint(dst, uint64(c.Group))
		dst = binary.AppendUvarint(dst, uint64(c.Queue))
		return binary.AppendUvarint(dst, uint64(c.Offset))
	})
}

// DecodeReset reads a reset command's payload.
func DecodeReset(payload []byte) (c Reset, err error) {
	r := reader{src: payload}
	c.Group = GroupNumber(r.uvarint32())
	c.Queue = QueueNumber(r.uvarint32())
	c.Offset = Offset(r.uvarint())
	return c, r.end()
}
