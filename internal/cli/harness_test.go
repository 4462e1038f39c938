package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
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
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.code <- a.report(a.run(ctx))
		out.Write([]byte("ended\n"))
	}()
	t.Cleanup(func() {
		cancel()
		<-ended // else it writes where the test removes
	})
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
