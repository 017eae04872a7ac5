package scenarios

import (
	"errors"
	"slices"
	"strings"
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
	done := f.during(fourVote, func(membership.Operation) error {
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

// fourVote is the time between the promotion and the removal.
func fourVote(op membership.Operation) bool { return !op.SoakedSince.IsZero() && op.Asked.IsZero() }

// The newcomer's host loses its power once it votes: the old voter stays, and the
// newcomer is removed again. What it boots with is no voter's any more.
func TestNewVoterLosesPower(t *testing.T) {
	f := begin(t, five)
	done := f.during(fourVote, func(membership.Operation) error { return f.Node("h4").PowerOff(t.Context()) })
	op := f.ask("h3", "h4")
	if !done() {
		t.Fatal("it was over before the newcomer could lose its power")
	}
	f.fault("h4 lost its power while four voted", nil)
	f.unchanged(op)
	f.ended("h4 boots", f.Node("h4").Boot())
	f.well("h1", "h2", "h3")
}

// The etcd that is to go ends by itself while four vote. It is the only one that
// may be away then: all that stay answer, so its removal goes on.
func TestOutgoingFailsAtFour(t *testing.T) {
	f := begin(t, five)
	done := f.during(fourVote, func(membership.Operation) error { return f.Node("h3").DisableMember(t.Context()) })
	op := f.ask("h3", "h4")
	if !done() {
		t.Fatal("it was over before the etcd of h3 could end")
	}
	f.fault("the etcd of h3 was stopped while four voted", nil)
	if op.Outcome != membership.Completed {
		f.fail("%s %s", op.Outcome, op.TurnedBack)
	}
	f.well(f.after(op)...)
}

// A swap that is asked for while a third voter is away is refused, however it is
// away. etcd itself would add a learner beside one that is frozen or cut off
// (measured with 3.6), and would remove a healthy voter beside it.
func TestAskedWhileAVoterIsAway(t *testing.T) {
	f := begin(t, five)
	leader := f.leader()
	away := map[bool]string{true: "h3", false: "h2"}[leader == "h2"]
	out := third(away, "h1")
	for _, how := range []struct {
		what       string
		begin, end func() error
	}{
		{"frozen", f.Node(away).Freeze, f.Node(away).Thaw},
		{"cut off", func() error { return f.Around(away, lab.Link{Cut: true}) }, f.Heal},
		{"without power", func() error { return f.Node(away).PowerOff(t.Context()) }, f.Node(away).Boot},
	} {
		f.fault(away+" is "+how.what, how.begin())
		said, err := f.Node(f.seat).Suffrage(t.Context(), "swap", out, "h4", "--yes")
		if err == nil || !strings.Contains(said, string(membership.VoterNotResponding)+"("+away) && !strings.Contains(said, string(membership.VoterDown)+"("+away) {
			f.fail("%v: %s", err, said)
		}
		f.ended(away+" is back", how.end())
		f.well("h1", "h2", "h3")
	}
	f.quiet()
}
