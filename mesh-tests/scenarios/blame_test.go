package scenarios

import (
	"testing"

	"suffrage/membership"
	"suffrage/mesh-tests/lab"
)

// Two voters of three behind one bad access point: moving one would not help.
func TestTwoSlowVoters(t *testing.T) {
	f := beginFit(t, five)
	for _, near := range []string{"h2", "h3"} {
		for _, other := range []string{"h1", "h4", "h5"} {
			f.do(f.Between(near, other, slow))
		}
	}
	f.fault("slow links around h2 and h3, but not between them", nil)
	f.until("more are to blame than may fail", func(s lab.Status) bool { return s.RefusesAny(membership.ManyUnfit) && s.Decision.Plan == nil })
	f.came()
	f.heal()
	f.well("h1", "h2", "h3")
	f.quiet()
}
