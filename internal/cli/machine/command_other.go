//go:build !unix && !windows

package machine

import "os/exec"

// Apart would keep interrupts from a command; not on this system.
func Apart(*exec.Cmd) {}
