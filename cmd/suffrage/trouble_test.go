package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// TestFleetInTrouble lives through a fleet's bad day as its owner would, with
// the real program and real processes: nothing is asked for but what commands
// print. One fleet serves all of it, since starting one takes a quarter of a
// minute.
func TestFleetInTrouble(t *testing.T) {
	amongOthers(t)
	f := &ownersFleet{t: t, program: plainBinary(t), dir: filepath.Join(t.TempDir(), "fleet")}
	// A slow host is never steady: it goes on until it is stopped.
	f.start("--slow", "h3=150ms", "--until", "steady", "--for", "15m")

	// A slow voter is found, with its reason, by a command that asked nobody's
	// controller.
	f.until("the slow voter is to be moved", "h1", func(s Status) bool {
		return s.Decision.Kind == membership.Planned && s.Decision.Plan.Out == "h3"
	})
	e := run1[Explanation](f, "h2", "explain", "h3")
	if !slices.ContainsFunc(e.Readings, func(r fitness.Reading) bool {
		return r.Signal == fitness.RTT && r.Peer == "h1" && r.Band == fitness.Over && r.Figure > r.Limit.Voter
	}) {
		t.Errorf("explain h3 has no round trip over its limit: %+v", e.Readings)
	}
	// Whoever looks for a while sees the same, and the standbys that are good.
	if out, code := f.run("h2", "qualify", "h3", "h4", "--for", "3s"); code != exitFailed || !strings.Contains(out, "h3: no-candidate(h3): unfit: rtt to h") ||
		!strings.Contains(out, "LONGEST NOT") || !strings.Contains(out, "of 2 qualify") {
		t.Errorf("qualify: exit %d\n%s", code, out)
	}

	// The owner's word stops it, and says who said so.
	run1[HostMark](f, "h1", "host", "pin", "h3", "--reason", "stays", "--by", "the owner")
	s := f.until("a pinned voter is not moved", "h2", refuses(membership.Pinned, "h3"))
	for _, r := range s.Decision.Refusals {
		if r.Code == membership.Pinned && (!strings.Contains(r.Detail, "the owner") || !strings.Contains(r.Next, "suffrage host unpin h3")) {
			t.Errorf("the refusal does not say who pinned it and what lifts it: %s → %s", r, r.Next)
		}
	}
	if out, code := f.run("h1", "host", "pin", "h33"); code != exitUsage || !strings.Contains(out, `host "h33" is not in`) {
		t.Errorf("pinning a host that is not there: exit %d, %s", code, out)
	}
	run1[HostMark](f, "h1", "host", "unpin", "h3")

	// The leading controller is killed: the other one leads.
	leader := f.until("a controller leads", "h1", func(s Status) bool { return s.Controller != nil }).Controller.Host
	f.kill("controller", leader, syscall.SIGKILL)
	f.until("another controller leads", "h1", func(s Status) bool { return s.Controller != nil && s.Controller.Host != leader })
	// Both are frozen for longer than their place lasts: the commands go on
	// without them. Thawed, they find their place lost and end.
	frozen := []int{f.kill("controller", "h1", syscall.SIGSTOP), f.kill("controller", "h2", syscall.SIGSTOP)}
	f.until("the commands work while no controller leads", "h2", func(s Status) bool {
		return s.Controller == nil && s.Decision.Plan != nil
	})
	f.cont(frozen...)
	f.until("a controller leads again", "h2", func(s Status) bool { return s.Controller != nil })

	// A voter that is frozen still accepts connections. It is the owner's case,
	// not a reason to swap.
	member := f.kill("member", "h2", syscall.SIGSTOP)
	f.until("a frozen voter is not responding", "h1", func(s Status) bool {
		return s.Decision.Plan == nil && (refuses(membership.VoterNotResponding, "h2")(s) || refuses(membership.VoterDown, "h2")(s))
	})
	f.cont(member)
	f.until("thawed, it responds", "h1", func(s Status) bool {
		return !refuses(membership.VoterNotResponding, "h2")(s) && !refuses(membership.VoterDown, "h2")(s)
	})

	// An agent that does not answer leaves its host unknown, never fine.
	f.kill("agent", "h5", syscall.SIGSTOP)
	f.until("a host without an agent is unknown or unfit", "h1", func(s Status) bool {
		for _, h := range s.Hosts {
			if h.Host == "h5" {
				return !h.Agent && h.Error != "" && h.Verdict.Status != fitness.Fit
			}
		}
		return false
	})

	// Two of three voters are gone: no quorum, no decision, and it says so.
	f.kill("member", "h2", syscall.SIGSTOP)
	f.kill("member", "h3", syscall.SIGSTOP)
	s = f.until("without quorum nothing is known", "h1", refuses(membership.MembershipUnknown, ""))
	if s.Decision.Plan != nil {
		t.Error("a plan without a quorum")
	}

	// What the controllers saw can be decided again.
	out, code := f.run("h1", "replay", filepath.Join(f.dir, leader, "data", "decisions"))
	if code != 0 || !strings.Contains(out, "would swap h3") {
		t.Errorf("replay: exit %d\n%s", code, out)
	}
}

// inFull skips what takes minutes, unless all is asked for.
func inFull(t *testing.T) {
	t.Helper()
	if os.Getenv("SUFFRAGE_FLEET") == "" {
		t.Skip("takes minutes; make fleet runs it")
	}
}

// amongOthers is inFull, and begins once another fleet leaves its place: most of the
// minutes go by waiting, for leases, windows and cooldowns that are the product's.
func amongOthers(t *testing.T) {
	t.Helper()
	inFull(t)
	t.Parallel()
}

// shortPeriod is half of the demo's, for the fleets whose windows begin anew most
// often: one is two and a half seconds.
const shortPeriod = "25ms"

// ownersFleet is a demo fleet and an owner with a shell.
type ownersFleet struct {
	t            *testing.T
	program, dir string
}

func (f *ownersFleet) start(args ...string) {
	f.t.Helper()
	cmd := exec.Command(f.program, append([]string{"demo", "--dir", f.dir}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it was stopped, which is an error of its own
		if f.t.Failed() {
			f.t.Log(said.String())
		}
		leftNothing(f.t, f.dir)
	})
	f.wait("etcd answers", func() bool {
		_, code := f.run("h1", "host", "list")
		return code == exitOK
	})
}

func (f *ownersFleet) wait(what string, done func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(8 * time.Minute); !done(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("never: %s", what)
		}
	}
}

// run runs one command on a host and gives its answer, or all that it said instead.
func (f *ownersFleet) run(host string, args ...string) (string, int) {
	cmd := exec.CommandContext(f.t.Context(), f.program, append(args, "--config", filepath.Join(f.dir, host, "suffrage.yaml"))...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return said.String() + out.String(), cmd.ProcessState.ExitCode()
	}
	return out.String(), exitOK
}

// run1 runs a command with -o json and gives its answer.
func run1[T any](f *ownersFleet, host string, args ...string) (v T) {
	f.t.Helper()
	out, code := f.run(host, append(args, "-o", "json")...)
	if code != exitOK {
		f.t.Fatalf("suffrage %s: exit %d\n%s", strings.Join(args, " "), code, out)
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		f.t.Fatalf("suffrage %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return v
}

// until asks for the status on a host until it is as it should be.
func (f *ownersFleet) until(what, host string, ok func(Status) bool) (s Status) {
	f.t.Helper()
	defer func() {
		if f.t.Failed() {
			f.t.Logf("last seen: %s\n%+v", s.Decision.Key(), s.Decision)
		}
	}()
	f.wait(what, func() bool {
		s = run1[Status](f, host, "status")
		return ok(s)
	})
	f.t.Logf("%s: %s", what, s.Decision.Key())
	return s
}

// cont lets frozen processes go on.
func (f *ownersFleet) cont(pids ...int) {
	f.t.Helper()
	for _, p := range pids {
		if err := syscall.Kill(p, syscall.SIGCONT); err != nil {
			f.t.Fatal(err)
		}
	}
}

func refuses(code membership.Code, subject string) func(Status) bool {
	return func(s Status) bool {
		return slices.ContainsFunc(s.Decision.Refusals, func(r membership.Refusal) bool {
			return r.Code == code && r.Subject == subject
		})
	}
}

// kill signals the process of a host.
func (f *ownersFleet) kill(role, host string, sig syscall.Signal) int {
	f.t.Helper()
	pid := f.process(role, host)
	if pid == 0 {
		f.t.Fatalf("no process of %s on %s", role, host)
	}
	if err := syscall.Kill(pid, sig); err != nil {
		f.t.Fatal(err)
	}
	return pid
}

// runs reports whether there is the process of a host.
func (f *ownersFleet) runs(role, host string) bool { return f.process(role, host) != 0 }

// process is that of a host, found by its command line, 0 for none.
func (f *ownersFleet) process(role, host string) int {
	f.t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		f.t.Fatal(err)
	}
	config := filepath.Join(f.dir, host, "suffrage.yaml")
	for _, l := range lines {
		b, err := os.ReadFile(l)
		if err != nil {
			continue
		}
		args := strings.Split(string(b), "\x00")
		if slices.Contains(args, role) && slices.Contains(args, config) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(l)))
			if err != nil {
				f.t.Fatal(err)
			}
			return pid
		}
	}
	return 0
}
