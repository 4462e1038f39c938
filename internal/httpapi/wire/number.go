package wire

import "strconv"

// A Number is a whole number of 64 bits, a string of digits in JSON.
type Number int64

// MarshalText writes the digits.
func (n Number) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(n), 10), nil }

// UnmarshalText reads digits. The error is an ErrSyntax.
func (n *Number) UnmarshalText(src []byte) error {
	v, err := strconv.ParseInt(string(src), 10, 64)
	if err != nil {
		return syntax("%q is no whole number of 64 bits", clip(string(src)))
	}
	*n = Number(v)
	return nil
}
