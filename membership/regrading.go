package membership

import (
	"fmt"
	"time"

	"suffrage/fitness"
)

// regrade is the way of an operation that changes a grade. The member stays what it
// is; all that is done is one restart, and another one where it turns back.
//
// The same as in a swap: the journal is written before the order, and what is to be
// done next is taken from what the host's agent tells. It tells a grade only where
// K3s's settings and its process agree.
func (m *motion) regrade() (*Act, []Refusal) {
	if m.op.TurnedBack == "" {
		m.op.TurnedBack = m.reasonToRegradeBack()
	}
	step, to, back := regradeStep, m.op.To, m.op.TurnedBack != ""
	switch {
	case back && m.op.Called.IsZero():
		return m.finish(Undone, m.op.TurnedBack)
	case back:
		step, to, m.op.SoakedSince = turnBack, other(to), time.Time{}
		m.op.at(step, m.in0().Now)
	case m.op.Called.IsZero():
		if held := m.regradeGuards(); len(held) > 0 {
			return nil, held
		}
	}
	s := m.server(m.op.Regrade)
	switch {
	case s == nil:
		m.op.SoakedSince = time.Time{}
		return nil, m.ungraded()
	case s.Grade != to && m.settling():
		return m.wait(step, "its restart was ordered and may still come"), nil
	// An order that a holder before gave may still be on its way, until the agent has
	// seen this Term and refuses it.
	case s.Grade != to, back && s.Term < m.op.Term:
		return m.restart(step, to, s)
	case back:
		return m.regradedBack(step)
	}
	return m.regradedWell()
}

// regradeGuards are those of any change, and what there is against this one.
func (m *motion) regradeGuards() []Refusal {
	verdicts := make([]fitness.Verdict, 0, len(m.voters))
	for _, v := range m.voters {
		verdicts = append(verdicts, m.verdict(v))
	}
	return append(m.startHeld("step-down"), m.regradeHeld(m.op.plan(), verdicts)...)
}

// reasonToRegradeBack says why a regrade should go back, while it has not been seen
// to go well.
func (m *motion) reasonToRegradeBack() string {
	in, host := m.in0(), m.op.Regrade
	stall := in.Policy.StallTime.Std()
	mine := m.op.By == ByController
	switch r, p := m.memory(host), in.Policy.Paused; {
	case !m.op.Called.IsZero():
		if m.op.SoakedSince.IsZero() && m.since(m.op.began(regradeStep)) > stall && !m.settling() {
			return fmt.Sprintf("%s did not come back as %s within %s", host, m.op.To, in.Policy.StallTime)
		}
	case p != nil && p.Value:
		return fmt.Sprintf("paused by %s before anything was changed", p.By)
	case m.since(m.op.Begun) > stall:
		return fmt.Sprintf("nothing could be changed within %s: %s", in.Policy.StallTime, m.op.noted())
	case mine && m.op.To == fitness.EtcdOnly && r.Band == fitness.Under && r.Whole():
		return fmt.Sprintf("%s has had memory enough for a whole window", host)
	case mine && m.op.To == fitness.Full && over(&r, 0):
		return fmt.Sprintf("%s is short of memory again", host)
	}
	return ""
}

// restart orders the server to start again with a grade. It takes that voter's etcd
// down, so all others have to be well, and it must not lead, but where its process
// is down already.
func (m *motion) restart(step string, to fitness.Grade, s *fitness.ServerFacts) (*Act, []Refusal) {
	x := m.listedAs(m.op.Member)
	if s.Grade != to && (s.Running || x != nil && x.Responding) {
		if held := m.well(m.op.Member); len(held) > 0 {
			return nil, held
		}
		if m.leader == m.op.Regrade {
			if step == regradeStep {
				step = "step-down"
			}
			return m.hand(step, m.op.Regrade)
		}
	}
	why := "the others do without it while it restarts, and it keeps its vote"
	if step == turnBack {
		why = m.op.TurnedBack
	}
	act := m.do(Regrade, step, m.op.Regrade, m.op.Member, why)
	act.To = to
	return act, nil
}

// ungraded says that nobody knows what the host runs.
func (m *motion) ungraded() []Refusal {
	r := hold(GradeNotProven, m.op.Regrade, "its agent does not answer, so how much of a server it runs is not known", "lifts when its agent answers")
	if m.silentFor(m.op.Regrade) > m.in0().Policy.Window() {
		r.Kind, r.Next = Owner, "bring "+m.op.Regrade+" or its agent back; if it is gone for good: suffrage operations stop "+m.op.ID+", then: suffrage remove-dead "+m.op.Regrade
	}
	return []Refusal{r}
}

// unsteady says what its member lacks to be as good as before.
func (m *motion) unsteady() []Refusal {
	x := m.listedAs(m.op.Member)
	var held []Refusal
	for _, guard := range []func(Inputs) []Refusal{guardVoters, guardLeader, guardOpinions} {
		for _, r := range guard(*m.in0()) {
			if x == nil || r.Subject == x.Label() || r.Subject == x.ID || r.Code == NoLeader {
				held = append(held, r)
			}
		}
	}
	return held
}

// regradedWell is the soak: the same member answers, is level and agrees. Whoever
// else is in trouble is no matter: an open operation would keep its owner waiting.
func (m *motion) regradedWell() (*Act, []Refusal) {
	const step = "soak"
	if held := m.unsteady(); len(held) > 0 {
		m.op.at(step, m.in0().Now)
		m.op.SoakedSince = time.Time{}
		return nil, held
	}
	if m.op.SoakedSince.IsZero() {
		m.op.SoakedSince = m.in0().Now
	}
	soaked, soak := m.since(m.op.SoakedSince), m.in0().Policy.Soak
	if soaked < soak.Std() {
		return m.wait(step, fmt.Sprintf("its member has been well for %s of %s", soaked.Round(time.Second), soak)), nil
	}
	if m.settling() {
		return m.wait(step, "what was called for may still come"), nil
	}
	return m.finish(Completed, fmt.Sprintf("%s is %s, and its member is well", m.op.Regrade, m.op.To))
}

// regradedBack ends it where it began. A member that does not come back there
// either is everybody's case, and not waited for without end.
func (m *motion) regradedBack(step string) (*Act, []Refusal) {
	if m.settling() {
		return m.wait(step, "what was called for may still come"), nil
	}
	if held := m.unsteady(); len(held) > 0 && m.since(m.op.began(step)) < 2*m.in0().Policy.StallTime.Std() {
		return nil, held
	}
	return m.finish(Undone, m.op.TurnedBack)
}
