package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"suffrage/agent"
	"suffrage/demo"
	"suffrage/fitness"
	"suffrage/identity"
	"suffrage/membership"
	"suffrage/membership/control"
	"suffrage/membership/etcd"
	"suffrage/membership/host"
)

// ordered is a fleet of some hosts, each with an agent and a unit that restarts
// its member whenever it ends.
type ordered struct {
	t          *testing.T
	hosts      []string
	program    string
	fleet      *demo.Fleet
	settings   map[string]Settings
	supervisor *demo.Supervisor
	ctx        context.Context
	cancel     context.CancelFunc
	running    sync.WaitGroup
	units      map[string]*demo.Unit
	agents     map[string]*demo.Child
	client     *agent.Client

	mu      sync.Mutex
	members map[string]*demo.Child // the newest process
}

// newOrdered has these hosts, and these as its first members.
func newOrdered(t *testing.T, hosts, first []string) *ordered {
	t.Helper()
	program, err := exec.LookPath("suffrage") // this test binary
	if err != nil {
		t.Fatal(err)
	}
	// Short: a unix socket's path has little room.
	dir, err := os.MkdirTemp("", "suffrage-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	f := &ordered{t: t, hosts: hosts, program: program, settings: map[string]Settings{}}
	if f.fleet, err = demo.NewFleet(filepath.Join(dir, "fleet")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.fleet.Close() })
	err = f.fleet.Write(func(fl *demo.Fleet, h demo.Host) (any, error) {
		s, err := demoSettings(fl, h, demo.Options{Period: 50 * time.Millisecond})
		// There is no relay: what is advertised is listened on.
		s.Agent.Listen = fmt.Sprintf("%s:%d", h.Mesh, demo.AgentPort)
		s.Member.ListenPeer = s.Member.AdvertisePeer
		s.Member.InitialCluster = map[string]string{}
		for _, name := range first {
			s.Member.InitialCluster[name] = fl.InitialCluster()[name]
		}
		s.Etcd.Endpoints = s.Etcd.Endpoints[:len(first)]
		f.settings[h.Name] = s
		return s, err
	})
	if err != nil {
		t.Fatal(err)
	}
	key, err := identity.LoadKey(f.settings["h1"].keyFile())
	if err != nil {
		t.Fatal(err)
	}
	roster, err := identity.LoadRoster(f.settings["h1"].rosterFile())
	if err != nil {
		t.Fatal(err)
	}
	f.client = agent.NewClient(key, func() *identity.Roster { return roster })
	f.boot()
	t.Cleanup(f.powerOff)
	return f
}

// boot starts what starts with a host: agents and units, and no member.
func (f *ordered) boot() {
	f.t.Helper()
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.supervisor = demo.NewSupervisor()
	f.units, f.agents, f.members = map[string]*demo.Unit{}, map[string]*demo.Child{}, map[string]*demo.Child{}
	f.running.Go(func() { _ = f.supervisor.Run(f.ctx) })
	for _, name := range f.hosts {
		s := f.settings[name]
		u := demo.NewUnit(f.supervisor, s.Data, func(ctx context.Context) (*demo.Child, error) {
			c, err := f.supervisor.Start(ctx, f.process(name, "member"))
			f.mu.Lock()
			f.members[name] = c
			f.mu.Unlock()
			return c, err
		})
		u.Restart = 100 * time.Millisecond
		os.Remove(s.Agent.Unit) // left by the boot before
		l, err := net.Listen("unix", s.Agent.Unit)
		if err != nil {
			f.t.Fatal(err)
		}
		f.units[name] = u
		f.running.Go(func() { _ = u.Run(f.ctx, l) })
		f.startAgent(name)
	}
}

// suffrage runs a command on a host.
func (f *ordered) suffrage(name string, args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = run(f.ctx, append([]string{"--config", filepath.Join(f.settings[name].Dir, demo.ConfigFile)}, args...), &out, &errs)
	return out.String(), errs.String(), code
}

func (f *ordered) startAgent(name string) {
	f.t.Helper()
	c, err := f.supervisor.Start(f.ctx, f.process(name, "agent"))
	if err != nil {
		f.t.Fatal(err)
	}
	f.agents[name] = c
}

func (f *ordered) process(name, verb string) demo.Process {
	args := []string{f.program, verb, "--config", filepath.Join(f.settings[name].Dir, demo.ConfigFile)}
	return demo.Process{Name: name + " " + verb, Args: args, Log: filepath.Join(f.settings[name].Dir, verb+".log")}
}

// powerOff ends every process; what is on the disk stays.
func (f *ordered) powerOff() {
	f.mu.Lock()
	for _, c := range f.members {
		syscall.Kill(c.PID, syscall.SIGKILL)
	}
	f.mu.Unlock()
	f.cancel()
	f.running.Wait()
	f.client.Close()
	if f.t.Failed() {
		for _, name := range f.hosts {
			for _, verb := range []string{"agent", "member"} {
				b, _ := os.ReadFile(filepath.Join(f.settings[name].Dir, verb+".log"))
				f.t.Logf("%s %s:\n%s", name, verb, b[max(0, len(b)-3000):])
			}
		}
	}
}

func (f *ordered) member(name string) *demo.Child {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members[name]
}

func (f *ordered) facts(name string) *fitness.ServerFacts {
	ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
	defer cancel()
	r, err := f.client.Pull(ctx, name, 0)
	if err != nil {
		return nil
	}
	return r.Facts.Server
}

func (f *ordered) give(name string, o control.Order) error {
	ctx, cancel := context.WithTimeout(f.ctx, time.Minute)
	defer cancel()
	return orders{f.client}.Order(ctx, name, o)
}

func (f *ordered) must(name string, o control.Order) {
	f.t.Helper()
	if err := f.give(name, o); err != nil {
		f.t.Fatal(err)
	}
}

func (f *ordered) eventually(what string, ok func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(90 * time.Second); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("never happened: %s", what)
		}
	}
}

// learner has etcd list h4, and gives the order to start it.
func (f *ordered) learner(op string, term uint64) control.Order {
	f.t.Helper()
	client, err := f.settings["h1"].Etcd.Client()
	if err != nil {
		f.t.Fatal(err)
	}
	defer client.Close()
	peers := map[string]string{"h1": f.settings["h1"].Member.AdvertisePeer, "h4": f.settings["h4"].Member.AdvertisePeer}
	o := control.Order{Verb: membership.StartMember, Term: term, Operation: op, Peers: peers}
	f.eventually("etcd lists the learner", func() bool {
		ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
		defer cancel()
		list, err := client.MemberList(ctx)
		if err != nil {
			return false
		}
		for _, m := range list.Members {
			if m.PeerURLs[0] == peers["h4"] {
				o.Member = etcd.ID(m.ID)
				return true
			}
		}
		_, _ = client.MemberAddAsLearner(ctx, []string{peers["h4"]})
		return false
	})
	return o
}

// forget has etcd remove h4.
func (f *ordered) forget(member string) {
	f.t.Helper()
	client, err := f.settings["h1"].Etcd.Client()
	if err != nil {
		f.t.Fatal(err)
	}
	defer client.Close()
	f.eventually("etcd forgets the learner", func() bool {
		ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
		defer cancel()
		list, err := client.MemberList(ctx)
		if err != nil {
			return false
		}
		for _, m := range list.Members {
			if etcd.ID(m.ID) == member {
				_, _ = client.MemberRemove(ctx, m.ID)
				return false
			}
		}
		return true
	})
}

// TestOrdersOnRealProcesses takes a standby through a whole life: real agents,
// real etcd, real signals.
func TestOrdersOnRealProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real etcd")
	}
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
	f := newOrdered(t, []string{"h1", "h4"}, []string{"h1"})
	// The agents of h2, h3 and h5 do not run.
	f.eventually("h1 creates its cluster", func() bool {
		_, _, code := f.suffrage("h1", "cluster", "create", "--confirm", "create h1; no etcd on h2,h3,h5")
		return code == exitOK
	})
	if err := f.units["h1"].Start(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.eventually("agents tell of their servers", func() bool {
		a, b := f.facts("h1"), f.facts("h4")
		return a != nil && b != nil && a.Role == host.Voter && a.Running && b.Role == host.Standby && !b.Running
	})

	// A snapshot, of the host's own voter only.
	f.eventually("h1 saves a snapshot", func() bool {
		return f.give("h1", control.Order{Verb: membership.SaveSnapshot, Term: 1, Operation: "op1"}) == nil
	})
	if s := f.facts("h1").Snapshots; len(s) != 1 || s[0].Operation != "op1" || s[0].Revision < 1 || s[0].Hash == "" || s[0].Size < 16<<10 {
		t.Errorf("snapshots %+v", s)
	}
	err := f.give("h4", control.Order{Verb: membership.SaveSnapshot, Term: 1, Operation: "op1"})
	if e, ok := errors.AsType[*host.OrderError](err); !ok || e.Result.Code != membership.SnapshotFailed || !strings.Contains(err.Error(), "no vote") {
		t.Errorf("a snapshot of a standby: %v", err)
	}

	// It joins.
	join := f.learner("op1", 1)
	f.must("h4", join)
	f.eventually("h4 has a datastore and has forgotten what to join", func() bool {
		s := f.facts("h4")
		_, err := os.Stat(filepath.Join(f.settings["h4"].Data, "join.json"))
		return s != nil && s.Running && s.Datastore && s.Role == host.Voter && errors.Is(err, os.ErrNotExist)
	})
	syscall.Kill(f.member("h4").PID, syscall.SIGKILL) // once: a second one could hit the next process
	f.eventually("a killed member is started again, and has passed where a fence would end it", func() bool {
		count, _ := os.ReadFile(filepath.Join(f.settings["h4"].Data, "starts.json"))
		return strings.Contains(string(count), `"count":2`) && f.facts("h4").Running
	})

	// The fence: what runs goes on, and nothing starts.
	before := f.member("h4")
	f.must("h4", control.Order{Verb: membership.Fence, Term: 2, Operation: "op1", Member: join.Member})
	if s := f.facts("h4"); !s.Fenced || !s.Running || s.Starts != 0 || f.member("h4") != before {
		t.Errorf("fenced: %+v", s)
	}
	if err := host.Socket(f.settings["h4"].Agent.Unit).Start(f.ctx); !errors.Is(err, host.ErrFenced) {
		t.Errorf("a start through the unit: %v", err)
	}
	f.refusesByItself("h4")
	syscall.Kill(before.PID, syscall.SIGKILL)
	f.eventually("h4 is seen to have ended", func() bool { s := f.facts("h4"); return s != nil && !s.Running })
	time.Sleep(5 * f.units["h4"].Restart) // in which Restart=always would have started it
	if s := f.facts("h4"); s.Running || s.Starts != 0 || f.member("h4") != before {
		t.Errorf("it came back behind the fence: %+v", s)
	}

	// A lower term is refused by an agent that was started again.
	f.supervisor.Stop(f.agents["h4"])
	f.startAgent("h4")
	f.eventually("the agent is back", func() bool { return f.facts("h4") != nil })
	err = f.give("h4", control.Order{Verb: membership.Unfence, Term: 1, Operation: "op1"})
	if e, ok := errors.AsType[*host.LowerTermError](err); !ok || e.Seen != 2 || e.Got != 1 {
		t.Errorf("a lower term: %v", err)
	}

	// The power goes, and comes back.
	f.powerOff()
	f.boot()
	f.eventually("the agents are back", func() bool { return f.facts("h4") != nil && f.facts("h1") != nil })
	if err := f.units["h4"].Start(f.ctx); !errors.Is(err, host.ErrFenced) {
		t.Errorf("a start after a reboot: %v", err)
	}
	if s := f.facts("h4"); !s.Fenced || s.Starts != 0 || s.Running || s.Term != 2 {
		t.Errorf("after a reboot: %+v", s)
	}
	if err := f.units["h1"].Start(f.ctx); err != nil {
		t.Fatal(err)
	}

	// It loses its place, and is at rest.
	f.forget(join.Member)
	f.must("h4", control.Order{Verb: membership.Retire, Term: 2, Operation: "op1"})
	if s := f.facts("h4"); s.Role != host.Standby || !s.Fenced || s.Running || s.Datastore {
		t.Errorf("retired: %+v", s)
	}
	aside, _ := filepath.Glob(filepath.Join(f.settings["h4"].Data, "etcd.removed-*-"+join.Member, "member", "wal", "*.wal"))
	if len(aside) == 0 {
		t.Error("its datastore is not kept aside under its name")
	}

	// A datastore that nobody knows is not walked over.
	again := f.learner("op2", 3)
	stray := filepath.Join(f.settings["h4"].Data, "etcd", "member", "snap")
	if err := os.MkdirAll(stray, 0o700); err != nil {
		t.Fatal(err)
	}
	err = f.give("h4", again)
	if e, ok := errors.AsType[*host.OrderError](err); !ok || e.Result.Code != membership.DatastorePresent || e.Result.Outcome != host.Refused {
		t.Errorf("a leftover datastore: %v", err)
	}
	if s := f.facts("h4"); !s.Fenced || s.Role != host.Standby {
		t.Errorf("the refusal changed something: %+v", s)
	}
	if err := os.RemoveAll(filepath.Join(f.settings["h4"].Data, "etcd")); err != nil {
		t.Fatal(err)
	}
	f.must("h4", again)
	f.eventually("h4 is back with another ID", func() bool {
		s := f.facts("h4")
		return s != nil && s.Running && s.Datastore && !s.Fenced && s.Role == host.Voter
	})
}

// refusesByItself: the member honours the fence whoever starts it.
func (f *ordered) refusesByItself(name string) {
	f.t.Helper()
	p := f.process(name, "member")
	out, err := exec.CommandContext(f.ctx, p.Args[0], p.Args[1:]...).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitFenced || !strings.Contains(string(out), "is fenced") {
		f.t.Errorf("a start by hand: %v\n%s", err, out)
	}
}
