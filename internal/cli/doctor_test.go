package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
)

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
