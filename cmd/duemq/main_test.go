//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary is the program under test.
var binary string

func TestMain(m *testing.M) {
	if where := os.Getenv(poisonedBy); where != "" {
		os.Exit(poisoned(context.Background(), where))
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "duemq")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "duemq")
		if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
		// The cases wait for instants, they do not compute. A -parallel of the command
		// line is read later and counts.
		if err := flag.Set("test.parallel", "16"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// A server is a process that serves.
type server struct {
	t      *testing.T
	cmd    *exec.Cmd
	url    string
	banner string
	stderr lockedBuffer
	rest   chan string // what follows the banner, once the process has ended
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var urlInBanner = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// serve starts a server on a free port and waits until it is ready.
func serve(t *testing.T, data string, flags ...string) *server {
	t.Helper()
	return begin(t, "Ready in", append([]string{"serve", "--data", data, "--http", "127.0.0.1:0"}, flags...)...)
}

// begin starts a command that serves, and waits until it has printed a text.
func begin(t *testing.T, ready string, args ...string) *server {
	t.Helper()
	s := &server{t: t, rest: make(chan string, 1)}
	s.cmd = exec.CommandContext(t.Context(), binary, args...)
	s.cmd.Stderr = &s.stderr
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended
		_ = s.cmd.Wait()
	})
	in := bufio.NewReader(stdout)
	for !strings.Contains(s.banner, ready) {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("it ended: %v\n%s%s", err, s.banner, &s.stderr)
		}
		s.banner += line
	}
	s.url = urlInBanner.FindString(s.banner)
	go func() {
		rest, _ := io.ReadAll(in) // an error is the end as well
		s.rest <- string(rest)
	}()
	return s
}

// wait waits for the process to end and gives what it printed last.
func (s *server) wait() (rest string, err error) {
	s.t.Helper()
	select {
	case rest = <-s.rest:
	case <-time.After(30 * time.Second):
		s.t.Fatalf("serve does not end:\n%s", &s.stderr)
	}
	return rest, s.cmd.Wait()
}

func (s *server) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// again sends a signal until the process has ended: the first one asks, and how
// soon it counts as one before a second is not promised.
func (s *server) again(sig os.Signal) {
	for {
		_ = s.cmd.Process.Signal(sig) // it may have ended
		select {
		case rest := <-s.rest:
			s.rest <- rest
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// do runs a command against the server.
func (s *server) do(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	return run(s.t, append(args, "--server", s.url)...)
}

func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (s *server) must(args ...string) string {
	s.t.Helper()
	out, errs, code := s.do(args...)
	if code != 0 {
		s.t.Fatalf("duemq %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// A message is what the test needs of a received one.
type message struct {
	ID         string `json:"id"`
	Text       string `json:"text"`
	LatenessMs *int64 `json:"latenessMs"`
}

// receive waits for the next message.
func (s *server) receive() message {
	s.t.Helper()
	out := s.must("recv", "orders", "--max", "1", "--wait", "20s", "-o", "json")
	var got []message
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 1 {
		s.t.Fatalf("%v in %s", err, out)
	}
	return got[0]
}

// TestSixtySeconds does what the README promises: one command, a message that
// waits, and it is there on time.
func TestSixtySeconds(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "duemq-data"))
	sent := s.must("send", "orders", "hello", "--after", "1s")
	id := strings.Fields(sent)[0]
	if out := s.must("pending", "ls"); !strings.Contains(out, id) {
		t.Errorf("%s does not wait:\n%s", id, out)
	}
	got := s.receive()
	if got.ID != id || got.Text != "hello" || got.LatenessMs == nil || *got.LatenessMs < 0 {
		t.Errorf("received %+v, want hello as %s, not early", got, id)
	}
	id = strings.Fields(s.must("send", "orders", "unpaid?", "--after", "30m"))[0]
	s.must("cancel", id)
	if _, errs, code := s.do("cancel", id); code != 4 {
		t.Errorf("cancelled twice: exit %d\n%s", code, errs)
	}
	s.signal(syscall.SIGTERM)
	if rest, err := s.wait(); err != nil || rest != "draining… done\n" {
		t.Errorf("after SIGTERM: %q, %v\n%s", rest, err, &s.stderr)
	}
}

// TestKill kills the process while messages wait. After a restart each of them
// comes, once, and none early.
func TestKill(t *testing.T) {
	data := t.TempDir()
	s := serve(t, data)
	const n = 50
	for i := range n {
		after := fmt.Sprintf("%dms", 1000+20*i)
		s.must("send", "orders", strconv.Itoa(i), "--after", after)
		if i == n/2 {
			s.must("send", "orders", "far", "--after", "1h")
		}
	}
	s.signal(syscall.SIGKILL)
	if _, err := s.wait(); err == nil {
		t.Error("killed, and it ended well")
	}
	s = serve(t, data)
	if !strings.Contains(s.banner, "recovered") {
		t.Errorf("the banner does not tell of a recovery:\n%s", s.banner)
	}
	seen := map[string]int{}
	worst := int64(0)
	for len(seen) < n {
		m := s.receive()
		seen[m.Text]++
		if m.LatenessMs == nil || *m.LatenessMs < 0 {
			t.Errorf("%+v is early, or nobody knows", m)
			continue
		}
		worst = max(worst, *m.LatenessMs)
	}
	for text, times := range seen {
		if times != 1 {
			t.Errorf("message %s came %d times", text, times)
		}
	}
	t.Logf("%d messages, %d ms late at most", n, worst)
	if out := s.must("pending", "count"); out != "1\n" {
		t.Errorf("%s wait, want the one of an hour", out)
	}
	s.signal(os.Interrupt)
	if rest, err := s.wait(); err != nil || rest != "draining… done\n" {
		t.Errorf("after an interrupt: %q, %v\n%s", rest, err, &s.stderr)
	}
}

// TestDrain asks the process to stop while a receiver waits and a request is
// under way: the first is sent home, the second is answered.
func TestDrain(t *testing.T) {
	s := serve(t, t.TempDir())
	s.must("send", "orders", "first") // so that the topic is there
	s.receive()
	receiver := exec.CommandContext(t.Context(), binary, "recv", "orders", "--server", s.url)
	if err := receiver.Start(); err != nil {
		t.Fatal(err)
	}
	conn := s.halfRequest()
	s.signal(syscall.SIGTERM)
	if err := receiver.Wait(); receiver.ProcessState.ExitCode() != 5 { // its wait ends because the server drains
		t.Errorf("the receiver ended with %v, want exit 5", err)
	}
	if _, err := io.WriteString(conn, "lo"); err != nil {
		t.Fatal(err)
	}
	status, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(status, "201") {
		t.Errorf("the request under way was answered with %q, %v, want 201", status, err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if rest, err := s.wait(); err != nil || rest != "draining… done\n" {
		t.Errorf("after SIGTERM: %q, %v\n%s", rest, err, &s.stderr)
	}
}

// halfRequest begins a request whose body is not there yet, and waits until the
// server has read its head.
func (s *server) halfRequest() net.Conn {
	s.t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	head := "POST /v1/topics/orders/messages HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		s.t.Fatal(err)
	}
	answer := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n")) // it comes when the body is asked for
	if _, err := io.ReadFull(conn, answer); err != nil || !bytes.Contains(answer, []byte("100")) {
		s.t.Fatalf("%q, %v", answer, err)
	}
	if _, err := io.WriteString(conn, "hel"); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// TestSecondSignal does not wait for what is under way.
func TestSecondSignal(t *testing.T) {
	s := serve(t, t.TempDir())
	s.must("send", "orders", "acknowledged", "--after", "1h")
	conn := s.halfRequest()
	defer conn.Close()
	receiver := exec.CommandContext(t.Context(), binary, "recv", "orders", "--server", s.url)
	if err := receiver.Start(); err != nil {
		t.Fatal(err)
	}
	s.signal(syscall.SIGTERM)
	_ = receiver.Wait() // it ends when draining has begun
	s.again(syscall.SIGTERM)
	rest, err := s.wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || strings.Contains(rest, "done") {
		t.Fatalf("after two signals: %q, %v", rest, err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("ended by %v, want SIGTERM", err)
	}
}

// TestInUse has a folder and a port that another process has, which is named.
func TestInUse(t *testing.T) {
	data := t.TempDir()
	s := serve(t, data)
	pid := fmt.Sprintf("process %d", s.cmd.Process.Pid)
	for _, tt := range []struct {
		name string
		args []string
		want []string
	}{
		{"folder", []string{"serve", "--data", data, "--http", "127.0.0.1:0"}, []string{"is in use", pid, "kill ", "--data DIR"}},
		{"port", []string{"serve", "--data", t.TempDir(), "--http", strings.TrimPrefix(s.url, "http://")}, []string{"cannot listen on", "--port-base"}},
		{"verify", []string{"verify", "--data", data}, []string{"is in use", pid}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, errs, code := run(t, tt.args...)
			if code != 1 {
				t.Errorf("exit %d, want 1", code)
			}
			for _, want := range tt.want {
				if !strings.Contains(errs, want) {
					t.Errorf("no %q in:\n%s", want, errs)
				}
			}
		})
	}
	if out, errs, code := run(t, "doctor", "--data", data, "--http", strings.TrimPrefix(s.url, "http://"), "--server", s.url); code != 0 || !strings.Contains(out, pid) {
		t.Errorf("doctor: exit %d\n%s%s", code, out, errs)
	}
	s.must("send", "orders", "still there")
	if got := s.receive(); got.Text != "still there" {
		t.Errorf("received %+v", got)
	}
}

func TestVersion(t *testing.T) {
	out, _, code := run(t, "version")
	if code != 0 || !strings.HasPrefix(out, "duemq ") || !strings.Contains(out, "go1.") {
		t.Errorf("exit %d: %s", code, out)
	}
}
