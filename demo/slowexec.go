package demo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// slowSocket is the descriptor over which SlowExec hands its listener out: the
// first of the extra files of a Process.
const slowSocket = 3

// SlowExec puts the filter of SlowDisk on this process, hands the listener to
// the demo over descriptor 3 and becomes args. It returns only when it fails.
// With no args it syncs one temporary file and ends, which proves that all of
// it works here.
func SlowExec(args []string) error {
	// The filter and the parent-death signal are the thread's, and this thread
	// is the one that lives on through exec.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("demo: slow disk: parent-death signal: %w", err)
	}
	listener, err := filterSyncs()
	if err != nil {
		return err
	}
	// sendmsg is not among the calls that are held back, so this cannot wait
	// for itself.
	err = unix.Sendmsg(slowSocket, []byte{0}, unix.UnixRights(int(listener.Fd())), nil, 0)
	if err != nil {
		return fmt.Errorf("demo: slow disk: hand the listener over (is this started by the demo?): %w", err)
	}
	listener.Close()
	unix.Close(slowSocket)
	if len(args) == 0 {
		return syncOnce()
	}
	return fmt.Errorf("demo: slow disk: exec %s: %w", args[0], unix.Exec(args[0], args, os.Environ()))
}

func syncOnce() error {
	f, err := os.CreateTemp("", "suffrage-sync-")
	if err != nil {
		return fmt.Errorf("demo: slow disk: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		return fmt.Errorf("demo: slow disk: sync %s: %w", f.Name(), err)
	}
	return nil
}

// slowPair makes the socket pair of one slow process: ours, and the one that
// becomes its descriptor 3.
func slowPair() (ours, its *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("demo: slow disk: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "slow disk"), os.NewFile(uintptr(fds[1]), "slow disk"), nil
}

// CheckSlowDisk tries a slow disk out on a process of its own: command is the
// one that calls SlowExec without arguments. The error says why it cannot work
// on this machine.
func CheckSlowDisk(ctx context.Context, command []string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ours, its, err := slowPair()
	if err != nil {
		return err
	}
	defer its.Close()
	var said strings.Builder
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.ExtraFiles = []*os.File{its}
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		ours.Close()
		return fmt.Errorf("demo: slow disk: start %s: %w", filepath.Base(command[0]), err)
	}
	its.Close()
	disk, err := AcceptSlowDisk(ours)
	served := make(chan error, 1)
	if err == nil {
		go func() { served <- disk.Run() }()
	} else {
		served <- err
	}
	wait := cmd.Wait()
	if disk != nil {
		disk.Close()
	}
	if err := <-served; err != nil || wait != nil {
		return fmt.Errorf("demo: slow disk: this machine cannot hold fsyncs back: %s", firstOf(strings.TrimSpace(said.String()), err, wait))
	}
	return nil
}

// firstOf is the first of them that says something.
func firstOf(text string, errs ...error) string {
	if text != "" {
		return text
	}
	for _, err := range errs {
		if err != nil {
			return err.Error()
		}
	}
	return "it did not say why"
}
