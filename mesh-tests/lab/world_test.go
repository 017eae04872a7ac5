package lab

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const ofAnother = "SUFFRAGE_LAB_TEST"

// TestInAnother is what runs in the worlds of TestWorldLeavesNothing.
func TestInAnother(t *testing.T) {
	how := os.Getenv(ofAnother)
	if how == "" {
		t.Skip("runs in a world of its own: TestWorldLeavesNothing")
	}
	n := network(t, 1)
	h, err := NewHost(n, supervised(t), 1, filepath.Join(t.TempDir(), "h1"))
	if err != nil {
		t.Fatal(err)
	}
	at := t.TempDir()
	if _, err := MountDisk(t.TempDir(), at); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(os.TempDir(), "space"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := MountSpace(filepath.Join(os.TempDir(), "space")); err != nil {
		t.Fatal(err)
	}
	// It dies with a file open that only we could answer for.
	open := filepath.Join(at, "open")
	if _, err := h.Start(t.Context(), "sleep", "sh", "-c", "exec 5>"+open+"; sleep 1000"); err != nil {
		t.Fatal(err)
	}
	until(t, "the file is open", func() bool { _, err := os.Stat(open); return err == nil })
	if err := h.Freeze(); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("at " + cgroup() + "\nat " + os.TempDir() + "\n")
	if how == "crash" {
		os.Exit(7)
	}
	select {}
}

// However a world ends, nothing is left: no process, no cgroup, no directory, no
// mount. One
// that is killed cannot clean up; its processes end with it, and the next world
// takes away the rest.
func TestWorldLeavesNothing(t *testing.T) {
	Need(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	another := func(how string) *exec.Cmd {
		cmd := exec.Command(program, "-test.run=^TestInAnother$")
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, roleVariable+"=") })
		cmd.Env = append(cmd.Env, ofAnother+"="+how)
		return cmd
	}
	gone := func(path string) bool {
		_, err := os.Stat(path)
		return errors.Is(err, os.ErrNotExist)
	}
	for how, end := range map[string]func(*os.Process) error{
		"crash":     func(*os.Process) error { return nil },
		"interrupt": func(p *os.Process) error { return p.Signal(syscall.SIGINT) },
		"kill":      func(p *os.Process) error { return p.Kill() },
	} {
		t.Run(how, func(t *testing.T) {
			cmd := another(how)
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var left []string
			for lines := bufio.NewScanner(out); len(left) < 2 && lines.Scan(); {
				if path, ok := strings.CutPrefix(lines.Text(), "at "); ok {
					left = append(left, path)
				}
			}
			if len(left) < 2 {
				t.Fatalf("it ended: %v", cmd.Wait())
			}
			if err := end(cmd.Process); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it failed, one way or the other
			if how == "kill" {
				until(t, "no process is left", func() bool {
					b, err := os.ReadFile(filepath.Join(left[0], "cgroup.events"))
					return err == nil && strings.Contains(string(b), "populated 0")
				})
				if said, err := another("").CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, said)
				}
			}
			for _, path := range left {
				if !gone(path) {
					t.Errorf("left: %s", path)
				}
			}
			mounts, err := os.ReadFile("/proc/self/mountinfo")
			if err != nil || strings.Contains(string(mounts), left[1]) {
				t.Errorf("%v, or mounts are left below %s: %s", err, left[1], mounts)
			}
		})
	}
}
