package cli

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/duemq/duemq/internal/cli/machine"
	"github.com/duemq/duemq/internal/fs"
)

// steady takes out of a banner what differs from run to run.
func steady(s, data string) string {
	s = strings.ReplaceAll(s, data, "DATA")
	s = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(s, "127.0.0.1:PORT")
	s = regexp.MustCompile(`\d+ ms`).ReplaceAllString(s, "N ms")
	return s
}

// TestServe starts on nothing, takes messages, stops in order, and starts again
// on what was left.
func TestServe(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	r := start(t, nil, "--data", data)
	golden(t, "banner-new.golden", steady(r.out.String(), data))
	r.must("send", "orders", "a", "--after", "1h")
	r.must("send", "orders", "b", "--after", "1ms")
	if got := r.must("recv", "orders", "--max", "1", "-o", "json"); !strings.Contains(got, `"text": "b"`) {
		t.Errorf("received %s, want b", got)
	}
	if code := r.end(); code != 0 {
		t.Errorf("exit %d, want 0:\n%s", code, r.err)
	}
	r.out.await(t, "draining… done\nended")

	r = start(t, nil, "--data", data, "--sync", "interval", "--sync-every", "20ms")
	golden(t, "banner-recovered.golden", steady(r.out.String(), data))
	if got := r.must("pending", "count"); got != "1\n" {
		t.Errorf("%s pending, want 1", got)
	}
	if code := r.end(); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
}

// TestDrain has a receiver wait when the server is asked to stop: it is sent
// home, and the server does not wait for its time-out.
func TestDrain(t *testing.T) {
	r := start(t, nil, "--data", t.TempDir())
	p, out, errs := process("recv", "orders", "--max", "1", "--server", r.url)
	code := make(chan int, 1)
	go func() { code <- Run(t.Context(), p) }()
	r.awaitPoll()
	if code := r.end(); code != 0 {
		t.Errorf("serve: exit %d, want 0:\n%s", code, r.err)
	}
	if got := <-code; got != exitUnavailable {
		t.Errorf("recv: exit %d, want %d:\n%s%s", got, exitUnavailable, out, errs)
	}
	if !strings.Contains(errs.String(), "stopping") {
		t.Errorf("recv says:\n%s", errs)
	}
}

func TestJSONLog(t *testing.T) {
	p, out, errs := process("serve", "--http", "127.0.0.1:0", "--data", t.TempDir(), "--log-format", "json")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	code := make(chan int, 1)
	go func() { code <- Run(ctx, p) }()
	errs.await(t, `"msg":"ready"`)
	cancel()
	if got := <-code; got != 0 {
		t.Errorf("exit %d, want 0", got)
	}
	if out.String() != "" {
		t.Errorf("standard output for people: %q", out)
	}
	for line := range strings.Lines(errs.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

// TestInsecure: an address that other machines reach is taken when the server is
// told so, by flag or by environment, and is said aloud; else it is refused
// before anything is opened.
func TestInsecure(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:9870", "broker.example:9870"} {
		p, out, errs := process("serve", "--http", addr, "--data", data)
		if code := Run(t.Context(), p); code != exitUsage {
			t.Errorf("%s: exit %d, want %d:\n%s%s", addr, code, exitUsage, out, errs)
		}
		for _, want := range []string{"--http " + strconv.Quote(addr), "listen on 127.0.0.1", "--insecure"} {
			if !strings.Contains(errs.String(), want) {
				t.Errorf("%s: no %q in:\n%s", addr, want, errs)
			}
		}
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the data folder was touched: %v", err)
	}
	for _, c := range []struct {
		args    []string
		environ []string
	}{
		{args: []string{"--insecure"}},
		{environ: []string{"DUEMQ_INSECURE=true"}},
		{args: []string{"--insecure", "--log-format", "json"}},
	} {
		t.Run(strings.Join(append(c.args, c.environ...), " "), func(t *testing.T) { insecure(t, c.args, c.environ) })
	}
}

// insecure has a server listen to other machines, and reads what it says.
func insecure(t *testing.T, args, environ []string) {
	t.Helper()
	p, out, errs := process(append([]string{"serve", "--http", "0.0.0.0:0", "--data", t.TempDir()}, args...)...)
	p.Environ = environ
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	code := make(chan int, 1)
	go func() { code <- Run(ctx, p) }()
	if slices.Contains(args, "json") {
		errs.await(t, `"msg":"ready".*"http":"http://[^"]+:\d+","insecure":true`)
	} else {
		out.await(t, `(?s):\d+   \(INSECURE: no passwords.*--server http://(127\.0\.0\.1|localhost):\d+\n.*Ready`)
	}
	if !regexp.MustCompile(`(level=WARN|"level":"WARN").*INSECURE: .* beyond this machine`).MatchString(errs.String()) {
		t.Errorf("no warning in:\n%s", errs)
	}
	cancel()
	if got := <-code; got != 0 {
		t.Errorf("exit %d, want 0:\n%s", got, errs)
	}
}

// TestInsecureOnLoopback is nothing to warn of.
func TestInsecureOnLoopback(t *testing.T) {
	r := start(t, nil, "--data", t.TempDir(), "--insecure")
	if got := r.out.String() + r.err.String(); strings.Contains(got, "INSECURE") || !strings.Contains(got, "this machine only") {
		t.Errorf("it says:\n%s", got)
	}
}

func TestExposed(t *testing.T) {
	for text, want := range map[string]bool{
		"127.0.0.1:1": false, "127.9.9.9:1": false, "[::1]:1": false,
		"0.0.0.0:1": true, "[::]:1": true, "10.0.0.1:1": true, "[fe80::1]:1": true, "[::ffff:127.0.0.1]:1": false,
	} {
		if got := exposed(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text))); got != want {
			t.Errorf("exposed(%s) = %v", text, got)
		}
	}
}

func TestOff(t *testing.T) {
	p, out, _ := process("serve", "--http", "off", "--data", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- Run(ctx, p) }()
	out.await(t, "HTTP API   off.*\n.*Ready")
	cancel()
	if got := <-code; got != 0 {
		t.Errorf("exit %d, want 0", got)
	}
}

// TestStoreFails has every write fail: the server says so and ends with 1,
// because only a start can tell what is on the disk.
func TestStoreFails(t *testing.T) {
	disk := fs.NewFaulty(fs.Real())
	r := start(t, func(a *app) { a.disk = disk }, "--data", t.TempDir())
	r.must("send", "orders", "a", "--after", "1h")
	disk.Inject(fs.Fault{At: 1, Forever: true, Match: func(op fs.Op) bool { return op.Kind == fs.OpWrite || op.Kind == fs.OpSync }})
	if _, errs, code := r.do("send", "orders", "b"); code != exitUnavailable {
		t.Errorf("send: exit %d, want %d:\n%s", code, exitUnavailable, errs)
	}
	if code := r.wait(); code != exitFailure {
		t.Errorf("serve: exit %d, want %d", code, exitFailure)
	}
	for _, want := range []string{"can no longer be trusted", "why: ", "next: ", "verify --data"} {
		if !strings.Contains(r.err.String(), want) {
			t.Errorf("no %q in:\n%s", want, r.err)
		}
	}
}

func TestPortTaken(t *testing.T) {
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	data := filepath.Join(t.TempDir(), "data")
	p, _, errs := process("serve", "--data", data, "--http", l.Addr().String())
	if code := Run(t.Context(), p); code != exitFailure {
		t.Errorf("exit %d, want %d", code, exitFailure)
	}
	want := []string{"cannot listen on " + l.Addr().String(), "has that port", "--http 127.0.0.1:", "--port-base"}
	if runtime.GOOS == "linux" {
		addr, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			t.Fatalf("listening on %v", l.Addr())
		}
		holder, ok := machine.PortHolder(addr.Port)
		if !ok || holder.PID != os.Getpid() || holder.Name == "" {
			t.Errorf("holder %v (known: %v), want this process, %d", holder, ok, os.Getpid())
		}
		want = append(want, holder.String())
	}
	for _, w := range want {
		if !strings.Contains(errs.String(), w) {
			t.Errorf("no %q in:\n%s", w, errs)
		}
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the data folder was touched although there was no port: %v", err)
	}
}

func TestNoRights(t *testing.T) {
	blocker := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p, _, errs := process("serve", "--data", filepath.Join(blocker, "data"), "--http", "127.0.0.1:0")
	if code := Run(t.Context(), p); code != exitFailure {
		t.Errorf("exit %d, want %d", code, exitFailure)
	}
	if !strings.Contains(errs.String(), "cannot open data folder") {
		t.Errorf("it says:\n%s", errs)
	}
}

// TestNoServer has nobody listen.
func TestNoServer(t *testing.T) {
	for _, args := range [][]string{
		{"send", "orders", "x"},
		{"send", "orders", "x", "--count", "3"},
		{"recv", "orders"},
		{"cancel", "0000000000000150", "00000000000001d0"},
		{"reschedule", "0000000000000150", "--by", "1h"},
		{"deliver-now", "0000000000000150"},
		{"pending", "ls"},
		{"pending", "get", "0000000000000150"},
		{"pending", "count"},
		{"clock", "accept"},
	} {
		p, _, errs := process(append(args, "--server", "127.0.0.1:1")...)
		if code := Run(t.Context(), p); code != exitUnavailable {
			t.Errorf("%v: exit %d, want %d", args, code, exitUnavailable)
		}
		if !strings.Contains(errs.String(), "next: start one: duemq serve") {
			t.Errorf("%v says:\n%s", args, errs)
		}
	}
	p, _, _ := process("send", "orders", "x", "--server", "ftp://x")
	if code := Run(t.Context(), p); code != exitUsage {
		t.Errorf("a server that is none: exit %d, want %d", code, exitUsage)
	}
}

// TestSettings has a server do what it was told: its own levels, its own limit.
func TestSettings(t *testing.T) {
	r := start(t, nil, "--data", t.TempDir(), "--levels", "1s 90s", "--max-delay", "1h")
	if out := r.must("send", "orders", "x", "--level", "2"); !strings.Contains(out, "(in 1m 30s)") {
		t.Errorf("level 2 is %s, want 90 s", out)
	}
	if _, errs, code := r.do("send", "orders", "x", "--level", "30m"); code != exitUsage || !strings.Contains(errs, "2 (1m30s)") {
		t.Errorf("a level of another table: exit %d\n%s", code, errs)
	}
	if _, errs, code := r.do("send", "orders", "x", "--after", "2h"); code != exitUsage || !strings.Contains(errs, "limit 1h") {
		t.Errorf("beyond the limit: exit %d\n%s", code, errs)
	}
}
