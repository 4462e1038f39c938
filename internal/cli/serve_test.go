package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/cli/machine"
	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

var update = flag.Bool("update", false, "write golden files")

// output is a writer that a test reads while somebody writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed and replaced at each write
}

func newOutput() *output { return &output{more: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.more)
	o.more = make(chan struct{})
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await waits until a pattern stands there and gives its first group.
func (o *output) await(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(20 * time.Second)
	for {
		o.mu.Lock()
		m, more := re.FindStringSubmatch(o.text.String()), o.more
		o.mu.Unlock()
		if m != nil {
			return m[len(m)-1]
		}
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("no %q in:\n%s", pattern, o)
		}
	}
}

// A running is a server in this process.
type running struct {
	t        *testing.T
	out, err *output
	url      string
	stop     context.CancelFunc
	code     chan int
}

// process gives a real one with its output in memory.
func process(args ...string) (p Process, stdout, stderr *output) {
	stdout, stderr = newOutput(), newOutput()
	return Process{
		Args: append([]string{"duemq"}, args...), Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr,
		Clock: clock.Real(), Rand: rand.Reader, Zone: time.UTC,
	}, stdout, stderr
}

// start runs serve on a free port and waits for its banner. adapt changes the
// app before it runs.
func start(t *testing.T, adapt func(*app), args ...string) *running {
	t.Helper()
	p, out, errs := process(append([]string{"serve", "--http", "127.0.0.1:0"}, args...)...)
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{t: t, out: out, err: errs, stop: cancel, code: make(chan int, 1)}
	a := newApp(p)
	if adapt != nil {
		adapt(a)
	}
	go func() {
		code := a.report(a.run(ctx))
		r.code <- code
		out.Write([]byte("ended\n"))
	}()
	t.Cleanup(cancel)
	out.await(t, `Ready|ended`)
	if !strings.Contains(out.String(), "Ready") {
		t.Fatalf("serve ended: %s%s", out, errs)
	}
	r.url = out.await(t, `(http://127\.0\.0\.1:\d+) `)
	return r
}

// end stops the server and gives its exit code.
func (r *running) end() int {
	r.t.Helper()
	r.stop()
	return r.wait()
}

func (r *running) wait() int {
	r.t.Helper()
	select {
	case code := <-r.code:
		return code
	case <-time.After(20 * time.Second):
		r.t.Fatalf("serve does not end:\n%s%s", r.out, r.err)
		return -1
	}
}

// do runs a client command against the server.
func (r *running) do(args ...string) (stdout, stderr string, code int) {
	r.t.Helper()
	p, out, errs := process(append(args, "--server", r.url)...)
	code = Run(r.t.Context(), p)
	return out.String(), errs.String(), code
}

// must is do for what succeeds.
func (r *running) must(args ...string) string {
	r.t.Helper()
	out, errs, code := r.do(args...)
	if code != 0 {
		r.t.Fatalf("duemq %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it):\n got:\n%s\nwant:\n%s", path, got, want)
	}
}

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

// awaitPoll waits until a receive has begun: it makes its group's topic.
func (r *running) awaitPoll() {
	r.t.Helper()
	for range 2000 {
		if _, _, code := r.do("pending", "count", "--topic", "orders"); code == 0 {
			return
		}
		runtime.Gosched()
	}
	r.t.Fatal("nobody receives")
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

// TestDamage has a byte of an acknowledged message changed: serve refuses, and
// verify names the place.
func TestDamage(t *testing.T) {
	data := t.TempDir()
	r := start(t, nil, "--data", data)
	r.must("send", "orders", strings.Repeat("x", 4096), "--after", "1h")
	r.must("send", "orders", "after it", "--after", "1h")
	if code := r.end(); code != 0 {
		t.Fatalf("serve: exit %d", code)
	}
	verify := func(args ...string) (verification, string, int) {
		p, out, errs := process(append([]string{"verify", "--data", data, "-o", "json"}, args...)...)
		code := Run(t.Context(), p)
		var v verification
		if err := json.Unmarshal([]byte(out.String()), &v); err != nil {
			t.Fatalf("%v in %s%s", err, out, errs)
		}
		return v, errs.String(), code
	}
	v, errs, code := verify("--rebuild")
	if code != 0 || !v.Whole || v.Messages != 2 || v.State == "" || v.State != v.Replay {
		t.Errorf("verify of a whole store: exit %d, %+v\n%s", code, v, errs)
	}
	segment := filepath.Join(data, "log", "00000000000000000000.seg")
	content, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(content, bytes.Repeat([]byte("x"), 100)) + 50
	content[at] ^= 1
	if err := os.WriteFile(segment, content, 0o600); err != nil {
		t.Fatal(err)
	}
	// The index knows the message already, so that a start need not read it; take
	// it away.
	if err := os.RemoveAll(filepath.Join(data, "index")); err != nil {
		t.Fatal(err)
	}
	v, errs, code = verify()
	if code != exitFailure || v.Whole || len(v.Damage) != 1 || v.Damage[0].File != segment || v.Damage[0].Reason == "" {
		t.Errorf("verify: exit %d, %+v\n%s", code, v, errs)
	}
	p, _, serr := process("serve", "--data", data, "--http", "127.0.0.1:0")
	if code := Run(t.Context(), p); code != exitFailure {
		t.Errorf("serve: exit %d, want %d", code, exitFailure)
	}
	for _, want := range []string{"damaged", segment, "verify --data"} {
		if !strings.Contains(serr.String(), want) {
			t.Errorf("serve: no %q in:\n%s", want, serr)
		}
	}
	entries, err := os.ReadDir(data)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), tempPrefix) }) {
		t.Errorf("verify left its copy behind: %v", entries)
	}
}

// TestVerifyIndex has the index differ from what the log says.
func TestVerifyIndex(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	for i, data := range dirs {
		r := start(t, nil, "--data", data)
		for range i + 1 {
			r.must("send", "orders", "x", "--after", "1h")
		}
		if code := r.end(); code != 0 {
			t.Fatalf("serve: exit %d", code)
		}
	}
	for _, name := range []string{"log", "STORE"} { // the log of the one with the index of the other, ahead of it
		if err := os.RemoveAll(filepath.Join(dirs[1], name)); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dirs[0], name), filepath.Join(dirs[1], name)); err != nil {
			t.Fatal(err)
		}
	}
	p, out, errs := process("verify", "--rebuild", "--data", dirs[1])
	if code := Run(t.Context(), p); code != exitFailure {
		t.Errorf("exit %d, want %d", code, exitFailure)
	}
	if !strings.Contains(errs.String(), "index") || !strings.Contains(errs.String(), "rebuilds it from the log") {
		t.Errorf("it says:\n%s%s", out, errs)
	}
}

func TestVerifyNothing(t *testing.T) {
	p, _, errs := process("verify", "--data", t.TempDir())
	if code := Run(t.Context(), p); code != exitNotFound {
		t.Errorf("exit %d, want %d:\n%s", code, exitNotFound, errs)
	}
}

// TestDoctor checks the checks against a server and against nothing.
func TestDoctor(t *testing.T) {
	data := t.TempDir()
	r := start(t, nil, "--data", data)
	p, out, errs := process("doctor", "--data", filepath.Join(data, "not", "there"), "--http", strings.TrimPrefix(r.url, "http://"), "--server", r.url, "-o", "json")
	if code := Run(t.Context(), p); code != 0 {
		t.Errorf("exit %d, want 0:\n%s", code, errs)
	}
	var findings []finding
	if err := json.Unmarshal([]byte(out.String()), &findings); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	grades := map[string]grade{}
	for _, f := range findings {
		grades[f.Check] = f.Grade
		if f.Text == "" || (f.Grade != gradeOK) != (f.Remedy != "") {
			t.Errorf("a finding without text, or trouble without remedy: %+v", f)
		}
	}
	for check, want := range map[string]grade{"data folder": gradeOK, "server": gradeOK, "port": gradeWarn} {
		if grades[check] != want {
			t.Errorf("%s is %q, want %q:\n%s", check, grades[check], want, out)
		}
	}
	for _, check := range []string{"clock", "disk space", "disk sync"} {
		if grades[check] == "" || grades[check] == gradeFail {
			t.Errorf("%s is %q:\n%s", check, grades[check], out)
		}
	}
	r.end()

	file := filepath.Join(data, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p, out, errs = process("doctor", "--data", file, "--http", "127.0.0.1:0", "--server", r.url)
	p.Clock = clock.NewFake(time.Unix(0, 0))
	if code := Run(t.Context(), p); code != exitFailure {
		t.Errorf("exit %d, want %d:\n%s%s", code, exitFailure, out, errs)
	}
	for _, want := range []string{"fail  clock", "fail  data folder", "warn  server", "start one: duemq serve"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

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
