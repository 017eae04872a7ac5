package membership

import (
	"fmt"
	"slices"

	"suffrage/fitness"
)

// reasonToTurn says why the operation should go back, while it still can: as
// long as the outgoing member is listed and nobody has been asked to remove it.
func (m *motion) reasonToTurn() string {
	if m.op.OutMember != "" && (m.out == nil || m.request(m.op.Out) != nil) {
		return ""
	}
	in := m.in0()
	since := func(step string) float64 {
		if t := m.op.began(step); !t.IsZero() {
			return in.Now.Sub(t).Seconds()
		}
		return 0
	}
	if p := in.Policy.Paused; p != nil && p.Value && m.in == nil && m.op.InMember == "" {
		return "paused by " + p.By + " before anything was changed"
	}
	stall := in.Policy.StallTime
	switch s := m.server(m.op.In); {
	case m.op.In == "":
	case m.in == nil && m.op.InMember != "":
		return fmt.Sprintf("%s was added and is no longer listed", m.op.In)
	case m.in != nil && m.in.Learner && since("join") > stall.Seconds():
		return fmt.Sprintf("%s did not catch up within %s", m.op.In, stall)
	case m.in != nil && m.in.Learner && (s == nil || !s.Running) && since("join") > startTime.Seconds():
		return fmt.Sprintf("the etcd of %s did not start within %s", m.op.In, startTime)
	case m.in != nil && !m.in.Learner && !m.in.Responding && !m.in.Since.IsZero() && in.Now.Sub(m.in.Since) > stall.Std():
		return fmt.Sprintf("%s votes and has not answered for %s", m.op.In, stall)
	case m.in != nil && m.whole(m.op.In, fitness.Unfit):
		return fmt.Sprintf("%s has been unfit for a whole window", m.op.In)
	}
	// A learner has no vote: giving it up costs nothing, and while a voter is in
	// trouble nothing should be under way.
	if m.in != nil && m.in.Learner {
		for _, x := range in.View.Voters() {
			if x.ID != m.op.OutMember && !x.Responding {
				return x.Label() + " does not answer"
			}
		}
	}
	if m.op.By == "controller" && m.op.Out != "" && m.whole(m.op.Out, fitness.Fit) {
		return fmt.Sprintf("%s has been fit for a whole window", m.op.Out)
	}
	return ""
}

// whole reports whether a host's verdict has held for a whole window.
func (m *motion) whole(host string, s fitness.Status) bool {
	v := m.verdict(host)
	return v.Status == s && v.Whole
}

// back undoes what was done, newest first: the request, the fence, the vote,
// the learner, the host.
func (m *motion) back() (*Act, []Refusal) {
	const step = "turn-back"
	if m.op.OutMember != "" && m.out != nil {
		if r := m.request(m.op.Out); r != nil && r.Operation == m.op.ID {
			return m.do(WithdrawRemoval, step, m.op.Out, m.op.OutMember, "it keeps its vote"), nil
		}
		if s := m.server(m.op.Out); s != nil && s.Fenced {
			return m.do(Unfence, step, m.op.Out, m.op.OutMember, "it keeps its vote"), nil
		}
	}
	if m.in != nil {
		return m.giveUp(step)
	}
	if m.op.In != "" {
		if s := m.server(m.op.In); s != nil {
			if act := m.settled(m.op.In, step); act != nil {
				return act, nil
			}
		}
		// A host that does not answer is not waited for: it is quarantined, and a
		// datastore that is found on it refuses it as a candidate.
	}
	return m.finish(Undone, m.op.TurnedBack)
}

// giveUp removes the newcomer. Its host is fenced first where it answers, or
// its etcd would come back; a voter is removed only while all from before are
// well, and never while it leads.
func (m *motion) giveUp(step string) (*Act, []Refusal) {
	if !m.in.Learner {
		if held := m.well(m.op.InMember); len(held) > 0 {
			m.op.at(step, m.in0().Now)
			return nil, held
		}
		if m.leader == m.op.In {
			to := m.heir(m.op.In)
			return m.do(MoveLeader, step, to, m.member[to], "a leader that is removed costs an election"), nil
		}
	}
	if s := m.server(m.op.In); s != nil && !s.Fenced {
		return m.do(Fence, step, m.op.In, m.op.InMember, "it must not come back by itself"), nil
	}
	return m.do(RemoveMember, step, m.op.In, m.op.InMember, "the voters from before stay"), nil
}

// list joins names for a sentence.
func list(names []string) string {
	out := ""
	for i, n := range slices.Compact(names) {
		if i > 0 {
			out += ", "
		}
		out += n
	}
	return out
}
