package machine

import (
	"os/exec"
	"syscall"
)

// Apart has a command that is not started yet run in a process group of its own:
// an interrupt that is typed on the terminal does not reach it. When its context
// ends it is killed, what it started is not.
func Apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
