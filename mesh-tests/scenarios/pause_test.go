package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/sync/errgroup"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/mesh-tests/lab"
)

// A frozen voter still accepts connections. It is the owner's case and no reason
// to swap while it lasts. Pings that nobody answers count as slow ones, where etcd's
// own figure for round trips knows of none.
func TestPausedVoter(t *testing.T) {
	f := begin(t, five)
	slowBefore, _ := f.roundTrips("h1", "h3")
	f.fault("h3 is frozen", f.Node("h3").Freeze())
	f.until("it does not respond, and nothing is planned", func(s lab.Status) bool {
		return s.Decision.Plan == nil && (s.Refuses(membership.VoterNotResponding, "h3") || s.Refuses(membership.VoterDown, "h3"))
	})
	f.down("h3")
	f.until("a command says so too", func(s lab.Status) bool { return s.Refuses(membership.VoterDown, "h3") })
	f.wait("round trips to it are over the limit: lost pings are samples", func() bool {
		all, err := f.Node("h1").Readings(t.Context(), "h1")
		return err == nil && slices.ContainsFunc(all, func(r fitness.Reading) bool {
			return r.Signal == fitness.RTT && r.Peer == "h3" && r.Band == fitness.Over && r.Lost > 0
		})
	})
	slowNow, all := f.roundTrips("h1", "h3")
	t.Logf("etcd on h1 tells of %d round trips to h3, %d of them slow", all, slowNow)
	if slowNow != slowBefore {
		f.fail("etcd counted %d slow round trips to a frozen peer: what is said of its figure is not so", slowNow-slowBefore)
	}
	f.ended("h3 is thawed", f.Node("h3").Thaw())
	f.back("h3")
}

// roundTrips is what the etcd on a host tells of those to a peer: how many were
// slow, above 0.1 s, of how many.
func (f *fleet) roundTrips(host, peer string) (slow, all int) {
	f.t.Helper()
	const name = "etcd_network_peer_round_trip_time_seconds"
	list, err := f.Client.MemberList(f.t.Context())
	f.do(err)
	i := slices.IndexFunc(list.Members, func(m *etcdserverpb.Member) bool { return m.Name == peer })
	said, err := f.Metrics(f.t.Context(), host)
	f.do(err)
	value := func(series string) (n int) {
		for line := range strings.Lines(said) {
			if v, ok := strings.CutPrefix(line, series+" "); ok {
				_, err := fmt.Sscan(v, &n)
				f.do(err)
			}
		}
		return n
	}
	to := fmt.Sprintf(`To="%x"`, list.Members[i].ID)
	all = value(name + "_count{" + to + "}")
	return all - value(name+"_bucket{"+to+`,le="0.1024"}`), all
}

// The host whose etcd leads loses its power: another leads, and the clients'
// writes go on within the ten seconds that each has. It boots, and all are well.
func TestLeaderLosesPower(t *testing.T) {
	f := beginSoon(t, five)
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
	f := beginSoon(t, five)
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
// than it lasts: another carries it out. Thawed in the middle of that, it finds
// itself where it was, and does nothing to it.
func TestFrozenLeaseHolder(t *testing.T) {
	f := begin(t, lab.Plan{Hosts: 6, Voters: 3, Controllers: []string{"h5", "h6"}})
	var frozen string
	var term uint64
	done := f.during(func(op membership.Operation) bool { return op.InMember != "" }, func(op membership.Operation) error {
		term = op.Term
		err := f.takeover(func(holder string) error {
			frozen = holder
			return f.Node(holder).Freeze()
		})
		if err != nil {
			return err
		}
		err = f.Node(frozen).Thaw()
		open, e := f.Open(t.Context())
		if e == nil && open == nil {
			e = errors.New("the operation was over before its former controller was thawed")
		}
		return errors.Join(err, e)
	})
	op := f.ask("h3", "h4")
	if !done() {
		t.Fatal("it was over before its controller could be frozen")
	}
	f.fault("the holder of the Lease was frozen", nil)
	f.ended("it was thawed while another carried the operation out", nil)
	if op.Term <= term || op.Resumed.IsZero() {
		f.fail("Term %d ended it, resumed %v; %s was frozen in Term %d", op.Term, op.Resumed, frozen, term)
	}
	op = f.completed(op)
	f.well(f.after(op)...)
	before := f.settled()
	f.planless(2 * window)
	if after := f.settled(); after != before {
		f.fail("once it was over somebody changed something: before %s; after %s", before, after)
	}
	if held, err := f.heldLease(); err != nil || held.Record.Holder.Host == frozen {
		f.fail("%v: %s, who was frozen, holds the Lease", err, frozen)
	}
}

// settled tells of all that an operation changes: the members, and how each
// operation ended, under which Term.
func (f *fleet) settled() string {
	f.t.Helper()
	var said strings.Builder
	list, err := f.Client.MemberList(f.t.Context())
	f.do(err)
	for _, m := range list.Members {
		fmt.Fprintf(&said, "%x %s learner %v; ", m.ID, m.Name, m.IsLearner)
	}
	ops, err := f.Operations(f.t.Context())
	f.do(err)
	for _, op := range ops {
		fmt.Fprintf(&said, "%s %s in term %d with %v; ", op.ID, op.Outcome, op.Term, op.MembersAfter)
	}
	return said.String()
}
