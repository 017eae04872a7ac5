package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"suffrage/fitness"
	"suffrage/membership"
)

func order(v membership.Verb, term uint64, op, member string) Order {
	o := Order{Verb: v, Term: term, Operation: op, Member: member}
	if v == membership.StartMember {
		o.Peers = map[string]string{"h1": peer1, "h4": peer4}
	}
	return o
}

// as is an order as the flavour has it.
func (m *machine) as(o Order) Order {
	if m.k3s && (o.Verb == membership.StartMember || o.Verb == membership.Retire) {
		if o.Peers = map[string]string{"h1-0a1b2c3d": peer1}; o.Verb == membership.StartMember {
			o.Member, o.Peers["h4"] = "", peer4
		}
	}
	return o
}

func give(t *testing.T, s *Server, o Order) {
	t.Helper()
	if err := s.Order(t.Context(), o).Err("h4", o); err != nil {
		t.Fatal(err)
	}
}

func factsOf(t *testing.T, s *Server) fitness.ServerFacts {
	t.Helper()
	f, err := s.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestLife takes a host from standby to voter and back, twice.
func TestLife(t *testing.T) {
	m := newMachine(t)
	s := m.server()
	if diff := cmp.Diff(fitness.ServerFacts{Role: Standby}, factsOf(t, s)); diff != "" {
		t.Errorf("to begin with (-want +got):\n%s", diff)
	}
	give(t, s, order(membership.StartMember, 3, "op1", "aa"))
	if diff := cmp.Diff(fitness.ServerFacts{Role: Voter, Running: true, Datastore: true, Term: 3}, factsOf(t, s)); diff != "" {
		t.Errorf("as a voter (-want +got):\n%s", diff)
	}
	if j, err := Joining(m.data); j != nil || err != nil {
		t.Errorf("%+v, %v: what to join is forgotten once there is a datastore", j, err)
	}

	give(t, s, order(membership.Fence, 4, "op2", "aa"))
	if diff := cmp.Diff(fitness.ServerFacts{Role: Voter, Running: true, Fenced: true, Datastore: true, Term: 4}, factsOf(t, s)); diff != "" {
		t.Errorf("fenced, a process goes on (-want +got):\n%s", diff)
	}
	m.reboot()
	if err := m.keepUp(); err != nil || m.running {
		t.Fatalf("it came back after a reboot, %v", err)
	}
	s = m.server()
	if f := factsOf(t, s); !f.Fenced || f.Starts != 0 || f.Running {
		t.Errorf("after a reboot: %+v", f)
	}

	give(t, s, order(membership.Retire, 4, "op2", ""))
	if diff := cmp.Diff(fitness.ServerFacts{Role: Standby, Fenced: true, Term: 4}, factsOf(t, s)); diff != "" {
		t.Errorf("retired (-want +got):\n%s", diff)
	}
	aside := m.datastores()
	if len(aside) != 1 || !strings.HasSuffix(aside[0], "Z-aa") || !strings.Contains(aside[0], "etcd.removed-") {
		t.Errorf("aside is %v; want one, with the time and the member in its name", aside)
	}
	if b, err := os.ReadFile(filepath.Join(aside[0], "member", "wal", "0.wal")); err != nil || string(b) != "votes" {
		t.Errorf("what is aside holds %q, %v", b, err)
	}

	give(t, s, order(membership.StartMember, 5, "op3", "bb"))
	if f := factsOf(t, s); f.Role != Voter || f.Fenced || !f.Running {
		t.Errorf("a voter again: %+v", f)
	}
	if got := m.datastores(); len(got) != 2 {
		t.Errorf("datastores %v: the old one has to stay", got)
	}
}

func TestRefusalsChangeNothing(t *testing.T) {
	running := func(m *machine) {
		if err := m.withDatastore().Start(m.t.Context()); err != nil {
			m.t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		why   string
		given func(*machine)
		o     Order
		want  membership.Code
		says  string
	}{
		{"S051: etcd would go on with what it finds", func(m *machine) { m.withDatastore() }, order(membership.StartMember, 1, "op", "aa"), membership.DatastorePresent, "last changed at 2"},
		{"a voter is no candidate", running, order(membership.StartMember, 1, "op", "aa"), ServerRuns, "runs already"},
		{"the members would dial another place", nil, Order{Verb: membership.StartMember, Term: 1, Operation: "op", Member: "aa", Peers: map[string]string{"h4": "https://10.0.0.9:2380"}}, PeerAddressChanged, peer4},
		{"the newcomer is not among the members", nil, Order{Verb: membership.StartMember, Term: 1, Operation: "op", Member: "aa", Peers: map[string]string{"h1": peer1}}, BadOrder, "do not name h4"},
		{"no term", nil, order(membership.Fence, 0, "op", "aa"), BadOrder, "term 0"},
		{"a verb of etcd", nil, order(membership.Promote, 1, "op", "aa"), BadOrder, "not a verb of a host"},
	} {
		m := newMachine(t)
		if tt.given != nil {
			tt.given(m)
		}
		s := m.server()
		before := factsOf(t, s)
		r := s.Order(t.Context(), tt.o)
		if r.Outcome != Refused || r.Code != tt.want || !strings.Contains(r.Reason, tt.says) {
			t.Errorf("%s: %+v, want %s and %q", tt.why, r, tt.want, tt.says)
		}
		after := factsOf(t, s)
		after.Term = before.Term // noted, whatever becomes of the order
		if diff := cmp.Diff(before, after); diff != "" || Fenced(m.data) != nil {
			t.Errorf("%s: it changed something (-before +after):\n%s", tt.why, diff)
		}
	}
}

func TestLowerTermIsRefusedAcrossRestarts(t *testing.T) {
	m := newMachine(t)
	give(t, m.server(), order(membership.Fence, 7, "op", "aa"))
	s := m.server() // the agent was started again
	o := order(membership.Unfence, 6, "op", "aa")
	err := s.Order(t.Context(), o).Err("h4", o)
	lower, ok := errors.AsType[*LowerTermError](err)
	if !ok || lower.Seen != 7 || lower.Got != 6 {
		t.Errorf("%v, want both terms", err)
	}
	if Fenced(m.data) == nil {
		t.Error("who lost the lease lifted the fence")
	}
	give(t, s, order(membership.Unfence, 7, "op", "aa"))
}

func TestFenceThatIsNotHonouredIsNotProven(t *testing.T) {
	for _, running := range []bool{true, false} {
		m := newMachine(t).withDatastore()
		m.deaf = true
		s := m.server()
		if running {
			if err := m.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		r := s.Order(t.Context(), order(membership.Fence, 1, "op", "aa"))
		if r.Outcome != Failed || r.Code != membership.FenceNotProven {
			t.Errorf("running %v: %+v", running, r)
		}
		if f := factsOf(t, s); f.Fenced || f.Running != running {
			t.Errorf("running %v: %+v: not fenced as long as a start is possible, and nothing else changed", running, f)
		}
	}
	m := newMachine(t)
	m.broken = errors.New("no answer")
	s := m.server()
	if r := s.Order(t.Context(), order(membership.Fence, 1, "op", "aa")); r.Code != membership.FenceNotProven || Fenced(m.data) == nil {
		t.Errorf("%+v: the fence comes before anything is asked", r)
	}
	if _, err := s.Facts(t.Context()); err == nil {
		t.Error("what is not known was told as a fact")
	}
}

func TestAFenceThatCannotBeReadIsOne(t *testing.T) {
	m := newMachine(t)
	s := m.server()
	for _, content := range []string{"", "{", `{"member":7}`, strings.Repeat("x", maxFile+1)} {
		if err := os.WriteFile(filepath.Join(m.data, fenceFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Fenced(m.data); !errors.Is(err, ErrFenced) {
			t.Errorf("%.10q: %v", content, err)
		}
		if err := Begin(t.Context(), m.data); !errors.Is(err, ErrFenced) {
			t.Errorf("%.10q: %v", content, err)
		}
	}
	give(t, s, order(membership.Unfence, 1, "op", "aa"))
	if err := os.WriteFile(filepath.Join(m.data, termFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := s.Order(t.Context(), order(membership.Fence, 9, "op", "aa")); r.Outcome != Failed {
		t.Errorf("%+v: nobody knows whether the term is too low", r)
	}
}

// A process that another tool started holds the datastore: it is not moved away
// under it.
func TestRetireLeavesAnOpenDatastore(t *testing.T) {
	m := newMachine(t).withDatastore()
	f, err := os.Open(filepath.Join(m.datastore, "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	s := m.server()
	if r := s.Order(t.Context(), order(membership.Retire, 1, "op", "aa")); r.Outcome != Failed || r.Code != DatastoreInUse {
		t.Errorf("%+v", r)
	}
	f.Close()
	give(t, s, order(membership.Retire, 1, "op", "aa"))
}

// A datastore that lies behind a link stays on its disk.
func TestRetireBehindALink(t *testing.T) {
	m := newMachine(t)
	disk := t.TempDir()
	if err := errors.Join(os.MkdirAll(m.data, 0o700), os.Symlink(disk, m.datastore)); err != nil {
		t.Fatal(err)
	}
	m.withDatastore()
	give(t, m.server(), order(membership.Retire, 1, "op", "aa"))
	there, _ := filepath.Glob(filepath.Join(disk, "removed-*-aa", "wal", "0.wal"))
	if len(there) != 1 {
		t.Errorf("aside is %v", there)
	}
}

func TestAnInterruptedFirstStartIsBegunAgain(t *testing.T) {
	m := newMachine(t)
	s := m.server()
	m.broken = errors.New("no answer")
	o := order(membership.StartMember, 1, "op", "aa")
	if r := s.Order(t.Context(), o); r.Outcome != Failed {
		t.Fatalf("%+v", r)
	}
	m.broken = nil
	give(t, s, o)
	m.reboot()
	if err := os.Remove(filepath.Join(m.datastore, "member", "wal", "0.wal")); err != nil {
		t.Fatal(err)
	}
	give(t, s, o)
	if f := factsOf(t, s); !f.Running || len(m.datastores()) != 2 {
		t.Errorf("%+v, %v", f, m.datastores())
	}
}

func TestOneOrderAtATime(t *testing.T) {
	m := newMachine(t)
	s := m.server()
	begun, end := make(chan bool), make(chan bool)
	s.o.Save = func(context.Context) (fitness.SnapshotFacts, error) {
		close(begun)
		<-end
		return fitness.SnapshotFacts{}, errors.New("the disk is full")
	}
	ended := make(chan Result)
	go func() { ended <- s.Order(t.Context(), order(membership.SaveSnapshot, 1, "op", "aa")) }()
	<-begun
	if r := s.Order(t.Context(), order(membership.Fence, 1, "op", "aa")); r.Outcome != Refused || r.Code != OrderUnderWay {
		t.Errorf("%+v", r)
	}
	close(end)
	if r := <-ended; r.Outcome != Failed || r.Code != membership.SnapshotFailed || r.Reason != "the disk is full" {
		t.Errorf("%+v", r)
	}
}

func TestSnapshotsOfOperations(t *testing.T) {
	m := newMachine(t)
	s := m.server()
	saves := 0
	s.o.Save = func(context.Context) (fitness.SnapshotFacts, error) {
		saves++
		file := filepath.Join(s.o.Snapshots, []string{"", "20260101T000000Z_h4_7.db", "20260102T000000Z_h4_8.db"}[saves])
		return fitness.SnapshotFacts{File: file, Revision: int64(6 + saves), Size: 3, Hash: "ab"}, errors.Join(os.MkdirAll(s.o.Snapshots, 0o700), os.WriteFile(file, []byte("abc"), 0o600))
	}
	give(t, s, order(membership.SaveSnapshot, 1, "op1", "aa"))
	give(t, s, order(membership.SaveSnapshot, 1, "op1", "aa"))
	give(t, s, order(membership.SaveSnapshot, 1, "op2", "aa"))
	if saves != 2 {
		t.Errorf("%d saves, want one for each operation", saves)
	}
	got := factsOf(t, s).Snapshots
	if len(got) != 2 || got[0].Operation != "op2" || got[1].Operation != "op1" || got[1].Revision != 7 {
		t.Errorf("%+v", got)
	}
	if held, err := Held(s.o.Snapshots, "op1"); err != nil || len(held) != 1 || held[0] != got[1].File {
		t.Errorf("%v, %v", held, err)
	}
	// One that was cut off or is gone is none, whatever the record says.
	if err := os.WriteFile(got[0].File, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(got[1].File); err != nil {
		t.Fatal(err)
	}
	if got := factsOf(t, s).Snapshots; len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
