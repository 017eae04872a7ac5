package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// enterArgument makes this program a process of a host: descriptor 3 is the
// host's network, the next argument its cgroup, the rest is what it becomes. So
// it is on the host from its first instruction on, and is the child of who
// started it.
const enterArgument = "suffrage-lab-enter"

const networkDescriptor = 3

func become(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("lab: %s needs a cgroup and a command", enterArgument)
	}
	runtime.LockOSThread()
	if err := unix.Setns(networkDescriptor, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("lab: enter a host's network: %w", err)
	}
	unix.CloseOnExec(networkDescriptor)
	if err := os.WriteFile(filepath.Join(args[0], "cgroup.procs"), []byte("0"), 0); err != nil {
		return fmt.Errorf("lab: enter a host's cgroup: %w", err)
	}
	program, err := exec.LookPath(args[1])
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return fmt.Errorf("lab: start %s: %w", program, unix.Exec(program, args[1:], os.Environ()))
}
