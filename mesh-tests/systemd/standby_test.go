package systemd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/host"
	"suffrage/membership/host/standby"
)

// tree is every file of the host but what changes while it runs: kind, mode, owner
// and target of each, and of files the content's hash and when they were written.
func (m *machine) tree() []string {
	m.t.Helper()
	out := m.run("sh", "-c", `cd /
		find / -xdev \( -path /run -o -path /tmp -o -path /var/tmp -o -path /var/log -o -path /var/cache -o -path /var/lib/systemd -o -path /opt/suffrage \) -prune \
			-o -type f -printf '%p %m %U:%G %T@\n' -o -printf '%p %y %m %U:%G %l\n' | sort
		find /etc /usr/local /var/lib -xdev -path /var/lib/systemd -prune -o -type f -exec sha256sum {} + | sort`)
	return strings.Split(out, "\n")
}

// amiss are the checks of `suffrage standby check` that are not ok.
func (m *machine) amiss() (out []standby.Check) {
	m.t.Helper()
	said, err := m.try("suffrage", "standby", "check", "-o", "json")
	var got struct {
		Ready  bool            `json:"ready"`
		Checks []standby.Check `json:"checks"`
	}
	m.must(json.Unmarshal([]byte(said), &got))
	for _, c := range got.Checks {
		if c.State != standby.OK {
			out = append(out, c)
		}
	}
	if got.Ready != (len(out) == 0) || got.Ready != (err == nil) {
		m.t.Errorf("ready is %t with %d amiss, and it ended with %v", got.Ready, len(out), err)
	}
	return out
}

// TestStandby prepares a host twice, has it found ready, gives it a vote and takes
// it away again, and has it be what it was before.
func TestStandby(t *testing.T) {
	f := bootFleet(t, []string{"h1"}, []string{"h4"})
	f.install("  quota: 67108864\nagent:\n  unit: " + memberUnit + "\n  period: 200ms\n  ping_timeout: 2s\n")
	h4 := f.hosts["h4"]
	if got := h4.amiss(); len(got) < 6 {
		t.Errorf("before it is prepared only this is amiss: %v", got)
	}
	before := h4.tree()
	would := h4.run("suffrage", "standby", "prepare", "--dry-run")
	if diff := cmp.Diff(before, h4.tree()); diff != "" {
		t.Errorf("dry it changed:\n%s", diff)
	}
	f.prepare()
	t.Logf("%s", would)
	prepared := h4.tree()
	if said := h4.run("suffrage", "standby", "prepare"); !strings.HasPrefix(said, "nothing to do\n") {
		t.Errorf("prepared again: %s", said)
	}
	if diff := cmp.Diff(prepared, h4.tree()); diff != "" {
		t.Errorf("prepared again it changed:\n%s", diff)
	}

	f.create()
	f.connect()
	ready := func(name string) {
		t.Helper()
		eventually(t, name+" is ready", func() bool { // once its agent has pinged the other
			got := f.hosts[name].amiss()
			t.Logf("%s: %v", name, got)
			return len(got) == 0
		})
	}
	ready("h4")
	ready("h1")
	told := func(is bool) {
		t.Helper()
		eventually(t, "its agent tells it", func() bool {
			r, err := f.client.Pull(t.Context(), "h4", 0)
			return err == nil && r.Facts.Prepared != nil && r.Facts.Prepared.Ready == is
		})
	}
	told(true)
	h4.run("systemctl", "disable", "-q", memberUnit)
	h4.run("systemctl", "restart", agentUnit) // it looks when it starts, and then every half minute
	told(false)
	h4.run("suffrage", "standby", "prepare")
	h4.run("systemctl", "restart", agentUnit)
	told(true)

	join := f.learner("h4", "op1", 1)
	f.order("h4", join)
	f.becomes("h4", "it runs", func(s fitness.ServerFacts) bool { return s.Role == host.Voter && s.Running && s.Datastore })
	refused := func(why string) {
		t.Helper()
		was := h4.tree()
		if out, err := h4.try("suffrage", "standby", "remove"); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %s %v", why, out, err)
		}
		if h4.show(agentUnit, "ActiveState") != "active" || len(h4.tree()) < len(was) {
			t.Errorf("%s: it was refused and changed the host", why)
		}
	}
	refused("runs: move its vote away first")
	f.order("h4", host.Order{Verb: membership.Fence, Term: 2, Operation: "op2", Member: join.Member})
	h4.run("systemctl", "stop", memberUnit)
	refused("its role file says voter")
	f.order("h4", host.Order{Verb: membership.Retire, Term: 2, Operation: "op2", Member: join.Member})
	refused("the member list has it as a learner")
	f.hosts["h1"].run("systemctl", "stop", memberUnit)
	refused("cannot be told now")
	f.hosts["h1"].run("systemctl", "start", memberUnit)
	f.forget(join.Member)

	t.Log(h4.run("suffrage", "standby", "remove"))
	aside := strings.Fields(h4.run("sh", "-c", "ls -d /var/lib/suffrage.removed-*"))
	if len(aside) != 1 || !strings.Contains(h4.run("ls", aside[0]), "etcd.removed-") {
		t.Errorf("aside: %v", aside)
	}
	h4.run("rm", "-rf", aside[0])
	if diff := cmp.Diff(before, h4.tree()); diff != "" {
		t.Errorf("removed, it is another host than before:\n%s", diff)
	}
	if said := h4.run("suffrage", "standby", "remove"); said != "nothing to do\n" {
		t.Errorf("removed again: %s", said)
	}
	h4.reboot()
	if got, _ := h4.try("systemctl", "list-unit-files", "suffrage*", "--no-legend"); got != "" { // it ends with 1 for none
		t.Errorf("after a boot there is %s", got)
	}
}

func (m *machine) show(unit, property string) string {
	m.t.Helper()
	return strings.TrimSpace(m.run("systemctl", "show", "-P", property, unit))
}

// TestK3sStandby prepares a host with the units of K3s's installer: a boot starts
// K3s's agent and not its server.
func TestK3sStandby(t *testing.T) {
	f := bootFleet(t, []string{"h1"}, nil)
	f.install("")
	h := f.hosts["h1"]
	h.put("/etc/suffrage/suffrage.yaml", "host: h1\nflavour: k3s\nagent: {unit: k3s.service}\netcd: {endpoints: ['https://"+h.address+":2379']}\nkubernetes: {kubeconfig: /etc/suffrage/kubeconfig}\n")
	h.put("/usr/local/bin/k3s", "#!/bin/sh\n[ \"$1\" != --version ] || { echo 'k3s version v1.34.2+k3s1 (abc)'; exit; }\nsystemd-notify --ready; exec sleep infinity\n")
	h.run("chmod", "0755", "/usr/local/bin/k3s")
	h.run("chown", "-R", "root:root", "/etc/suffrage")
	h.put("/etc/rancher/k3s/config.yaml", "node-ip: "+h.address+"\ntoken: secret\n")
	for unit, role := range map[string]string{"k3s.service": "server", "k3s-agent.service": "agent"} {
		h.put("/etc/systemd/system/"+unit, "[Service]\nType=notify\nNotifyAccess=all\nRestart=always\nRestartSec=1\nExecStart=/usr/local/bin/k3s "+role+"\n\n[Install]\nWantedBy=multi-user.target\n")
	}
	h.run("systemctl", "daemon-reload")
	if _, err := os.Stat(h.inside("/var/lib/rancher")); err == nil {
		t.Fatal("K3s ran here before: its first time is the case")
	}
	f.prepare()
	if said := h.run("suffrage", "standby", "prepare"); !strings.HasPrefix(said, "nothing to do\n") {
		t.Errorf("prepared again: %s", said)
	}
	for _, c := range h.amiss() {
		if c.Name != "time" && c.Name != "disk" { // this machine's own
			t.Errorf("%s", c)
		}
	}
	h.reboot()
	eventually(t, "the agent runs, and may write where K3s will", func() bool {
		_, err := os.Stat(h.inside("/var/lib/rancher/k3s/suffrage"))
		return err == nil && h.show(agentUnit, "SubState") == "running"
	})
	eventually(t, "K3s's agent runs", func() bool { return h.show("k3s-agent.service", "ActiveState") == "active" })
	if got := h.show("k3s.service", "ActiveState"); got != "inactive" {
		t.Errorf("K3s's server is %s behind the fence", got)
	}
	// No API server answers, and this host has no certificates of etcd's.
	if out, err := h.try("suffrage", "standby", "remove"); err == nil || !strings.Contains(err.Error(), "cannot be told now") {
		t.Errorf("%s %v", out, err)
	}
	if _, err := os.Stat(h.inside(filepath.Join("/var/lib/suffrage", "fence.json"))); err != nil {
		t.Error(err)
	}
}
