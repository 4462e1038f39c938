package machine

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// PortHolder finds the process that listens on a TCP port. A process of another
// user is found only with root's rights; then ok is false.
func PortHolder(port int) (p Process, ok bool) {
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		listeners(inodes, bytes.NewReader(text), port)
	}
	if len(inodes) == 0 {
		return p, false
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/[0-9]*")
	if err != nil {
		return p, false
	}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil {
			continue
		}
		inode, isSocket := strings.CutPrefix(target, "socket:[")
		if isSocket && inodes[strings.TrimSuffix(inode, "]")] {
			pid, err := strconv.Atoi(strings.Split(link, "/")[2])
			return Process{PID: pid, Name: name(pid)}, err == nil
		}
	}
	return p, false
}

// listening is TCP_LISTEN in the kernel's tables.
const listening = "0A"

// listeners collects the inodes of sockets that listen on a port from a table
// in the format of /proc/net/tcp: number, local and remote address as
// hexadecimal host:port, state, ..., and the inode as the tenth field.
func listeners(inodes map[string]bool, table io.Reader, port int) {
	suffix := fmt.Sprintf(":%04X", port)
	for s := bufio.NewScanner(table); s.Scan(); {
		f := strings.Fields(s.Text())
		if len(f) > 9 && strings.HasSuffix(f[1], suffix) && f[3] == listening {
			inodes[f[9]] = true
		}
	}
}

// name is what a process calls itself.
func name(pid int) string {
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(comm))
}

// ClockSync asks the kernel whether a time server disciplines the clock.
func ClockSync() (s ClockState, ok bool) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return s, false
	}
	s.Synced = state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0
	s.MaxError = time.Duration(t.Maxerror) * time.Microsecond
	return s, true
}

// PortTaken says whether err, from listening, means that somebody else has the
// port.
func PortTaken(err error) bool { return errors.Is(err, unix.EADDRINUSE) }
