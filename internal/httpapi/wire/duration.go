package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Classes of error of the parsers. The text quotes what was read and says what
// to write instead.
var (
	// ErrSyntax is the class of what cannot be understood.
	ErrSyntax = errors.New("not understood")
	// ErrRange is the class of lengths of time beyond 292 years.
	ErrRange = errors.New("out of range")
)

// A parseError belongs to a class without having its text.
type parseError struct {
	class error
	text  string
}

func (e *parseError) Error() string { return e.text }
func (e *parseError) Unwrap() error { return e.class }

func syntax(format string, args ...any) error {
	return &parseError{ErrSyntax, fmt.Sprintf(format, args...)}
}

// A Duration is a length of time. In JSON it is a string, written as Go writes
// it and read by [ParseDuration].
type Duration time.Duration

// String gives it as Go writes it: 720h0m0s.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes it as Go writes it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalJSON reads a string by [ParseDuration]. A JSON number is refused, as
// a bare number is.
func (d *Duration) UnmarshalJSON(src []byte) error {
	s := string(src)
	if len(src) > 0 && src[0] == '"' {
		if err := json.Unmarshal(src, &s); err != nil {
			return err
		}
	}
	v, err := ParseDuration(s)
	*d = Duration(v)
	return err
}

// A unit of the short form. Longer names stand before their beginnings.
var units = []struct {
	name string
	ns   int64
}{
	{"ns", 1},
	{"us", 1e3},
	{"µs", 1e3},
	{"ms", 1e6},
	{"s", 1e9},
	{"m", 60e9},
	{"h", 3600e9},
	{"d", 24 * 3600e9},
	{"w", 7 * 24 * 3600e9},
}

var (
	bareNumber = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?$`)
	isoForm    = regexp.MustCompile(`^([+-]?)P(?:([0-9.,]+)W|(?:([0-9.,]+)D)?(?:T(?:([0-9.,]+)H)?(?:([0-9.,]+)M)?(?:([0-9.,]+)S)?)?)$`)
	isoNumber  = regexp.MustCompile(`^[0-9]+([.,][0-9]+)?$`)
	isoUnits   = []int64{7 * 24 * 3600e9, 24 * 3600e9, 3600e9, 60e9, 1e9}
)

// ParseDuration reads a length of time: 10s, 1h30m, 2d, 1w, 1.5h, also negative,
// or ISO 8601 (PT30M, P1DT2H, P2W). A day has 24 hours; months and years, whose
// lengths differ, are refused, and so is a bare number, with a hint. The error
// is an ErrSyntax or an ErrRange.
func ParseDuration(s string) (time.Duration, error) {
	if bareNumber.MatchString(s) {
		return 0, syntax("%q has no unit; write %ss for seconds", clip(s), clip(s))
	}
	negative := strings.HasPrefix(s, "-")
	rest := strings.TrimPrefix(strings.TrimPrefix(s, "-"), "+")
	if len(s)-len(rest) > 1 || rest == "" {
		return 0, badDuration(s)
	}
	read := shortForm
	if rest[0] == 'P' {
		read = isoDuration
	}
	ns, err := read(rest)
	switch {
	case errors.Is(err, ErrRange) && !negative:
		return 0, &parseError{ErrRange, fmt.Sprintf("%q is longer than 292 years", clip(s))}
	case err != nil:
		return 0, badDuration(s)
	case negative:
		return time.Duration(-ns), nil
	}
	return time.Duration(ns), nil
}

// ParseDelay is [ParseDuration] for what may be a delay level: the hint for a
// bare number asks whether one was meant.
func ParseDelay(s string) (time.Duration, error) {
	if bareNumber.MatchString(s) {
		return 0, syntax("%q has no unit: seconds or a level? write %ss, or level %s", clip(s), clip(s), clip(s))
	}
	return ParseDuration(s)
}

func badDuration(s string) error {
	return syntax("%q is no length of time; write 10s, 1h30m, 2d, 1w or PT30M (months and years have no fixed length)", clip(s))
}

// shortForm reads numbers with units, such as 1h30m.
func shortForm(s string) (ns int64, err error) {
	for s != "" {
		n := strings.IndexFunc(s, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if n <= 0 {
			return 0, ErrSyntax
		}
		number := s[:n]
		s = s[n:]
		n = strings.IndexFunc(s, func(r rune) bool { return r == '.' || r >= '0' && r <= '9' })
		if n < 0 {
			n = len(s)
		}
		unit := unitNamed(s[:n])
		if unit == 0 {
			return 0, ErrSyntax
		}
		s = s[n:]
		if ns, err = addTime(ns, number, unit); err != nil {
			return 0, err
		}
	}
	return ns, nil
}

func unitNamed(name string) int64 {
	for _, u := range units {
		if u.name == name {
			return u.ns
		}
	}
	return 0
}

// isoDuration reads a duration of ISO 8601 without its sign.
func isoDuration(s string) (ns int64, err error) {
	m := isoForm.FindStringSubmatch(s)
	if m == nil || s == "P" || strings.HasSuffix(s, "T") {
		return 0, ErrSyntax
	}
	fraction := false
	for i, number := range m[2:] {
		if number == "" {
			continue
		}
		if fraction || !isoNumber.MatchString(number) {
			return 0, ErrSyntax // only the last number may have a fraction
		}
		number = strings.Replace(number, ",", ".", 1)
		fraction = strings.Contains(number, ".")
		if ns, err = addTime(ns, number, isoUnits[i]); err != nil {
			return 0, err
		}
	}
	return ns, nil
}

// addTime adds number units to ns. A fraction is rounded down to a nanosecond.
func addTime(ns int64, number string, unit int64) (int64, error) {
	whole, fraction, dot := strings.Cut(number, ".")
	if whole == "" || dot && fraction == "" || strings.Contains(fraction, ".") {
		return 0, ErrSyntax
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > math.MaxInt64/unit {
		return 0, ErrRange
	}
	part := int64(0)
	if dot {
		f, err := strconv.ParseFloat("0."+fraction, 64)
		if err != nil {
			return 0, ErrSyntax
		}
		part = min(int64(f*float64(unit)), unit-1)
	}
	n *= unit
	if n > math.MaxInt64-part || ns > math.MaxInt64-part-n {
		return 0, ErrRange
	}
	return ns + n + part, nil
}

// CeilMs gives a duration in milliseconds, rounded towards the future, so that
// a delay made from it is never early.
func CeilMs(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// clip keeps what users typed short in error texts.
func clip(s string) string {
	const limit = 40
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}
