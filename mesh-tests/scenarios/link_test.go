package scenarios

import (
	"context"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/mesh-tests/lab"
)

// slow makes a round trip of 150 ms where 100 ms are allowed.
var slow = lab.Link{Delay: 75 * time.Millisecond}

func TestSlowLink(t *testing.T) {
	f := beginFit(t, five)
	_, out := f.followers() // a leader that is slow has a scenario of its own
	f.fault("slow link around "+out, f.Around(out, slow))
	op := f.swapped(out)
	f.heal()
	f.well(f.after(op)...)
	for range 3 { // it stays out, however often it boots
		f.fault(out+" loses its power and boots", f.Node(out).Reboot(t.Context()))
		f.well(f.after(op)...)
	}
}

// The voter whose link is slow leads, so every put waits for that link. Leadership
// goes first, which costs no election; then the voter, and puts are as fast as ever
// while the link is still slow, but no voter's.
func TestSlowLeader(t *testing.T) {
	f := beginFit(t, five)
	leader := f.leader()
	f.fault("slow link around the leader", f.Around(leader, slow))
	f.slower()
	op := f.swapped(leader)
	if moved, removed := begun(op, "step-down"), begun(op, "remove"); moved.IsZero() || !moved.Before(removed) {
		f.fail("leadership was moved at %v, the removal was begun at %v", moved, removed)
	}
	f.asFast()
	f.heal()
	f.well(f.after(op)...)
}

// begun is when a step of an operation was, zero when it never was.
func begun(op membership.Operation, step string) time.Time {
	for _, s := range op.Steps {
		if s.Name == step {
			return s.Begun
		}
	}
	return time.Time{}
}

// A round trip goes there and back, so one slow direction is a slow host, and
// the host is to blame from whichever end one looks.
func TestAsymmetricLink(t *testing.T) {
	f := beginFit(t, five)
	for _, other := range []string{"h1", "h2", "h4", "h5"} {
		f.do(f.OneWay("h3", other, lab.Link{Delay: 150 * time.Millisecond}))
	}
	f.fault("all that h3 sends is slow", nil)
	op := f.swapped("h3")
	f.heal()
	f.well(f.after(op)...)
}

// One voter of three is alone for a while. There nothing is known; the others
// go on, and nobody is swapped while one is away. It is pinned: one that was away
// for two windows, ten seconds here, has been unfit for as long, and once it
// answers again it may be swapped out like any other.
func TestMinorityPartition(t *testing.T) {
	f := begin(t, five)
	f.eventually("h1", "host", "pin", "h3")
	f.fault("h3 is cut off", f.Apart([]string{"h3"}, []string{"h1", "h2", "h4", "h5"}))
	f.until("h3 is away, and nothing is planned", func(s lab.Status) bool {
		return s.Decision.Plan == nil && (s.Refuses(membership.VoterNotResponding, "h3") || s.Refuses(membership.VoterDown, "h3"))
	})
	f.seat = "h3"
	f.until("alone, it knows nothing and counts on nobody", func(s lab.Status) bool {
		return s.Refuses(membership.MembershipUnknown, "") && s.Decision.Plan == nil && s.Decision.FitVoters == 0
	})
	f.readOnly("h3")
	f.seat = "h1"
	f.down("h3")
	f.heal()
	f.back("h3")
	f.agree()
	f.same()
}

// readOnly checks that a client of this etcd alone reads what was written, and
// cannot write.
func (f *fleet) readOnly(host string) {
	f.t.Helper()
	c, err := f.Only(host)
	f.do(err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(f.t.Context(), lookLimit)
	defer cancel()
	if g, err := c.Get(ctx, "/mesh/", clientv3.WithPrefix(), clientv3.WithSerializable(), clientv3.WithCountOnly()); err != nil || g.Count == 0 {
		f.fail("%s alone: %v: nothing is read", host, err)
	}
	if _, err := c.Put(ctx, "/mesh/alone", ""); err == nil {
		f.fail("%s alone: a write was acknowledged", host)
	}
}

// A newcomer that etcd cannot reach for its peers: it is given up, cleaned up,
// and not tried again for a while. Its agent answers all the time.
func TestBlockedLearner(t *testing.T) {
	p := five
	p.StallTime = fitness.Duration(10 * time.Second)
	f := begin(t, p)
	f.fault("etcd's peer port around h4 is blocked", f.Around("h4", lab.Link{Ports: []uint16{2380}}))
	op := f.ask("h3", "h4")
	f.unchanged(op)
	f.refused("h3", "h4", membership.Quarantine, "h4")
	f.heal()
	f.well("h1", "h2", "h3")
}

// The path to the standby that would be next drops packets that are larger than its
// MTU. Small ones pass, and so would all of etcd that is asked for its health; what a
// newcomer gets first would never arrive. It is no candidate, and its pings say why.
func TestLargePacketsLost(t *testing.T) {
	f := beginFit(t, five)
	f.fault("packets of more than 1280 bytes around h4 are lost", f.Around("h4", lab.Link{MaxSize: 1280}))
	f.until("h4 is unfit for a whole window, the voters are fit", func(s lab.Status) bool {
		return s.Is(fitness.Unfit, "h4") && s.Fit("h1", "h2", "h3")
	})
	f.wait("it is said why", func() bool {
		said, err := f.Node("h1").Suffrage(t.Context(), "explain", "h4", "-o", "json")
		return err == nil && strings.Contains(said, "larger than its MTU")
	})
	f.came()
	f.refused("h3", "h4", membership.NoCandidate, "h4")
	f.heal()
	f.well("h1", "h2", "h3")
	f.quiet()
}
