//go:build unix

package main

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestDemo looks at the shop of `duemq demo` with the commands that it names,
// measures its server, and ends it with an interrupt.
func TestDemo(t *testing.T) {
	t.Parallel()
	s := begin(t, "An interrupt", "demo", "--http", "127.0.0.1:0", "--rate", "50")
	awaitPush(t, s)
	for _, tt := range []struct{ command, want string }{
		{"pending timeline -o wide", `(?m)^[0-9,]+ messages fall due from .*\nFROM +TO +MESSAGES +TOPIC\n(.*\n)*.* demo-trials$`},
		{"pending cancel --topic demo-trials --dry-run", `300 messages to cancel, such as:\n  DUE`},
		{"pending spread --topic demo-trials --over 1h --yes", `spread 300 messages \(op-1\)`},
		{"op get op-1", `(?m)^selected   topic=demo-trials$`},
		{"topic pause demo-reminders", `demo-reminders  paused`},
		{"group get demo-webhooks", `(?m)^backoff    2s 5s 15s$`},
		{"bench delay --msgs 100 --batch 10 --delay 50ms-200ms", `0 early, 0 twice, 0 lost`},
	} {
		if out := s.must(strings.Fields(tt.command)...); !regexp.MustCompile(tt.want).MatchString(out) {
			t.Errorf("duemq %s: no %q in\n%s", tt.command, tt.want, out)
		}
	}
	s.signal(syscall.SIGINT)
	rest, err := s.wait()
	if err != nil || !strings.Contains(rest, "orders: ") || !strings.Contains(rest, "nothing is left") {
		t.Errorf("after an interrupt: %v\n%s%s", err, rest, &s.stderr)
	}
}

// awaitPush waits until the shop is open: its push and its trials wait.
func awaitPush(t *testing.T, s *server) {
	t.Helper()
	for range 200 {
		if out, _, code := s.do("pending", "count", "--topic", "demo-trials"); code == 0 && out == "300\n" {
			return
		}
	}
	t.Fatalf("the shop does not open:\n%s", &s.stderr)
}
