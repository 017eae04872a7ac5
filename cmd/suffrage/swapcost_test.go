package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/demo"
	"suffrage/fitness"
	"suffrage/lease"
	"suffrage/membership"
	"suffrage/membership/host"
)

// TestSwapCost measures what a swap costs, for docs/performance.md, each figure
// beside what it is to be compared with in the same fleet. It asserts nothing of
// the times: a busy machine is no failure. make bench-swap runs it.
func TestSwapCost(t *testing.T) {
	if os.Getenv("SUFFRAGE_BENCH_SWAP") == "" {
		t.Skip("measures for minutes; make bench-swap runs it")
	}
	program := plainBinary(t)
	for _, election := range []time.Duration{time.Second, 5 * time.Second} {
		for _, megabytes := range []int{0, 100} {
			t.Run(fmt.Sprintf("E=%v database=%dMB", election, megabytes), func(t *testing.T) {
				swapCost(t, program, election, megabytes)
			})
		}
	}
}

// costSoak is the soak of the fleets here; it is not counted as a cost.
const costSoak = 3 * time.Second

func swapCost(t *testing.T, program string, election time.Duration, megabytes int) {
	f := startCostFleet(t, program, election)
	f.fill(megabytes)
	f.lead("h3")
	quiet := f.watch(func() { time.Sleep(15 * time.Second) })

	op, during := f.swapped("h3", "h4")
	saved := stepTime(op, "snapshot")
	swap := op.Ended.Sub(op.Begun) - costSoak - saved
	if _, code := f.owner.run("h1", "pause", "--reason", "a script changes the members now"); code != exitOK {
		t.Fatal("not paused")
	}

	f.lead("h4")
	var bare time.Duration
	script := f.watch(func() { bare = f.bareSwap("h4", "h5") })

	f.fresh("h4")
	f.join("h4")
	f.lead("h4")
	unmoved := f.watch(func() {
		f.remove("h4")
		time.Sleep(3*time.Second + 3*election)
	})

	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf(`%s, load %s
| | took | longest gap | slowest write | failed |
| the same time without a swap | %v | %s |
| the swap, without soak %v and snapshot %v | %v | %s |
| the bare calls | %v | %s |
| the leader removed, not moved first | | %s |
overhead %.0f %% of the bare calls (%v); steps %s`,
		t.Name(), strings.TrimSpace(string(load)),
		quiet.took, quiet, costSoak, saved.Round(time.Millisecond), swap.Round(time.Millisecond), during,
		bare.Round(time.Millisecond), script, unmoved,
		100*(swap-bare).Seconds()/bare.Seconds(), (swap - bare).Round(time.Millisecond), stepTimes(op))
}

func stepTime(op membership.Operation, name string) time.Duration {
	for _, s := range op.Steps {
		if s.Name == name {
			return s.Ended.Sub(s.Begun)
		}
	}
	return 0
}

func stepTimes(op membership.Operation) string {
	var out []string
	for _, s := range op.Steps {
		out = append(out, fmt.Sprintf("%s %v", s.Name, s.Ended.Sub(s.Begun).Round(time.Millisecond)))
	}
	return strings.Join(out, ", ")
}

// costFleet is the demo's fleet in this process, and a script that talks to its
// etcd without any check.
type costFleet struct {
	t      *testing.T
	owner  *ownersFleet
	fleet  *demo.Fleet
	client *clientv3.Client // of h1 and h2, which stay throughout
	single []*clientv3.Client
}

func startCostFleet(t *testing.T, program string, election time.Duration) *costFleet {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "f")
	f := &costFleet{t: t, owner: &ownersFleet{t: t, program: program, dir: dir}}
	o := demo.Options{Program: program, Dir: dir, Period: 50 * time.Millisecond, Active: true, Progress: t.Output(),
		Mark: markAll, Client: demoClient, Ended: demoEnded, Width: func() int { return 0 }}
	made := make(chan *demo.Fleet, 5)
	o.Configure = func(fleet *demo.Fleet, h demo.Host) (any, error) {
		s, err := demoSettings(fleet, h, o)
		e := fitness.Duration(election)
		s.Member.ElectionTimeout, s.Member.Heartbeat = e, e/10
		s.Controller.Limits.ElectionTimeout = e
		s.Controller.SessionTTL = max(s.Controller.SessionTTL, 4*e)
		s.Controller.Soak = fitness.Duration(costSoak)
		s.Controller.Lease = lease.Config{Duration: fitness.Duration(15*time.Second) + 6*e, Renew: fitness.Duration(time.Second)}
		made <- fleet
		return s, errors.Join(err, s.Validate())
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := demo.Run(ctx, o)
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the fleet: %v", err)
		}
		leftNothing(t, dir)
	})
	select {
	case f.fleet = <-made:
	case err := <-ended:
		ended <- err
		t.Fatalf("the fleet: %v", err)
	}
	f.owner.wait("etcd answers", func() bool {
		_, code := f.owner.run("h1", "host", "list")
		return code == exitOK
	})
	for _, name := range []string{"h1", "h2"} {
		f.single = append(f.single, f.clientOf(name))
	}
	f.client = f.clientOf("h1", "h2")
	return f
}

func (f *costFleet) clientOf(hosts ...string) *clientv3.Client {
	f.t.Helper()
	s, err := demoSettings(f.fleet, f.fleet.Hosts[0], demo.Options{Period: 50 * time.Millisecond})
	if err != nil {
		f.t.Fatal(err)
	}
	s.Etcd.Endpoints = nil
	for _, h := range hosts {
		s.Etcd.Endpoints = append(s.Etcd.Endpoints, f.url(h, demo.ClientPort))
	}
	c, err := s.Etcd.Client()
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (f *costFleet) url(name string, port int) string {
	h, err := f.fleet.Host(name)
	if err != nil {
		f.t.Fatal(err)
	}
	return fmt.Sprintf("https://%s:%d", h.Mesh, port)
}

// must repeats a call of the script until it succeeds, quickly.
func (f *costFleet) must(what string, call func(context.Context) error) {
	f.t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(f.t.Context(), 20*time.Second)
		err = call(ctx)
		cancel()
		if err == nil {
			return
		}
	}
	f.t.Fatalf("%s: %v", what, err)
}

// fill makes the database about so many megabytes.
func (f *costFleet) fill(megabytes int) {
	f.t.Helper()
	value := make([]byte, 100_000)
	for i := range megabytes * 10 {
		_, _ = rand.Read(value)
		f.must("fill", func(ctx context.Context) error {
			_, err := f.client.Put(ctx, fmt.Sprintf("/filler/%d", i), string(value))
			return err
		})
	}
}

// id is the member on a host, 0 for none.
func (f *costFleet) id(name string) (id uint64) {
	f.t.Helper()
	f.must("list", func(ctx context.Context) error {
		r, err := f.client.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, m := range r.Members {
			if slices.Contains(m.PeerURLs, f.url(name, demo.PeerPort)) {
				id = m.ID
			}
		}
		return nil
	})
	return id
}

// lead makes a host's member the leader.
func (f *costFleet) lead(name string) {
	f.t.Helper()
	id := f.id(name)
	f.must("move leader to "+name, func(ctx context.Context) error {
		r, err := f.client.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, m := range r.Members {
			if len(m.ClientURLs) == 0 {
				continue
			}
			s, err := f.client.Status(ctx, m.ClientURLs[0])
			if err == nil && s.Leader == id {
				return nil
			}
			if err == nil && s.Leader == m.ID {
				return f.moveFrom(ctx, m.ClientURLs[0], id)
			}
		}
		return errors.New("no leader")
	})
}

// moveFrom asks the leader itself: it alone can hand over.
func (f *costFleet) moveFrom(ctx context.Context, leader string, to uint64) error {
	s, err := demoSettings(f.fleet, f.fleet.Hosts[0], demo.Options{Period: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	s.Etcd.Endpoints = []string{leader}
	c, err := s.Etcd.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.MoveLeader(ctx, to)
	return err
}

// swapped has the owner's swap done as soon as it is not refused.
func (f *costFleet) swapped(out, in string) (membership.Operation, writes) {
	f.t.Helper()
	var op membership.Operation
	var seen writes
	f.owner.wait("the swap is not refused", func() bool {
		f.lead(out)
		code := exitFailed
		said := ""
		seen = f.watch(func() { said, code = f.owner.run("h1", "swap", out, in, "--yes", "-o", "json") })
		if code != exitOK && !strings.Contains(said, "nothing was asked for") && !strings.Contains(said, "nothing was changed") {
			f.t.Fatalf("exit %d: %s", code, said)
		}
		if code == exitOK {
			if err := json.Unmarshal([]byte(said), &op); err != nil {
				f.t.Fatalf("%v in %s", err, said)
			}
		}
		return code == exitOK
	})
	if op.Outcome != membership.Completed {
		f.t.Fatalf("the swap was %s: %s", op.Outcome, op.TurnedBack)
	}
	return op, seen
}

// bareSwap is the same change by a script with no checks, and how long it took.
func (f *costFleet) bareSwap(out, in string) time.Duration {
	f.t.Helper()
	began := time.Now()
	f.join(in)
	f.lead("h1")
	f.remove(out)
	return time.Since(began)
}

// join adds a host as a learner, starts its etcd and promotes it as soon as
// etcd accepts that.
func (f *costFleet) join(name string) {
	f.t.Helper()
	peer := f.url(name, demo.PeerPort)
	var id uint64
	j := host.Join{Operation: "script", Peers: map[string]string{name: peer}}
	f.must("add "+name, func(ctx context.Context) error {
		r, err := f.client.MemberAddAsLearner(ctx, []string{peer})
		if err != nil {
			return err
		}
		id = r.Member.ID
		j.Member = fmt.Sprintf("%x", id)
		for _, m := range r.Members {
			if m.Name != "" {
				j.Peers[m.Name] = m.PeerURLs[0]
			}
		}
		return nil
	})
	h, err := f.fleet.Host(name)
	if err != nil {
		f.t.Fatal(err)
	}
	data, err := json.Marshal(j)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(h.Path("data/join.json"), data, 0o600); err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(f.owner.program, "member", "--config", h.Path(demo.ConfigFile))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was removed, or killed just now
	})
	f.must("promote "+name, func(ctx context.Context) error {
		_, err := f.client.MemberPromote(ctx, id)
		return err
	})
}

func (f *costFleet) remove(name string) {
	f.t.Helper()
	id := f.id(name)
	f.must("remove "+name, func(ctx context.Context) error {
		_, err := f.client.MemberRemove(ctx, id)
		if err != nil && f.id(name) == 0 {
			return nil
		}
		return err
	})
}

// fresh waits for the end of a removed member, and deletes what it fenced itself
// with and what is left of its datastore.
func (f *costFleet) fresh(name string) {
	f.t.Helper()
	h, err := f.fleet.Host(name)
	if err != nil {
		f.t.Fatal(err)
	}
	f.owner.wait(name+" has ended", func() bool { return !f.owner.runs("member", name) })
	for _, path := range []string{"data/etcd", "data/fence.json"} {
		if err := os.RemoveAll(h.Path(path)); err != nil {
			f.t.Fatal(err)
		}
	}
}
