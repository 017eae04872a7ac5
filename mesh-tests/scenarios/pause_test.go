package scenarios

import (
	"errors"
	"testing"

	"golang.org/x/sync/errgroup"

	"suffrage/membership"
	"suffrage/mesh-tests/lab"
)

// A frozen voter still accepts connections. It is the owner's case and no reason
// to swap while it lasts.
func TestPausedVoter(t *testing.T) {
	f := begin(t, five)
	f.fault("h3 is frozen", f.Node("h3").Freeze())
	f.until("it does not respond, and nothing is planned", func(s lab.Status) bool {
		return s.Decision.Plan == nil && (s.Refuses(membership.VoterNotResponding, "h3") || s.Refuses(membership.VoterDown, "h3"))
	})
	f.down("h3")
	f.until("a command says so too", func(s lab.Status) bool { return s.Refuses(membership.VoterDown, "h3") })
	f.ended("h3 is thawed", f.Node("h3").Thaw())
	f.back("h3")
}

// The host whose etcd leads loses its power: another leads, and the clients'
// writes go on within the ten seconds that each has. It boots, and all are well.
func TestLeaderLosesPower(t *testing.T) {
	f := begin(t, five)
	leader := f.leader()
	f.seat = other(leader)
	f.fault("the leader's host loses its power", f.Node(leader).PowerOff(t.Context()))
	f.until("another leads", func(s lab.Status) bool { return s.Leader != "" && s.Leader != leader })
	f.came()
	f.ended("it boots", f.Node(leader).Boot())
	f.well("h1", "h2", "h3")
	f.quiet()
}

// All hosts lose their power at once, and boot: the same voters, the same data.
func TestColdStart(t *testing.T) {
	f := begin(t, five)
	quorum := f.outage()
	var off errgroup.Group
	for _, n := range f.Nodes {
		off.Go(func() error { return n.PowerOff(t.Context()) })
	}
	f.fault("all hosts lose their power", off.Wait())
	for _, n := range f.Nodes {
		f.do(n.Boot())
	}
	f.ended("all boot", nil)
	f.until("one leads", oneLeads)
	quorum()
	f.well("h1", "h2", "h3")
	f.quiet()
}

// Whoever holds the Lease is frozen in the middle of an operation for longer
// than it lasts: another carries it out, and the thawed one does nothing to it.
func TestFrozenLeaseHolder(t *testing.T) {
	f := begin(t, lab.Plan{Hosts: 6, Voters: 3, Controllers: []string{"h5", "h6"}})
	var frozen string
	var term uint64
	done := f.during(func(op membership.Operation) bool { return op.InMember != "" }, func(op membership.Operation) error {
		s, err := f.Node("h1").Status(t.Context())
		if err != nil {
			return err
		}
		if s.Controller == nil {
			return errors.New("an operation is open, and no controller leads")
		}
		frozen, term = s.Controller.Host, op.Term
		return f.Node(frozen).Freeze()
	})
	op := f.ask("h3", "h4")
	if !done() {
		t.Fatal("it was over before its controller could be frozen")
	}
	f.fault("the holder of the Lease was frozen", nil)
	f.ended("it is thawed", f.Node(frozen).Thaw())
	if op.Term <= term {
		f.fail("Term %d ended it; %s was frozen in Term %d", op.Term, frozen, term)
	}
	if op.Outcome != membership.Completed {
		f.unchanged(op)
	}
	f.well(f.after(op)...)
}
