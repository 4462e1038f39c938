package record

import "encoding/binary"

func appendString(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// A reader consumes bytes that nobody vouches for. The first thing that cannot
// be sets err; everything after it reads as zero, so that decoders stay
// straight lines and no length is believed before it is checked.
type reader struct {
	src []byte
	err error
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = corrupt("%s", what)
	}
	r.src = nil
}

func (r *reader) byte() byte {
	if len(r.src) == 0 {
		r.fail("bytes end early")
		return 0
	}
	b := r.src[0]
	r.src = r.src[1:]
	return b
}

func (r *reader) uvarintMax(limit uint64) uint64 {
	v, n := binary.Uvarint(r.src)
	if n <= 0 || v > limit {
		r.fail("number cut short or out of range")
		return 0
	}
	r.src = r.src[n:]
	return v
}

func (r *reader) uvarint() uint64 { return r.uvarintMax(1<<64 - 1) }

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.src)
	if n <= 0 {
		r.fail("number cut short or out of range")
		return 0
	}
	r.src = r.src[n:]
	return v
}

func (r *reader) uint32() uint32 {
	if len(r.src) < 4 {
		r.fail("bytes end early")
		return 0
	}
	v := binary.LittleEndian.Uint32(r.src)
	r.src = r.src[4:]
	return v
}

// bytes reads a length and as many bytes, which share the source.
func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.src)) {
		r.fail("length beyond the bytes")
		return nil
	}
	b := r.src[:n:n]
	r.src = r.src[n:]
	return b
}

// count reads how many items follow, each of at least size bytes, so that a
// forged count cannot ask for more work than there are bytes.
func (r *reader) count(size int) int {
	n := r.uvarint()
	if n > uint64(len(r.src)/size) {
		r.fail("count beyond the bytes")
		return 0
	}
	return int(n)
}

func (r *reader) rest() []byte {
	b := r.src
	r.src = nil
	return b
}

// end demands that everything was read.
func (r *reader) end() error {
	if r.err == nil && len(r.src) > 0 {
		r.fail("bytes left over")
	}
	return r.err
}
