package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"suffrage/membership"
	"suffrage/mesh-tests/history"
)

// TestSwap is the swap end to end, with real etcd members in processes of their
// own and a client that writes all the time: as it goes by itself, and with the
// controller that carries it out killed at one step after the other.
func TestSwap(t *testing.T) {
	amongOthers(t)
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
		killed := map[string]bool{}
		r, _ := swapInDemo(t, program, func(f *ownersFleet) {
			said, code := f.run("h1", "status", "-o", "json")
			var s Status
			if err := json.Unmarshal([]byte(said), &s); code != exitOK || err != nil {
				t.Logf("status: exit %d, %v: %s", code, err, said) // looked at again
				return
			}
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

// TestSwapAskedFor is the owner's swap in a fleet in which nothing is wrong.
func TestSwapAskedFor(t *testing.T) {
	amongOthers(t)
	f := &ownersFleet{t: t, program: plainBinary(t), dir: filepath.Join(t.TempDir(), "fleet")}
	// A fleet in which nothing needs doing makes no decision: it goes on until it is stopped.
	f.start("--slow", "h3=0s", "--mode", "active", "--until", "decision", "--for", "15m")
	for _, test := range []struct {
		out, in, want string
		code          int
	}{
		{"h2", "h9", `host "h9" is not in`, exitUsage},
		{"h4", "h5", "would be refused", exitFailed},
	} {
		if said, code := f.run("h1", "swap", test.out, test.in, "--yes"); code != test.code || !strings.Contains(said, test.want) {
			t.Errorf("swap %s %s: exit %d, %s; want %d and %q", test.out, test.in, code, said, test.code, test.want)
		}
	}
	if said, code := f.run("h1", "swap", "h2", "h5"); code == exitOK {
		t.Errorf("nobody confirmed it: %s", said)
	}
	judge := f.watchWrites()
	// It is refused until every window is full.
	var answer string
	f.wait("the swap is not refused", func() bool {
		said, code := f.run("h1", "swap", "h2", "h5", "--yes", "-o", "json", "--by", "anna", "--reason", "new rack")
		if code != exitOK && !strings.Contains(said, "nothing was asked for") {
			t.Fatalf("exit %d: %s", code, said)
		}
		answer = said
		return code == exitOK
	})
	judge()
	var r OperationRecord
	if err := json.Unmarshal([]byte(answer), &r); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	if r.Outcome != membership.Completed || r.Out != "h2" || r.In != "h5" || r.By != "anna" || !strings.Contains(r.Why, "new rack") {
		t.Errorf("%s → %s, %s, by %s: %s", r.Out, r.In, r.Outcome, r.By, r.Why)
	}
	if shown := run1[OperationRecord](f, "h3", "operations", "show", r.ID); shown.By != "anna" || shown.Outcome != membership.Completed {
		t.Errorf("shown: %s by %s", shown.Outcome, shown.By)
	}
	s := run1[Status](f, "h1", "status")
	var voters []string
	for _, h := range s.Hosts {
		if h.Role == "voter" || h.Role == "leader" {
			voters = append(voters, h.Host)
		}
	}
	slices.Sort(voters) // status has the leader first
	if !slices.Equal(voters, []string{"h1", "h3", "h5"}) {
		t.Errorf("%v vote", voters)
	}
	// The next one has to wait, and is refused before anything was asked for.
	if said, code := f.run("h1", "swap", "h1", "h4", "--yes", "-o", "json"); code != exitFailed || !strings.Contains(said, "nothing was asked for") {
		t.Errorf("a second one at once: exit %d, %s", code, said)
	}
}

// swapInDemo runs the demo until an operation has ended, and does something
// every now and then meanwhile.
func swapInDemo(t *testing.T, program string, meanwhile func(*ownersFleet)) (DemoSwap, int) {
	t.Helper()
	f := &ownersFleet{t: t, program: program, dir: filepath.Join(t.TempDir(), "fleet")}
	cmd := exec.CommandContext(t.Context(), program, "demo", "--dir", f.dir, "--slow", "h3=200ms", "--period", shortPeriod, "--until", "swap", "--for", "10m", "-o", "json")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var watched func()
	for {
		select {
		case <-ended:
			t.Log(said.String())
			if watched != nil {
				watched()
			}
			leftNothing(t, f.dir)
			var r DemoSwap
			if err := json.Unmarshal(out.Bytes(), &r); err != nil {
				t.Fatalf("%v in: %s", err, out.Bytes())
			}
			return r, cmd.ProcessState.ExitCode()
		case <-time.After(300 * time.Millisecond):
		}
		if _, code := f.run("h1", "host", "list"); code == exitOK {
			if watched == nil {
				watched = f.watched(history.JudgeOutlived) // the demo ends by itself
			}
			if meanwhile != nil {
				meanwhile(f)
			}
		}
	}
}

// watchWrites has clients put and get until what it gives is called, which
// judges whether anything acknowledged was lost. A failure keeps the recording.
func (f *ownersFleet) watchWrites() (judge func()) {
	f.t.Helper()
	return f.watched(history.Judge)
}

func (f *ownersFleet) watched(judge func(testing.TB, history.History, history.Writes, string)) func() {
	f.t.Helper()
	clients := &history.Clients{Client: f.client(), Prefix: "/history/"}
	ctx, stop := context.WithCancel(context.Background())
	var h history.History
	var seen history.Writes
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h, seen = clients.Run(ctx)
	}()
	// Also where the test ends before anybody judges.
	f.t.Cleanup(func() {
		stop()
		<-ended
	})
	return func() {
		f.t.Helper()
		stop()
		<-ended
		judge(f.t, h, seen, "")
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
