package record

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// CommandType says what a command does. Append, never renumber: the payload of
// a number never changes either, a command that must say more is a new number.
type CommandType uint8

// The commands. Every change of the state is one of these.
const (
	CommandSend       CommandType = 1  // a message, to its queue or to the timeline
	CommandAck        CommandType = 2  // offsets a group has finished with
	CommandRelease    CommandType = 3  // offsets given back or expired, with their attempt
	CommandCommit     CommandType = 4  // a group's pull offset in one queue
	CommandCancel     CommandType = 5  // a waiting message is not to be delivered
	CommandReschedule CommandType = 6  // a waiting message gets another due
	CommandTopic      CommandType = 7  // a topic is made or its attributes change
	CommandEndTopic   CommandType = 8  // a topic's queue numbers end
	CommandGroup      CommandType = 9  // a group is made or its attributes change
	CommandEndGroup   CommandType = 10 // a group's number ends
	CommandSetting    CommandType = 11 // a setting that apply or every proposer needs
	CommandPause      CommandType = 12 // a topic stops or resumes delivering
	CommandTrim       CommandType = 13 // what became visible before a stamp is given up
	CommandCarry      CommandType = 14 // what waits in a stretch of the log moves to the index
	CommandLease      CommandType = 15 // offsets handed to a consumer, with the attempt
	CommandPost       CommandType = 16 // a message with terms: once only, under a name, or half
	CommandEndHalf    CommandType = 17 // a half message is committed or rolled back
	CommandReset      CommandType = 18 // a group's position in one queue is set
	CommandOperation  CommandType = 19 // a bulk operation begins or ends
	CommandOperate    CommandType = 20 // one chunk of a bulk operation
)

// A Command is one command of a batch as it stands there, undecoded.
type Command struct {
	Type    CommandType
	Offset  int // where it begins within the batch's Data
	Size    int // all its bytes, from Offset
	Payload []byte
}

// NextCommand reads the frame of the command at offset in data. It believes no
// length beyond data and looks at nothing inside the payload.
func NextCommand(data []byte, offset int) (Command, error) {
	if offset < 0 || offset >= len(data) {
		return Command{}, corrupt("command offset %d of %d", offset, len(data))
	}
	if data[offset] == 0 {
		return Command{}, corrupt("command at %d of type 0", offset)
	}
	size, n := binary.Uvarint(data[offset+1:])
	head := offset + 1 + n
	if n <= 0 || size > uint64(len(data)-head) {
		return Command{}, corrupt("command at %d cut short", offset)
	}
	end := head + int(size)
	return Command{
		Type:    CommandType(data[offset]),
		Offset:  offset,
		Size:    end - offset,
		Payload: data[head:end:end],
	}, nil
}

// Commands calls fn for each command of data in order and stops at its first
// error or at the first frame that cannot be.
func Commands(data []byte, fn func(Command) error) error {
	for at := 0; at < len(data); {
		c, err := NextCommand(data, at)
		if err != nil {
			return err
		}
		if err := fn(c); err != nil {
			return err
		}
		at += c.Size
	}
	return nil
}

// appendFrame appends a command whose payload fill appends:
//
//	 0      1        5
//	+------+--------+---------+
//	| type | length | payload |
//	+------+--------+---------+
//
// The length takes four bytes, always, so that nothing is encoded twice or
// moved.
func appendFrame(dst []byte, t CommandType, fill func([]byte) []byte) []byte {
	dst = append(dst, byte(t), 0, 0, 0, 0)
	at := len(dst)
	dst = fill(dst)
	putLength(dst[at-lengthBytes:at], len(dst)-at)
	return dst
}

// lengthBytes is the width of a command's length: four groups of seven bits,
// 256 MiB, are enough for MaxBatch. What is longer gets a length that is wrong,
// in a batch that AppendBatch refuses.
const lengthBytes = 4

// putLength writes n as a uvarint of exactly lengthBytes bytes, which any
// uvarint reader takes.
func putLength(b []byte, n int) {
	for i := range lengthBytes - 1 {
		b[i] = byte(n)&0x7f | 0x80
		n >>= 7
	}
	b[lengthBytes-1] = byte(n)
}

// AppendSend appends a send command. The message was checked (Message.Check).
func AppendSend(dst []byte, m *Message) []byte {
	dst, at := openSealed(dst, CommandSend)
	dst = appendMessage(dst, m)
	return closeSealed(dst, at)
}

// DecodeSend reads a send command's payload into m, verifying its own checksum.
// Body and extension values share payload; the slices of m are used again.
// After an error m holds nothing to rely on.
func DecodeSend(payload []byte, m *Message) error {
	src, err := sealed(payload)
	if err != nil {
		return err
	}
	return decodeMessage(src, m)
}

// An OffsetRange is the offsets From up to but not including To.
type OffsetRange struct{ From, To Offset }

// An Ack says that a group is finished with offsets of one queue. Ranges are
// in order, disjoint and not empty; they may touch. The encoder takes that for
// granted, the decoder refuses anything else.
type Ack struct {
	Group  GroupNumber
	Queue  QueueNumber
	Ranges []OffsetRange
}

// AppendAck appends an ack command.
func AppendAck(dst []byte, a *Ack) []byte {
	return appendFrame(dst, CommandAck, func(dst []byte) []byte {
		dst = binary.AppendUvarint(dst, uint64(a.Group))
		dst = binary.AppendUvarint(dst, uint64(a.Queue))
		dst = binary.AppendUvarint(dst, uint64(len(a.Ranges)))
		var last Offset
		for _, r := range a.Ranges {
			dst = appendRange(dst, last, r.From, r.To)
			last = r.To
		}
		return dst
	})
}

// DecodeAck reads an ack command's payload into a, whose slice is used again.
func DecodeAck(payload []byte, a *Ack) error {
	r := reader{src: payload}
	a.Group = GroupNumber(r.uvarint32())
	a.Queue = QueueNumber(r.uvarint32())
	n := r.count(2)
	a.Ranges = slices.Grow(a.Ranges[:0], n)
	var last Offset
	for ; n > 0 && r.err == nil; n-- {
		from, to := r.offsets(last)
		if r.err != nil {
			break
		}
		a.Ranges = append(a.Ranges, OffsetRange{from, to})
		last = to
	}
	return r.end()
}

// A Reason says why offsets were released.
type Reason uint8

// The reasons of a release. Append, never renumber.
const (
	ReasonNack   Reason = 1 // the consumer gave them back
	ReasonExpiry Reason = 2 // their lease ran out
)

// Known says that this binary knows the reason.
func (r Reason) Known() bool { return r == ReasonNack || r == ReasonExpiry }

// A Released offset, how often it had been delivered, and when it may be
// delivered again (Unix ms, 0 for at once).
type Released struct {
	Offset  Offset
	Attempt uint32
	Due     int64
}

// A Release gives offsets of one queue back.
type Release struct {
	Group   GroupNumber
	Queue   QueueNumber
	Reason  Reason
	Entries []Released
}

// AppendRelease appends a release command.
func AppendRelease(dst []byte, a *Release) []byte {
	return appendFrame(dst, CommandRelease, func(dst []byte) []byte {
		dst = binary.AppendUvarint(dst, uint64(a.Group))
		dst = binary.AppendUvarint(dst, uint64(a.Queue))
		dst = append(dst, byte(a.Reason))
		dst = binary.AppendUvarint(dst, uint64(len(a.Entries)))
		for _, e := range a.Entries {
			dst = binary.AppendUvarint(dst, uint64(e.Offset))
			dst = binary.AppendUvarint(dst, uint64(e.Attempt))
			dst = appendTime(dst, e.Due)
		}
		return dst
	})
}

// DecodeRelease reads a release command's payload into a, whose slice is used
// again.
func DecodeRelease(payload []byte, a *Release) error {
	r := reader{src: payload}
	a.Group = GroupNumber(r.uvarint32())
	a.Queue = QueueNumber(r.uvarint32())
	a.Reason = Reason(r.byte())
	n := r.count(3)
	a.Entries = slices.Grow(a.Entries[:0], n)
	for ; n > 0 && r.err == nil; n-- {
		a.Entries = append(a.Entries, Released{
			Offset:  Offset(r.uvarint()),
			Attempt: r.uvarint32(),
			Due:     r.time(),
		})
	}
	return r.end()
}

// A Commit sets a pull consumer's next offset in one queue.
type Commit struct {
	Group  GroupNumber
	Queue  QueueNumber
	Offset Offset
}

// AppendCommit appends a commit command.
func AppendCommit(dst []byte, c *Commit) []byte {
	return appendFrame(dst, CommandCommit, func(dst []byte) []byte {
		dst = binary.AppendUvarint(dst, uint64(c.Group))
		dst = binary.AppendUvarint(dst, uint64(c.Queue))
		return binary.AppendUvarint(dst, uint64(c.Offset))
	})
}

// DecodeCommit reads a commit command's payload.
func DecodeCommit(payload []byte) (c Commit, err error) {
	r := reader{src: payload}
	c.Group = GroupNumber(r.uvarint32())
	c.Queue = QueueNumber(r.uvarint32())
	c.Offset = Offset(r.uvarint())
	return c, r.end()
}

func appendKey(dst []byte, k Key) []byte {
	dst = appendTime(dst, k.Due)
	dst = binary.AppendUvarint(dst, uint64(k.ID))
	dst = append(dst, byte(k.Kind))
	return binary.AppendUvarint(dst, uint64(k.Queue))
}

func (r *reader) key() Key {
	return Key{
		Due:   r.time(),
		ID:    ID(r.uvarint()),
		Kind:  Kind(r.byte()),
		Queue: QueueNumber(r.uvarint32()),
	}
}

func appendRef(dst []byte, ref *Ref) []byte {
	dst = appendKey(dst, ref.Key())
	dst = binary.AppendUvarint(dst, uint64(ref.Size))
	dst = binary.LittleEndian.AppendUint32(dst, ref.Tag)
	return append(dst, ref.Level)
}

func (r *reader) ref() Ref {
	k := r.key()
	return Ref{
		Due: k.Due, ID: k.ID, Kind: k.Kind, Queue: k.Queue,
		Size: r.uvarint32(), Tag: r.uint32(), Level: r.byte(),
	}
}

// A Cancel takes a waiting reference away. Key and Level are those that the
// message was sent with; apply knows whether it was moved since. A due of 0
// stands for a message that was due by its own stamp.
type Cancel struct {
	Key   Key
	Level uint8
}

// AppendCancel appends a cancel command.
func AppendCancel(dst []byte, c *Cancel) []byte {
	return appendFrame(dst, CommandCancel, func(dst []byte) []byte {
		return append(appendKey(dst, c.Key), c.Level)
	})
}

// DecodeCancel reads a cancel command's payload.
func DecodeCancel(payload []byte) (c Cancel, err error) {
	r := reader{src: payload}
	c.Key = r.key()
	c.Level = r.byte()
	return c, r.end()
}

// A Reschedule gives the waiting reference Ref another due. Ref is the
// reference as it waits now; identity, bytes and queue stay.
type Reschedule struct {
	Ref Ref
	Due int64 // Unix ms
}

// AppendReschedule appends a reschedule command.
func AppendReschedule(dst []byte, c *Reschedule) []byte {
	return appendFrame(dst, CommandReschedule, func(dst []byte) []byte {
		return appendTime(appendRef(dst, &c.Ref), c.Due)
	})
}

// DecodeReschedule reads a reschedule command's payload.
func DecodeReschedule(payload []byte) (c Reschedule, err error) {
	r := reader{src: payload}
	c.Ref = r.ref()
	c.Due = r.time()
	return c, r.end()
}

// UnknownCommand is the error for a command type that this binary does not
// know: the log was written by a newer one.
func UnknownCommand(t CommandType) error {
	return fmt.Errorf("%w: command %d; use the version of duemq that wrote this log", ErrVersion, t)
}
