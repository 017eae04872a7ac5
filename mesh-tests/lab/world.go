package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a process of the lab is, by this variable: empty outside, the cgroup's
// path inside, or routerRole.
const (
	roleVariable = "SUFFRAGE_LAB"
	routerRole   = "router"
)

// Main runs the tests inside a World. To be called by TestMain, with what it
// returns as the exit code.
func Main(m *testing.M) int {
	switch role := os.Getenv(roleVariable); role {
	case "":
		return outside(m)
	case routerRole:
		if err := router(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	default:
		if err := enter(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}
}

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
	var errs []error
	if os.Geteuid() != 0 {
		errs = append(errs, errors.New("lab: root is needed, for namespaces"))
	}
	for _, dev := range []string{"/dev/net/tun", "/dev/fuse"} {
		if f, err := os.OpenFile(dev, os.O_RDWR, 0); err != nil {
			errs = append(errs, fmt.Errorf("lab: %w", err))
		} else {
			f.Close()
		}
	}
	if _, err := cgroup2(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
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

const cgroupPrefix = "suffrage-lab-"

// outside runs this same program again in namespaces of its own, and takes away
// afterwards the only thing that outlives them: its cgroup.
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
	dir := filepath.Join(root, cgroupPrefix+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return 0, fmt.Errorf("lab: %w", err)
	}
	defer remove(dir)
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("lab: %w", err)
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), roleVariable+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
	}
	// Ctrl-C reaches the inside by itself; this process has to live until that is over.
	stop := make(chan os.Signal, 4)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(stop)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("lab: new namespaces: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	for {
		select {
		case <-stop:
			// The first process of a namespace does not get signals that it does not
			// handle, so after a moment it is killed, and all others with it.
			select {
			case <-ended:
			case <-time.After(5 * time.Second):
				_ = cmd.Process.Kill()
			}
			<-ended
			return 130, nil
		case <-ended:
			return cmd.ProcessState.ExitCode(), nil
		}
	}
}

// sweep removes what a killed run left: empty cgroups of processes that are gone.
func sweep(root string) {
	left, err := filepath.Glob(filepath.Join(root, cgroupPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), cgroupPrefix))
		if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			remove(dir)
		}
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
	return loopback()
}
