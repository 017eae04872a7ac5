package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	leaseetcd "suffrage/lease/etcd"
	"suffrage/membership"
	"suffrage/membership/etcd"
)

// TestSwapFaults is one fleet in which nothing is wrong, and the owner's swaps
// in it, in each of which something is killed or frozen at the worst moment.
// Clients put and get all the time, and no write of theirs may be lost.
func TestSwapFaults(t *testing.T) {
	amongOthers(t)
	f := &ownersFleet{t: t, program: plainBinary(t), dir: filepath.Join(t.TempDir(), "fleet")}
	f.start("--slow", "h3=0s", "--mode", "active", "--until", "stopped", "--stall-time", "15s", "--period", shortPeriod)
	judge := f.watchWrites()
	defer judge()
	cluster := run1[Status](f, "h1", "status").ClusterID
	standing := func(want ...string) {
		t.Helper()
		s := f.until("three healthy voters, and no learner", "h1", func(s Status) bool {
			return len(s.Decision.Verdicts) == 5 && s.Decision.Voters == 3 && s.Decision.Operation == nil && len(voting(s)) == 3
		})
		if got := voting(s); !slices.Equal(got, want) {
			t.Errorf("%v vote, want %v", got, want)
		}
		if s.ClusterID != cluster {
			t.Errorf("cluster %s, it was %s", s.ClusterID, cluster)
		}
	}

	t.Run("a voter cannot save the snapshot, and the learner is killed while it catches up", func(t *testing.T) {
		f := f.in(t)
		defer f.blockSnapshots("h1")()
		r := f.swapped("h2", "h5", func(op membership.Operation) bool {
			return op.InMember != "" && f.process("member", "h5") != 0
		}, func() { f.kill("member", "h5", syscall.SIGKILL) })
		if r.Outcome != membership.Completed { // it is started again and catches up
			t.Errorf("%s: %s", r.Outcome, r.TurnedBack)
		}
		if r.Snapshot == nil || r.Snapshot.Host != "h3" {
			t.Errorf("its snapshot is %+v; h1 cannot save one, h2 goes", r.Snapshot)
		}
	})
	standing("h1", "h3", "h5")

	t.Run("the outgoing voter is killed once its removal is asked for", func(t *testing.T) {
		f := f.in(t)
		r := f.swapped("h3", "h2", func(op membership.Operation) bool { return !op.Asked.IsZero() },
			func() { f.killed("member", "h3") })
		if r.Outcome != membership.Completed {
			t.Errorf("%s: %s", r.Outcome, r.TurnedBack)
		}
		if f.process("member", "h3") != 0 {
			t.Error("it came back")
		}
	})
	standing("h1", "h2", "h5")

	now := []string{"h1", "h2", "h5"}
	t.Run("the etcd leader is killed while both vote, and the outgoing one leads", func(t *testing.T) {
		f := f.in(t)
		s := run1[Status](f, "h1", "status")
		out := s.Leader
		if out == "" {
			t.Fatal("nobody leads")
		}
		r := f.swapped(out, "h3", func(op membership.Operation) bool { return !op.SoakedSince.IsZero() },
			func() { f.killed("member", out) })
		// Back again within the stall time it is moved; else the newcomer goes.
		now = after(r, now)
	})
	standing(now...)

	t.Run("a learner that cannot start is given up", func(t *testing.T) {
		f := f.in(t)
		in := f.standby(now)
		// Its peer port is taken once the swap is open (before, its agent would say so,
		// and nothing be begun), so its process ends again and again.
		release := func() {}
		r := f.swapped(f.notLeading(now), in, func(op membership.Operation) bool { return op.In == in }, func() { release = f.occupy(in) })
		if r.Outcome != membership.Undone || !strings.Contains(r.TurnedBack, in) || !slices.Equal(r.MembersBefore, r.MembersAfter) {
			t.Errorf("%s: %s", r.Outcome, r.TurnedBack)
		}
		release()
		f.wait("its agent says that the port is free, and it is quarantined", func() bool {
			said, code := f.run("h1", "swap", f.notLeading(now), in, "--yes")
			return code != exitOK && strings.Contains(said, string(membership.Quarantine)+"("+in)
		})
	})
	standing(now...)

	t.Run("a learner that is frozen is given up after the stall time", func(t *testing.T) {
		f := f.in(t)
		in := f.standby(now)
		r := f.swapped(f.notLeading(now), in, func(op membership.Operation) bool { return f.process("member", in) != 0 },
			func() { f.kill("member", in, syscall.SIGSTOP) })
		if pid := f.process("member", in); pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
		// Frozen before it had caught up it is a learner that stalls; frozen after,
		// it may have got its vote, and then it is silent.
		if r.Outcome != membership.Undone || !slices.Equal(r.MembersBefore, r.MembersAfter) {
			t.Errorf("%s: %s", r.Outcome, r.TurnedBack)
		}
	})
	standing(now...)

	t.Run("the controller is frozen past its Lease", func(t *testing.T) {
		f := f.in(t)
		in := f.standby(now)
		out := f.notLeading(now)
		var frozen []int
		var term uint64
		r := f.swapped(out, in, func(op membership.Operation) bool { return op.InMember != "" }, func() {
			s := f.until("a controller leads", "h1", func(s Status) bool { return s.Controller != nil })
			term = f.operation().Term
			frozen = []int{f.kill("controller", s.Controller.Host, syscall.SIGSTOP)}
		})
		f.cont(frozen...)
		if r.Outcome != membership.Completed {
			t.Errorf("%s: %s", r.Outcome, r.TurnedBack)
		}
		if len(frozen) != 1 || r.Term <= term {
			t.Errorf("Term %d ended it; %v were frozen in Term %d", r.Term, frozen, term)
		}
		now = after(r, now)
	})
	standing(now...)

	t.Run("Ctrl-C leaves the operation to the controller", func(t *testing.T) {
		f := f.in(t)
		out, in := f.notLeading(now), f.standby(now)
		f.run("h1", "clear-quarantine", in)
		said, code := f.interrupted(out, in)
		if code == exitOK || !strings.Contains(said, "goes on") {
			t.Errorf("exit %d: %s", code, said)
		}
		f.wait("the controller carries it out", func() bool {
			client := f.client()
			ops, err := etcd.Operations(t.Context(), client, 1)
			if err != nil || len(ops) == 0 || ops[0].Out != out || ops[0].Outcome != membership.Completed || !strings.Contains(said, ops[0].ID) {
				return false
			}
			now = after(ops[0], now)
			return true
		})
	})
	standing(now...)
}

// after are the voters that an operation leaves, of those before it.
func after(op membership.Operation, voters []string) []string {
	if op.Outcome != membership.Completed {
		return voters
	}
	left := slices.DeleteFunc(slices.Clone(voters), func(v string) bool { return v == op.Out })
	left = append(left, op.In)
	slices.Sort(left)
	return left
}

// voting are the hosts that vote, sorted.
func voting(s Status) []string {
	var out []string
	for _, h := range s.Hosts {
		if h.Role == "voter" || h.Role == "leader" {
			out = append(out, h.Host)
		}
	}
	slices.Sort(out)
	return out
}

// in is the same fleet in a subtest.
func (f *ownersFleet) in(t *testing.T) *ownersFleet {
	other := *f
	other.t = t
	return &other
}

// standby is a host that does not vote.
func (f *ownersFleet) standby(voters []string) string {
	for i := range 5 {
		if h := fmt.Sprintf("h%d", i+1); !slices.Contains(voters, h) {
			return h
		}
	}
	f.t.Fatal("everybody votes")
	return ""
}

// notLeading is a voter that does not lead.
func (f *ownersFleet) notLeading(voters []string) string {
	leader := run1[Status](f, "h1", "status").Leader
	return voters[slices.IndexFunc(voters, func(v string) bool { return v != leader })]
}

// operation is the open one, as it is written down.
func (f *ownersFleet) operation() membership.Operation {
	client := f.client()
	open, _, err := etcd.OwnLease(client).Open(f.t.Context())
	if err != nil || open == nil {
		f.t.Fatalf("no operation is open: %v", err)
	}
	return *open
}

// refusal is what tells one refusal from another in a decision's JSON.
var refusal = regexp.MustCompile(`"(code|subject)": ".*"`)

// swapped asks for a swap until it is taken, does something once the journal is
// as it should be, and gives the record of how it ended.
func (f *ownersFleet) swapped(out, in string, when func(membership.Operation) bool, do func()) membership.Operation {
	f.t.Helper()
	// What it failed or lost before in this fleet is no matter here.
	if said, code := f.run("h1", "clear-quarantine", in); code != exitOK {
		f.t.Fatalf("exit %d, %s", code, said)
	}
	client := f.client()
	ctx, stop := context.WithCancel(f.t.Context())
	watched := make(chan bool, 1)
	if when == nil {
		watched <- true
	} else {
		go func() { watched <- f.journal(ctx, client, when, do) }()
	}
	var answer string
	var why, last string
	defer func() {
		if f.t.Failed() {
			f.t.Log(last)
		}
	}()
	f.wait("the swap is taken", func() bool {
		said, code := f.run("h1", "swap", out, in, "--yes", "-o", "json", "--by", "anna")
		last = said
		if reasons := refusal.FindAllString(said, -1); code != exitOK && fmt.Sprint(reasons) != why {
			why = fmt.Sprint(reasons)
			f.t.Logf("swap %s %s: exit %d, %s", out, in, code, why)
		}
		if strings.HasPrefix(strings.TrimSpace(said), "{") {
			answer = said
			return true
		}
		if code != exitOK && !strings.Contains(said, "nothing was asked for") {
			// It ended otherwise than asked for; the record says how.
			answer = ""
			return true
		}
		return code == exitOK
	})
	stop()
	if !<-watched {
		f.t.Error("what was waited for in the journal never came")
	}
	var r membership.Operation
	if answer != "" {
		if err := json.Unmarshal([]byte(answer), &r); err != nil {
			f.t.Fatalf("%v in %s", err, answer)
		}
	} else {
		ops, err := etcd.Operations(f.t.Context(), client, 1)
		if err != nil || len(ops) == 0 {
			f.t.Fatalf("no operation has ended: %v", err)
		}
		r = ops[0]
	}
	f.t.Logf("%s → %s %s: %s", r.Out, r.In, r.Outcome, r.TurnedBack)
	return r
}

// journal watches the Lease's record, and does something once.
func (f *ownersFleet) journal(ctx context.Context, client *clientv3.Client, when func(membership.Operation) bool, do func()) bool {
	changes := client.Watch(clientv3.WithRequireLeader(ctx), leaseetcd.Key)
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-changes:
		case <-look.C:
		}
		open, _, err := etcd.OwnLease(client).Open(ctx)
		if err == nil && open != nil && when(*open) {
			do()
			return true
		}
	}
}

// blockSnapshots puts a file where a host saves its snapshots.
func (f *ownersFleet) blockSnapshots(host string) (unblock func()) {
	f.t.Helper()
	dir := filepath.Join(f.dir, host, "data", "snapshots")
	if err := os.Rename(dir, dir+".away"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		f.t.Fatal(err)
	}
	return func() {
		if err := os.Remove(dir); err != nil {
			f.t.Error(err)
		}
		if err := os.Rename(dir+".away", dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			f.t.Error(err)
		}
	}
}

// killed kills a process that may have ended already.
func (f *ownersFleet) killed(role, host string) {
	if pid := f.process(role, host); pid != 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// interrupted asks for a swap until it has begun, and then presses Ctrl-C.
func (f *ownersFleet) interrupted(out, in string) (said string, code int) {
	f.t.Helper()
	f.wait("the swap has begun", func() bool {
		cmd := exec.CommandContext(f.t.Context(), f.program, "swap", out, in, "--yes", "--config", filepath.Join(f.dir, "h1", "suffrage.yaml"))
		told, err := os.Create(filepath.Join(f.t.TempDir(), "said"))
		if err != nil {
			f.t.Fatal(err)
		}
		defer told.Close()
		cmd.Stdout, cmd.Stderr = told, told
		if err := cmd.Start(); err != nil {
			f.t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for heard := []byte(nil); !bytes.Contains(heard, []byte("has begun")); heard, _ = os.ReadFile(told.Name()) {
			select {
			case <-ended:
				return false
			case <-time.After(100 * time.Millisecond):
			}
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return false
		}
		<-ended
		heard, err := os.ReadFile(told.Name())
		said, code = string(heard), cmd.ProcessState.ExitCode()
		return err == nil
	})
	return said, code
}

// occupy takes the port on which a host's etcd would listen for its peers.
func (f *ownersFleet) occupy(host string) (release func()) {
	u, err := url.Parse(f.settings(host).Member.ListenPeer)
	if err == nil {
		var l net.Listener
		if l, err = net.Listen("tcp", u.Host); err == nil {
			return func() { l.Close() }
		}
	}
	f.t.Error(err)
	return func() {}
}
