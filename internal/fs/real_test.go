package fs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/duemq/duemq/internal/fs"
)

// TestLockGoesByTheFolder names one folder in every way that there is: a
// process that has it locked does not get it again.
func TestLockGoesByTheFolder(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("data", 0o755); err != nil {
		t.Fatal(err)
	}
	names := []string{"data/LOCK", "./data/LOCK", "data/../data//LOCK", filepath.Join(dir, "data", "LOCK")}
	if err := os.Symlink("data", "link"); err == nil { // not everywhere allowed
		names = append(names, "link/LOCK")
	}
	disk := fs.Real()
	for _, first := range names {
		held, err := disk.Lock(first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		for _, second := range names {
			if again, err := disk.Lock(second); err == nil {
				t.Errorf("%s is locked, and %s was locked too", first, second)
				_ = again.Close()
			} else if !fs.Locked(err) {
				t.Errorf("%s: %v does not say that it is locked", second, err)
			}
		}
		if err := held.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLockOfWhatCannotBeOpened tells a lock that is held from one that cannot be.
func TestLockOfWhatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "LOCK"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(dir, "LOCK"), filepath.Join(dir, "missing", "LOCK")} {
		if _, err := fs.Real().Lock(name); err == nil || fs.Locked(err) {
			t.Errorf("%s: %v; want an error that does not say that it is locked", name, err)
		}
	}
}
