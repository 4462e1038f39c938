package record

import (
	"encoding/binary"
	"slices"
)

func appendBytes(dst, b []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

func appendString(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

func appendPairs(dst []byte, ps []Property) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(ps)))
	for i := range ps {
		dst = appendString(dst, ps[i].Name)
		dst = appendString(dst, ps[i].Value)
	}
	return dst
}

// appendTime appends Unix milliseconds. A time before 1970 takes ten bytes and
// is nobody's wish, but whatever an encoder takes, a decoder must give back: a
// command that cannot be read again closes the log for ever.
func appendTime(dst []byte, ms int64) []byte { return binary.AppendUvarint(dst, uint64(ms)) }

func appendFlag(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
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

func (r *reader) uvarint32() uint32 { return uint32(r.uvarintMax(1<<32 - 1)) }

func (r *reader) time() int64 { return int64(r.uvarint()) }

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

func (r *reader) uint64() uint64 {
	if len(r.src) < 8 {
		r.fail("bytes end early")
		return 0
	}
	v := binary.LittleEndian.Uint64(r.src)
	r.src = r.src[8:]
	return v
}

func (r *reader) flag() bool {
	b := r.byte()
	if b > 1 {
		r.fail("flag neither 0 nor 1")
	}
	return b == 1
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
// forged count cannot ask for more work or memory than a small multiple of the
// bytes. Callers make room for all at once and stop at the first that fails.
func (r *reader) count(size int) int {
	n := r.uvarint()
	if n > uint64(len(r.src)/size) {
		r.fail("count beyond the bytes")
		return 0
	}
	return int(n)
}

// pairs reads what appendPairs wrote and appends it to ps; the strings are
// copies.
func (r *reader) pairs(ps []Property) []Property {
	n := r.count(2)
	ps = slices.Grow(ps, n)
	for ; n > 0 && r.err == nil; n-- {
		ps = append(ps, Property{string(r.bytes()), string(r.bytes())})
	}
	return ps
}

// rest reads whatever is left, which shares the source but not its capacity.
func (r *reader) rest() []byte {
	b := slices.Clip(r.src)
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
