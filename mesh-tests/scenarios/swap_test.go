package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/mesh-tests/lab"
)

// The newcomer's link turns bad once it is a learner: slow for everybody, and
// closed to etcd itself, or it would have caught up and got its vote before a
// window is over. It never gets it, and is left alone for a while.
func TestCandidateTurnsBad(t *testing.T) {
	p := five
	p.StallTime = fitness.Duration(time.Minute) // it is unfit for a whole window before
	f := begin(t, p)
	f.rules.Most = 3
	bad := lab.Link{Delay: slow.Delay, Ports: []uint16{2380}}
	f.turnsBad(func(op membership.Operation) bool { return op.InMember != "" }, bad, func() error {
		list, err := f.Client.MemberList(t.Context())
		if err != nil {
			return err
		}
		learners := 0
		for _, m := range list.Members {
			if m.IsLearner {
				learners++
			}
		}
		if learners != 1 || len(list.Members) != 4 {
			return fmt.Errorf("h4 was no learner any more when its link had turned bad: %v", list.Members)
		}
		return nil
	})
}

// turnsBad has the newcomer's link turn bad at some time, checks something right
// then, and that the newcomer is given up for being unfit.
func (f *fleet) turnsBad(when func(membership.Operation) bool, bad lab.Link, check func() error) {
	f.t.Helper()
	done := f.during(when, func(membership.Operation) error {
		if err := f.Around("h4", bad); err != nil {
			return err
		}
		return check()
	})
	op := f.ask("h3", "h4")
	if !done() {
		f.t.Fatal("it was over before the link could turn bad")
	}
	f.fault("the newcomer's link turned bad", nil)
	f.unchanged(op)
	if !strings.HasPrefix(op.TurnedBack, "h4 has been unfit for a whole window") {
		f.fail("it turned back for something else: %s", op.TurnedBack)
	}
	f.refused("h3", "h4", membership.Quarantine, "h4")
	f.heal()
	f.well("h1", "h2", "h3")
}
