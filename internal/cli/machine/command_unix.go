//go:build unix

package machine

import (
	"os/exec"
	"syscall"
)

// Apart has a command that is not started yet run in a process group of its own:
// an interrupt that is typed on the terminal does not reach it, and when its
// context ends all that it started is killed with it.
func Apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
