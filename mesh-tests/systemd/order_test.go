package systemd

import (
	"strings"
	"testing"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/host"
)

// TestOrders gives a standby a vote and takes it away again, by orders over
// mutual TLS to the agent that systemd runs as a user of no rights.
func TestOrders(t *testing.T) {
	f := newFleet(t, []string{"h1"}, []string{"h4"}, "agent:\n  unit: "+memberUnit+"\n  period: 200ms\n  ping_timeout: 2s\n")
	h4 := f.hosts["h4"]
	limits(t, h4)
	f.answers("h4", "h1")
	f.each(f.names, func(m *machine) error {
		_, err := m.try("systemctl", "enable", "-q", "--now", agentUnit)
		return err
	})
	f.becomes("h4", "a fenced standby", func(s fitness.ServerFacts) bool { return s.Role == host.Standby && !s.Running })
	f.sees("h4", "h1")

	join := f.learner("h4", "op1", 1)
	f.order("h4", join)
	f.becomes("h4", "it runs as a learner", func(s fitness.ServerFacts) bool {
		return s.Role == host.Voter && s.Running && s.Datastore && !s.Fenced
	})
	invocation := h4.run("systemctl", "show", "-P", "InvocationID", memberUnit)
	h4.run("systemctl", "kill", "-s", "KILL", memberUnit)
	eventually(t, "a killed member is started again", func() bool {
		return h4.run("systemctl", "show", "-P", "InvocationID", memberUnit) != invocation && f.facts("h4").Running
	})
	h4.reboot()
	f.becomes("h4", "a voter comes back with its host", func(s fitness.ServerFacts) bool { return s.Role == host.Voter && s.Running })

	about := func(v membership.Verb, term uint64) host.Order {
		return host.Order{Verb: v, Term: term, Operation: "op2", Member: join.Member}
	}
	f.order("h4", about(membership.Fence, 2))
	f.becomes("h4", "it goes on behind the fence", func(s fitness.ServerFacts) bool { return s.Fenced && s.Running && s.Starts == 0 })
	// S023, S116: its own removal ends the process, and nothing brings it back.
	f.forget(join.Member)
	f.becomes("h4", "it has ended and was not started", func(s fitness.ServerFacts) bool { return s.Fenced && !s.Running && s.Starts == 0 })
	f.order("h4", about(membership.Retire, 2))
	atRest := func(s fitness.ServerFacts) bool {
		return s.Role == host.Standby && s.Fenced && !s.Running && s.Starts == 0 && !s.Datastore && s.Term == 2
	}
	f.becomes("h4", "retired", atRest)
	if got := h4.run("sh", "-c", "ls -d /var/lib/suffrage/etcd.removed-*"); !strings.Contains(got, join.Member) {
		t.Errorf("aside: %s", got)
	}
	h4.cut()
	f.becomes("h4", "retired, also after a loss of power", atRest)
	// S122: an installer that starts everything it finds.
	if _, err := h4.try("systemctl", "start", memberUnit); err == nil || !strings.Contains(err.Error(), "Assertion failed") {
		t.Errorf("a start by hand: %v", err)
	}
	f.becomes("h4", "nobody starts it", atRest)

	again := f.learner("h4", "op3", 3)
	f.order("h4", again)
	f.becomes("h4", "it has a vote again", func(s fitness.ServerFacts) bool { return s.Running && s.Datastore && !s.Fenced })
	for _, m := range f.hosts {
		f.measures(m.name)
		if got := strings.TrimSpace(m.run("systemctl", "list-units", "--failed", "--plain", "--no-legend")); got != "" {
			t.Errorf("%s: failed: %s", m.name, got)
		}
	}
}

// measures shows that the unit's sandbox takes no probe's sight.
func (f *fleet) measures(name string) {
	f.t.Helper()
	eventually(f.t, name+": every probe works", func() bool {
		r, err := f.client.Pull(f.t.Context(), name, 0)
		if err != nil || len(r.Facts.Probes) == 0 {
			return false
		}
		for _, p := range r.Facts.Probes {
			if !p.OK {
				f.t.Logf("%s: probe %s: %s", name, p.Name, p.Error)
				return false
			}
		}
		return true
	})
}

// limits shows that the agent's user may do what its orders need and nothing more,
// and that an agent that could not carry them out says so at once.
func limits(t *testing.T, m *machine) {
	t.Helper()
	user := func(args ...string) (string, error) {
		return m.try(append([]string{"runuser", "-u", "suffrage", "--"}, args...)...)
	}
	const rules = "/etc/polkit-1/rules.d/50-suffrage.rules"
	m.run("mv", rules, "/root/")
	eventually(t, "an agent without leave ends and says why", func() bool {
		_, err := m.as("agent")
		return err != nil && strings.Contains(err.Error(), "may not act on this unit: install polkitd")
	})
	m.run("mv", "/root/50-suffrage.rules", rules)
	eventually(t, "a fenced unit may be tried", func() bool {
		_, err := user("systemctl", "--no-ask-password", "start", memberUnit)
		return err != nil && strings.Contains(err.Error(), "Assertion failed")
	})
	if out, err := user("systemctl", "--no-ask-password", "stop", memberUnit); err != nil {
		t.Errorf("it may stop it: %s %v", out, err)
	}
	for _, args := range [][]string{
		{"start", "systemd-networkd.service"}, {"stop", "dbus.service"}, {"stop", "suffrage-controller.service"},
		{"restart", memberUnit}, {"kill", memberUnit}, {"set-property", memberUnit, "MemoryMax=1"}, {"enable", memberUnit},
		{"mask", "--runtime", memberUnit}, {"daemon-reload"}, {"reboot"},
	} {
		if _, err := user(append([]string{"systemctl", "--no-ask-password"}, args...)...); err == nil {
			t.Errorf("user suffrage may %s", strings.Join(args, " "))
		}
	}
	// Why it is no root without capabilities: systemd asks only who it is.
	if _, err := m.try("setpriv", "--bounding-set=-all", "--inh-caps=-all", "systemd-run", "-q", "--wait", "true"); err != nil {
		t.Errorf("docs/decisions.md says that root without capabilities may start anything: %v", err)
	}
	if _, err := user("systemd-run", "--no-ask-password", "true"); err == nil {
		t.Error("user suffrage may start a unit of its own")
	}
}
