package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

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
