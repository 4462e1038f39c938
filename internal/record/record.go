// Package record is the vocabulary of DueMQ and its bytes: the message, the
// reference that waits for it, the batch that the log holds and the commands
// inside it, with their compact encodings and checksums.
//
// The package is pure: it knows no files, no clock and no wire protocol. Every
// encoder appends, every decoder consumes, and the two stand beside each other.
// The bytes are drawn in docs/formats/record.md and frozen by golden files.
package record

import (
	"errors"
	"fmt"
	"strconv"
)

// ID is the position in the log at which a message was first written. It is
// the message's identity for ever, whatever moves later. Zero is no message.
type ID uint64

// String gives the 16 hexadecimal digits that users see.
func (id ID) String() string {
	const digits = "0123456789abcdef"
	var b [16]byte
	for i := range b {
		b[i] = digits[id>>(60-4*i)&0xF]
	}
	return string(b[:])
}

// ParseID reads what [ID.String] wrote, in either case of letters. Its answer
// says what a user meant, not that a message stands there: see
// [DecodeMessageAt].
func ParseID(s string) (ID, error) {
	if len(s) != 16 {
		return 0, fmt.Errorf("message id %q: want 16 hexadecimal digits", s)
	}
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil || v == 0 {
		return 0, fmt.Errorf("message id %q: want 16 hexadecimal digits, not all zero", s)
	}
	return ID(v), nil
}

// Numbers that stand for names. A number is never used again, so that an entry
// of a deleted topic can never be taken for one of its successor.
type (
	// TopicNumber stands for a topic.
	TopicNumber uint32
	// QueueNumber stands for one queue of one topic.
	QueueNumber uint32
	// GroupNumber stands for a consumer group.
	GroupNumber uint32
)

// Offset counts the messages of one queue, from zero, in the order in which
// they became visible.
type Offset uint64

// Kind says what is to happen when a reference falls due. Append, never renumber.
type Kind uint8

// The kinds of references.
const (
	KindMessage Kind = 1 // becomes visible in its queue
	KindCheck   Kind = 2 // a half message: ask its producer (transactions)
	KindRetry   Kind = 3 // a redelivery to one group
)

// Known says that this binary knows the kind.
func (k Kind) Known() bool { return k >= KindMessage && k <= KindRetry }

// A Ref is what the timeline holds of a waiting message: 32 bytes in memory.
type Ref struct {
	Due   int64       // Unix ms, rounded up
	ID    ID          // where its send command stands in the log
	Size  uint32      // bytes of that command
	Queue QueueNumber // where it becomes visible
	Tag   uint32      // hash of the tag, 0 without one
	Kind  Kind
	Level uint8 // delay level 1..18, 0 for any other time
}

// A Key orders references: by due, then by identity, kind and queue. Equal
// dues keep the order of sending because ids grow.
type Key struct {
	Due   int64
	ID    ID
	Kind  Kind
	Queue QueueNumber
}

// Key gives the reference's place in the order.
func (r *Ref) Key() Key { return Key{Due: r.Due, ID: r.ID, Kind: r.Kind, Queue: r.Queue} }

// Compare orders two keys: negative, zero or positive as a stands before, at
// or after b.
func (a Key) Compare(b Key) int {
	switch {
	case a.Due != b.Due:
		return less(a.Due < b.Due)
	case a.ID != b.ID:
		return less(a.ID < b.ID)
	case a.Kind != b.Kind:
		return less(a.Kind < b.Kind)
	case a.Queue != b.Queue:
		return less(a.Queue < b.Queue)
	}
	return 0
}

func less(b bool) int {
	if b {
		return -1
	}
	return 1
}

// Limits of what is written. They are the broker's promise to its own formats;
// the doors may be stricter. Those of a message are looked at when it is sent
// ([Message.Check]) and never when it is read, so that raising one later needs
// no new format.
const (
	MaxBody           = 4 << 20  // bytes of body
	MaxProperties     = 128      // user properties
	MaxHeader         = 32 << 10 // bytes of key, tag and properties together
	MaxExtensions     = 64       // extensions
	MaxExtensionBytes = 16 << 10 // bytes of all extension values together
)

// Limits of the frames. MaxBatch and MaxQueues hold for readers too: raising
// one is a new format version.
const (
	MaxBatch    = 8 << 20 // bytes of one batch's replicated part
	MaxCommands = 1 << 20 // commands in one batch; the proposer counts
	MaxQueues   = 1 << 16 // queues of one topic
)

// Classes of error. Callers test with errors.Is; the text names the instance.
var (
	// ErrCorrupt is the class of bytes that cannot be what was written.
	ErrCorrupt = errors.New("corrupt data")
	// ErrVersion is the class of bytes from a version this binary does not read.
	ErrVersion = errors.New("unknown format version")
	// ErrTooLarge is the class of values beyond a limit; the text names it.
	ErrTooLarge = errors.New("too large")
)

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}
