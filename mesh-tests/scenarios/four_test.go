package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"suffrage/membership"
	"suffrage/mesh-tests/lab"
)

// Another voter is away while four vote, first frozen and then gone from the
// network: nobody is removed before it is back. etcd would still take a removal
// beside one that is cut off, and the quorum of the three that are left would need
// that one.
func TestVoterAwayAtFour(t *testing.T) {
	p := five
	p.Controllers = []string{"h1"}
	f := begin(t, p)
	var frozen, cut standing
	done := f.during(fourVote, func(membership.Operation) error {
		if err := f.Node("h2").Freeze(); err != nil {
			return err
		}
		// That takes a window, and the soak would have been over before.
		err := f.decided("h2 is down", func(d membership.Decision) bool { return calledDown(d, "h2") })
		err = errors.Join(err, f.stands(&frozen), f.Around("h2", lab.Link{Cut: true}), f.Node("h2").Thaw())
		since := time.Now()
		err = errors.Join(err, f.decided("h2 is still down", func(d membership.Decision) bool {
			return calledDown(d, "h2") && d.At.Sub(since) > 2*window
		}))
		return errors.Join(err, f.stands(&cut), f.Heal())
	})
	op := f.ask("h3", "h4")
	if !done() {
		t.Fatal("it was over before h2 could fail")
	}
	f.fault("h2 was frozen while four voted", nil)
	f.fault("h2 was cut off while four voted", nil)
	f.allFour(frozen)
	f.allFour(cut)
	op = f.completed(op)
	f.well(f.after(op)...)
}

// decided waits until the controller that leads says what it should. It may be
// called beside the test: unlike wait it gives an error.
func (f *fleet) decided(what string, is func(membership.Decision) bool) error {
	for began := time.Now(); time.Since(began) < far; time.Sleep(300 * time.Millisecond) {
		if d, err := f.Decision(f.t.Context()); err == nil && is(d) {
			return nil
		}
	}
	return fmt.Errorf("never decided: %s", what)
}

// standing is how far an operation is that goes no further.
type standing struct {
	voters []string
	open   *membership.Operation
}

// stands notes how far the open operation is; like decided, beside the test.
func (f *fleet) stands(at *standing) error {
	s, err := f.Node("h1").Status(f.t.Context())
	open, e := f.Open(f.t.Context())
	*at = standing{s.Voters(), open}
	return errors.Join(err, e)
}

// allFour checks that nobody was removed meanwhile, or was about to be.
func (f *fleet) allFour(at standing) {
	f.t.Helper()
	if !slices.Equal(at.voters, []string{"h1", "h2", "h3", "h4"}) {
		f.fail("meanwhile these voted: %v", at.voters)
	}
	if at.open == nil || !at.open.Asked.IsZero() {
		f.fail("meanwhile the operation was %+v: over, or a removal was asked for", at.open)
	}
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

// The host that is to go is frozen while four vote, its agent too. All that stay
// answer, but nobody can say that its etcd will not start again once it is removed:
// nothing is removed, and the owner is told what there is to do. Then it is thawed,
// and its etcd ends by itself. That is the only one that may be away then: it goes.
func TestOutgoingFailsAtFour(t *testing.T) {
	f := begin(t, five)
	var meanwhile standing
	var told membership.Refusal
	done := f.during(fourVote, func(membership.Operation) error {
		if err := f.Node("h3").Freeze(); err != nil {
			return err
		}
		err := f.decided("the owner is told that no fence is proven on h3", func(d membership.Decision) bool {
			i := slices.IndexFunc(d.Refusals, func(r membership.Refusal) bool {
				return r.Code == membership.FenceNotProven && r.Subject == "h3" && r.Kind == membership.Owner
			})
			if i >= 0 {
				told = d.Refusals[i]
			}
			return i >= 0
		})
		return errors.Join(err, f.stands(&meanwhile), f.Node("h3").Thaw(), f.Node("h3").DisableMember(t.Context()))
	})
	op := f.ask("h3", "h4")
	if !done() {
		t.Fatal("it was over before h3 could be frozen")
	}
	f.fault("h3 was frozen while four voted", nil)
	f.fault("then its etcd was stopped", nil)
	f.allFour(meanwhile)
	if want := "bring h3 or its agent back; if it is gone for good: suffrage operations stop " + op.ID; !strings.HasPrefix(told.Next, want) {
		f.fail("the owner is told %q, not %q", told.Next, want)
	}
	if op.Outcome != membership.Completed {
		f.fail("%s %s", op.Outcome, op.TurnedBack)
	}
	f.well(f.after(op)...)
}

// A swap that is asked for while a third voter is away is refused, however it is
// away. etcd itself would add a learner beside one that is frozen or cut off
// (measured with 3.6), and would remove a healthy voter beside it.
func TestAskedWhileAVoterIsAway(t *testing.T) {
	p := five
	p.Period = 4 * lab.Period // it is away three times, and must not be unfit for a whole window
	f := begin(t, p)
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
