package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
)

// A Property is one user property, in the order in which it was sent.
type Property struct{ Name, Value string }

// A Message is what a producer sent, as it stands in the log.
//
// Times are Unix milliseconds. Stored is the stamp of the batch that holds the
// message, Born the producer's own clock (never used to decide anything), Due
// the moment from which it may be consumed, zero when it was not delayed.
type Message struct {
	Queue      QueueNumber
	Stored     int64
	Born       int64
	Due        int64
	Level      uint8
	Flags      uint32 // the client's flag word, carried for it
	SysFlags   uint32 // protocol flags such as RocketMQ's compression bits
	Key        string // one or more keys, separated by blanks, as RocketMQ's KEYS
	Tag        string
	Properties []Property
	Extensions []Extension // what later features add; unknown ones are kept
	Body       []byte
}

// An Extension is a numbered piece of a message that only some messages have.
// Writers keep them in ascending order, each number once. What an extension
// says may be ignored by a binary that does not know it; whatever may not be
// ignored needs a new command.
type Extension struct {
	Number uint16
	Value  []byte
}

// Numbers of extensions, with the form of their values. Append, never renumber.
const (
	ExtOrigin      uint16 = 1 // id of the first sending, for retries and dead letters; 8 bytes, little-endian
	ExtAttempts    uint16 = 2 // how often it was delivered before this record; 4 bytes, little-endian
	ExtIdempotency uint16 = 3 // 128-bit hash of the idempotency key; 16 bytes
	ExtName        uint16 = 4 // name chosen by the client; UTF-8
	ExtBornHost    uint16 = 5 // address of the producer; 4 or 16 bytes, then the port, 2 bytes, little-endian
	ExtTopic       uint16 = 6 // topic of the first sending, for dead letters; UTF-8
	ExtReason      uint16 = 7 // why it is a dead letter; UTF-8
)

// Flag bits of the encoded message: which optional parts follow.
const (
	hasDue = 1 << iota
	hasLevel
	hasFlags
	hasKey
	hasTag
	hasProperties
	hasExtensions
	hasBorn
)

// castagnoli is the CRC-32C table; every checksum of the formats uses it.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is the CRC-32C of b, continued from seed.
func Checksum(seed uint32, b []byte) uint32 { return crc32.Update(seed, castagnoli, b) }

// Check reports what is wrong with the message's sizes, with the limit in the
// text, as an ErrTooLarge. The encoders assume that it was called.
func (m *Message) Check() error {
	if len(m.Body) > MaxBody {
		return fmt.Errorf("%w: body of %d bytes, limit %d", ErrTooLarge, len(m.Body), MaxBody)
	}
	if len(m.Properties) > MaxProperties {
		return fmt.Errorf("%w: %d properties, limit %d", ErrTooLarge, len(m.Properties), MaxProperties)
	}
	n := len(m.Key) + len(m.Tag)
	for i := range m.Properties {
		n += len(m.Properties[i].Name) + len(m.Properties[i].Value)
	}
	if n > MaxHeader {
		return fmt.Errorf("%w: key, tag and properties of %d bytes, limit %d", ErrTooLarge, n, MaxHeader)
	}
	return m.checkExtensions()
}

// checkExtensions counts apart from MaxHeader: they are the broker's own, and
// must not make a message too large that its producer may send.
func (m *Message) checkExtensions() error {
	if len(m.Extensions) > MaxExtensions {
		return fmt.Errorf("%w: %d extensions, limit %d", ErrTooLarge, len(m.Extensions), MaxExtensions)
	}
	n := 0
	for i := range m.Extensions {
		n += len(m.Extensions[i].Value)
	}
	if n > MaxExtensionBytes {
		return fmt.Errorf("%w: extensions of %d bytes, limit %d", ErrTooLarge, n, MaxExtensionBytes)
	}
	return nil
}

// TagHash is the hash by which a tag filter looks at a queue entry before it
// reads the message; the message's tag decides. FNV-1a, 32 bits; 0 is no tag.
func TagHash(tag string) uint32 { return tagHash(tag) }

func tagHash[T string | []byte](tag T) uint32 {
	if len(tag) == 0 {
		return 0
	}
	h := uint32(2166136261)
	for i := range len(tag) {
		h = (h ^ uint32(tag[i])) * 16777619
	}
	return max(h, 1)
}

// appendMessage appends the message's bytes, without its checksum. Differences
// of times wrap around, here and in decodeMessage alike, so that every time a
// client can name survives.
func appendMessage(dst []byte, m *Message) []byte {
	at := len(dst)
	dst = append(dst, 0)
	var bits byte
	dst = binary.AppendUvarint(dst, uint64(m.Queue))
	dst = appendTime(dst, m.Stored)
	if m.Born != m.Stored {
		bits |= hasBorn
		dst = binary.AppendVarint(dst, m.Born-m.Stored)
	}
	if m.Due != 0 {
		bits |= hasDue
		dst = binary.AppendVarint(dst, m.Due-m.Stored)
	}
	if m.Level != 0 {
		bits |= hasLevel
		dst = append(dst, m.Level)
	}
	if m.Flags != 0 || m.SysFlags != 0 {
		bits |= hasFlags
		dst = binary.AppendUvarint(dst, uint64(m.Flags))
		dst = binary.AppendUvarint(dst, uint64(m.SysFlags))
	}
	if m.Key != "" {
		bits |= hasKey
		dst = appendString(dst, m.Key)
	}
	if m.Tag != "" {
		bits |= hasTag
		dst = appendString(dst, m.Tag)
	}
	if len(m.Properties) > 0 {
		bits |= hasProperties
		dst = appendPairs(dst, m.Properties)
	}
	if len(m.Extensions) > 0 {
		bits |= hasExtensions
		dst = binary.AppendUvarint(dst, uint64(len(m.Extensions)))
		for i := range m.Extensions {
			dst = binary.AppendUvarint(dst, uint64(m.Extensions[i].Number))
			dst = appendBytes(dst, m.Extensions[i].Value)
		}
	}
	dst[at] = bits
	return append(dst, m.Body...)
}

// decodeMessage reads what appendMessage wrote. Body and extension values
// share src; the strings are copies; the slices of m are used again.
func decodeMessage(src []byte, m *Message) error {
	r := reader{src: src}
	bits := r.byte()
	*m = Message{Properties: m.Properties[:0], Extensions: m.Extensions[:0]}
	m.Queue = QueueNumber(r.uvarint32())
	m.Stored = r.time()
	m.Born = m.Stored
	if bits&hasBorn != 0 {
		m.Born = m.Stored + r.varint()
	}
	if bits&hasDue != 0 {
		m.Due = m.Stored + r.varint()
	}
	if bits&hasLevel != 0 {
		m.Level = r.byte()
	}
	if bits&hasFlags != 0 {
		m.Flags = r.uvarint32()
		m.SysFlags = r.uvarint32()
	}
	if bits&hasKey != 0 {
		m.Key = string(r.bytes())
	}
	if bits&hasTag != 0 {
		m.Tag = string(r.bytes())
	}
	if bits&hasProperties != 0 {
		m.Properties = r.pairs(m.Properties)
	}
	if bits&hasExtensions != 0 {
		n := r.count(2)
		m.Extensions = slices.Grow(m.Extensions, n)
		for ; n > 0 && r.err == nil; n-- {
			m.Extensions = append(m.Extensions, Extension{uint16(r.uvarintMax(1<<16 - 1)), r.bytes()})
		}
	}
	m.Body = r.rest()
	return r.err
}
