package cli

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// TestReceive waits in real time: for a message, for nothing, and for what is
// not acknowledged.
func TestReceive(t *testing.T) {
	r := start(t, nil, "--data", t.TempDir())
	r.must("send", "orders", "soon", "--after", "300ms")
	var got []wire.Message
	out := r.must("recv", "orders", "--wait", "10s", "--max", "1", "--ack", "none", "-o", "json")
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 1 || got[0].Text != "soon" || got[0].LatenessMs == nil || *got[0].LatenessMs < 0 {
		t.Fatalf("received %s (%v)", out, err)
	}
	// Leased and not acknowledged: this group does not get it again so soon.
	if out, errs, code := r.do("recv", "orders", "--wait", "50ms"); code != exitUnavailable {
		t.Errorf("exit %d, want %d:\n%s%s", code, exitUnavailable, out, errs)
	}
	if out := r.must("recv", "orders", "--group", "other", "--wait", "100ms"); !strings.Contains(out, `"soon"`) {
		t.Errorf("another group received %q", out)
	}
	if _, _, code := r.do("recv", "orders", "--wait", "soon"); code != exitUsage {
		t.Errorf("--wait soon: exit %d, want %d", code, exitUsage)
	}
	if _, _, code := r.do("recv", "orders", "--ack", "maybe"); code != exitUsage {
		t.Errorf("--ack maybe: exit %d, want %d", code, exitUsage)
	}
}

// TestComesBack starts the server anew while somebody watches a receiver.
func TestComesBack(t *testing.T) {
	data := t.TempDir()
	r := start(t, nil, "--data", data)
	r.must("send", "orders", "first")
	p, out, errs := process("recv", "orders", "--max", "2", "--server", r.url)
	a := newApp(p)
	a.outWidth, a.errWidth, a.noColor = 80, 80, true
	code := make(chan int, 1)
	go func() { code <- a.report(a.run(t.Context())) }()
	id := out.await(t, `([0-9a-f]{16})  "first"`)
	for !strings.Contains(r.must("pending", "get", id), "acked") {
		runtime.Gosched()
	}
	r.end()
	errs.await(t, "the server is gone")
	r = start(t, nil, "--data", data, "--http", strings.TrimPrefix(r.url, "http://"))
	r.must("send", "orders", "second", "--after", "1ms")
	out.await(t, `"second"`)
	if got := <-code; got != 0 {
		t.Errorf("exit %d, want 0", got)
	}
}

// TestComesBackToTheFirst starts the server anew while somebody watches a
// receiver that has got nothing yet.
func TestComesBackToTheFirst(t *testing.T) {
	data := t.TempDir()
	r := start(t, nil, "--data", data)
	r.must("send", "orders", "waits", "--after", "1h")
	p, out, errs := process("recv", "orders", "--max", "1", "--server", r.url)
	a := newApp(p)
	a.outWidth, a.errWidth, a.noColor = 80, 80, true
	code := make(chan int, 1)
	go func() { code <- a.report(a.run(t.Context())) }()
	errs.await(t, `next due in`)
	r.end()
	errs.await(t, "the server is gone")
	r = start(t, nil, "--data", data, "--http", strings.TrimPrefix(r.url, "http://"))
	r.must("send", "orders", "comes")
	out.await(t, `"comes"`)
	if got := <-code; got != 0 {
		t.Errorf("exit %d, want 0", got)
	}
}

// TestInterrupt breaks a receiver off.
func TestInterrupt(t *testing.T) {
	r := start(t, nil, "--data", t.TempDir())
	p, out, errs := process("recv", "orders", "-o", "json", "--server", r.url)
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- Run(ctx, p) }()
	r.awaitPoll()
	cancel()
	if got := <-code; got != exitInterrupted {
		t.Errorf("exit %d, want %d", got, exitInterrupted)
	}
	if out.String() != "[]\n" || errs.String() != "" {
		t.Errorf("it says %q and %q, want an empty array and nothing", out, errs)
	}
}
