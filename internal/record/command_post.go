package record

import "encoding/binary"

// A Hash stands for a name or key that a client chose, 128 bits of it. What is
// hashed how is the business of those who compare; zero stands for none.
type Hash [16]byte

// Terms are what a message is sent under beside its delay: once only, under a
// name, or as a half message, in any mixture. Whoever has none of them uses a
// send command, which is shorter.
//
// Print and Until mean something with Once only, and Producer, Check, Kind and
// Delay with Half only: without it they are not written.
type Terms struct {
	// Once is the hash of the idempotency key: who sends under it again within
	// the window gets the first message's id and adds nothing. Zero: no key.
	Once Hash
	// Print is a fingerprint of the content, by which other content under the
	// same key is told from a repeat.
	Print uint64
	// Until is when the window ends, Unix ms.
	Until int64
	// Name is the hash of the name that the message bears: whoever waits under
	// it is replaced. Zero: no name.
	Name Hash
	// Half says that the message is half of a transaction: nobody sees it until
	// its producer commits it (EndHalf).
	Half bool
	// Producer is the group whose members are asked what became of it.
	Producer string
	// Check is when to ask first, Unix ms.
	Check int64
	// Kind says what Delay is and Delay is the delay that the message was sent
	// with, which counts from the commit. Both are the engine's business.
	Kind  uint8
	Delay int64
}

// Bits of the encoded terms: which parts follow. A part that a later binary
// needs is a new command, so a bit that is not here is refused.
const (
	hasOnce = 1 << iota
	hasName
	hasHalf
	allTerms = hasOnce | hasName | hasHalf
)

// AppendPost appends a post command: a message with terms. The message was
// checked (Message.Check). Due and Level of a half message decide nothing: what
// it waits for is Check, and then what its EndHalf says.
//
//	 0       4      5
//	+-------+------+- - - -+- - - -+- - - -+- - - - - - - -+
//	| crc32c| bits | once  | name  | half  | message        |
//	+-------+------+- - - -+- - - -+- - - -+- - - - - - - -+
//	                print,          producer, check,
//	                until           kind, delay
//
// The checksum covers terms and message, which are read together.
func AppendPost(dst []byte, t *Terms, m *Message) []byte {
	dst, at := openSealed(dst, CommandPost)
	dst = appendTerms(dst, t)
	dst = appendMessage(dst, m)
	return closeSealed(dst, at)
}

func appendTerms(dst []byte, t *Terms) []byte {
	at := len(dst)
	dst = append(dst, 0)
	var bits byte
	if t.Once != (Hash{}) {
		bits |= hasOnce
		dst = append(dst, t.Once[:]...)
		dst = binary.LittleEndian.AppendUint64(dst, t.Print)
		dst = appendTime(dst, t.Until)
	}
	if t.Name != (Hash{}) {
		bits |= hasName
		dst = append(dst, t.Name[:]...)
	}
	if t.Half {
		bits |= hasHalf
		dst = appendString(dst, t.Producer)
		dst = appendTime(dst, t.Check)
		dst = append(dst, t.Kind)
		dst = binary.AppendVarint(dst, t.Delay)
	}
	dst[at] = bits
	return dst
}

// terms reads what appendTerms wrote; the producer is a copy. A hash of zero is
// written as no part, so one that is there cannot be.
func (r *reader) terms(t *Terms) {
	*t = Terms{}
	bits := r.byte()
	if bits&^allTerms != 0 {
		r.fail("terms with unknown parts")
		return
	}
	if bits&hasOnce != 0 {
		t.Once = r.hash()
		t.Print = r.uint64()
		t.Until = r.time()
	}
	if bits&hasName != 0 {
		t.Name = r.hash()
	}
	if bits&hasHalf != 0 {
		t.Half = true
		t.Producer = string(r.bytes())
		t.Check = r.time()
		t.Kind = r.byte()
		t.Delay = r.varint()
	}
}

func (r *reader) hash() (h Hash) {
	if len(r.src) < len(h) {
		r.fail("bytes end early")
		return h
	}
	r.src = r.src[copy(h[:], r.src):]
	if h == (Hash{}) {
		r.fail("hash of zero")
	}
	return h
}

// DecodePost reads a post command's payload into t and m, verifying its own
// checksum. Body and extension values share payload; the slices of m are used
// again. After an error t and m hold nothing to rely on.
func DecodePost(payload []byte, t *Terms, m *Message) error {
	src, err := sealed(payload)
	if err != nil {
		return err
	}
	r := reader{src: src}
	r.terms(t)
	if r.err != nil {
		return r.err
	}
	return decodeMessage(r.src, m)
}

// An EndHalf ends a half message's waiting: it is committed, and waits for its
// delay or becomes visible, or it is rolled back and nobody ever sees it.
type EndHalf struct {
	// Ref is the reference as it was posted: of kind check, with the due of the
	// first asking, whatever it was moved to since.
	Ref    Ref
	Commit bool
	// Due is when a committed message may be consumed, Unix ms; 0 at once.
	Due int64
	// Level is the delay level that Due comes from, 0 for any other time.
	Level uint8
}

// AppendEndHalf appends an end-half command.
func AppendEndHalf(dst []byte, c *EndHalf) []byte {
	return appendFrame(dst, CommandEndHalf, func(dst []byte) []byte {
		dst = appendRef(dst, &c.Ref)
		dst = appendFlag(dst, c.Commit)
		dst = appendTime(dst, c.Due)
		return append(dst, c.Level)
	})
}

// DecodeEndHalf reads an end-half command's payload.
func DecodeEndHalf(payload []byte) (c EndHalf, err error) {
	r := reader{src: payload}
	c.Ref = r.ref()
	c.Commit = r.flag()
	c.Due = r.time()
	c.Level = r.byte()
	return c, r.end()
}
