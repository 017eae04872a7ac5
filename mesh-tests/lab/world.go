package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a process of the lab is, by this variable: empty outside, the cgroup's
// path inside, or routerRole. A process that is to become one of a host's is
// told by its first argument: enterArgument.
const (
	roleVariable = "SUFFRAGE_LAB"
	routerRole   = "router"
	// keepVariable is where what a failed test leaves for its reader is kept.
	keepVariable = "SUFFRAGE_LAB_KEEP"
)

// Main runs the tests inside a World. To be called by TestMain, with what it
// returns as the exit code.
func Main(m *testing.M) int {
	inside := func(do func() error) int {
		if err := do(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	if len(os.Args) > 1 && os.Args[1] == enterArgument {
		return inside(func() error { return become(os.Args[2:]) })
	}
	switch os.Getenv(roleVariable) {
	case "":
		return outside(m)
	case routerRole:
		return inside(router)
	}
	if code := inside(enter); code != 0 {
		return code
	}
	return m.Run()
}

// Kept is a directory that outlives the World, for recordings.
func Kept() string { return os.Getenv(keepVariable) }

// Inside reports whether this process is in a World.
func Inside() bool { return cgroup() != "" }

// Need skips a test that is not in a World, and says what is missing.
func Need(t testing.TB) {
	t.Helper()
	if !Inside() {
		t.Skipf("SKIPPED, nothing was proven: %v", missing())
	}
}

// missing says what the machine lacks for a World, nil for nothing.
func missing() error {
	if os.Geteuid() != 0 {
		return errors.New("lab: root is needed, for namespaces")
	}
	var errs []error
	for _, dev := range []string{"/dev/net/tun", "/dev/fuse"} {
		if f, err := os.OpenFile(dev, os.O_RDWR, 0); err != nil {
			errs = append(errs, fmt.Errorf("lab: %w", err))
		} else {
			f.Close()
		}
	}
	return errors.Join(append(errs, tryNamespace(), tryCgroup())...)
}

// tryNamespace makes a network of its own with a device in it: root in a
// container often may not.
func tryNamespace() error {
	ns, tun, err := namespace(1)
	if ns != nil {
		ns.Close()
	}
	if tun != nil {
		tun.Close()
	}
	return err
}

// tryCgroup makes a cgroup, and looks whether it can be frozen and killed.
func tryCgroup() error {
	root, err := cgroup2()
	if err != nil {
		return err
	}
	dir, owned, err := own(root)
	if err != nil {
		return err
	}
	defer owned.Close()
	defer remove(dir)
	for _, file := range []string{"cgroup.freeze", "cgroup.kill"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			return fmt.Errorf("lab: this kernel's cgroups are too old (Linux 5.14): %w", err)
		}
	}
	return nil
}

// cgroup2 is where the unified hierarchy is mounted.
func cgroup2() (string, error) {
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var fs unix.Statfs_t
		if unix.Statfs(dir, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
			return dir, nil
		}
	}
	return "", errors.New("lab: no cgroup2 is mounted at /sys/fs/cgroup or /sys/fs/cgroup/unified")
}

// cgroup is this World's, empty outside.
func cgroup() string {
	role := os.Getenv(roleVariable)
	if role == routerRole {
		return ""
	}
	return role
}

// prefix begins the names of everything that could outlive a World.
const prefix = "suffrage-lab-"

// outside runs this same program again in namespaces of its own, and takes away
// afterwards what outlives them: its cgroup and its directory.
func outside(m *testing.M) int {
	if err := missing(); err != nil {
		fmt.Fprintln(os.Stderr, "NOTE: without a lab the tests of this package are skipped:", err)
		return m.Run()
	}
	code, err := world()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func world() (int, error) {
	root, err := cgroup2()
	if err != nil {
		return 0, err
	}
	sweep(root)
	group, owned, err := own(root)
	if err != nil {
		return 0, err
	}
	defer owned.Close()
	defer remove(group)
	dir, owned, err := own(os.TempDir())
	if err != nil {
		return 0, err
	}
	defer owned.Close()
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("lab: %w", err)
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), roleVariable+"="+group, keepVariable+"="+os.TempDir(), "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET,
		Setsid:     true, // see ahead
		Pdeathsig:  syscall.SIGKILL,
	}
	// The parent-death signal is the thread's, not the process's.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(stop)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("lab: new namespaces: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in ProcessState
		close(ended)
	}()
	select {
	case <-stop:
		// With the first process of their namespace all others end.
		_ = cmd.Process.Kill()
		<-ended
		return 130, nil
	case <-ended:
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code, nil
	}
	return 0, fmt.Errorf("lab: the tests ended: %v", cmd.ProcessState)
}

// own makes a directory that is taken for somebody's as long as owned is open.
// A lock tells that also across process namespaces, and where numbers of
// processes are given anew.
func own(root string) (dir string, owned *os.File, err error) {
	if dir, err = os.MkdirTemp(root, prefix); err == nil {
		owned, err = take(dir)
	}
	if err != nil {
		return "", nil, fmt.Errorf("lab: a directory in %s: %w", root, err)
	}
	return dir, owned, nil
}

// take locks a directory, if nobody else has.
func take(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// sweep removes what killed runs left: cgroups and directories that are nobody's.
func sweep(root string) {
	for _, left := range append(glob(filepath.Join(root, prefix+"*")), glob(filepath.Join(os.TempDir(), prefix+"*"))...) {
		f, err := take(left)
		if err != nil {
			continue
		}
		if filepath.Dir(left) == root {
			remove(left)
		} else if err := os.RemoveAll(left); err != nil {
			fmt.Fprintln(os.Stderr, "lab: left behind:", err)
		}
		f.Close()
	}
}

// remove kills what is left in a cgroup and takes it away.
func remove(dir string) {
	for range 50 {
		for _, hosts := range [][]string{{dir}, glob(filepath.Join(dir, "*"))} {
			for _, d := range hosts {
				_ = os.WriteFile(filepath.Join(d, "cgroup.kill"), []byte("1"), 0)
			}
		}
		for _, d := range glob(filepath.Join(dir, "*")) {
			_ = unix.Rmdir(d)
		}
		if err := unix.Rmdir(dir); err == nil || errors.Is(err, unix.ENOENT) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	fmt.Fprintln(os.Stderr, "lab: left behind:", dir)
}

// glob gives directories only.
func glob(pattern string) []string {
	found, _ := filepath.Glob(pattern) // the pattern is our own
	var dirs []string
	for _, f := range found {
		if i, err := os.Stat(f); err == nil && i.IsDir() {
			dirs = append(dirs, f)
		}
	}
	return dirs
}

// enter makes the namespaces a place to live in.
func enter() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("lab: mounts of our own: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("lab: mount proc: %w", err)
	}
	ahead()
	// In memory, an fsync waits for nobody else who uses the machine's disk. Of
	// the directory below, only the lock is needed.
	if err := unix.Mount("suffrage-lab", os.TempDir(), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0700"); err != nil {
		return fmt.Errorf("lab: mount a file system for the hosts: %w", err)
	}
	return loopback()
}

// ahead puts this session before others. Where the kernel groups processes by
// their session (sched_autogroup_enabled), a priority counts inside of it only,
// and the hosts would share the cores evenly with each compiler in another
// terminal. Without such groups there is no file, and priorities do.
func ahead() { _ = os.WriteFile("/proc/self/autogroup", []byte("-20"), 0) }
