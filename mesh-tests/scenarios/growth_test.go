package scenarios

import (
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/mesh-tests/lab"
)

// The owner grows a fleet of one voter to three and to five, and shrinks it to
// three again: one vote at a time, none that no operation changed, and never two
// learners (the judge of recordings).
func TestGrowth(t *testing.T) {
	f := begin(t, lab.Plan{Hosts: 5, Voters: 1, Controllers: []string{"h1", "h2"}, StallTime: fitness.Duration(10 * time.Second)})
	for _, n := range []int{3, 5, 3} {
		f.target(n)
	}
	f.well(f.voters()...)
	f.same()
}
