package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"suffrage/membership"
)

// TestSwap is the swap end to end, with real etcd members in processes of their
// own and a client that writes all the time: as it goes by itself, and with the
// controller that carries it out killed at one step after the other.
func TestSwap(t *testing.T) {
	if testing.Short() {
		t.Skip("starts ten processes and takes a minute")
	}
	program := plainBinary(t)
	t.Run("by itself", func(t *testing.T) {
		// A machine that is busy elsewhere makes the newcomer slow too, and then
		// turning back is right. Twice more is enough for any such spell.
		for attempt := 1; ; attempt++ {
			r, code := swapInDemo(t, program, nil)
			if r.Outcome == membership.Completed || attempt == 3 {
				if code != exitOK {
					t.Errorf("exit %d for %s", code, r.Outcome)
				}
				checkSwapped(t, r)
				return
			}
			checkUndone(t, r)
			t.Logf("attempt %d: %s, %s", attempt, r.Outcome, r.TurnedBack)
		}
	})
	t.Run("its controller killed at every step", func(t *testing.T) {
		inFull(t)
		killed := map[string]bool{}
		r, _ := swapInDemo(t, program, func(f *ownersFleet) {
			s := run1[Status](f, "h1", "status")
			if step := s.Decision.Step; step != nil && s.Controller != nil && !killed[step.Step] {
				killed[step.Step] = true
				f.kill("controller", s.Controller.Host, syscall.SIGKILL)
			}
		})
		t.Logf("killed during %v: %s", killed, r.Outcome)
		if len(killed) < 2 {
			t.Errorf("the controller was killed during %v only", killed)
		}
		if r.Outcome == membership.Completed {
			checkSwapped(t, r)
		} else {
			checkUndone(t, r)
		}
	})
}

// swapInDemo runs the demo until an operation has ended, and does something
// every now and then meanwhile.
func swapInDemo(t *testing.T, program string, meanwhile func(*ownersFleet)) (DemoSwap, int) {
	t.Helper()
	f := &ownersFleet{t: t, program: program, dir: filepath.Join(t.TempDir(), "fleet")}
	cmd := exec.CommandContext(t.Context(), program, "demo", "--dir", f.dir, "--slow", "h3=200ms", "--until", "swap", "--for", "6m", "-o", "json")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case <-ended:
			t.Log(said.String())
			leftNothing(t, f.dir)
			var r DemoSwap
			if err := json.Unmarshal(out.Bytes(), &r); err != nil {
				t.Fatalf("%v in: %s", err, out.Bytes())
			}
			return r, cmd.ProcessState.ExitCode()
		case <-time.After(300 * time.Millisecond):
		}
		if _, code := f.run("h1", "host", "list"); meanwhile != nil && code == exitOK {
			meanwhile(f)
		}
	}
}

func checkSwapped(t *testing.T, r DemoSwap) {
	t.Helper()
	if r.Out != "h3" || r.Outcome != membership.Completed || r.Snapshot == nil || r.By != membership.ByController {
		t.Errorf("%s → %s %s, snapshot %v, by %s", r.Out, r.In, r.Outcome, r.Snapshot, r.By)
	}
	if len(r.MembersAfter) != 3 || slices.Contains(r.MembersAfter, r.OutMember) || !slices.Contains(r.MembersAfter, r.InMember) {
		t.Errorf("members %v after, %v before: %s out, %s in", r.MembersAfter, r.MembersBefore, r.OutMember, r.InMember)
	}
	checkWrites(t, r)
}

func checkUndone(t *testing.T, r DemoSwap) {
	t.Helper()
	if r.Outcome != membership.Undone || r.TurnedBack == "" || !slices.Equal(r.MembersBefore, r.MembersAfter) {
		t.Errorf("%s (%s): members %v before, %v after", r.Outcome, r.TurnedBack, r.MembersBefore, r.MembersAfter)
	}
	checkWrites(t, r)
}

func checkWrites(t *testing.T, r DemoSwap) {
	t.Helper()
	if r.Writes == 0 || r.FailedWrites != 0 {
		t.Errorf("%d writes, %d failed", r.Writes, r.FailedWrites)
	}
}
