package membership

import (
	"fmt"
	"slices"
	"time"

	"suffrage/fitness"
)

// callTime is longer than any call may take until it has had its effect or
// never will: etcd's own request timeout is 5 s + 2·E, 15 s with K3s's timing.
// What ended without an answer may be done until then.
const callTime = 30 * time.Second

// operate gives the next act of the open operation, or what holds it up, and
// the operation as it is to be written down before the act. It looks at what
// is, never at what was done: a controller that died anywhere is followed by
// one that finds the same next act.
func (a *assessment) operate() (Operation, *Act, []Refusal) {
	m := &motion{assessment: a, op: a.in.Open.clone()}
	// Recorded and still in the journal: only that is left to do.
	for _, ended := range a.in.Operations {
		if ended.ID == m.op.ID {
			act, _ := m.finish(ended.Outcome, "it is recorded")
			return ended, act, nil
		}
	}
	m.resume()
	m.find()
	m.learn()
	act, held := (*Act)(nil), m.foreign()
	stop := a.in.Policy.Stop
	stopped := stop != nil && stop.Operation == m.op.ID
	switch {
	case held == nil && !stopped:
		act, held = m.next()
	case m.requested() != nil: // nothing is left asked for, by an operation that is no more
		act, held = m.do(WithdrawRemoval, "remove", m.op.Out, m.op.OutMember, m.takenOver(held)), nil
	case m.trapped() != nil && !m.settling():
		x := m.trapped()
		act, held = m.do(Unfence, "remove", x.Host, x.ID, "it votes, and has to be able to start: "+m.takenOver(held)), nil
	case m.trapped() != nil && stopped:
		act, held = m.wait("remove", "a removal of "+m.trapped().Host+" that was asked for may still come"), nil
	case stopped:
		act, held = m.finish(Stopped, "stopped by "+stop.By)
	}
	if len(held) > 0 {
		m.op.note(held[0].String())
	}
	return *m.op, act, held
}

// trapped is a voter of this operation behind a fence, whoever put it up, nil for
// none: as when it turns back, since the voter would never start again once it is
// down.
func (m *motion) trapped() *Member {
	for _, x := range []*Member{m.out, m.in} {
		if x == nil || x.Learner || x.Host == "" {
			continue
		}
		if s := m.server(x.Host); s != nil && s.Fenced {
			return x
		}
	}
	return nil
}

// takenOver says why a removal is not left armed.
func (m *motion) takenOver(held []Refusal) string {
	if len(held) > 0 {
		return held[0].String()
	}
	return "stopped by " + m.in0().Policy.Stop.By
}

// motion is one operation on its way.
type motion struct {
	*assessment
	op      *Operation
	in, out *Member // as listed now, nil when not
}

// in0 is the inputs; in is taken by the newcomer.
func (m *motion) in0() *Inputs { return &m.assessment.in }

// resume begins every wait again under a new holder: its clock is another one,
// and a wait that a clock ten minutes ahead ends is none.
func (m *motion) resume() {
	now := m.in0().Now
	if m.op.Term != m.in0().Term {
		m.op.Term, m.op.Resumed, m.op.SoakedSince = m.in0().Term, now, time.Time{}
		for _, called := range []*time.Time{&m.op.Called, &m.op.Unfenced} {
			if !called.IsZero() {
				*called = now
			}
		}
	}
}

// since is how long ago something was, as far as this holder saw it.
func (m *motion) since(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	if m.op.Resumed.After(t) {
		t = m.op.Resumed
	}
	return max(0, m.in0().Now.Sub(t))
}

// learn notes what the newest act failed by.
func (m *motion) learn() {
	f := m.in0().Failed
	if f == nil || f.Operation != m.op.ID {
		return
	}
	m.op.note(fmt.Sprintf("%s %s: %s", f.Verb, f.Host, f.Error))
	if f.Verb == SaveSnapshot {
		others := slices.DeleteFunc(m.op.Unsaved, func(h string) bool { return h == f.Host })
		m.op.Unsaved = append(others, f.Host)
	}
}

// find looks up the two members, and learns the newcomer's ID from the list.
func (m *motion) find() {
	for _, x := range m.in0().View.Members {
		// One that joins by itself may have been removed, and have joined again.
		again := m.started() && m.listedAs(m.op.InMember) == nil
		if (m.op.InMember == "" || again) && m.joins(x) {
			m.op.InMember, m.op.SoakedSince = x.ID, time.Time{} // the soak was another's
		}
	}
	m.in, m.out = m.listedAs(m.op.InMember), m.listedAs(m.op.OutMember)
}

// joins reports whether a member is the newcomer whose add had no answer.
func (m *motion) joins(x Member) bool {
	return m.op.In != "" && !m.op.began("join").IsZero() && !slices.Contains(m.op.MembersBefore, x.ID) && slices.Contains(x.PeerURLs, m.op.InPeer)
}

// foreign is somebody else's change: the members are neither those from before
// nor those that this operation makes of them. Then it stops, and nothing is
// repaired. A new cluster is no place for an operation of another one.
func (m *motion) foreign() []Refusal {
	v := m.in0().View
	if v.ClusterID != m.op.ClusterID {
		return []Refusal{owner(ClusterReplaced, "", fmt.Sprintf("operation %s is of cluster %s, this is %s", m.op.ID, m.op.ClusterID, v.ClusterID),
			"look at the members, then: suffrage operations stop "+m.op.ID)}
	}
	var odd []string
	for _, x := range v.Members {
		if x.ID != m.op.InMember && !slices.Contains(m.op.MembersBefore, x.ID) {
			odd = append(odd, x.Label()+" ("+x.ID+") was added")
		}
	}
	for _, id := range m.op.MembersBefore {
		if m.listedAs(id) == nil && id != m.op.OutMember {
			odd = append(odd, id+" was removed")
		}
	}
	if m.gone() && m.op.In != "" && (m.in == nil || m.in.Learner) {
		odd = append(odd, m.op.OutMember+" was removed though "+m.op.In+" does not vote")
	}
	if len(odd) == 0 {
		return nil
	}
	slices.Sort(odd)
	return []Refusal{owner(MembershipChanged, "", fmt.Sprintf("somebody else changed the members during operation %s: %s", m.op.ID, list(odd)),
		"look at the members, then: suffrage operations stop "+m.op.ID)}
}

// gone: the list no longer has the outgoing member. From here there is only forward.
func (m *motion) gone() bool { return m.op.OutMember != "" && m.out == nil }

func (m *motion) next() (*Act, []Refusal) {
	if m.op.Regrade != "" {
		return m.regrade()
	}
	if m.gone() {
		m.op.TurnedBack = "" // it had turned back, and the removal was done all the same
		return m.cleanUp()
	}
	if m.op.TurnedBack == "" {
		m.op.TurnedBack = m.reasonToTurn()
	}
	if m.op.TurnedBack != "" {
		return m.back()
	}
	return m.forth()
}

func (m *motion) do(v Verb, step, host, member, why string) *Act {
	m.op.at(step, m.in0().Now)
	a := &Act{Verb: v, Step: step, Host: host, Member: member, Why: why}
	switch v {
	case AddLearner, StartMember:
		a.Peer = m.op.InPeer
		m.op.Called = m.in0().Now
	case Fence, AnnounceRemoval, RequestRemoval, WithdrawRemoval, Regrade:
		m.op.Called = m.in0().Now
	case Retire:
		if m.started() && host == m.op.In && m.in == nil { // it may have added itself just before
			m.op.Called = m.in0().Now
		}
	case Unfence:
		m.op.Called, m.op.Unfenced = m.in0().Now, m.in0().Now
	}
	return a
}

func (m *motion) wait(step, why string) *Act { return m.do(Wait, step, "", "", why) }

// settling reports whether something that was called for may still come.
func (m *motion) settling() bool { return m.mayCome(m.op.Called) }

// mayCome reports whether what was called for at that time may still come.
func (m *motion) mayCome(called time.Time) bool {
	return !called.IsZero() && m.since(called) < callTime
}

// server is what a host's agent tells of its etcd, nil when it does not answer.
func (m *motion) server(host string) *fitness.ServerFacts {
	h := m.hosts[host]
	if h == nil || !h.Reachable {
		return nil
	}
	return h.Facts.Server
}

// silentFor is how long a host's agent has not answered, zero while it does. A
// host that is no longer in the roster never will.
func (m *motion) silentFor(host string) time.Duration {
	switch h := m.hosts[host]; {
	case h == nil:
		return 1 << 62
	case h.Reachable:
		return 0
	default:
		return max(1, m.since(h.Since))
	}
}

// well asks whether all voters but the one answer, agree and have one leader:
// what every change needs, whatever etcd itself would accept.
func (m *motion) well(but string) []Refusal {
	in := *m.in0()
	x := m.listedAs(but)
	var held []Refusal
	for _, guard := range []func(Inputs) []Refusal{guardVoters, guardLeader, guardOpinions, guardAlarms, guardRemovals} {
		for _, r := range guard(in) {
			if x == nil || r.Subject != x.Label() && r.Subject != x.ID {
				held = append(held, r)
			}
		}
	}
	return held
}

// listedAs is the member with the ID, nil when it is not listed.
func (m *motion) listedAs(id string) *Member {
	members := m.in0().View.Members
	if i := slices.IndexFunc(members, func(x Member) bool { return x.ID == id }); i >= 0 {
		return &members[i]
	}
	return nil
}

// requested is the removal that this operation asked for, nil when it is not asked for.
func (m *motion) requested() *Removal {
	if r := m.request(m.op.Out); r != nil && r.Operation == m.op.ID {
		return r
	}
	return nil
}

// request is the removal that is asked for on a host, nil when none is.
func (m *motion) request(host string) *Removal {
	for i := range m.in0().View.Removals {
		if r := &m.in0().View.Removals[i]; r.Host == host {
			return r
		}
	}
	return nil
}
