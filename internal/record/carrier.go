package record

import "encoding/binary"

// A command that holds a message carries a checksum of its own before it, so
// that the message can be read without its batch:
//
//	 0      1        5       9
//	+------+--------+-------+---------+
//	| type | length | crc32c| sealed  |
//	+------+--------+-------+---------+

// openSealed begins a command whose payload has its own checksum and gives the
// place where the bytes under it begin.
func openSealed(dst []byte, t CommandType) ([]byte, int) {
	dst = append(dst, byte(t), 0, 0, 0, 0, 0, 0, 0, 0)
	return dst, len(dst)
}

// closeSealed fills in length and checksum of what stands from at on.
func closeSealed(dst []byte, at int) []byte {
	binary.LittleEndian.PutUint32(dst[at-4:], Checksum(0, dst[at:]))
	putLength(dst[at-4-lengthBytes:at-4], len(dst)-at+4)
	return dst
}

// sealed gives the bytes of a payload behind its checksum, which it verifies.
func sealed(payload []byte) ([]byte, error) {
	if len(payload) < 4 {
		return nil, corrupt("message cut short")
	}
	if binary.LittleEndian.Uint32(payload) != Checksum(0, payload[4:]) {
		return nil, corrupt("message checksum differs")
	}
	return payload[4:], nil
}

// HoldsMessage says that the command carries a message, whose id is the
// command's position.
func (c *Command) HoldsMessage() bool { return c.Type == CommandSend || c.Type == CommandPost }

// MessageOf reads the message that c carries into m, whatever it was sent
// under, and verifies its checksum. A command that carries none is an
// ErrCorrupt. The slices of m and of the payload are shared as DecodeSend says.
func MessageOf(c *Command, m *Message) error {
	switch c.Type {
	case CommandSend:
		return DecodeSend(c.Payload, m)
	case CommandPost:
		var t Terms
		return DecodePost(c.Payload, &t, m)
	default:
		return corrupt("no message here but command %d", c.Type)
	}
}

// DecodeMessageAt reads the command with a message whose bytes begin src, as
// they are read from the log at a message's id, and verifies its checksum.
//
// It proves the bytes, not the place: a body may hold what looks like a send
// command. An id that came from outside is to be found among the commands of
// its batch, or in the timeline or a queue, before it is read.
func DecodeMessageAt(src []byte, m *Message) error {
	c, err := NextCommand(src, 0)
	if err != nil {
		return err
	}
	return MessageOf(&c, m)
}
