package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Level is a delay level as the user typed it: its number (3), or its delay
// (10s). JSON may have it as a number or as a string.
type Level string

// UnmarshalJSON takes a number or a string.
func (l *Level) UnmarshalJSON(src []byte) error {
	if len(src) > 0 && src[0] == '"' {
		return json.Unmarshal(src, (*string)(l))
	}
	if _, err := strconv.ParseInt(string(src), 10, 64); err != nil {
		return syntax("level %s: want a number such as 3, or a delay such as \"10s\"", clip(string(src)))
	}
	*l = Level(src)
	return nil
}

// ParseLevel reads a delay level, by its number or by its delay, which must be
// one of the table's (table[0] is level 1). A delay that is no level is refused
// with its neighbours. Numbers are not held against the table: below 1 is at
// once and above the table is its last level, as RocketMQ has it. The error is
// an ErrSyntax.
func ParseLevel(s Level, table []time.Duration) (int, error) {
	if n, err := strconv.ParseInt(string(s), 10, 32); err == nil {
		return int(n), nil
	}
	if bareNumber.MatchString(string(s)) {
		return 0, syntax("level %q is not a whole number of 32 bits", clip(string(s)))
	}
	d, err := ParseDuration(string(s))
	if err != nil {
		return 0, syntax("level %q: want a number such as 3, or the delay of a level such as 10s", clip(string(s)))
	}
	below, above := 0, 0 // levels; 0 is none
	for i, l := range table {
		switch {
		case l == d:
			return i + 1, nil
		case l < d && (below == 0 || l > table[below-1]):
			below = i + 1
		case l > d && (above == 0 || l < table[above-1]):
			above = i + 1
		}
	}
	return 0, syntax("%s is no delay level; %s; any other delay goes without a level", clip(string(s)), neighbours(table, below, above))
}

func neighbours(table []time.Duration, below, above int) string {
	name := func(l int) string { return fmt.Sprintf("%d (%s)", l, Short(table[l-1])) }
	switch {
	case below != 0 && above != 0:
		return "its neighbours are " + name(below) + " and " + name(above)
	case below != 0:
		return "its neighbour is " + name(below)
	case above != 0:
		return "its neighbour is " + name(above)
	}
	return "there are no levels"
}

// Short gives a duration as Go writes it, without the zeros at its end: 30m, 2h.
func Short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
