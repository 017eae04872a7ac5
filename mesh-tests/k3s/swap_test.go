package k3s_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"suffrage/demo"
	"suffrage/membership"
	"suffrage/membership/host"
	"suffrage/mesh-tests/history"
	"suffrage/mesh-tests/k3s"
)

// program is Suffrage's, with which the swap is made.
const program = "SUFFRAGE_BIN"

// suffrage runs an agent on every host of a K3s fleet and a controller on every
// server, as their owner would.
type suffrage struct {
	*fleet
	files *demo.Fleet
	// agentOf is what the command of a host's agent starts with.
	agentOf func(host string) []string
}

func run(f *fleet, agentOf func(host string) []string) *suffrage {
	f.t.Helper()
	s := &suffrage{f, &demo.Fleet{Dir: filepath.Join(f.t.TempDir(), "suffrage")}, agentOf}
	var endpoints []string
	for _, h := range f.Hosts {
		if h.Name == "c1" { // it has no etcd
			continue
		}
		s.files.Hosts = append(s.files.Hosts, demo.Host{Name: h.Name, Mesh: h.Address, Real: h.Address, Dir: filepath.Join(s.files.Dir, h.Name)})
		endpoints = append(endpoints, h.ClientURL())
	}
	kubeconfig, err := f.Kubeconfig(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	type section = map[string]any
	must(f.t, s.files.Write(func(_ *demo.Fleet, d demo.Host) (any, error) {
		h := f.Host(d.Name)
		loopback := h.Address
		if len(h.Enter) > 0 { // it has one of its own, as K3s needs
			loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		}
		return section{
			"host": h.Name, "dir": d.Dir, "data": d.Path(demo.DataDir),
			"flavour": "k3s",
			"k3s":     section{"data_dir": h.DataDir(), "config_dir": h.DropIns(), "agent_unit": ""},
			"agent": section{
				"unit": d.Path(demo.UnitSocket), "period": "50ms", "ping_timeout": "1s", "dir": d.Path("probes"),
				"metrics": h.Address.String() + ":7401", "member_metrics": "http://" + loopback.String() + ":2381/metrics",
			},
			"etcd": section{"endpoints": endpoints},
			"controller": section{
				"metrics": h.Address.String() + ":7402",
				"page":    section{"listen": h.Address.String() + ":7403"}, // hosts share the machine's loopback
				"mode":    membership.Active, "round": "500ms", "soak": "3s", "stall_time": "30s",
				// A new cluster's Lease is free once that long has gone by: as short as
				// K3s's election timeout allows.
				"lease":  section{"duration": "40s", "renew": "1s"},
				"limits": section{"wal_fsync": "1s", "backend_commit": "1s", "storage_quota": 256 << 20, "memory_used_max": 1},
			},
			"kubernetes": section{"namespace": "default", "kubeconfig": kubeconfig},
			"snapshots":  section{"at": []string{}},
		}, nil
	}))
	for _, d := range s.files.Hosts {
		h := f.Host(d.Name)
		h.Fence, h.Restart = d.Path(demo.DataDir), time.Second
		l, err := net.Listen("unix", d.Path(demo.UnitSocket))
		must(f.t, err)
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- host.ServeUnit(ctx, l, h) }()
		f.t.Cleanup(func() { cancel(); must(f.t, <-served) })
		s.process(d, "agent")
		if h.Running() {
			s.process(d, "controller")
		}
	}
	return s
}

// beside lets another such test run meanwhile: both wait for the product's times
// most of theirs. Two fleets of K3s itself are too much for a machine.
func beside(t *testing.T) {
	if os.Getenv(k3s.Variable) == "" {
		t.Parallel()
	}
}

// process keeps one running until the test ends.
func (s *suffrage) process(d demo.Host, what string) {
	s.t.Helper()
	log, err := os.Create(d.Path(what + ".log"))
	must(s.t, err)
	command := []string{os.Getenv(program), what, "--config", d.Path(demo.ConfigFile)}
	if what == "agent" && s.agentOf != nil {
		command = append(s.agentOf(d.Name), command...)
	}
	command = append(slices.Clone(s.Host(d.Name).Enter), command...)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer log.Close()
		for ctx.Err() == nil { // as its unit does
			cmd := exec.CommandContext(ctx, command[0], command[1:]...)
			cmd.Stdout, cmd.Stderr = log, log
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			_ = cmd.Run()
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	s.t.Cleanup(func() {
		cancel()
		<-ended
		if s.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			s.t.Logf("%s on %s:\n%s", what, d.Name, text[max(0, len(text)-4000):])
		}
	})
}

// says is what a command on h1 prints.
func (s *suffrage) says(args ...string) (string, error) {
	command := append(slices.Clone(s.Host("h1").Enter), os.Getenv(program))
	command = append(append(command, args...), "--config", s.files.Hosts[0].Path(demo.ConfigFile))
	cmd := exec.CommandContext(s.t.Context(), command[0], command[1:]...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// swap asks for one until it is begun, and gives how it ended.
func (s *suffrage) swap(out, in string) (ended membership.Operation) {
	s.t.Helper()
	s.Wait(fmt.Sprintf("the swap %s → %s", out, in), func(context.Context) error {
		said, err := s.says("swap", out, in, "--yes", "--by", "anna")
		if err != nil && strings.Contains(said, "nothing was asked for") { // the windows fill, or the cooldown holds
			return errors.New(said)
		}
		return nil
	})
	text, err := s.says("operations", "list", "-o", "json")
	must(s.t, err)
	var all []membership.Operation
	if err := json.Unmarshal([]byte(text), &all); err != nil || len(all) == 0 {
		s.t.Fatalf("operations: %v in %s", err, text)
	}
	return all[0]
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestSwap moves the vote of the server that leads: the standby's server joins,
// K3s promotes it, the old one is fenced before K3s is asked to remove it, and
// stays out though its unit starts it again and again. A client writes all the
// time. Then the vote comes back to the same host, whose Node still says what the
// first removal left.
func TestSwap(t *testing.T) {
	if os.Getenv(program) == "" {
		t.Skipf("SKIPPED: %s is not set: 'make k3s-test' builds it and runs this test", program)
	}
	beside(t)
	// With K3s's own election timeout, by which a busy machine is well enough.
	f := &fleet{k3s.New(t, k3s.Options{Split: true, Env: k3s.Quick}), t}
	f.Add("h4")
	s := run(f, nil)
	for _, h := range []string{"h1", "h2", "h3", "h4"} {
		said, err := s.says("host", "eligible", h)
		if err != nil {
			t.Fatal(said)
		}
	}
	judge := f.written(t, "h2", "h3")
	identities := nodePasswords(t, f)
	for _, way := range [][2]string{{"h1", "h4"}, {"h4", "h1"}} {
		if said, err := s.says("clear-quarantine", way[1]); err != nil { // no host is moved back within an hour
			t.Fatal(said)
		}
		// What would make the request vanish, as an earlier removal leaves it.
		f.annotate(t, way[0], map[string]any{saysRemoved: f.member(t, way[0])})
		op := s.swap(way[0], way[1])
		t.Logf("%s → %s: %s %s, %s", op.Out, op.In, op.Outcome, op.TurnedBack, op.Ended.Sub(op.Begun))
		if op.Outcome != membership.Completed {
			b, _ := json.MarshalIndent(op, "", " ")
			t.Fatalf("%s", b)
		}
		f.untilMembers(t, "h2", way[1], "h2", "h3")
		if f.Host(way[0]).Running() {
			t.Errorf("%s runs, and lost its vote", way[0])
		}
		aside, err := filepath.Glob(f.Host(way[0]).Datastore() + ".removed-*")
		if err != nil || len(aside) == 0 {
			t.Errorf("no datastore of %s is aside: %v, %v", way[0], aside, err)
		}
		node, err := f.Node(t.Context(), way[0])
		must(t, err)
		for _, a := range []string{askRemove, saysRemoved, "suffrage.io/removal"} {
			if v, is := node.Annotations[a]; is {
				t.Errorf("the Node of %s still says %s=%s", way[0], a, v)
			}
		}
		for name, password := range nodePasswords(t, f) { // without it K3s refuses the Node
			if before, is := identities[name]; is && before != password {
				t.Errorf("the password of %s's Node changed", name)
			}
			identities[name] = password
		}
	}
	judge()
	logs, err := os.ReadFile(f.Host("h1").Log())
	must(t, err)
	// A removed member goes on for a second with its database closed, and etcd panics
	// where it is asked for its status then: nobody needs it any more.
	if i := bytes.Index(logs, []byte("panic")); i >= 0 && !bytes.Contains(logs[i:], []byte("maintenanceServer).Status")) {
		t.Errorf("h1's server panicked: %s", logs[i:min(i+6000, len(logs))])
	}
}

// written has clients write through the etcd of these hosts until they are judged.
func (f *fleet) written(t *testing.T, hosts ...string) (judge func()) {
	t.Helper()
	var at []*k3s.Host
	for _, h := range hosts {
		at = append(at, f.Host(h))
	}
	client, err := f.Etcd(at...)
	must(t, err)
	t.Cleanup(func() { client.Close() })
	ctx, stop := context.WithCancel(t.Context())
	var h history.History
	var w history.Writes
	var run sync.WaitGroup
	run.Go(func() { h, w = (&history.Clients{Client: client, Prefix: "test/"}).Run(ctx) })
	t.Cleanup(func() { stop(); run.Wait() })
	return func() {
		t.Helper()
		stop()
		run.Wait()
		history.Judge(t, h, w, "")
	}
}

// nodePasswords are those of the hosts that have run K3s.
func nodePasswords(t *testing.T, f *fleet) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, h := range f.Hosts {
		text, err := os.ReadFile(h.NodePassword())
		if !errors.Is(err, os.ErrNotExist) {
			must(t, err)
			all[h.Name] = string(text)
		}
	}
	return all
}
