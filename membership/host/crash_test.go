package host

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"suffrage/fitness"
	"suffrage/membership"
)

type crash struct{ at string }

// orderUntil carries out an order and dies before the n-th system call that
// changes something; done says that it came to its end before.
func orderUntil(t *testing.T, s *Server, o Order, n int) (at string, done bool) {
	t.Helper()
	s.files.point = func(what string) {
		if n--; n < 0 {
			panic(crash{what})
		}
	}
	defer func() {
		if r := recover(); r != nil {
			c, ok := r.(crash)
			if !ok {
				panic(r)
			}
			at = c.at
		}
	}()
	give(t, s, o)
	return "", true
}

// TestEveryCrashPoint dies before every system call of every verb, with and
// without a reboot, and then gives the order again, or the one that undoes it.
func TestEveryCrashPoint(t *testing.T) {
	standby := func(*testing.T, *machine) {}
	voter := func(t *testing.T, m *machine) {
		give(t, m.server(), m.as(order(membership.StartMember, 1, "op0", "aa")))
	}
	fenced := func(t *testing.T, m *machine) {
		voter(t, m)
		give(t, m.server(), order(membership.Fence, 1, "op1", "aa"))
	}
	retired := func(t *testing.T, m *machine) {
		voter(t, m)
		give(t, m.server(), m.as(order(membership.Retire, 1, "op0", "aa")))
	}
	for _, tt := range []struct {
		name  string
		given func(*testing.T, *machine)
		o     Order
		then  Order
		want  fitness.ServerFacts
	}{
		{"start a standby", standby, order(membership.StartMember, 2, "op", "bb"), order(membership.StartMember, 2, "op", "bb"),
			fitness.ServerFacts{Role: Voter, Running: true, Datastore: true, Term: 2}},
		{"start one that was retired", retired, order(membership.StartMember, 2, "op", "bb"), order(membership.StartMember, 2, "op", "bb"),
			fitness.ServerFacts{Role: Voter, Running: true, Datastore: true, Term: 2}},
		{"start, then turn back", retired, order(membership.StartMember, 2, "op", "bb"), order(membership.Retire, 2, "op", ""),
			fitness.ServerFacts{Role: Standby, Fenced: true, Term: 2}},
		{"fence", voter, order(membership.Fence, 2, "op", "aa"), order(membership.Fence, 2, "op", "aa"),
			fitness.ServerFacts{Role: Voter, Running: true, Fenced: true, Datastore: true, Term: 2}},
		{"fence, then turn back", voter, order(membership.Fence, 2, "op", "aa"), order(membership.Unfence, 2, "op", "aa"),
			fitness.ServerFacts{Role: Voter, Running: true, Datastore: true, Term: 2}},
		{"unfence", fenced, order(membership.Unfence, 2, "op", "aa"), order(membership.Unfence, 2, "op", "aa"),
			fitness.ServerFacts{Role: Voter, Running: true, Datastore: true, Term: 2}},
		{"retire a fenced voter", fenced, order(membership.Retire, 2, "op", "aa"), order(membership.Retire, 2, "op", "aa"),
			fitness.ServerFacts{Role: Standby, Fenced: true, Term: 2}},
		{"retire at once", voter, order(membership.Retire, 2, "op", "aa"), order(membership.Retire, 2, "op", "aa"),
			fitness.ServerFacts{Role: Standby, Fenced: true, Term: 2}},
	} {
		for name, make := range map[string]func(*testing.T) *machine{"": newMachine, " with K3s": newK3s} {
			t.Run(tt.name+name, func(t *testing.T) {
				for n := 0; ; n++ {
					at, done := crashAt(t, n, make, tt.given, tt.o, tt.then, tt.want)
					if done {
						t.Logf("%d crash points", n)
						return
					}
					if t.Failed() {
						t.Fatalf("after a crash before %q (%d)", at, n)
					}
				}
			})
		}
	}
}

func crashAt(t *testing.T, n int, make func(*testing.T) *machine, given func(*testing.T, *machine), o, then Order, want fitness.ServerFacts) (at string, done bool) {
	for _, reboot := range []bool{false, true} {
		m := make(t)
		given(t, m)
		stores := len(m.datastores())
		at, done = orderUntil(t, m.server(), m.as(o), n)
		fenced := Fenced(m.data) != nil
		if got := len(m.datastores()); got < stores {
			t.Errorf("a datastore is gone: %v", m.datastores())
		}
		if reboot {
			m.reboot()
			if err := m.keepUp(); err != nil {
				t.Error(err)
			}
			if fenced && m.running {
				t.Error("it was fenced and runs after the reboot")
			}
		}
		s := m.server()
		if f := factsOf(t, s); f.Fenced && m.keepUp() == nil && factsOf(t, s).Starts != 0 {
			t.Errorf("%+v: told as fenced, and it started", f)
		}
		give(t, s, m.as(then))
		if behind := reboot && fenced && then.Verb == membership.Fence; m.k3s && m.agent.running != (want.Role == Standby || behind) {
			t.Errorf("reboot %v: its K3s agent runs is %v, as a %s", reboot, m.agent.running, want.Role)
		}
		end := want
		if m.k3s && want.Role == Voter {
			end.Grade = fitness.Full
		}
		// A fence lets a process that runs go on, and does not start one.
		end.Running = want.Running && (!reboot || !fenced || then.Verb != membership.Fence)
		if diff := cmp.Diff(end, factsOf(t, s)); diff != "" {
			t.Errorf("reboot %v (-want +got):\n%s", reboot, diff)
		}
		if litter, _ := os.ReadDir(m.data); len(litter) > 10 {
			t.Errorf("litter: %v", litter)
		}
	}
	return at, done
}

// TestOnTheDiskFirst: no name is given before the content is on the disk, and
// nothing follows before the name is.
func TestOnTheDiskFirst(t *testing.T) {
	m := newMachine(t)
	give(t, m.server(), order(membership.StartMember, 1, "op", "aa"))
	s := m.server()
	var calls []string
	s.files.point = func(what string) { calls = append(calls, what) }
	give(t, s, order(membership.Retire, 2, "op2", "aa"))
	file := func(n string) []string {
		return []string{"create " + n, "fill " + n, "sync " + n, "rename " + n, "sync directory"}
	}
	var want []string
	want = append(want, file(termFile)...)
	want = append(want, file(fenceFile)...)
	want = append(want, "start unit")
	want = append(want, file(fenceFile)...)
	want = append(want, "stop unit", "start unit", "move datastore", "sync datastore", "remove "+joinFile, "sync directory")
	want = append(want, file(roleFile)...)
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("retire (-want +got):\n%s", diff)
	}
}
