package scenarios

import "testing"

// A link that is slow for half a window, and then fast for one and a half, over
// and over: never unfit for a whole window, so nothing is planned.
func TestFlappingLink(t *testing.T) {
	f := beginFit(t, five)
	for range 5 { // ten windows
		f.fault("slow link around h3", f.Around("h3", slow))
		f.planless(window / 2)
		f.heal()
		f.planless(3 * window / 2)
	}
	f.well("h1", "h2", "h3")
	f.quiet()
}
