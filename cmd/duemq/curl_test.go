//go:build unix

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// chapter gives the command lines in a chapter of the HTTP page.
func chapter(t *testing.T, heading string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "http.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(page), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("no chapter %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n#")
	return regexp.MustCompile(`(?m)^curl .*$`).FindAllString(text, -1)
}

// instantOfPage is an instant on the page, which one day will have passed.
var instantOfPage = regexp.MustCompile(`\d{4}-\d\d-\d\dT`)

// A curled is an answer as curl prints it with its header.
type curled struct {
	status string
	header string
	wire.Receipt
}

// shell types a command line of the page at the server, as it is but for the
// server's address and the day, which is the day after tomorrow.
func (s *server) shell(line string) (c curled) {
	s.t.Helper()
	line = strings.ReplaceAll(line, "http://127.0.0.1:9870", s.url)
	line = instantOfPage.ReplaceAllString(line, time.Now().AddDate(0, 0, 2).Format("2006-01-02T"))
	home := s.t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".curlrc"), []byte("silent\nshow-error\ninclude\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), "sh", "-c", line)
	cmd.Env = append(os.Environ(), "CURL_HOME="+home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	var body string
	c.header, body, _ = strings.Cut(string(out), "\r\n\r\n")
	if words := strings.Fields(c.header); len(words) > 1 {
		c.status = words[1]
	}
	if err := json.Unmarshal([]byte(body), &c.Receipt); err != nil {
		s.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return c
}

// TestCurlOnce sends the message of the page's chapter about idempotency, once more,
// and once more after the server was killed and started again. There is one message.
func TestCurlOnce(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := serve(t, data)
	lines := chapter(t, "### Once")
	if len(lines) != 1 {
		t.Fatalf("%q, want one line", lines)
	}
	replayed := regexp.MustCompile(`(?im)^Idempotency-Replayed: true\r?$`)
	first := s.shell(lines[0])
	if first.status != "201" || first.State != wire.StateWaiting || replayed.MatchString(first.header) {
		t.Errorf("%+v, want a new message that waits", first)
	}
	for range 2 {
		again := s.shell(lines[0])
		if again.ID != first.ID || !again.DeliverAt.Time().Equal(first.DeliverAt.Time()) || !replayed.MatchString(again.header) {
			t.Errorf("%+v, want it replayed: %+v", again, first)
		}
		other := s.shell(strings.Replace(lines[0], "hello", "another", 1))
		if other.status != "422" || other.ID != "" {
			t.Errorf("another message under the key: %+v, want 422", other)
		}
		s.signal(syscall.SIGKILL)
		_, _ = s.wait() // it was killed
		s = serve(t, data)
	}
	if out := s.must("pending", "count"); out != "1\n" {
		t.Errorf("%s wait, want 1", out)
	}
}

// TestCurlNames types the lines of the page's chapter about names: a message, one in
// its place, and a cancel.
func TestCurlNames(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	lines := chapter(t, "### Names")
	if len(lines) != 2 {
		t.Fatalf("%q, want two lines", lines)
	}
	put, cancel := lines[0], lines[1]
	first := s.shell(put)
	if first.status != "201" || first.State != wire.StateWaiting || first.Replaced != "" {
		t.Errorf("%+v, want a new message that waits", first)
	}
	second := s.shell(put)
	if second.status != "200" || second.State != wire.StateWaiting || second.Replaced != first.ID || second.ID == first.ID {
		t.Errorf("%+v, want it in place of %s", second, first.ID)
	}
	if out := s.must("pending", "count", "--topic", "alarms"); out != "1\n" {
		t.Errorf("%s wait, want the second", out)
	}
	if gone := s.shell(cancel); gone.status != "200" || gone.ID != second.ID || gone.State != wire.StateCancelled {
		t.Errorf("%+v, want %s cancelled", gone, second.ID)
	}
	if again := s.shell(cancel); again.status != "409" {
		t.Errorf("cancelled again: %+v, want 409", again)
	}
	if third := s.shell(put); third.status != "201" || third.Replaced != "" {
		t.Errorf("%+v, want a new message that waits", third)
	}
}
