package demo

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// as gives the command that plays a role; the supervisor passes this process's
// environment on.
func as(t *testing.T, role string, args ...string) []string {
	t.Helper()
	t.Setenv(roleVariable, role)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{exe}, args...)
}

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// eventually waits for a condition; the deadline is there only to end a test
// that fails.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func TestSupervisorLeavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, tc := range []struct{ role, why string }{
		{"sleep", "SIGTERM is enough"},
		{"stubborn", "SIGKILL comes after the grace"},
	} {
		t.Run(tc.role, func(t *testing.T) {
			args := as(t, tc.role)
			log := filepath.Join(t.TempDir(), "log")
			s := NewSupervisor()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- s.Run(ctx) }()
			c, err := s.Start(ctx, Process{Name: tc.role, Args: args, Log: log})
			if err != nil {
				t.Fatal(err)
			}
			if tc.role == "stubborn" {
				eventually(t, "it ignores SIGTERM", func() bool { b, _ := os.ReadFile(log); return len(b) > 0 })
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if alive(c.PID) {
				t.Errorf("process %d is still there after Run: %s", c.PID, tc.why)
			}
			select {
			case <-s.Died():
				t.Error("a process that was stopped was reported as one that died")
			default:
			}
		})
	}
}

func TestSupervisorReportsACrash(t *testing.T) {
	defer goleak.VerifyNone(t)
	args := as(t, "crash")
	s := NewSupervisor()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	log := filepath.Join(t.TempDir(), "log")
	if _, err := s.Start(ctx, Process{Name: "h3 member", Args: args, Log: log}); err != nil {
		t.Fatal(err)
	}
	got := (<-s.Died()).Exit().Error()
	for _, want := range []string{"h3 member", "exit status 3", log, "  line 8\n", "  line 19"} {
		if !strings.Contains(got, want) {
			t.Errorf("the report has no %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "line 7\n") {
		t.Errorf("the report has more than the last %d lines:\n%s", tailLines, got)
	}
	cancel()
	<-done
}

func TestSupervisorSaysWhatCannotStart(t *testing.T) {
	s := NewSupervisor()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	_, err := s.Start(ctx, Process{Name: "h1 agent", Args: []string{"/no/such/binary"}, Log: filepath.Join(t.TempDir(), "log")})
	if err == nil || !strings.Contains(err.Error(), "h1 agent") || !strings.Contains(err.Error(), "/no/such/binary") {
		t.Errorf("got %v; want the process and the binary named", err)
	}
	cancel()
	<-done
}

// A demo that is killed outright cannot stop anything: the kernel must.
func TestChildrenDieWithAKilledSupervisor(t *testing.T) {
	for _, kind := range []string{"plain", "slow"} {
		t.Run(kind, func(t *testing.T) {
			if kind == "slow" {
				needSlowDisk(t)
			}
			args := as(t, "supervise", kind)
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill()
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			if !alive(pid) {
				t.Fatal("the child is not there to begin with")
			}
			cmd.Process.Kill()
			cmd.Wait()
			eventually(t, "the child is gone", func() bool { return !running(pid) })
		})
	}
}

// running is false for a zombie too: in a container whose first process reaps
// nothing, an orphan stays one for ever.
func running(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	rest := string(b[strings.LastIndexByte(string(b), ')')+1:])
	return !strings.HasPrefix(rest, " Z")
}
