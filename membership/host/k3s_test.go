package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"suffrage/membership"
)

// settings is what K3s reads of ours, without the comment.
func settings(t *testing.T, m *machine) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(m.data, "..", "config.yaml.d", k3sFile))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "\n")
	return text
}

func TestK3sLife(t *testing.T) {
	m := newK3s(t)
	s := m.server()
	give(t, s, m.as(order(membership.StartMember, 3, "op1", "")))
	if f := factsOf(t, s); f.Role != Voter || !f.Running || f.Fenced || m.agent.running {
		t.Errorf("as a server: %+v, its agent runs is %v", f, m.agent.running)
	}
	if got, want := settings(t, m), "server: https://127.0.0.1:6443\ncluster-init: false\n"; got != want {
		t.Errorf("K3s reads %q, want %q", got, want)
	}
	give(t, s, m.as(order(membership.StartMember, 3, "op1", ""))) // the same again
	again := m.as(order(membership.StartMember, 3, "op2", ""))
	if r := s.Order(t.Context(), again); r.Code != ServerRuns {
		t.Errorf("for another operation: %+v, want %s", r, ServerRuns)
	}

	// Where it comes back as no server it needs one that stays.
	retire := order(membership.Retire, 4, "op3", "")
	retire.Peers = map[string]string{"h2-0a1b2c3d": "https://[fd00::2]:2380"}
	m.agent.broken = errors.New("unit not found")
	if r := s.Order(t.Context(), retire); r.Outcome != Failed || factsOf(t, s).Role != Voter {
		t.Errorf("%+v, role %s: a host without its agent is not yet retired", r, factsOf(t, s).Role)
	}
	m.agent.broken = nil
	give(t, s, retire)
	if f := factsOf(t, s); f.Role != Standby || f.Running || !f.Fenced || f.Datastore || !m.agent.running {
		t.Errorf("retired: %+v, its agent runs is %v", f, m.agent.running)
	}
	if got, want := settings(t, m), "server: https://[fd00::2]:6443\ncluster-init: false\n"; got != want {
		t.Errorf("K3s reads %q, want %q", got, want)
	}
}

// The fence of suffrage standby prepare is one, and gives way to an order.
func TestK3sFenceOfPrepare(t *testing.T) {
	m := newK3s(t)
	if err := os.Remove(filepath.Join(m.data, fenceFile)); err != nil { // that of an operation
		t.Fatal(err)
	}
	prepare(t, m.data)
	if err := Fenced(m.data); err == nil || !strings.Contains(err.Error(), "by suffrage standby prepare") {
		t.Errorf("it is taken for %v", err)
	}
	give(t, m.server(), m.as(order(membership.StartMember, 1, "op", "")))
	if f := factsOf(t, m.server()); !f.Running || f.Fenced {
		t.Errorf("given a vote: %+v", f)
	}
}

func TestK3sRefusals(t *testing.T) {
	for _, tt := range []struct {
		why  string
		m    *machine
		o    func(*Order)
		want string
	}{
		{"a member of K3s's adds itself", newK3s(t), func(o *Order) { o.Member = "ab" }, "which adds itself"},
		{"one of Suffrage's has to be told", newMachine(t), func(o *Order) { o.Member = "" }, "as the one that it is told"},
		{"it cannot join at itself", newK3s(t), func(o *Order) { o.Member, o.Peers = "", map[string]string{"h4": peer4} }, "no other server"},
	} {
		o := order(membership.StartMember, 1, "op", "ab")
		tt.o(&o)
		r := tt.m.server().Order(t.Context(), o)
		if r.Outcome != Refused || r.Code != BadOrder || !strings.Contains(r.Reason, tt.want) {
			t.Errorf("%s: %+v", tt.why, r)
		}
		if f := factsOf(t, tt.m.server()); f.Running || f.Role != Standby {
			t.Errorf("%s: %+v", tt.why, f)
		}
	}
}

// K3s would join where another file says: it is not started, and lifts no fence.
func TestK3sSettingsThatGoBefore(t *testing.T) {
	for _, text := range []string{"server: https://10.0.0.9:6443\n", "cluster-init: yes\n"} {
		m := newK3s(t)
		m.config("own.yaml", text)
		r := m.server().Order(t.Context(), m.as(order(membership.StartMember, 1, "op", "")))
		if r.Outcome != Refused || r.Code != membership.NotQualified || !strings.Contains(r.Reason, "own.yaml sets") {
			t.Errorf("%q: %+v", text, r)
		}
		if f := factsOf(t, m.server()); f.Running || !m.agent.running || Fenced(m.data) == nil {
			t.Errorf("%q: %+v", text, f)
		}
		m.config("own.yaml", "token: x\n")
		give(t, m.server(), m.as(order(membership.StartMember, 1, "op", "")))
	}
}
