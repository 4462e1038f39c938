package record

// Fields reads values that other rooms keep in the index, one after the other.
// The first that cannot be there makes it bad; whatever is asked for after that
// reads as zero, so that a decoder stays a straight line and asks once, at its
// end, with [Fields.Done].
type Fields struct{ r reader }

// ReadFields begins to read src, which is not changed.
func ReadFields(src []byte) Fields { return Fields{reader{src: src}} }

// Uvarint reads an unsigned number.
func (f *Fields) Uvarint() uint64 { return f.r.uvarint() }

// Varint reads a signed number in zigzag form.
func (f *Fields) Varint() int64 { return f.r.varint() }

// Uint32 reads four bytes, little-endian.
func (f *Fields) Uint32() uint32 { return f.r.uint32() }

// Take reads n bytes, which share the source; nil if there are fewer.
func (f *Fields) Take(n int) []byte {
	if n > len(f.r.src) {
		f.r.fail("bytes end early")
		return nil
	}
	b := f.r.src[:n:n]
	f.r.src = f.r.src[n:]
	return b
}

// Left is how many bytes have not been read.
func (f *Fields) Left() int { return len(f.r.src) }

// Fail says that what was read cannot be.
func (f *Fields) Fail() { f.r.fail("value out of range") }

// Bad says that something could not be read.
func (f *Fields) Bad() bool { return f.r.err != nil }

// Done says that everything was read and nothing was bad.
func (f *Fields) Done() bool { return f.r.end() == nil }
