package membership

import (
	"fmt"
	"slices"
	"time"

	"suffrage/fitness"
)

// maxLagVoting is how many entries a new voter may be behind the leader before
// the old one may go. etcd promotes at 90 % of the leader's log, which on an old
// cluster is a million entries (etcd.md 3).
const maxLagVoting = 1000

// actionTime is how long a removal may be asked for without an effect before it
// is withdrawn.
const actionTime = 2 * time.Minute

// startTime is how long the process of a newcomer may take to come up: etcd
// opens its ports late, after 5 s + 2·E and the sync (etcd.md 27), but the
// host tells at once whether the process runs.
const startTime = 30 * time.Second

// operate gives the next act of the open operation, or what holds it up, and
// the operation as it is to be written down before the act. It looks at what
// is, never at what was done: a controller that died anywhere is followed by
// one that finds the same next act.
func (a *assessment) operate() (Operation, *Act, []Refusal) {
	m := &motion{assessment: a, op: a.in.Open.clone()}
	if r := m.foreign(); r != nil {
		return *m.op, nil, r
	}
	m.find()
	act, held := m.next()
	if len(held) > 0 && len(m.op.Steps) > 0 {
		m.op.Steps[len(m.op.Steps)-1].Note = held[0].String()
	}
	return *m.op, act, held
}

// motion is one operation on its way.
type motion struct {
	*assessment
	op      *Operation
	in, out *Member // as listed now, nil when not
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
	listed := map[string]bool{}
	for _, x := range v.Members {
		listed[x.ID] = true
		ours := x.ID == m.op.InMember || m.op.InMember == "" && m.joins(x)
		if !ours && !slices.Contains(m.op.MembersBefore, x.ID) {
			odd = append(odd, x.Label()+" ("+x.ID+") was added")
		}
	}
	for _, id := range m.op.MembersBefore {
		if !listed[id] && id != m.op.OutMember {
			odd = append(odd, id+" was removed")
		}
	}
	if len(odd) == 0 {
		return nil
	}
	slices.Sort(odd)
	return []Refusal{owner(MembershipChanged, "", fmt.Sprintf("somebody else changed the members during operation %s: %s", m.op.ID, list(odd)),
		"look at the members, then: suffrage operations stop "+m.op.ID)}
}

// in0 is the inputs; in is taken by the newcomer.
func (m *motion) in0() *Inputs { return &m.assessment.in }

// joins reports whether a member is the newcomer whose add had no answer.
func (m *motion) joins(x Member) bool {
	return m.op.In != "" && !slices.Contains(m.op.MembersBefore, x.ID) && slices.Contains(x.PeerURLs, m.op.InPeer)
}

// find looks up the two members, and learns the newcomer's ID from the list.
func (m *motion) find() {
	for _, x := range m.in0().View.Members {
		if m.op.InMember == "" && m.joins(x) {
			m.op.InMember = x.ID
		}
	}
	m.in, m.out = m.listedAs(m.op.InMember), m.listedAs(m.op.OutMember)
}

func (m *motion) next() (*Act, []Refusal) {
	if m.op.TurnedBack == "" {
		if why := m.reasonToTurn(); why != "" {
			m.op.TurnedBack = why
		}
	}
	if m.op.TurnedBack != "" {
		return m.back()
	}
	return m.forth()
}

// forth is the way of the plan.
func (m *motion) forth() (*Act, []Refusal) {
	now := m.in0().Now
	gone := m.op.OutMember != "" && m.out == nil
	switch {
	case gone:
		return m.cleanUp()
	case m.op.Snapshot == nil:
		return m.snapshot()
	case m.op.In != "" && m.in == nil:
		m.op.at("join", now)
		if held := m.startHeld(); len(held) > 0 {
			return nil, held
		}
		return m.do(AddLearner, "join", m.op.In, "", "the newcomer begins without a vote"), nil
	case m.in != nil && m.in.Learner:
		return m.promote()
	}
	return m.replace()
}

func (m *motion) do(v Verb, step, host, member, why string) *Act {
	m.op.at(step, m.in0().Now)
	a := &Act{Verb: v, Step: step, Host: host, Member: member, Why: why}
	if v == AddLearner || v == StartMember {
		a.Peer = m.op.InPeer
	}
	return a
}

func (m *motion) wait(step, why string) *Act { return m.do(Wait, step, "", "", why) }

// server is what a host's agent tells of its etcd, nil when it does not answer.
func (m *motion) server(host string) *fitness.ServerFacts {
	h := m.hosts[host]
	if h == nil || !h.Reachable {
		return nil
	}
	return h.Facts.Server
}

// snapshot is step 2. It is taken on a voter that neither leads nor leaves,
// where there is one: a copy that exists only on the outgoing host does not
// count, and the leader has enough to do.
func (m *motion) snapshot() (*Act, []Refusal) {
	if held := m.startHeld(); len(held) > 0 {
		return nil, held
	}
	for _, v := range m.voters {
		if s := m.server(v); s != nil && v != m.op.Out {
			for _, ref := range s.Snapshots {
				if ref.Operation == m.op.ID {
					m.op.Snapshot = &SnapshotRef{Host: v, File: ref.File, Revision: ref.Revision, Size: ref.Size, Hash: ref.Hash}
					return m.wait("snapshot", "the snapshot on "+v+" is verified"), nil
				}
			}
		}
	}
	best := ""
	for _, v := range m.voters {
		if v != m.op.Out && m.server(v) != nil && (best == "" || best == m.leader) {
			best = v
		}
	}
	if best == "" {
		return nil, []Refusal{hold(SnapshotFailed, "", "no voter that stays can save a snapshot: none of their agents answers", "lifts when one answers")}
	}
	return m.do(SaveSnapshot, "snapshot", best, "", "a copy of the datastore comes before any change"), nil
}

// startHeld are the guards once more, before anything was changed.
func (m *motion) startHeld() []Refusal {
	return append(Guards(*m.in0()), guardView(*m.in0())...)
}

// promote is the rest of step 3 and step 4.
func (m *motion) promote() (*Act, []Refusal) {
	s := m.server(m.op.In)
	if s == nil {
		return m.wait("join", "the agent of "+m.op.In+" does not answer"), nil
	}
	if !s.Running {
		return m.do(StartMember, "join", m.op.In, m.op.InMember, "its etcd has to run to catch up"), nil
	}
	if held := m.well(m.op.InMember); len(held) > 0 {
		return nil, held
	}
	return m.do(Promote, "promote", m.op.In, m.op.InMember, "etcd refuses until it has caught up"), nil
}

// well asks whether all voters but the one answer, agree and have one leader:
// what every change needs, whatever etcd itself would accept.
func (m *motion) well(but string) []Refusal {
	in := *m.in0()
	var held []Refusal
	for _, r := range append(guardVoters(in), guardLeader(in)...) {
		if x := m.listedAs(but); x != nil && (r.Subject == x.Label() || r.Subject == x.ID) {
			continue
		}
		held = append(held, r)
	}
	return append(append(held, guardAlarms(in)...), guardOpinions(in)...)
}

// listedAs is the member with the ID, nil when it is not listed.
func (m *motion) listedAs(id string) *Member {
	members := m.in0().View.Members
	if i := slices.IndexFunc(members, func(x Member) bool { return x.ID == id }); i >= 0 {
		return &members[i]
	}
	return nil
}

// replace is steps 5 to 7: both vote.
func (m *motion) replace() (*Act, []Refusal) {
	now := m.in0().Now
	if m.in != nil {
		if held := m.newcomer(); len(held) > 0 {
			m.op.SoakedSince = time.Time{}
			m.op.at("soak", now)
			return nil, held
		}
	}
	// A voter that stays and is in trouble: nothing healthy is removed beside it.
	// The outgoing one being down does not stop its removal.
	if held := m.well(m.op.OutMember); len(held) > 0 {
		m.op.SoakedSince = time.Time{}
		m.op.at("soak", now)
		return nil, held
	}
	if m.op.SoakedSince.IsZero() {
		m.op.SoakedSince = now
	}
	if soaked := now.Sub(m.op.SoakedSince); soaked < m.in0().Policy.Soak.Std() {
		return m.wait("soak", fmt.Sprintf("all voters have been well for %s of %s", soaked.Round(time.Second), m.in0().Policy.Soak)), nil
	}
	if m.op.Out == "" {
		return m.finish(Completed, "the newcomer votes and is well")
	}
	if m.leader == m.op.Out {
		to := m.heir(m.op.Out)
		return m.do(MoveLeader, "step-down", to, m.member[to], "a leader that is removed costs an election"), nil
	}
	return m.remove()
}

// newcomer asks whether the new voter answers and is level: a frozen learner
// can be promoted.
func (m *motion) newcomer() []Refusal {
	if !m.in.Responding {
		r := hold(NewVoterNotResponding, m.op.In, "it votes and does not answer: "+m.in.Error, "lifts when it answers; the old voter stays")
		return []Refusal{r}
	}
	var top uint64
	for _, x := range m.in0().View.Voters() {
		top = max(top, x.AppliedIndex)
	}
	if lag := top - m.in.AppliedIndex; lag > maxLagVoting {
		return []Refusal{hold(VoterLagging, m.op.In, fmt.Sprintf("%d entries behind, limit %d", lag, maxLagVoting), "lifts when it is level; the old voter stays").
			with("raft_lag", int64(min(lag, 1<<62)), maxLagVoting, "1")}
	}
	return nil
}

// heir is the voter that leadership moves to: one that stays, the fittest first
// by name, the newcomer last, since it has proven itself the least.
func (m *motion) heir(not string) string {
	best := ""
	for _, v := range m.voters {
		if v != not && m.answers(v) && (best == "" || best == m.op.In) {
			best = v
		}
	}
	return best
}

func (m *motion) answers(host string) bool {
	return slices.ContainsFunc(responding(m.in0().View), func(x Member) bool { return x.Host == host })
}

// remove is step 7: the fence, then the request, then patience.
func (m *motion) remove() (*Act, []Refusal) {
	s := m.server(m.op.Out)
	if s == nil || !s.Fenced {
		if s == nil {
			return nil, []Refusal{hold(FenceNotProven, m.op.Out, "its agent does not answer, so nothing keeps its etcd from starting again",
				"lifts when its agent answers")}
		}
		return m.do(Fence, "remove", m.op.Out, m.op.OutMember, "it must not start again once it is removed"), nil
	}
	asked := m.request(m.op.Out)
	switch {
	case asked == nil:
		return m.do(RequestRemoval, "remove", m.op.Out, m.op.OutMember, "its vote goes to "+m.op.In), nil
	case asked.Refused != "":
		return nil, []Refusal{owner(RemovalRefused, m.op.Out, "the removal was refused: "+asked.Refused, "see `suffrage operations show "+m.op.ID+"`")}
	case m.in0().Now.Sub(asked.At) > actionTime:
		return m.do(WithdrawRemoval, "remove", m.op.Out, m.op.OutMember, "nobody has acted on it"), nil
	}
	return m.wait("remove", "the removal is asked for"), nil
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

// cleanUp is step 8, from which there is only forward: the member list no
// longer has the outgoing one.
func (m *motion) cleanUp() (*Act, []Refusal) {
	if act := m.settled(m.op.Out, "clean-up"); act != nil {
		return act, nil
	}
	if held := m.well(""); len(held) > 0 {
		m.op.at("record", m.in0().Now)
		return nil, held
	}
	return m.finish(Completed, "the voters are as planned, and well")
}

// settled brings a host that lost its member to rest: its etcd stopped and
// fenced, its datastore aside, no removal asked for. Nil when it is.
func (m *motion) settled(host, step string) *Act {
	s := m.server(host)
	switch {
	case s == nil:
		return m.wait(step, "the agent of "+host+" does not answer; it is cleaned up when it does")
	case s.Running || s.Datastore || !s.Fenced:
		return m.do(Retire, step, host, "", "it holds no vote any more; its datastore is kept aside")
	case m.request(host) != nil:
		return m.do(WithdrawRemoval, step, host, "", "it is done")
	}
	return nil
}

func (m *motion) finish(o Outcome, why string) (*Act, []Refusal) {
	act := m.do(Finish, "record", "", "", why)
	act.Outcome = o
	return act, nil
}
