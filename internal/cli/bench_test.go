package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// TestBench measures a server that runs: what is counted must come out.
func TestBench(t *testing.T) {
	r := start(t, nil, "--data", t.TempDir())
	measure := func(args ...string) benchResult {
		t.Helper()
		var got benchResult
		out := r.must(append([]string{"bench"}, append(args, "--json")...)...)
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%v in:\n%s", err, out)
		}
		return got
	}
	if got := measure("send", "--msgs", "1050", "--batch", "100", "--size", "10"); got.Sent.Messages != 1050 || got.Sent.Rate <= 0 || got.Answers.P50 <= 0 || got.Received != nil {
		t.Errorf("bench send: %+v", got)
	}
	if got := measure("recv", "--msgs", "1050"); got.Received.Messages != 1050 || got.Sent != nil {
		t.Errorf("bench recv: %+v", got)
	}
	_, stderr, code := r.do("bench", "recv", "--msgs", "10", "--wait", "100ms")
	if code != exitUnavailable || !strings.Contains(stderr, "bench send") {
		t.Errorf("bench recv of nothing: exit %d\n%s", code, stderr)
	}
	got := measure("delay", "--msgs", "200", "--batch", "20", "--rate", "1000", "--delay", "100ms-300ms")
	if got.Sent.Messages != 200 || got.Received.Messages != 200 || *got.Early+*got.Twice+*got.Lost != 0 || got.Arrived.Max <= 0 || got.Visible.Max >= 60_000 {
		t.Errorf("bench delay: %+v", got)
	}
	if topics := r.must("topic", "ls", "--system"); strings.Contains(topics, "bench-") {
		t.Errorf("bench delay left its topic:\n%s", topics)
	}
	out := r.must("bench", "send", "--msgs", "10", "--batch", "3", "--rate", "100000", "--delay", "1h")
	if !regexp.MustCompile(`^sent +10 messages in .* \(4 requests at once, 3 each\)\nanswered +p50 .*p99\.9 .*max .* ms\n$`).MatchString(out) {
		t.Errorf("bench send:\n%s", out)
	}
	if waiting := r.must("pending", "count", "--topic", "bench"); waiting != "10\n" {
		t.Errorf("%s wait after a measurement with a delay, want 10", waiting)
	}
}

// TestDemo runs the shop for a moment, in memory and on a server.
func TestDemo(t *testing.T) {
	p, out, errs := process("demo", "--http", "127.0.0.1:0", "--rate", "100", "--for", "1500ms")
	if code := Run(t.Context(), p); code != 0 {
		t.Fatalf("exit %d:\n%s%s", code, out, errs)
	}
	for _, want := range []string{`a small shop  on a server in memory, http://127`, `pending timeline --within 10m --watch -o wide --server http`, `orders: 1?\d\d, paid`, `nothing is left`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	r := start(t, nil, "--data", t.TempDir())
	told := r.must("demo", "--rate", "20", "--for", "500ms")
	if strings.Contains(told, "in memory") || !strings.Contains(told, "topic rm demo-orders") {
		t.Errorf("told of a server that stays:\n%s", told)
	}
	waiting := r.must("pending", "count", "--topic", shopPush)
	if waiting != "2000\n" && waiting != "0\n" { // nine o'clock has just passed
		t.Errorf("%s of the push wait, want 2000", waiting)
	}
	if _, _, code := r.do("demo", "--rate", "0"); code != exitUsage {
		t.Errorf("a shop without customers: exit %d", code)
	}
}

// TestNine is the next nine o'clock, on the wall.
func TestNine(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for now, want := range map[string]string{
		"2026-12-01T07:59:59Z": "2026-12-01T08:00:00Z",
		"2026-12-01T08:00:00Z": "2026-12-02T08:00:00Z",
		"2026-12-31T20:00:00Z": "2027-01-01T08:00:00Z",
		"2026-10-24T20:00:00Z": "2026-10-25T08:00:00Z", // the night in which summer time ends
	} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := nine(at, berlin).UTC().Format(time.RFC3339); got != want {
			t.Errorf("after %s: %s, want %s", now, got, want)
		}
	}
}

// TestLimits shows the server's limits to people and programs.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	out, errs, code := w.run("", "limits")
	if code != 0 || !regexp.MustCompile(`(?m)^message\.body +4\.0 MiB +\S`).MatchString(out) || !regexp.MustCompile(`(?m)^delay\.max +365d +\S`).MatchString(out) {
		t.Errorf("limits: exit %d\n%s%s", code, out, errs)
	}
	var limits []wire.Limit
	out, errs, code = w.run("", "limits", "-o", "json")
	if err := json.Unmarshal([]byte(out), &limits); err != nil || code != 0 || len(limits) < 20 {
		t.Errorf("%d limits, %v, exit %d: %s", len(limits), err, code, errs)
	}
}
