package scenarios

import (
	"strings"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/mesh-tests/lab"
)

// One pair of voters is slow, and whoever measures both ends finds both fast:
// nothing tells whose fault it is. One end is moved, not the leader, the pair is
// named, and with it gone nobody else is.
func TestSlowPair(t *testing.T) {
	p := five
	p.StallTime = fitness.Duration(10 * time.Second)
	f := beginFit(t, p)
	a, b := f.followers()
	f.fault("a slow link between the two voters that follow", f.Between(a, b, slow))
	op := f.swappedOneOf(a, b)
	if !strings.Contains(op.Why, "nothing tells which end of the pair is slow") {
		f.fail("it does not say that nothing tells: %s", op.Why)
	}
	f.planless(6 * window) // more than the cooldown
	f.heal()
	f.well(f.after(op)...)
}

// The same, and a host that does not vote finds one end slow too.
func TestSlowPairWithWitness(t *testing.T) {
	f := beginFit(t, five)
	a, b := f.followers()
	f.fault("a slow link between the two voters that follow", f.Between(a, b, slow))
	f.fault("and between the second of them and h5", f.Between(b, "h5", slow))
	op := f.swapped(b)
	if !strings.Contains(op.Why, "hosts outside the pair find it slow too") {
		f.fail("it does not name the witness: %s", op.Why)
	}
	f.heal()
	f.well(f.after(op)...)
}

// Two voters cannot reach each other, and the third one, which leads, reaches both:
// etcd would refuse a change that is asked for at one of them and make it where it
// leads. The pair is named, and whoever is asked for a swap refuses it.
func TestPairCutBothWays(t *testing.T) {
	f := begin(t, five)
	f.rules.Most = 3
	a, b := f.followers()
	leader := third(a, b)
	for _, end := range []string{a, b} { // both have been unfit once they are back
		f.eventually(leader, "host", "pin", end)
	}
	f.seat = leader
	f.fault("the two voters that follow are cut off from each other", f.Between(a, b, lab.Link{Cut: true}))
	f.until("the pair is named, and nothing is planned", func(s lab.Status) bool {
		return s.Decision.Plan == nil && s.Refuses(membership.PairUnreachable, a+","+b)
	})
	f.came()
	f.refused(leader, "h4", membership.PairUnreachable, a+","+b)
	f.seat = a // from there the other one does not answer
	f.refused(leader, "h4", membership.VoterNotResponding, b)
	f.seat = leader
	f.planless(window)
	f.heal()
	f.well("h1", "h2", "h3")
	f.quiet()
}
