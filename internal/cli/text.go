package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// instant gives an instant for people: the time of day, with the date unless it
// is today's.
func (a *app) instant(t wire.Time) string {
	at, now := t.Time().In(a.Zone), a.now().In(a.Zone)
	if at.Year() == now.Year() && at.YearDay() == now.YearDay() {
		return at.Format("15:04:05.000")
	}
	return at.Format("2006-01-02 15:04:05.000")
}

// until gives the time from now to an instant: "in 10s", "3m 2s ago".
func (a *app) until(t wire.Time) string {
	d := t.Time().Sub(a.now()).Round(time.Millisecond)
	switch {
	case d < 0:
		return span(-d) + " ago"
	case d == 0:
		return "now"
	}
	return "in " + span(d)
}

// span gives a length of time with the two largest units that matter.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	two := func(major, minor time.Duration, m, n string) string {
		d = d.Round(minor)
		if rest := d % major / minor; rest != 0 {
			return fmt.Sprintf("%d%s %d%s", d/major, m, rest, n)
		}
		return fmt.Sprintf("%d%s", d/major, m)
	}
	switch {
	case d < 950*time.Millisecond:
		return d.Round(time.Millisecond).String()
	case d < 59950*time.Millisecond:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour-500*time.Millisecond:
		return two(time.Minute, time.Second, "m", "s")
	case d < 48*time.Hour-30*time.Second:
		return two(time.Hour, time.Minute, "h", "m")
	default:
		return two(day, time.Hour, "d", "h")
	}
}

// lateness says how late a message became visible.
func lateness(ms int64) string {
	if ms == 0 {
		return "on time"
	}
	if ms < 10_000 {
		return fmt.Sprintf("+%d ms late", ms)
	}
	return "+" + span(time.Duration(ms)*time.Millisecond) + " late"
}

// count gives a number with thousands set apart.
func count[N int | int64 | uint64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// several gives a count with its noun.
func several[N int | int64 | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "ch") {
		noun += "e"
	}
	return count(n) + " " + noun + "s"
}

// size gives a number of bytes.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return several(n, "byte")
	}
	f := float64(n)
	for _, suffix := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if f /= unit; f < unit || suffix == "TiB" {
			return strconv.FormatFloat(f, 'f', 1, 64) + " " + suffix
		}
	}
	return ""
}

// maxShown is how many characters of a body a line shows.
const maxShown = 200

// body gives a body for a line: quoted if it is text, else its size.
func body(b []byte) string {
	if !utf8.Valid(b) {
		return fmt.Sprintf("<%s>", several(len(b), "byte"))
	}
	if utf8.RuneCount(b) <= maxShown {
		return strconv.Quote(string(b))
	}
	shown := []rune(string(b))[:maxShown]
	return fmt.Sprintf("%s… <%s>", strconv.Quote(string(shown)), several(len(b), "byte"))
}

// dash stands for what is not there.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// quote writes a word as a shell takes it.
func quote(s string) string {
	plain := s != ""
	for _, r := range s {
		ok := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=+@%,", r)
		plain = plain && ok
	}
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
