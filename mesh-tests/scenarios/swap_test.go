package scenarios

import (
	"testing"

	"suffrage/membership"
)

// The newcomer's link turns slow once it is a learner: it does not get to take
// the old voter's place, and is left alone for a while.
func TestCandidateTurnsBad(t *testing.T) {
	turnsBad(t, func(op membership.Operation) bool { return op.InMember != "" })
}

func turnsBad(t *testing.T, when func(membership.Operation) bool) {
	f := begin(t, five)
	done := f.during(when, func(membership.Operation) error { return f.Around("h4", slow) })
	op := f.ask("h3", "h4")
	if !done() {
		t.Fatal("it was over before the link could be made slow")
	}
	f.fault("the newcomer's link was made slow", nil)
	f.unchanged(op)
	f.heal()
	f.well("h1", "h2", "h3")
}
