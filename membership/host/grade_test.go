package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"suffrage/fitness"
	"suffrage/membership"
)

// newVoter is a host of a K3s fleet that is a server.
func newVoter(t *testing.T) *machine {
	m := newK3s(t)
	give(t, m.server(), m.as(order(membership.StartMember, 1, "op0", "")))
	return m
}

func regrade(term uint64, to fitness.Grade) Order {
	return Order{Verb: membership.Regrade, Term: term, Operation: "op", Member: "aa", To: to}
}

// config writes a file of K3s's settings: config.yaml, or a drop-in.
func (m *machine) config(name, text string) {
	m.t.Helper()
	dir := filepath.Join(m.data, "..", "config.yaml.d")
	if name == "config.yaml" {
		dir = filepath.Dir(dir)
	}
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
		m.t.Fatal(err)
	}
}

func TestRegrade(t *testing.T) {
	m := newVoter(t)
	s := m.server()
	is := func(want fitness.Grade, stepped bool, starts int) {
		t.Helper()
		if f := factsOf(t, s); f.Grade != want || f.Stepped != stepped || !f.Running || m.starts != starts || f.Role != Voter || f.Fenced {
			t.Errorf("%+v after %d starts, want %s after %d", f, m.starts, want, starts)
		}
	}
	is(fitness.Full, false, 1)
	give(t, s, regrade(2, fitness.EtcdOnly))
	is(fitness.EtcdOnly, true, 2)
	give(t, s, regrade(2, fitness.EtcdOnly)) // the same again restarts nothing
	is(fitness.EtcdOnly, true, 2)
	give(t, s, regrade(3, fitness.Full))
	is(fitness.Full, false, 3)
	if len(m.datastores()) != 1 {
		t.Errorf("datastores %v", m.datastores())
	}

	// A host that becomes a server again is a whole one.
	give(t, s, regrade(3, fitness.EtcdOnly))
	give(t, s, m.as(order(membership.Retire, 4, "op1", "")))
	give(t, s, m.as(order(membership.StartMember, 5, "op2", "")))
	if f := factsOf(t, s); f.Grade != fitness.Full {
		t.Errorf("a new server: %+v", f)
	}
}

// What K3s's own settings say, in the order in which it reads them.
func TestGradeOfSettings(t *testing.T) {
	for _, tt := range []struct {
		why     string
		files   [2]string // config.yaml, 10-own.yaml
		want    fitness.Grade
		stepped fitness.Grade // after a step down
	}{
		{"nothing is said", [2]string{}, fitness.Full, fitness.EtcdOnly},
		{"config.yaml", [2]string{"disable-apiserver: true\n"}, fitness.EtcdOnly, fitness.EtcdOnly},
		{"a later file counts", [2]string{"disable-apiserver: true\n", "disable-apiserver: false\n"}, fitness.Full, fitness.EtcdOnly},
		{"as text", [2]string{"", "disable-apiserver: \"true\"\n"}, fitness.EtcdOnly, fitness.EtcdOnly},
		{"yes is true to K3s", [2]string{"disable-apiserver: yes\n"}, fitness.EtcdOnly, fitness.EtcdOnly},
		{"on too", [2]string{"disable-apiserver: on\n"}, fitness.EtcdOnly, fitness.EtcdOnly},
		{"y too", [2]string{"", "disable-apiserver: y\n"}, fitness.EtcdOnly, fitness.EtcdOnly},
		{"no is false", [2]string{"disable-apiserver: yes\n", "disable-apiserver: no\n"}, fitness.Full, fitness.EtcdOnly},
		{"of a list the last counts", [2]string{"disable-apiserver: [false, true]\n"}, fitness.EtcdOnly, fitness.EtcdOnly},
		{"a list of none is not said", [2]string{"disable-apiserver: []\n"}, fitness.Full, fitness.EtcdOnly},
		{"with neither K3s does not start", [2]string{"disable-apiserver: maybe\n"}, "", ""},
		{"no mapping is no answer", [2]string{"- x\n"}, "", ""},
	} {
		m := newVoter(t)
		m.config("config.yaml", tt.files[0])
		m.config("10-own.yaml", tt.files[1])
		if f := factsOf(t, m.server()); f.Grade != tt.want || f.Stepped {
			t.Errorf("%s: %+v, want %q", tt.why, f, tt.want)
		}
		r := m.server().Order(t.Context(), regrade(2, fitness.EtcdOnly))
		if f := factsOf(t, m.server()); (r.Outcome == Done) != (tt.stepped != "") || f.Grade != tt.stepped || f.Stepped != (tt.want == fitness.Full) {
			t.Errorf("%s: stepped down %+v, %+v", tt.why, r, f)
		}
	}
}

func TestRegradeRefusals(t *testing.T) {
	fenced := func(t *testing.T) *machine {
		m := newVoter(t)
		give(t, m.server(), order(membership.Fence, 1, "op1", "aa"))
		return m
	}
	own := func(t *testing.T) *machine {
		m := newVoter(t)
		m.config("config.yaml", "disable-apiserver: true\n")
		return m
	}
	later := func(t *testing.T) *machine {
		m := newVoter(t)
		m.config("99-zz.yaml", "disable-apiserver: false\n")
		return m
	}
	for _, tt := range []struct {
		why  string
		m    func(*testing.T) *machine
		to   fitness.Grade
		want Result
	}{
		{"a member of Suffrage's is etcd alone", newMachine, fitness.EtcdOnly, Result{Outcome: Refused, Code: membership.NoGrades}},
		{"a standby is no server", newK3s, fitness.EtcdOnly, Result{Outcome: Refused, Code: BadOrder}},
		{"behind the fence it would stay down", fenced, fitness.EtcdOnly, Result{Outcome: Refused, Code: BadOrder}},
		{"the owner's settings are his", own, fitness.Full, Result{Outcome: Refused, Code: membership.GradeNotFull}},
		{"a file of a later name says otherwise", later, fitness.EtcdOnly, Result{Outcome: Failed, Code: membership.GradeNotProven}},
	} {
		m := tt.m(t)
		starts := m.starts
		if r := m.server().Order(t.Context(), regrade(2, tt.to)); r.Outcome != tt.want.Outcome || r.Code != tt.want.Code || r.Reason == "" {
			t.Errorf("%s: %+v, want %+v", tt.why, r, tt.want)
		}
		if m.starts != starts {
			t.Errorf("%s: it was restarted", tt.why)
		}
	}
	for _, o := range []Order{regrade(1, ""), regrade(1, "half"), {Verb: membership.Fence, Term: 1, Operation: "op", To: fitness.Full}} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "with the grade") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestRegradeCrashes ends the agent, or the machine, before each system call. While
// settings and process differ no grade is told; the same order, or the one back,
// ends it.
func TestRegradeCrashes(t *testing.T) {
	unknown := 0
	for _, reboot := range []bool{false, true} {
		for _, to := range []fitness.Grade{fitness.EtcdOnly, fitness.Full} {
			for _, then := range []fitness.Grade{fitness.EtcdOnly, fitness.Full} {
				for n := 0; ; n++ {
					m := newVoter(t)
					if to == fitness.Full {
						give(t, m.server(), regrade(1, fitness.EtcdOnly))
					}
					at, done := orderUntil(t, m.server(), regrade(2, to), n)
					if done {
						break
					}
					ran := map[fitness.Grade]fitness.Grade{fitness.Full: fitness.EtcdOnly, fitness.EtcdOnly: fitness.Full}[to]
					if reboot {
						m.reboot()
						if err := m.keepUp(); err != nil {
							t.Fatal(err)
						}
						_, err := os.Stat(filepath.Join(m.data, "..", "config.yaml.d", k3sGradeFile))
						if ran = fitness.Full; err == nil {
							ran = fitness.EtcdOnly
						}
					}
					switch f := factsOf(t, m.server()); {
					case f.Grade == "":
						unknown++
					case f.Grade != ran && !strings.HasPrefix(at, "restart"):
						t.Errorf("%s, ended at %s (reboot %t): told as %s, it runs %s", to, at, reboot, f.Grade, ran)
					}
					give(t, m.server(), regrade(3, then))
					if f := factsOf(t, m.server()); f.Grade != then || !f.Running || f.Stepped != (then == fitness.EtcdOnly) {
						t.Errorf("%s, ended at %s (reboot %t), then %s: %+v", to, at, reboot, then, f)
					}
				}
			}
		}
	}
	if unknown == 0 {
		t.Error("the grade was never unknown: the ends in between were not tested")
	}
}
