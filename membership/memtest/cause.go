package memtest

import (
	"fmt"
	"slices"

	"suffrage/fitness"
	"suffrage/membership"
)

// cause says what a refusal that calls the owner lacks to be true, or nothing:
// whoever is called at three in the morning has to find what the text says. p is
// the controller that said it, at the moment at which it looked.
//
// A code that nothing in the model can bring about (another cluster, a version, a
// disk) is never true. One that is added to the product needs its cause here.
func (k *checker) cause(r membership.Refusal, p *Controller) (lacks string) {
	c := k.c
	h := c.Host(r.Subject)
	out := func(h *Host) bool { return !h.Reachable() || p.cannot[h.Name] }
	is := false
	switch r.Code {
	case membership.VoterDown:
		is = slices.ContainsFunc(c.Voters(), func(m *Member) bool { return m.Host == r.Subject && (out(h) || !c.answers(m)) })
	case membership.UnstartedMember:
		m := c.Member(r.Subject)
		is = m != nil && !m.Learner && !m.Published
	case membership.FenceNotProven:
		op := c.Lease.Open
		is = h != nil && out(h) && op != nil && (op.Out == r.Subject || c.k3s != nil && op.In == r.Subject)
	case membership.GradeNotFull:
		is = h != nil && h.settings == fitness.EtcdOnly
	case membership.GradeNotProven:
		op := c.Lease.Open
		is = h != nil && (out(h) && op != nil && op.Regrade == r.Subject || h.Fenced)
	case membership.DatastorePresent:
		is = h != nil && h.Data != "" && c.Member(h.Data) == nil
	case membership.NoCandidate:
		is = !slices.ContainsFunc(c.Hosts, func(h *Host) bool {
			return h.Mark.IsEligible() && !slices.ContainsFunc(c.Members, func(m *Member) bool { return m.Host == h.Name })
		})
	case membership.AlarmRaised:
		is = c.Alarm == r.Subject
	case membership.StaleRemoval:
		asked := c.Removals[r.Subject]
		is = asked != nil && (c.Lease.Open == nil || c.Lease.Open.ID != asked.Operation)
	case membership.Futile:
		n := 0
		for _, op := range c.History {
			if op.WorstBefore != nil && op.WorstAfter != nil && *op.WorstAfter >= *op.WorstBefore {
				n++
			}
		}
		is = n >= 2
	case membership.MembershipChanged:
		op := c.Lease.Open
		is = op != nil && k.foreign && !k.foreignAt.Before(k.opened[op.ID])
	// Nobody but the owner and somebody else makes another number of voters of
	// what there was.
	case membership.BelowMinimum:
		is = k.numbers() && len(c.Voters()) < 3
	case membership.BelowTarget:
		is = k.numbers() && len(c.Voters()) < c.Policy.Target
	case membership.ExtraVoter:
		is = k.numbers() && len(c.Voters()) > c.Policy.Target
	case membership.AtCeiling:
		is = k.numbers() && len(c.Members)+1 > c.Policy.Maximum
	case membership.EvenTarget:
		is = k.numbers() && c.Policy.Target%2 == 0
	}
	if is {
		return ""
	}
	return fmt.Sprintf("the owner is called without a cause: %s", r)
}

// numbers: somebody else, the owner, or an operation that the owner stopped made
// another number of voters, or of those that are wanted, here or before.
func (k *checker) numbers() bool {
	stopped := false
	for _, op := range k.c.History {
		stopped = stopped || op.Outcome == membership.Stopped
	}
	return k.foreign || len(k.owner) > 0 || stopped || k.lost
}

// lasting says why the cause of a refusal should be gone at the end, once all
// that went wrong is mended and the controllers have had their time.
func (k *checker) lasting(r membership.Refusal) (lacks string) {
	h := k.c.Host(r.Subject)
	switch r.Code {
	case membership.MembershipChanged, membership.BelowMinimum, membership.BelowTarget, membership.ExtraVoter, membership.AtCeiling,
		membership.NoCandidate, membership.Futile, membership.GradeNotFull: // the owner's own word, or an operation that he stopped
		return ""
	case membership.DatastorePresent:
		if h.leftover {
			return ""
		}
	case membership.VoterDown, membership.UnstartedMember:
		if k.foreign {
			return ""
		}
	}
	return fmt.Sprintf("the owner is still called for what no owner has done: %s", r)
}
