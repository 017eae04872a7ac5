package systemd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/host"
)

// mesh is the network of the hosts, but for the last number.
const mesh = "10.213.97."

// standIn is a host whose member is a process that does nothing, under a unit
// that lies where K3s installs its own and starts again at once, always.
type standIn struct {
	*machine
	data string
	unit host.Systemd
	*host.Server
}

const unitName = "server.service"

func newStandIn(t *testing.T) *standIn {
	t.Helper()
	s := &standIn{data: filepath.Join(lab.dir, "data-"+strings.ToLower(t.Name()))}
	if lab.why == "" {
		for _, d := range []string{"etcd/member/wal", "etcd/member/snap"} {
			if err := os.MkdirAll(filepath.Join(s.data, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(s.data, "etcd/member/wal/0.wal"), []byte("votes"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.machine = boot(t, "h1", "", s.data)
	s.put("/etc/systemd/system/"+unitName, `[Unit]
AssertPathExists=!`+s.data+`/fence.json
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=/usr/bin/sleep infinity
Restart=always
RestartSec=0

[Install]
WantedBy=multi-user.target
`)
	s.run("systemctl", "daemon-reload")
	s.run("systemctl", "enable", "-q", unitName)
	s.serve()
	return s
}

// serve is a new agent's server, on the bus as this boot has it.
func (s *standIn) serve() {
	s.t.Helper()
	s.unit = host.Systemd{Name: unitName, Data: s.data, Bus: "unix:path=" + s.inside("/run/dbus/system_bus_socket")}
	var err error
	s.Server, err = host.New(host.Options{Host: "h1", Data: s.data, Datastore: filepath.Join(s.data, "etcd"), Snapshots: filepath.Join(s.data, "snapshots"), Unit: s.unit})
	s.must(err)
	eventually(s.t, "systemd is on the bus", func() bool { return s.unit.Check(s.t.Context()) == nil })
}

func (s *standIn) state() host.UnitState {
	s.t.Helper()
	got, err := s.unit.State(s.t.Context())
	s.must(err)
	return got
}

func (s *standIn) facts() fitness.ServerFacts {
	s.t.Helper()
	f, err := s.Facts(s.t.Context())
	s.must(err)
	return f
}

func (s *standIn) give(v membership.Verb) {
	s.t.Helper()
	o := host.Order{Verb: v, Term: 1, Operation: "op", Member: "aa"}
	s.must(s.Order(s.t.Context(), o).Err("h1", o))
}

func (s *standIn) show(property string) string {
	s.t.Helper()
	return strings.TrimSpace(s.run("systemctl", "show", "-P", property, unitName))
}

// kill ends the member as nothing but the kernel can.
func (s *standIn) kill() {
	s.t.Helper()
	s.run("systemctl", "kill", "-s", "KILL", unitName)
}

// settled waits until systemd has no more to do for the unit.
func (s *standIn) settled() {
	s.t.Helper()
	eventually(s.t, "the unit is at rest", func() bool {
		return s.show("ActiveState") == "inactive" && s.show("Job") == ""
	})
}

func TestStartStopAndRestarts(t *testing.T) {
	s := newStandIn(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent()) // a connection ends with its call
	if got := s.state(); got != (host.UnitState{}) {
		t.Errorf("before the first start: %+v", got)
	}
	for range 2 {
		s.must(s.unit.Start(t.Context()))
	}
	first := s.state()
	if !first.Running || first.Invocation == "" {
		t.Errorf("started: %+v", first)
	}
	s.must(s.unit.Start(t.Context()))
	if got := s.state(); got != first {
		t.Errorf("%+v, then %+v: one that runs is not started again", first, got)
	}
	for range 3 {
		before := s.state().Invocation
		s.kill()
		eventually(t, "it is started again", func() bool { got := s.state(); return got.Running && got.Invocation != before })
	}
	if n := s.show("NRestarts"); n != "3" {
		t.Errorf("%s restarts, want 3", n)
	}
	for range 2 {
		s.must(s.unit.Stop(t.Context()))
	}
	if got := s.state(); got.Running {
		t.Errorf("stopped: %+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.unit.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v: whoever gave up is not waited for", err)
	}
}

// TestFence is S121 to S127 on a unit that restarts always: what runs goes on
// behind the fence, and nothing brings it back once it has ended.
func TestFence(t *testing.T) {
	s := newStandIn(t)
	s.must(s.unit.Start(t.Context()))
	before := s.state()
	s.give(membership.Fence)
	if f := s.facts(); !f.Fenced || !f.Running || f.Starts != 0 || s.state() != before {
		t.Errorf("fenced while it runs: %+v", f)
	}
	s.kill()
	s.settled()
	fenced := func(after string) {
		t.Helper()
		if f := s.facts(); !f.Fenced || f.Running || f.Starts != 0 || !f.Datastore {
			t.Errorf("%s: %+v", after, f)
		}
		if out, err := s.try("systemctl", "start", unitName); err == nil || !strings.Contains(err.Error(), "Assertion failed") {
			t.Errorf("%s: a start by hand: %s %v", after, out, err)
		}
		if err := s.unit.Start(t.Context()); !errors.Is(err, host.ErrFenced) {
			t.Errorf("%s: a start: %v", after, err)
		}
		if f := s.facts(); f.Running || f.Starts != 0 {
			t.Errorf("%s: it was started: %+v", after, f)
		}
		s.give(membership.Fence) // again, and again proven
	}
	fenced("kill -9")
	// S117: the unit lies where a mask would have to.
	if _, err := s.try("systemctl", "mask", unitName); err == nil {
		t.Error("a unit in /etc was masked: this test does not show what it is for")
	}
	for range 3 {
		s.reboot()
		s.serve()
		fenced("a reboot")
	}
	s.cut()
	s.serve()
	fenced("a loss of power")
	if out := s.run("systemctl", "is-system-running"); strings.TrimSpace(out) != "running" {
		t.Errorf("a fence is no fault of the system: %s", out)
	}

	s.give(membership.Unfence)
	if f := s.facts(); f.Fenced || !f.Running {
		t.Errorf("unfenced, a voter runs again: %+v", f)
	}
	s.reboot()
	s.serve()
	if f := s.facts(); !f.Running {
		t.Errorf("a voter comes back after a reboot: %+v", f)
	}

	s.give(membership.Retire)
	if f := s.facts(); !f.Fenced || f.Running || f.Starts != 0 || f.Datastore || f.Role != host.Standby {
		t.Errorf("retired: %+v", f)
	}
	aside, err := filepath.Glob(filepath.Join(s.data, "etcd.removed-*-aa", "member", "wal", "0.wal"))
	if len(aside) != 1 || err != nil {
		t.Errorf("aside: %v %v", aside, err)
	}
	s.reboot()
	s.serve()
	if f := s.facts(); !f.Fenced || f.Running || f.Starts != 0 {
		t.Errorf("retired and booted: %+v", f)
	}
	// A start behind the fence that systemd let pass is seen.
	s.must(os.Rename(filepath.Join(s.data, "fence.json"), filepath.Join(s.data, "held")))
	s.run("systemctl", "start", unitName)
	s.must(os.Rename(filepath.Join(s.data, "held"), filepath.Join(s.data, "fence.json")))
	if f := s.facts(); !f.Running || f.Starts != 1 {
		t.Errorf("started behind our back: %+v", f)
	}
}

// TestRestartLosesTheRace is S116: the member ends right behind the fence, and
// its restart never wins.
func TestRestartLosesTheRace(t *testing.T) {
	s := newStandIn(t)
	const runs = 100
	for i := range runs {
		s.must(s.unit.Start(t.Context()))
		pid := s.show("MainPID")
		s.give(membership.Fence)
		s.must(syscall.Kill(childNumbered(s.machine, pid), syscall.SIGKILL))
		s.settled()
		if f := s.facts(); f.Running || f.Starts != 0 {
			t.Fatalf("run %d: %+v", i, f)
		}
		s.must(os.Remove(filepath.Join(s.data, "fence.json")))
	}
}

// childNumbered is our number for a process that has this one in the host.
func childNumbered(m *machine, inside string) int {
	m.t.Helper()
	status, err := filepath.Glob("/proc/[0-9]*/status")
	m.must(err)
	leader, err := os.Readlink(m.inside("/proc/1/ns/pid"))
	m.must(err)
	for _, file := range status {
		ns, err := os.Readlink(filepath.Join(filepath.Dir(file), "ns/pid"))
		if err != nil || ns != leader {
			continue
		}
		b, _ := os.ReadFile(file)
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "NSpid:" && f[len(f)-1] == inside {
				var pid int
				for _, r := range f[1] {
					pid = pid*10 + int(r-'0')
				}
				return pid
			}
		}
	}
	m.t.Fatalf("no process %s in %s", inside, m.name)
	return 0
}
