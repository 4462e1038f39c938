package machine

import (
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestListeners(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:268E 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0000000000000000 100 0 0 10 0
   1: 0100007F:268E 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 22 1 0000000000000000 100 0 0 10 0
   2: 0100007F:268F 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 33 1 0000000000000000 100 0 0 10 0
   3: 00000000000000000000000000000000:268E 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 44 1
   4: broken
`
	got := map[string]bool{}
	listeners(got, strings.NewReader(table), 9870)
	if want := []string{"11", "44"}; !slices.Equal(slices.Sorted(maps.Keys(got)), want) {
		t.Errorf("inodes %v, want %v", got, want)
	}
}

func TestPortHolder(t *testing.T) {
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("listening on %v", l.Addr())
	}
	port := addr.Port
	if p, ok := PortHolder(port); !ok || p.PID != os.Getpid() || p.Name == "" {
		t.Errorf("port %d is held by %v (known: %v), want this process, %d", port, p, ok, os.Getpid())
	}
	_, err = lc.Listen(t.Context(), "tcp", l.Addr().String())
	if !PortTaken(err) {
		t.Errorf("PortTaken(%v) = false", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if p, ok := PortHolder(port); ok {
		t.Errorf("port %d, which nobody has, is held by %v", port, p)
	}
}

// TestLockHolder has another process hold a lock: this one again, told to.
func TestLockHolder(t *testing.T) {
	if path := os.Getenv("LOCK_THIS"); path != "" {
		holdLock(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "LOCK")
	if p, ok := LockHolder(path); ok {
		t.Errorf("a file that is not there is held by %v", p)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if p, ok := LockHolder(path); ok {
		t.Errorf("a file that nobody has locked is held by %v", p)
	}
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLockHolder$")
	other.Env = append(os.Environ(), "LOCK_THIS="+path)
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it has the lock
		t.Fatal(err)
	}
	if p, ok := LockHolder(path); !ok || p.PID != other.Process.Pid || p.Name == "" {
		t.Errorf("held by %v (known: %v), want process %d", p, ok, other.Process.Pid)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := other.Wait(); err != nil {
		t.Error(err)
	}
}

// holdLock locks a file, says so, and lets go when standard input ends.
func holdLock(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stdout.WriteString("locked\n"); err != nil {
		t.Fatal(err)
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func TestLimits(t *testing.T) {
	if n, ok := OpenFiles(); !ok || n == 0 {
		t.Errorf("%d files may be open (known: %v)", n, ok)
	}
	if s, ok := ClockSync(); ok && s.Synced && s.MaxError <= 0 {
		t.Errorf("a clock that is kept without an error: %+v", s)
	}
}
