package scenarios

import (
	"errors"
	"slices"
	"testing"
	"time"

	"suffrage/membership"
	"suffrage/mesh-tests/lab"
)

// Another voter is frozen while four vote: nobody is removed before it is back.
func TestVoterFailsAtFour(t *testing.T) {
	p := five
	p.Controllers = []string{"h1"}
	f := begin(t, p)
	var seen lab.Status
	done := f.during(func(op membership.Operation) bool { return !op.SoakedSince.IsZero() && op.Asked.IsZero() }, func(membership.Operation) error {
		if err := f.Node("h2").Freeze(); err != nil {
			return err
		}
		for began := time.Now(); time.Since(began) < far; time.Sleep(300 * time.Millisecond) {
			if d, err := f.Decision(t.Context()); err == nil && calledDown(d, "h2") {
				break
			}
		}
		var err error
		seen, err = f.Node("h1").Status(t.Context())
		return errors.Join(err, f.Node("h2").Thaw())
	})
	op := f.ask("h3", "h4")
	if !done() {
		t.Fatal("it was over before a voter could be frozen")
	}
	f.fault("h2 was frozen while four voted", nil)
	if voters := seen.Voters(); !slices.Contains(voters, "h3") || !slices.Contains(voters, "h2") {
		f.fail("while h2 was frozen these voted: %v", voters)
	}
	if op.Outcome != membership.Completed {
		f.unchanged(op)
	}
	f.well(f.after(op)...)
}
