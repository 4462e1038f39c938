package record

// A Peek is what the state machine needs of a message: how it waits, where it
// goes, and the keys by which it is searched.
type Peek struct {
	Ref Ref
	Key []byte // keys as in Message.Key; shares the command's payload
}

// PeekSend looks into a send command without reading it: nothing is copied and
// the message's own checksum is not verified; the batch's was, when it was
// read. id is the position of the command. What is cut short before the tag's
// end is an ErrCorrupt; what stands behind it is not looked at.
func PeekSend(c *Command, id ID) (Peek, error) {
	if len(c.Payload) < 4 {
		return Peek{}, corrupt("message cut short")
	}
	r := reader{src: c.Payload[4:]}
	p := Peek{Ref: Ref{ID: id, Size: uint32(c.Size), Kind: KindMessage}}
	r.peek(&p)
	return p, r.err
}

// PeekPost looks into a post command as PeekSend does into a send, and reads
// its terms into t; of them only the producer's name is copied. The reference
// of a half message is of kind check and due when its producer is to be asked
// first; it has no level, for that time comes from none.
func PeekPost(c *Command, id ID, t *Terms) (Peek, error) {
	if len(c.Payload) < 4 {
		return Peek{}, corrupt("message cut short")
	}
	r := reader{src: c.Payload[4:]}
	p := Peek{Ref: Ref{ID: id, Size: uint32(c.Size), Kind: KindMessage}}
	r.terms(t)
	r.peek(&p)
	if t.Half {
		p.Ref.Kind, p.Ref.Due, p.Ref.Level = KindCheck, t.Check, 0
	}
	return p, r.err
}

// peek reads a message's bytes up to its tag.
func (r *reader) peek(p *Peek) {
	bits := r.byte()
	p.Ref.Queue = QueueNumber(r.uvarint32())
	stored := r.time()
	if bits&hasBorn != 0 {
		r.varint()
	}
	if bits&hasDue != 0 {
		p.Ref.Due = stored + r.varint()
	}
	if bits&hasLevel != 0 {
		p.Ref.Level = r.byte()
	}
	if bits&hasFlags != 0 {
		r.uvarint32()
		r.uvarint32()
	}
	if bits&hasKey != 0 {
		p.Key = r.bytes()
	}
	if bits&hasTag != 0 {
		p.Ref.Tag = tagHash(r.bytes())
	}
}
