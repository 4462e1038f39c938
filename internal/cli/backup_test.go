package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duemq/duemq/internal/fs"
)

// runWith runs one command line without a server, with input on standard input.
func runWith(t *testing.T, input string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	p, out, errs := process(args...)
	p.Stdin = strings.NewReader(input)
	code = Run(t.Context(), p)
	return out.String(), errs.String(), code
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := runWith(t, "", args...)
	if code != exitOK {
		t.Fatalf("duemq %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// stoppedStore is the data folder of a server that has stopped, in which a
// message waits.
func stoppedStore(t *testing.T) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	r := start(t, nil, "--data", data)
	r.must("send", "orders", "it waits", "--after", "1h", "--key", "k1")
	r.must("send", "orders", "it is there")
	if code := r.end(); code != exitOK {
		t.Fatalf("serve: exit %d", code)
	}
	return data
}

// TestBackupAndRestore copies a stopped store and serves the copy: the same
// messages under the same ids.
func TestBackupAndRestore(t *testing.T) {
	data := stoppedStore(t)
	file := filepath.Join(t.TempDir(), "orders.duemq")
	var saved, restored backupResult
	if err := json.Unmarshal([]byte(mustRun(t, "backup", file, "--data", data, "-o", "json")), &saved); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() != saved.Bytes || info.Mode().Perm() != 0o600 || saved.Batches == 0 || saved.Last < saved.Batches || len(saved.Source) != 32 {
		t.Errorf("%d bytes, mode %v, said: %+v", info.Size(), info.Mode(), saved)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("beside the backup: %v, %v", left, err)
	}
	copied := filepath.Join(t.TempDir(), "a", "copy")
	if err := json.Unmarshal([]byte(mustRun(t, "restore", file, "--data", copied, "-o", "json")), &restored); err != nil {
		t.Fatal(err)
	}
	if restored.Source != saved.Source || restored.Store == saved.Source || restored.Created != saved.Created || restored.Last != saved.Last || restored.Data != copied {
		t.Errorf("restored %+v\nof %+v", restored, saved)
	}
	mustRun(t, "verify", "--data", copied, "--rebuild")
	// The source still opens, and holds what the copy holds.
	var pending [2]string
	for i, dir := range []string{data, copied} {
		r := start(t, nil, "--data", dir)
		pending[i] = r.must("pending", "ls", "-o", "jsonl")
		if got := r.must("recv", "orders", "--max", "1", "--wait", "10s"); !strings.Contains(got, "it is there") {
			t.Errorf("%s: received %q", dir, got)
		}
		if code := r.end(); code != exitOK {
			t.Fatalf("serve: exit %d", code)
		}
	}
	var first, second struct{ ID, Key, DeliverAt string }
	if err := json.Unmarshal([]byte(pending[0]), &first); err != nil {
		t.Fatalf("%v in %s", err, pending[0])
	}
	if err := json.Unmarshal([]byte(pending[1]), &second); err != nil || first != second || first.Key != "k1" {
		t.Errorf("pending in the source %+v, in the copy %+v: %v", first, second, err)
	}
}

// TestBackupThroughPipes uses standard output and input.
func TestBackupThroughPipes(t *testing.T) {
	data := stoppedStore(t)
	stream, said, code := runWith(t, "", "backup", "-", "--data", data)
	if code != exitOK || !strings.HasPrefix(stream, "DqB1") || !strings.Contains(said, "backup: ") {
		t.Fatalf("backup -: exit %d, %d bytes, said %q", code, len(stream), said)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	out, errs, code := runWith(t, stream, "restore", "-", "--data", copied)
	if code != exitOK || !strings.Contains(out, "next: duemq serve --data "+copied) {
		t.Fatalf("restore -: exit %d\n%s%s", code, out, errs)
	}
	mustRun(t, "verify", "--data", copied, "--rebuild")
}

// TestBackupRefused tells why there is no backup.
func TestBackupRefused(t *testing.T) {
	data := stoppedStore(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "b")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args []string
		code int
		text string
	}{
		{[]string{file, "--data", data}, exitConflict, "a backup is not written over"},
		{[]string{filepath.Join(dir, "new"), "--data", filepath.Join(dir, "none")}, exitNotFound, "no data in"},
		{[]string{filepath.Join(dir, "no", "folder"), "--data", data}, exitFailure, "no backup was written to"},
		{nil, exitUsage, "too few arguments"},
		{[]string{filepath.Join(dir, "new"), "--data", data, "--server", "x"}, exitUsage, "one of them at most"},
		{[]string{filepath.Join(dir, "new"), "--server", "http://127.0.0.1:1"}, exitUnavailable, "no backup was made"},
	}
	for _, tt := range tests {
		_, errs, code := runWith(t, "", append([]string{"backup"}, tt.args...)...)
		if code != tt.code || !strings.Contains(errs, tt.text) {
			t.Errorf("backup %v: exit %d, want %d with %q:\n%s", tt.args, code, tt.code, tt.text, errs)
		}
	}
	lock, err := fs.Real().Lock(filepath.Join(data, lockName))
	if err != nil {
		t.Fatal(err)
	}
	_, errs, code := runWith(t, "", "backup", filepath.Join(dir, "new"), "--data", data)
	if code != exitFailure || !strings.Contains(errs, "is in use") {
		t.Errorf("of a folder in use: exit %d\n%s", code, errs)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(data, indexName)); err != nil {
		t.Fatal(err)
	}
	damage(t, filepath.Join(data, logName, "00000000000000000000.seg"))
	_, errs, code = runWith(t, "", "backup", filepath.Join(dir, "new"), "--data", data)
	if code != exitFailure || !strings.Contains(errs, "is damaged") {
		t.Errorf("of a damaged store: exit %d\n%s", code, errs)
	}
	left, err := os.ReadDir(dir)
	if kept, _ := os.ReadFile(file); err != nil || len(left) != 1 || string(kept) != "precious" {
		t.Errorf("left behind: %v, %q, %v", left, kept, err)
	}
}

// damage changes a byte of a message's body.
func damage(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(content, []byte("it waits"))
	if at < 0 {
		t.Fatalf("no message in %s", file)
	}
	content[at] ^= 1
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRestoreRefused tells why there is no store, and leaves none.
func TestRestoreRefused(t *testing.T) {
	data := stoppedStore(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "b.duemq")
	mustRun(t, "backup", file, "--data", data)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	flipped := bytes.Clone(content)
	flipped[len(flipped)/2] ^= 1
	newer := bytes.Clone(content)
	newer[12]++ // the format version; its checksum is wrong now, too
	tests := []struct {
		file, data string
		code       int
		text       string
	}{
		{filepath.Join(dir, "none"), "", exitNotFound, "cannot read"},
		{write("short", content[:len(content)-36]), "", exitFailure, "its tail is missing"},
		{write("flipped", flipped), "", exitFailure, "is no backup, or damaged"},
		{write("newer", newer), "", exitFailure, "checksum of the frame at byte 0"},
		{write("text", []byte("a letter to somebody")), "", exitFailure, "does not begin like a backup"},
		{file, data, exitConflict, "data folder is not empty"},
	}
	for _, tt := range tests {
		to := tt.data
		if to == "" {
			to = filepath.Join(t.TempDir(), "copy")
		}
		_, errs, code := runWith(t, "", "restore", tt.file, "--data", to)
		if code != tt.code || !strings.Contains(errs, tt.text) {
			t.Errorf("restore %s: exit %d, want %d with %q:\n%s", tt.file, code, tt.code, tt.text, errs)
		}
		if _, err := os.Stat(filepath.Join(to, storeName)); err == nil && tt.data == "" {
			t.Errorf("restore %s left a store", tt.file)
		}
	}
	if _, errs, code := runWith(t, "", "verify", "--data", data); code != exitOK {
		t.Errorf("the store in the way: exit %d\n%s", code, errs)
	}
}
