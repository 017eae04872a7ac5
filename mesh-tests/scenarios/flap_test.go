package scenarios

import (
	"slices"
	"testing"

	"suffrage/fitness"
	"suffrage/membership"
)

// A link that is slow for half a window, and then fast for one and a half, over
// and over: over the limit each time, and never for a whole window, so nothing is
// planned.
func TestFlappingLink(t *testing.T) {
	f := beginFit(t, five)
	for range 5 { // ten windows
		f.fault("slow link around h3", f.Around("h3", slow))
		seen := f.planless(window / 2)
		f.heal()
		seen = append(seen, f.planless(3*window/2)...)
		if !slices.ContainsFunc(seen, func(d membership.Decision) bool { return judged(d, "h3") == fitness.Unfit }) {
			f.fail("h3 was never over a limit: nothing was proven")
		}
	}
	f.well("h1", "h2", "h3")
	f.quiet()
}

// judged is the status of a host at a decision.
func judged(d membership.Decision, host string) fitness.Status {
	for _, v := range d.Verdicts {
		if v.Host == host {
			return v.Status
		}
	}
	return fitness.StatusUnknown
}
