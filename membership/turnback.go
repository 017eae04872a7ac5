package membership

import (
	"fmt"
	"strings"
	"time"

	"suffrage/fitness"
)

// reasonToTurn says why the operation should go back, while it still can: as
// long as the outgoing member is listed.
func (m *motion) reasonToTurn() string {
	in := m.in0()
	untouched := m.in == nil && m.op.InMember == "" && !m.started()
	patience := in.Policy.StallTime
	if m.op.In == "" {
		patience += in.Policy.Soak // the first change comes after it
	}
	// The owner's word, and what was taken away, count at any time.
	switch p := in.Policy.Paused; {
	case m.hosts[m.op.Out] != nil && m.hosts[m.op.Out].Mark.IsPinned():
		return fmt.Sprintf("%s was pinned", m.op.Out)
	case m.hosts[m.op.In] != nil && !m.hosts[m.op.In].Mark.IsEligible():
		return fmt.Sprintf("%s is no longer eligible", m.op.In)
	case m.op.Dead && m.out != nil && m.out.Responding:
		return fmt.Sprintf("%s answers again", m.op.Out)
	case m.unasked():
		return fmt.Sprintf("the target is %d now", in.Policy.Target)
	case m.in == nil && m.op.InMember != "":
		return fmt.Sprintf("%s was added and is no longer listed", m.op.In)
	case p != nil && p.Value && untouched && m.op.Asked.IsZero():
		return fmt.Sprintf("paused by %s before anything was changed", p.By)
	}
	switch {
	case !m.op.Asked.IsZero():
		return "" // a removal that is asked for may be done at any moment
	case untouched && m.since(m.op.Begun) > patience.Std():
		return fmt.Sprintf("nothing could be changed within %s: %s", patience, m.op.noted())
	case m.in == nil && !m.started():
	case m.in == nil || m.in.Learner:
		if why := m.learnerFailed(); why != "" {
			return why
		}
	case m.out != nil && !m.out.Responding:
		return "" // the newcomer is what keeps the number of those that answer
	case !m.in.Responding && m.since(m.in.Since) > in.Policy.StallTime.Std():
		return fmt.Sprintf("%s votes and has not answered for %s", m.op.In, in.Policy.StallTime)
	case m.heldFor(VoterLagging, m.op.In) > in.Policy.StallTime.Std():
		return fmt.Sprintf("%s votes and has not been level for %s", m.op.In, in.Policy.StallTime)
	}
	switch {
	case m.op.In != "" && m.whole(m.op.In, fitness.Unfit):
		return fmt.Sprintf("%s has been unfit for a whole window", m.op.In)
	case m.op.By == ByController && m.op.Out != "" && m.whole(m.op.Out, fitness.Fit):
		return fmt.Sprintf("%s has been fit for a whole window", m.op.Out)
	}
	return ""
}

// unasked: the owner wants another number of voters by now, to which this is no
// step.
func (m *motion) unasked() bool {
	before, target := len(m.op.MembersBefore), m.in0().Policy.Target
	switch {
	case m.op.Dead:
		return false
	case m.op.Out == "":
		return before >= target
	case m.op.In == "":
		return before <= target
	}
	return false
}

// heldFor is how long a refusal has held, up to the decision before.
func (m *motion) heldFor(c Code, subject string) time.Duration {
	if p := m.in0().Previous; p != nil {
		for _, r := range p.Refusals {
			if r.Code == c && r.Subject == subject {
				return m.since(r.Since)
			}
		}
	}
	return 0
}

// learnerFailed says why a learner is given up: it has no vote, so that costs
// nothing, and while a voter is in trouble nothing should be under way.
func (m *motion) learnerFailed() string {
	joined, stall := m.since(m.op.began("join")), m.in0().Policy.StallTime
	s := m.server(m.op.In)
	switch {
	case s != nil && !s.Running && joined > min(startTime, stall.Std()):
		return fmt.Sprintf("the etcd of %s did not start within %s", m.op.In, min(startTime, stall.Std()))
	case joined > stall.Std() && m.in == nil:
		return fmt.Sprintf("%s did not join within %s", m.op.In, stall)
	case joined > stall.Std():
		return fmt.Sprintf("%s did not catch up within %s", m.op.In, stall)
	case s == nil && joined > startTime && m.silentFor(m.op.In) > startTime:
		return fmt.Sprintf("the agent of %s has not answered for %s", m.op.In, startTime)
	}
	for _, x := range m.in0().View.Voters() {
		if x.ID != m.op.OutMember && !x.Responding && m.since(x.Since) > startTime {
			return x.Label() + " does not answer"
		}
	}
	return ""
}

// whole reports whether a host's verdict has held for a whole window.
func (m *motion) whole(host string, s fitness.Status) bool {
	v := m.judge(host)
	return v.Status == s && v.Whole
}

func (m *motion) turn(why string) (*Act, []Refusal) {
	m.op.TurnedBack = why
	return m.back()
}

// back undoes what was done, newest first: the request, the fence, the vote,
// the learner, the host. Whoever acts on requests may have read this one before
// it was withdrawn, so until that call has ended the newcomer keeps its vote
// (with both removed there would be one voter too few) and the outgoing one its
// fence.
func (m *motion) back() (*Act, []Refusal) {
	const step = turnBack
	m.op.at(step, m.in0().Now)
	m.op.Asked, m.op.SoakedSince = time.Time{}, time.Time{}
	fenced := "remove"
	if m.op.Dead {
		fenced = fenceOrdered
	}
	if m.op.OutMember != "" {
		if m.requested() != nil {
			return m.do(WithdrawRemoval, step, m.op.Out, m.op.OutMember, "it keeps its vote"), nil
		}
		if !m.op.began("remove").IsZero() && m.settling() {
			return m.wait(step, "what was asked of "+m.op.Out+" may still come"), nil
		}
		switch s := m.server(m.op.Out); {
		case s == nil && !m.op.began(fenced).IsZero():
			return nil, m.unproven(m.op.Out, "it may be fenced and could not start again")
		case s != nil && s.Fenced:
			return m.do(Unfence, step, m.op.Out, m.op.OutMember, "it keeps its vote"), nil
		case s != nil && !m.op.began("remove").IsZero() && s.Term < m.op.Term:
			// A fence that a holder before ordered may still be on its way. Once the
			// agent has seen this Term it refuses it.
			return m.do(Unfence, step, m.op.Out, m.op.OutMember, "it keeps its vote, and no fence from before may come"), nil
		}
	}
	if m.in != nil {
		return m.giveUp(step)
	}
	if m.op.In != "" {
		// A host that does not answer is not waited for: it is quarantined, and a
		// datastore that is found on it refuses it as a candidate. Where its server
		// joins by itself it is, and an order to start that a holder before gave may
		// still be on its way, until the agent has seen this Term and refuses it.
		s, started := m.server(m.op.In), m.started()
		if started && s == nil {
			return nil, m.unproven(m.op.In, "its server may still join by itself")
		}
		if act := m.settled(m.op.In, step); act != nil {
			return act, nil
		}
		if started && s.Term < m.op.Term {
			return m.do(Retire, step, m.op.In, "", "no start from before may come"), nil
		}
	}
	if m.settling() {
		return m.wait(step, "what was called for may still come"), nil
	}
	return m.finish(Undone, m.op.TurnedBack)
}

// giveUp removes the newcomer. Its host is fenced first where it answers, or
// its etcd would come back; a voter is removed only while all from before are
// well, and never while it leads.
func (m *motion) giveUp(step string) (*Act, []Refusal) {
	if !m.in.Learner {
		if held := m.well(m.op.InMember); len(held) > 0 {
			return nil, held
		}
		if m.leader == m.op.In {
			return m.hand(step, m.op.In)
		}
	}
	// Beside one voter its vote is needed for its own removal: down behind a fence it
	// would take the quorum with it for good. It is fenced when it is retired.
	n := len(m.in0().View.Voters())
	needed := !m.in.Learner && n-1 < Quorum(n) && !m.byItself()
	s := m.server(m.op.In)
	if s == nil && m.byItself() {
		return nil, m.unproven(m.op.In, "once it is removed its server would join again by itself")
	}
	if s != nil && !s.Fenced && !needed {
		return m.do(Fence, step, m.op.In, m.op.InMember, "it must not come back by itself"), nil
	}
	if m.settling() { // a start that was ordered before the fence would lift it
		return m.wait(step, "what was called for may still come"), nil
	}
	return m.do(RemoveMember, step, m.op.In, m.op.InMember, "the voters from before stay"), nil
}

// list joins names for a sentence.
func list(names []string) string { return strings.Join(names, ", ") }
