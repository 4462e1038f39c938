package record

// PeekSend reads what the state machine needs of a send command: how the
// message waits and where it goes. Nothing is copied and the message's own
// checksum is not verified; the batch's was, when it was read. id is the
// position of the command.
func PeekSend(c *Command, id ID) (Ref, error) {
	if len(c.Payload) < 4 {
		return Ref{}, corrupt("message cut short")
	}
	r := reader{src: c.Payload[4:]}
	bits := r.byte()
	ref := Ref{ID: id, Size: uint32(c.Size), Kind: KindMessage}
	ref.Queue = QueueNumber(r.uvarint32())
	stored := r.time()
	if bits&hasBorn != 0 {
		r.varint()
	}
	if bits&hasDue != 0 {
		ref.Due = stored + r.varint()
	}
	if bits&hasLevel != 0 {
		ref.Level = r.byte()
	}
	if bits&hasFlags != 0 {
		r.uvarint32()
		r.uvarint32()
	}
	if bits&hasKey != 0 {
		r.bytes()
	}
	if bits&hasTag != 0 {
		ref.Tag = tagHash(r.bytes())
	}
	return ref, r.err
}
