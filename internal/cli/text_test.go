package cli

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                    "0s",
		3 * time.Millisecond:                 "3ms",
		949 * time.Millisecond:               "949ms",
		999 * time.Millisecond:               "1s",
		9997 * time.Millisecond:              "10s",
		9840 * time.Millisecond:              "9.8s",
		59940 * time.Millisecond:             "59.9s",
		59999 * time.Millisecond:             "1m",
		90 * time.Second:                     "1m 30s",
		time.Hour - 600*time.Millisecond:     "59m 59s",
		time.Hour - time.Millisecond:         "1h",
		time.Hour + 29*time.Second:           "1h",
		25*time.Hour + 5*time.Minute:         "25h 5m",
		48*time.Hour - time.Second:           "2d",
		365*24*time.Hour + 90*time.Minute:    "365d 2h",
		100*24*time.Hour + 10*time.Minute:    "100d",
		47*time.Hour + 59*time.Minute:        "47h 59m",
		3*time.Minute + 400*time.Millisecond: "3m",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 12034: "12,034", 1234567: "1,234,567", -1000: "-1,000", -999: "-999"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 bytes", 1: "1 byte", 1023: "1,023 bytes", 1024: "1.0 KiB", 5 << 20: "5.0 MiB", 3 << 40: "3.0 TiB", 5000 << 40: "5000.0 TiB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
	if got := several(2, "batch"); got != "2 batches" {
		t.Errorf("several batches: %q", got)
	}
	for ms, want := range map[int64]string{0: "on time", 3: "+3 ms late", 9999: "+9999 ms late", 90_000: "+1m 30s late"} {
		if got := lateness(ms); got != want {
			t.Errorf("lateness(%d) = %q, want %q", ms, got, want)
		}
	}
}

func TestBody(t *testing.T) {
	for in, want := range map[string]string{
		"":            `""`,
		"hello":       `"hello"`,
		"a\"b\n\x1b[": `"a\"b\n\x1b["`, // a terminal is not steered by a message
		"\xff\x00":    "<2 bytes>",
		"日程":          `"日程"`,
	} {
		if got := body([]byte(in)); got != want {
			t.Errorf("body(%q) = %s, want %s", in, got, want)
		}
	}
	long := body([]byte(strings.Repeat("ä", 1000)))
	if !strings.HasSuffix(long, "… <2,000 bytes>") || utf8.RuneCountInString(long) > maxShown+20 {
		t.Errorf("a long body is shown as %s", long)
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"": "''", "abc": "abc", "a b": "'a b'", "it's": `'it'\''s'`, "http://127.0.0.1:9870": "http://127.0.0.1:9870",
		"./duemq-data": "./duemq-data", "$(x)": "'$(x)'", "a*": "'a*'",
	} {
		if got := quote(in); got != want {
			t.Errorf("quote(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestCommand(t *testing.T) {
	for in, want := range map[string]string{
		"duemq": "duemq", "./bin/duemq": "./bin/duemq",
		"/tmp/go-build123/b001/exe/duemq":      "go run ./cmd/duemq",
		"/root/.cache/go-build/ab/abc-d/duemq": "go run ./cmd/duemq",
	} {
		if got := command(in); got != want {
			t.Errorf("command(%q) = %q, want %q", in, got, want)
		}
	}
}
