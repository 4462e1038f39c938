package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
)

// TestBackupOfARunningServer copies it while it goes on, to a file and a pipe,
// and serves what restore makes of both.
func TestBackupOfARunningServer(t *testing.T) {
	r := start(t, nil, "--data", filepath.Join(t.TempDir(), "data"))
	r.must("send", "orders", "it waits", "--after", "1h", "--key", "k1")
	file := filepath.Join(t.TempDir(), "orders.duemq")
	var told backupResult
	if err := json.Unmarshal([]byte(r.must("backup", file, "-o", "json")), &told); err != nil {
		t.Fatal(err)
	}
	r.must("send", "orders", "later", "--after", "1h")
	stream := r.must("backup", "-")
	saved, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 || told.Bytes != int64(len(saved)) || told.Batches == 0 {
		t.Errorf("%d bytes beside %v, told as %+v: %v", len(saved), left, told, err)
	}
	for i, s := range []string{string(saved), stream} {
		copied := filepath.Join(t.TempDir(), "copy")
		out, errs, code := runWith(t, s, "restore", "-", "--data", copied, "-o", "json")
		var restored backupResult
		if err := json.Unmarshal([]byte(out), &restored); err != nil || code != exitOK {
			t.Fatalf("restore: exit %d, %v\n%s%s", code, err, out, errs)
		}
		if i == 0 && (restored.Source != told.Source || restored.Created != told.Created || restored.Last != told.Last ||
			restored.Batches != told.Batches || restored.Keys != told.Keys || restored.Bytes != told.Bytes) {
			t.Errorf("restore read %+v\nof what backup told as %+v", restored, told)
		}
		other := start(t, nil, "--data", copied)
		if got := strings.TrimSpace(other.must("pending", "count", "--topic", "orders")); got != strconv.Itoa(i+1) {
			t.Errorf("%s messages wait in copy %d", got, i)
		}
		if code := other.end(); code != exitOK {
			t.Fatalf("serve: exit %d", code)
		}
	}
}

// TestBackupBrokenOff has servers that end in the middle, that change a byte,
// that refuse, and that are something else. Nothing stays of any of it.
func TestBackupBrokenOff(t *testing.T) {
	whole, _, _ := runWith(t, "", "backup", "-", "--data", stoppedStore(t))
	flipped := []byte(whole)
	flipped[len(flipped)/2] ^= 1
	send := func(parts ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Join(parts, "")) }
	}
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		code   int
		text   string
	}{
		"no tail":  {send(whole[:len(whole)-36]), exitUnavailable, "its tail is missing"},
		"cut":      {send(whole[:200]), exitUnavailable, "the backup broke off"},
		"longer":   {send(whole, "x"), exitFailure, "bytes follow its tail"},
		"changed":  {send(string(flipped)), exitFailure, "no backup, or damaged"},
		"no duemq": {send("<html>hello, this is something else</html>"), exitFailure, "does not begin like a backup"},
		"aborted": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, whole[:200])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, exitUnavailable, "the backup broke off"},
		"gone": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, exitUnavailable, "no backup was made"},
		"damaged, then silent": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(flipped)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done() // only a client that hangs up gets away
		}, exitFailure, "no backup, or damaged"},
		"busy": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"status":503,"code":"overloaded","detail":"1 at once is the limit"}`)
		}, exitUnavailable, "1 at once is the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(tt.answer)
			defer s.Close()
			dir := t.TempDir()
			_, errs, code := runWith(t, "", "backup", filepath.Join(dir, "new"), "--server", s.URL)
			if left, err := os.ReadDir(dir); code != tt.code || !strings.Contains(errs, tt.text) || err != nil || len(left) != 0 {
				t.Errorf("exit %d, want %d with %q; left %v, %v\n%s", code, tt.code, tt.text, left, err, errs)
			}
		})
	}
}

// TestBackupInterrupted breaks one off in the middle: no file, no word.
func TestBackupInterrupted(t *testing.T) {
	whole, _, _ := runWith(t, "", "backup", "-", "--data", stoppedStore(t))
	ctx, interrupt := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, whole[:200])
		_ = http.NewResponseController(w).Flush()
		interrupt()
		<-r.Context().Done()
	}))
	defer s.Close()
	dir := t.TempDir()
	p, _, errs := process("backup", filepath.Join(dir, "new"), "--server", s.URL)
	code := Run(ctx, p)
	if left, err := os.ReadDir(dir); code != exitInterrupted || errs.String() != "" || err != nil || len(left) != 0 {
		t.Errorf("exit %d, left %v, %v, said %q", code, left, err, errs)
	}
}

// A hurried clock has a second pass at each look.
type hurried struct{ *clock.Fake }

func (c hurried) Now() clock.Reading {
	c.Advance(time.Second)
	return c.Fake.Now()
}

// fullDisk takes nothing.
type fullDisk struct{}

var errDiskFull = errors.New("no space left on device")

func (fullDisk) Write([]byte) (int, error) { return 0, errDiskFull }

// TestBackupProgress draws bytes and rate of a download on a terminal, and tells
// a disk that is full from a server that broke off.
func TestBackupProgress(t *testing.T) {
	w := newWorld(t)
	if out, errs, code := w.run("", "send", "orders", "it waits", "--after", "1h"); code != exitOK {
		t.Fatalf("send: exit %d\n%s%s", code, out, errs)
	}
	a, out := onTerminal(hurried{clock.NewFake(testStart)})
	b := &backingUp{a: a, file: "f"}
	from := online{a, &remote{url: w.server.URL}}
	var file bytes.Buffer
	info, err := b.copy(t.Context(), &file, from)
	if err != nil || info.Bytes != int64(file.Len()) || info.Batches == 0 || info.Position == 0 {
		t.Errorf("%d bytes, told as %+v, %v", file.Len(), info, err)
	}
	out.await(t, `backing up \[█*·*\] +\d+%  [\d.]+ (bytes|KiB) of [\d.]+ KiB  [\d.]+ (bytes|KiB)/s`)
	if !strings.HasSuffix(out.String(), "\r\x1b[K") {
		t.Errorf("the bar is still there: %q", out)
	}
	if _, err := b.copy(t.Context(), fullDisk{}, from); !errors.Is(err, errDiskFull) {
		t.Errorf("to a full disk: %v", err)
	}
}
