package host

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"suffrage/fitness"
	"suffrage/membership"
)

// TestRemoved dies at every point of it: no datastore is lost, nothing starts the
// member behind its fence, and it ends the same when it is done again or when the
// host is retired by order.
func TestRemoved(t *testing.T) {
	for n, done := 0, false; !done; n++ {
		for _, again := range []bool{true, false} {
			m := newMachine(t)
			give(t, m.server(), order(membership.StartMember, 1, "op0", "aa"))
			m.running = false // etcd ends by itself
			var at string
			at, done = removedUntil(t, m.server(), n)
			fenced := Fenced(m.data) != nil
			if err := m.keepUp(); err != nil || m.running && fenced {
				t.Errorf("crash before %q: it runs behind its fence (%v)", at, err)
			}
			m.running = false
			if again {
				if _, done := removedUntil(t, m.server(), 100); !done {
					t.Errorf("crash before %q: it has no end", at)
				}
				if err := Fenced(m.data); err == nil || !strings.Contains(err.Error(), "its member aa was removed from the cluster") {
					t.Errorf("crash before %q: the fence says %v", at, err)
				}
			}
			give(t, m.server(), order(membership.Retire, 2, "op", ""))
			if diff := cmp.Diff(fitness.ServerFacts{Role: Standby, Fenced: true, Term: 2}, factsOf(t, m.server())); diff != "" {
				t.Errorf("crash before %q (-want +got):\n%s", at, diff)
			}
			if got := m.datastores(); len(got) != 1 {
				t.Errorf("crash before %q: datastores %v", at, got)
			}
		}
	}
}

// removedUntil dies before the n-th system call that changes something.
func removedUntil(t *testing.T, s *Server, n int) (at string, done bool) {
	t.Helper()
	s.files.point = func(what string) {
		if n--; n < 0 {
			panic(crash{what})
		}
	}
	defer func() {
		if r := recover(); r != nil {
			at = r.(crash).at
		}
	}()
	if err := s.removed(t.Context(), "aa"); err != nil {
		t.Error(err)
	}
	return "", true
}

// What another member left is not moved, and it may start.
func TestRemovedOfAnotherMember(t *testing.T) {
	m := newMachine(t)
	give(t, m.server(), order(membership.StartMember, 1, "op0", "bb"))
	if err := m.server().removed(t.Context(), "aa"); err == nil || !strings.Contains(err.Error(), "says member bb") {
		t.Error(err)
	}
	if f := factsOf(t, m.server()); f.Role != Voter || !f.Datastore || f.Fenced {
		t.Errorf("%+v", f)
	}
}
