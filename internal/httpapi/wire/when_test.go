package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones of the tests, wherever they run
)

// defaultTable is RocketMQ's messageDelayLevel.
var defaultTable = []time.Duration{
	time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute, 5 * time.Minute, 6 * time.Minute,
	7 * time.Minute, 8 * time.Minute, 9 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour,
}

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	good := map[string]time.Duration{
		"10s": 10 * time.Second, "1h30m": 90 * time.Minute, "2d": 2 * day, "1w": 7 * day, "1w2d3h4m5s6ms": 9*day + 3*time.Hour + 4*time.Minute + 5*time.Second + 6*time.Millisecond,
		"0s": 0, "-5s": -5 * time.Second, "+5s": 5 * time.Second, "1.5h": 90 * time.Minute, "0.1s": 100 * time.Millisecond,
		"250ms": 250 * time.Millisecond, "1us": time.Microsecond, "1µs": time.Microsecond, "1ns": 1,
		"PT30M": 30 * time.Minute, "P1DT2H": 26 * time.Hour, "P2W": 14 * day, "PT0.5S": 500 * time.Millisecond,
		"PT1,5H": 90 * time.Minute, "-PT5S": -5 * time.Second, "P1D": day, "PT1H30M15S": 90*time.Minute + 15*time.Second,
		"720h0m0s": 720 * time.Hour, "15250w": 15250 * 7 * day,
	}
	for s, want := range good {
		if got, err := ParseDuration(s); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", s, got, err, want)
		}
	}
	bad := map[string]string{
		"10": "write 10s for seconds", "0": "has no unit", "-3": "has no unit", "1.5": "has no unit",
		"": "no length of time", "-": "no length of time", "s": "no length of time", "10 s": "no length of time", "1h 30m": "no length of time",
		"1y": "months and years", "1mo": "months and years", "P1Y": "months and years", "P1M": "months and years",
		"P": "no length of time", "PT": "no length of time", "P1DT": "no length of time", "PT1.5H3M": "no length of time", "P1W2D": "no length of time",
		"10S": "no length of time", "1..5s": "no length of time", ".5s": "no length of time", "5.s": "no length of time", "--5s": "no length of time", "+-5s": "no length of time",
		"soon": "no length of time", "-99999w": "no length of time", "1e3s": "no length of time",
	}
	for s, want := range bad {
		_, err := ParseDuration(s)
		if !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseDuration(%q): %v; want a text with %q", s, err, want)
		}
	}
	if _, err := ParseDelay("10"); !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), "seconds or a level? write 10s, or level 10") {
		t.Errorf("ParseDelay: %v", err)
	}
	if d, err := ParseDelay("10s"); err != nil || d != 10*time.Second {
		t.Errorf("ParseDelay: %v, %v", d, err)
	}
	for _, s := range []string{"99999w", "15251w", "9223372036854775808ns", "99999999999999999999s", "P99999W", "9223372036854775807ns1ns"} {
		if d, err := ParseDuration(s); !errors.Is(err, ErrRange) {
			t.Errorf("ParseDuration(%q) = %v, %v; want ErrRange", s, d, err)
		}
	}
}

func TestCeilMs(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want int64
	}{{0, 0}, {1, 1}, {time.Millisecond, 1}, {time.Millisecond + 1, 2}, {-1, 0}, {-time.Millisecond, -1}, {-time.Millisecond - 1, -1}} {
		if got := CeilMs(c.d); got != c.want {
			t.Errorf("CeilMs(%d ns) = %d, want %d", c.d, got, c.want)
		}
	}
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestParseInstant(t *testing.T) {
	shanghai, berlin, apia := zone(t, "Asia/Shanghai"), zone(t, "Europe/Berlin"), zone(t, "Pacific/Apia")
	good := []struct {
		s    string
		zone *time.Location
		want string
	}{
		{"2026-12-01T09:00+08:00", nil, "2026-12-01T01:00:00.000Z"},
		{"2026-12-01T09:00:30+08:00", nil, "2026-12-01T01:00:30.000Z"},
		{"2026-12-01 09:00:30.25Z", nil, "2026-12-01T09:00:30.250Z"},
		{"2026-12-01T09:00:00.0001Z", nil, "2026-12-01T09:00:00.001Z"}, // rounded up
		{"2026-12-01 09:00", shanghai, "2026-12-01T01:00:00.000Z"},
		{"2026-12-01T09:00:01", shanghai, "2026-12-01T01:00:01.000Z"},
		{"2026-12-01T09:00Z", shanghai, "2026-12-01T09:00:00.000Z"}, // its own zone wins
		{"1796112000000", nil, "2026-12-01T08:00:00.000Z"},
		{"2026-03-29 01:59", berlin, "2026-03-29T00:59:00.000Z"},
		{"2026-03-29 03:00", berlin, "2026-03-29T01:00:00.000Z"},
		{"2026-10-25 01:59", berlin, "2026-10-24T23:59:00.000Z"},
		{"2026-10-25 03:00", berlin, "2026-10-25T02:00:00.000Z"},
		{"2026-10-25 02:30+01:00", berlin, "2026-10-25T01:30:00.000Z"},
	}
	for _, c := range good {
		got, err := ParseInstant(c.s, c.zone)
		if err != nil || TimeOf(got).String() != c.want {
			t.Errorf("ParseInstant(%q, %v) = %v, %v; want %s", c.s, c.zone, got, err, c.want)
		}
	}
	bad := []struct {
		s    string
		zone *time.Location
		want string
	}{
		{"2026-12-01T09:00", nil, "names no time zone"},
		{"2026-03-29 02:30", berlin, "does not exist in Europe/Berlin"},
		{"2026-10-25 02:30", berlin, "2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00"},
		{"2011-12-30 12:00", apia, "does not exist"}, // the day that Samoa left out
		{"1796112000", nil, "13 digits"},
		{"10", nil, "13 digits"},
		{"2026-12-01", shanghai, "no instant"},
		{"2026-13-01T09:00Z", nil, "no instant"},
		{"2026-02-30T09:00Z", nil, "no instant"},
		{"2026-02-30T09:00", shanghai, "no instant"},
		{"2026-12-01T9:00Z", nil, "no instant"},
		{"2026-12-01T24:00Z", nil, "no instant"},
		{"2026-12-01T09:00:60Z", nil, "no instant"},
		{"2026-12-01T09:00+8", nil, "no instant"},
		{"tomorrow 09:00", shanghai, "no instant"},
		{"", nil, "no instant"},
	}
	for _, c := range bad {
		got, err := ParseInstant(c.s, c.zone)
		if !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("ParseInstant(%q, %v) = %v, %v; want a text with %q", c.s, c.zone, got, err, c.want)
		}
	}
}

func TestParseLevel(t *testing.T) {
	for s, want := range map[Level]int{"3": 3, "0": 0, "-1": -1, "19": 19, "2147483647": 2147483647, "1s": 1, "10m": 14, "30m": 16, "120m": 18, "PT20M": 15} {
		if got, err := ParseLevel(s, defaultTable); err != nil || got != want {
			t.Errorf("ParseLevel(%q) = %d, %v; want %d", s, got, err, want)
		}
	}
	for s, want := range map[Level]string{
		"25m":        "25m is no delay level; its neighbours are 15 (20m) and 16 (30m)",
		"500ms":      "500ms is no delay level; its neighbour is 1 (1s)",
		"1d":         "1d is no delay level; its neighbour is 18 (2h)",
		"2147483648": "32 bits",
		"1.5":        "32 bits",
		"high":       "want a number",
		"":           "want a number",
	} {
		if got, err := ParseLevel(s, defaultTable); !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseLevel(%q) = %d, %v; want a text with %q", s, got, err, want)
		}
	}
	if _, err := ParseLevel("1s", nil); err == nil || !strings.Contains(err.Error(), "there are no levels") {
		t.Errorf("without a table: %v", err)
	}
}

func TestJSONOfTimes(t *testing.T) {
	type doc struct {
		T Time     `json:"t,omitzero"`
		D Duration `json:"d,omitzero"`
		L Level    `json:"l,omitempty"`
	}
	in := doc{T: 1796112000001, D: Duration(90 * time.Second), L: "3"}
	out, err := json.Marshal(in)
	if want := `{"t":"2026-12-01T08:00:00.001Z","d":"1m30s","l":"3"}`; err != nil || string(out) != want {
		t.Errorf("Marshal: %s, %v; want %s", out, err, want)
	}
	var back doc
	if err := json.Unmarshal(out, &back); err != nil || back != in {
		t.Errorf("Unmarshal: %+v, %v; want %+v", back, err, in)
	}
	if err := json.Unmarshal([]byte(`{"l":4,"d":"PT1M"}`), &back); err != nil || back.L != "4" || back.D != Duration(time.Minute) {
		t.Errorf("Unmarshal: %+v, %v", back, err)
	}
	for _, s := range []string{`{"d":10}`, `{"d":"10"}`, `{"t":1796112000}`, `{"t":"soon"}`, `{"l":1.5}`, `{"l":true}`} {
		if err := json.Unmarshal([]byte(s), &back); err == nil {
			t.Errorf("Unmarshal(%s) gave %+v, want an error", s, back)
		}
	}
	for v, want := range map[Time]string{-1 << 63: "0000-01-01T00:00:00.000Z", 1<<63 - 1: "9999-12-31T23:59:59.999Z"} {
		if got := v.String(); got != want {
			t.Errorf("Time(%d) = %s, want %s", int64(v), got, want)
		}
	}
}

// FuzzDuration: what is accepted is written so that it reads the same.
func FuzzDuration(f *testing.F) {
	for _, s := range []string{"10s", "1w2d", "-PT1.5H", "P1DT2H", "99999w", "1.000000001s", "µs"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDuration(s)
		if err != nil {
			if !errors.Is(err, ErrSyntax) && !errors.Is(err, ErrRange) || len(err.Error()) > 500 {
				t.Fatalf("ParseDuration(%q): %v", s, err)
			}
			return
		}
		for _, again := range []string{Duration(d).String(), Short(d)} {
			if back, err := ParseDuration(again); err != nil || back != d {
				t.Fatalf("ParseDuration(%q) = %v; %q reads as %v, %v", s, d, again, back, err)
			}
		}
	})
}

// FuzzInstant: what is accepted is written so that it reads the same, rounded
// up to the millisecond.
func FuzzInstant(f *testing.F) {
	for _, s := range []string{"2026-12-01T09:00+08:00", "2026-12-01 09:00", "1796112000000", "2026-10-25 02:30", "0000-01-01T00:00Z"} {
		f.Add(s)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, err := ParseInstant(s, berlin)
		if err != nil {
			if !errors.Is(err, ErrSyntax) || len(err.Error()) > 500 {
				t.Fatalf("ParseInstant(%q): %v", s, err)
			}
			return
		}
		ms := TimeOf(at)
		if ms < firstTime || ms > lastTime {
			return // an offset may carry it out of the years that can be written
		}
		back, err := ParseInstant(ms.String(), nil)
		if err != nil || TimeOf(back) != ms || ms.Time().Before(at) {
			t.Fatalf("ParseInstant(%q) = %v; %v reads as %v, %v", s, at, ms, back, err)
		}
	})
}

// FuzzLevel: no table makes the parser fail, and a number is itself.
func FuzzLevel(f *testing.F) {
	for _, s := range []string{"3", "25m", "-1", "PT1H"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, table := range [][]time.Duration{defaultTable, nil, {3, 1, 2}} {
			n, err := ParseLevel(Level(s), table)
			if err != nil && (!errors.Is(err, ErrSyntax) || len(err.Error()) > 500) {
				t.Fatalf("ParseLevel(%q): %v", s, err)
			}
			if d, derr := ParseDuration(s); err == nil && derr == nil && table[n-1] != d {
				t.Fatalf("ParseLevel(%q) = %d, which is %v", s, n, table[n-1])
			}
		}
	})
}
