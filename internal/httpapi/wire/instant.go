package wire

import (
	"encoding/json"
	"regexp"
	"strconv"
	"time"
)

// A Time is an instant in Unix milliseconds. Zero is none. In JSON it is RFC
// 3339 in UTC with milliseconds; what lies outside the years 0 to 9999, which a
// producer's clock may claim, is written as their nearest instant.
type Time int64

// The instants that RFC 3339 can write, Unix milliseconds.
const (
	firstTime = -62167219200000 // 0000-01-01T00:00:00.000Z
	lastTime  = 253402300799999 // 9999-12-31T23:59:59.999Z
)

// timeLayout is how instants are written.
const timeLayout = "2006-01-02T15:04:05.000Z"

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

// String gives the instant as JSON has it.
func (t Time) String() string {
	return Time(min(max(int64(t), firstTime), lastTime)).Time().Format(timeLayout)
}

// MarshalText writes the instant.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalJSON reads a string by [ParseInstant], without a default zone.
func (t *Time) UnmarshalJSON(src []byte) error {
	var s string
	if err := json.Unmarshal(src, &s); err != nil {
		return err
	}
	v, err := ParseInstant(s, nil)
	if err == nil {
		*t = TimeOf(v)
	}
	return err
}

var (
	instantForm = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})(:\d{2}(?:\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?$`)
	unixMillis  = regexp.MustCompile(`^\d{13}$`)
)

const localLayout = "2006-01-02T15:04:05"

// ParseInstant reads an instant: RFC 3339 with or without seconds, T or a blank
// between date and time (2026-12-01T09:00+08:00), or Unix milliseconds of 13
// digits. One without a zone is read in zone; with a nil zone it is refused.
// Local times that a change of the clocks leaves out or has twice are refused.
// The error is an ErrSyntax.
func ParseInstant(s string, zone *time.Location) (time.Time, error) {
	if unixMillis.MatchString(s) {
		ms, err := strconv.ParseInt(s, 10, 64)
		return time.UnixMilli(ms).UTC(), err
	}
	if bareNumber.MatchString(s) {
		return time.Time{}, syntax("%q is no instant; Unix milliseconds have 13 digits, or write 2026-12-01T09:00+08:00", clip(s))
	}
	m := instantForm.FindStringSubmatch(s)
	if m == nil {
		return time.Time{}, badInstant(s)
	}
	date, minute, second, offset := m[1], m[2], m[3], m[4]
	if second == "" {
		second = ":00"
	}
	local := date + "T" + minute + second
	if offset != "" {
		t, err := time.Parse(time.RFC3339, local+offset)
		if err != nil {
			return t, badInstant(s)
		}
		return t, nil
	}
	if zone == nil {
		return time.Time{}, syntax("%q names no time zone; write it with one, as in 2026-12-01T09:00+08:00 or 2026-12-01T01:00Z", clip(s))
	}
	return inZone(s, local, zone)
}

func badInstant(s string) error {
	return syntax("%q is no instant; write 2026-12-01T09:00+08:00", clip(s))
}

// inZone reads a local time, and refuses one that does not name one instant.
func inZone(s, local string, zone *time.Location) (time.Time, error) {
	t, err := time.ParseInLocation(localLayout, local, zone)
	if err != nil {
		return t, badInstant(s)
	}
	fields, err := time.Parse(localLayout, local)
	if err != nil {
		return t, badInstant(s)
	}
	var found []time.Time
	for _, around := range []time.Time{t.Add(-30 * time.Hour), t, t.Add(30 * time.Hour)} {
		_, offset := around.Zone()
		c := time.Unix(fields.Unix()-int64(offset), int64(fields.Nanosecond())).In(zone)
		if _, o := c.Zone(); o == offset && (len(found) == 0 || !found[0].Equal(c)) {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 0:
		return t, syntax("%q does not exist in %v, whose clocks go forward then; write it with its offset", clip(s), zone)
	case 1:
		return found[0], nil
	}
	return t, syntax("%q happens twice in %v, whose clocks go back then: %s or %s", clip(s), zone,
		found[0].Format(time.RFC3339), found[1].Format(time.RFC3339))
}
