package systemd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"suffrage/membership"
	"suffrage/membership/host"
)

// k3sHost is a host with the units that K3s's installer lays down, but for their
// programs, and the drop-ins of deploy/systemd/k3s.
type k3sHost struct {
	*standIn
	agent host.Systemd
}

func newK3sHost(t *testing.T) *k3sHost {
	t.Helper()
	s := newStandIn(t)
	h := &k3sHost{standIn: s}
	for _, name := range []string{"k3s.service", "k3s-agent.service"} {
		// As K3s's own, its start ends a while after its process is there.
		h.put("/etc/systemd/system/"+name, `[Unit]
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=all
KillMode=process
TimeoutStartSec=0
Restart=always
RestartSec=1
ExecStart=/bin/sh -c "sleep 5; systemd-notify --ready; exec sleep infinity"

[Install]
WantedBy=multi-user.target
`)
		dropIn, err := os.ReadFile(filepath.Join("..", "..", "deploy", "systemd", "k3s", name+".d", "suffrage.conf"))
		h.must(err)
		h.put("/etc/systemd/system/"+name+".d/suffrage.conf", strings.ReplaceAll(string(dropIn), "/var/lib/suffrage", h.data))
	}
	h.run("systemctl", "disable", "-q", unitName)
	h.run("systemctl", "daemon-reload")
	h.run("systemctl", "enable", "-q", "k3s.service", "k3s-agent.service")
	h.serveK3s()
	return h
}

func (h *k3sHost) serveK3s() {
	h.t.Helper()
	bus := "unix:path=" + h.inside("/run/dbus/system_bus_socket")
	h.unit = host.Systemd{Name: "k3s.service", Data: h.data, Bus: bus, K3s: true}
	h.agent = host.Systemd{Name: "k3s-agent.service", Data: h.data, Bus: bus, Behind: true}
	var err error
	h.Server, err = host.New(host.Options{Host: "h1", Data: h.data, Datastore: filepath.Join(h.data, "etcd"), Snapshots: filepath.Join(h.data, "snapshots"),
		Unit: h.unit, K3s: &host.K3s{Config: filepath.Join(h.data, "config.yaml.d"), Agent: h.agent}})
	h.must(err)
	for _, u := range []host.Systemd{h.unit, h.agent} {
		eventually(h.t, u.Name+" is as it should be", func() bool { return u.Check(h.t.Context()) == nil })
	}
}

// runs says which of the two units has a process.
func (h *k3sHost) runs() string {
	h.t.Helper()
	var out []string
	for _, u := range []host.Systemd{h.unit, h.agent} {
		got, err := u.State(h.t.Context())
		h.must(err)
		if got.Running {
			out = append(out, u.Name)
		}
	}
	return strings.Join(out, " ")
}

func (h *k3sHost) order(v membership.Verb) {
	h.t.Helper()
	o := host.Order{Verb: v, Term: 1, Operation: "op", Member: "aa"}
	if v == membership.StartMember || v == membership.Retire {
		o.Peers = map[string]string{"h2-0a1b2c3d": "https://10.0.0.2:2380"}
	}
	if v == membership.StartMember {
		o.Member, o.Peers["h1"] = "", "https://10.0.0.1:2380"
	}
	h.must(h.Order(h.t.Context(), o).Err("h1", o))
}

// One of K3s's two units runs at a time, and a boot starts the right one.
func TestK3sUnits(t *testing.T) {
	h := newK3sHost(t)
	h.run("systemctl", "start", "--no-block", "k3s.service")
	eventually(t, "the server runs", func() bool { return h.runs() == "k3s.service" })

	h.order(membership.Fence)
	if got := h.runs(); got != "k3s.service" {
		t.Errorf("behind its fence %q runs: a process goes on", got)
	}
	// The member was removed, K3s has exited, and systemd starts it again.
	h.run("systemctl", "kill", "-s", "KILL", "k3s.service")
	eventually(t, "the start was refused", func() bool { return h.runs() == "" })

	h.order(membership.Retire)
	if got, f := h.runs(), h.facts(); got != "k3s-agent.service" || f.Role != host.Standby || !f.Fenced || f.Datastore || f.Starts != 0 {
		t.Errorf("retired: %q runs, %+v", got, f)
	}
	h.reboot()
	h.serveK3s()
	eventually(t, "the agent runs after a boot", func() bool { return h.runs() == "k3s-agent.service" })

	h.order(membership.StartMember)
	if got := h.runs(); got != "k3s.service" {
		t.Errorf("given a vote: %q runs", got)
	}
	h.reboot()
	h.serveK3s()
	eventually(t, "the server runs after a boot", func() bool { return h.runs() == "k3s.service" })
}

// What would let a removed server come back is seen before anything depends on it.
func TestK3sUnitsThatAreNotSafe(t *testing.T) {
	h := newK3sHost(t)
	for _, tt := range []struct{ why, name, was, is, want string }{
		{"a command line that makes clusters", "k3s.service", "infinity\"", "infinity\" --cluster-init", "--cluster-init"},
		{"one that says whom to join", "k3s.service", "infinity\"", "infinity\" --server https://10.0.0.9:6443", "--server https://10.0.0.9:6443"},
		{"an agent beside the server", "k3s-agent.service", "AssertPathExists=" + h.data, "AssertPathExists=!" + h.data, "could start beside the server"},
		{"a server without the fence", "k3s.service", "AssertPathExists=!", "ConditionPathExists=!", "does not honour the fence"},
	} {
		was := map[string]string{}
		for _, file := range []string{tt.name, tt.name + ".d/suffrage.conf"} {
			path := h.inside("/etc/systemd/system/" + file)
			text, err := os.ReadFile(path)
			h.must(err)
			h.put("/etc/systemd/system/"+file, strings.Replace(string(text), tt.was, tt.is, 1))
			was[file] = string(text)
		}
		h.run("systemctl", "daemon-reload")
		u := h.unit
		if tt.name == h.agent.Name {
			u = h.agent
		}
		if err := u.Check(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.want)
		}
		for file, text := range was {
			h.put("/etc/systemd/system/"+file, text)
		}
	}
}
