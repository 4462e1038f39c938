//go:build !linux

package machine

import (
	"errors"
	"syscall"
)

// PortHolder finds the process that listens on a TCP port; not on this system.
func PortHolder(int) (p Process, ok bool) { return p, false }

// ClockSync asks whether a time server disciplines the clock; not on this
// system.
func ClockSync() (s ClockState, ok bool) { return s, false }

// name is what a process calls itself; not known on this system.
func name(int) string { return "" }

// PortTaken says whether err, from listening, means that somebody else has the
// port.
func PortTaken(err error) bool {
	const wsaEAddrInUse = syscall.Errno(10048) // Windows has its own number
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, wsaEAddrInUse)
}
