package scenarios

import (
	"testing"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/mesh-tests/lab"
)

// Two voters of three behind one bad access point, through which they reach each
// other too: moving one would not help. (Behind one slow uplink they would be fast
// to each other, and the third one would be slow to both: membership's blame.txt.)
func TestTwoSlowVoters(t *testing.T) {
	f := beginFit(t, five)
	for _, near := range []string{"h2", "h3"} {
		for _, other := range []string{"h1", "h4", "h5"} {
			f.do(f.Between(near, other, slow))
		}
	}
	f.fault("slow links around h2 and h3, and between them", f.Between("h2", "h3", slow))
	f.until("more are to blame than may fail", func(s lab.Status) bool { return s.RefusesAny(membership.ManyUnfit) && s.Decision.Plan == nil })
	f.came()
	f.planless(2 * window) // each is unfit for a whole one by then
	f.heal()
	f.well("h1", "h2", "h3")
	f.quiet()
}

// All links of the host with the controller that leads are slow, and it does not
// vote: what is slow from there is its own affair, and no voter is to blame.
func TestControllerIsFarAway(t *testing.T) {
	p := five
	p.Controllers = []string{"h5"}
	f := beginFit(t, p)
	f.fault("slow links around h5, whose controller leads", f.Around("h5", slow))
	f.until("h5 is unfit for a whole window, the voters are fit", func(s lab.Status) bool {
		return s.Is(fitness.Unfit, "h5") && s.Fit("h1", "h2", "h3")
	})
	f.planless(2 * window)
	f.came()
	f.heal()
	f.well("h1", "h2", "h3")
	f.quiet()
}
