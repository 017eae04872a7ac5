package membership

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"suffrage/fitness"
)

// maxLagVoting is how many entries a new voter may be behind the leader before
// the old one may go. etcd promotes at 90 % of the leader's log, which on an old
// cluster is a million entries (etcd.md 3).
const maxLagVoting = 1000

// actionTime is how long a removal may be asked for without an effect before
// the operation turns back.
const actionTime = 2 * time.Minute

// startTime is how long the process of a newcomer may take to come up: etcd
// opens its ports late, after 5 s + 2·E and the sync (etcd.md 27), but the
// host tells at once whether the process runs.
const startTime = 30 * time.Second

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
	act, held := (*Act)(nil), m.foreign()
	switch {
	case held == nil:
		act, held = m.next()
	case m.requested() != nil && m.out != nil: // nothing is left armed for whoever takes over
		act, held = m.do(WithdrawRemoval, "remove", m.op.Out, m.op.OutMember, held[0].String()), nil
	}
	if len(held) > 0 {
		m.op.note(held[0].String())
	}
	return *m.op, act, held
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
		if !m.op.Called.IsZero() {
			m.op.Called = now
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

// find looks up the two members, and learns the newcomer's ID from the list.
func (m *motion) find() {
	for _, x := range m.in0().View.Members {
		if m.op.InMember == "" && m.joins(x) {
			m.op.InMember = x.ID
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

// forth is the way of the plan.
func (m *motion) forth() (*Act, []Refusal) {
	switch {
	case m.op.Snapshot == nil:
		return m.snapshot()
	case m.op.In != "" && m.in == nil:
		if held := append(m.startHeld("join"), m.unready()...); len(held) > 0 {
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
	switch v {
	case AddLearner, StartMember:
		a.Peer = m.op.InPeer
		m.op.Called = m.in0().Now
	case Fence, Unfence, RequestRemoval, WithdrawRemoval:
		m.op.Called = m.in0().Now
	}
	return a
}

func (m *motion) wait(step, why string) *Act { return m.do(Wait, step, "", "", why) }

// settling reports whether something that was called for may still come.
func (m *motion) settling() bool { return !m.op.Called.IsZero() && m.since(m.op.Called) < callTime }

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

// snapshot is step 2. It is taken on a voter that neither leads nor leaves,
// where there is one: a copy that exists only on the outgoing host does not
// count, and the leader has enough to do.
func (m *motion) snapshot() (*Act, []Refusal) {
	if held := m.startHeld("snapshot"); len(held) > 0 {
		return nil, held
	}
	best := ""
	for _, v := range m.voters {
		s := m.server(v)
		if s == nil || v == m.op.Out {
			continue
		}
		for _, ref := range s.Snapshots {
			if ref.Operation == m.op.ID {
				m.op.Snapshot = &SnapshotRef{Host: v, File: ref.File, Revision: ref.Revision, Size: ref.Size, Hash: ref.Hash}
				return m.wait("snapshot", "the snapshot on "+v+" is verified"), nil
			}
		}
		if best == "" || best == m.leader {
			best = v
		}
	}
	if best == "" {
		return nil, []Refusal{hold(SnapshotFailed, "", "no voter that stays can save a snapshot: none of their agents tells of its server", "lifts when one does")}
	}
	return m.do(SaveSnapshot, "snapshot", best, "", "a copy of the datastore comes before any change"), nil
}

// startHeld are the guards once more, before anything was changed. That the
// number of voters is not the target is the very reason to grow or shrink.
func (m *motion) startHeld(step string) []Refusal {
	m.op.at(step, m.in0().Now)
	held := append(Guards(*m.in0()), guardView(*m.in0())...)
	return slices.DeleteFunc(held, func(r Refusal) bool {
		return r.Code == BelowTarget && m.op.Out == "" || r.Code == ExtraVoter && m.op.In == ""
	})
}

// unready says what keeps the candidate from starting an etcd of its own.
func (m *motion) unready() []Refusal {
	switch s := m.server(m.op.In); {
	case s == nil:
		return []Refusal{hold(NoCandidate, m.op.In, "its agent does not answer, or tells of no server", "lifts when it does; after the stall time the operation ends")}
	case s.Datastore:
		return []Refusal{owner(DatastorePresent, m.op.In, aDatastore, "move it aside on "+m.op.In)}
	}
	return nil
}

// aDatastore is why a host with a datastore is given no vote.
const aDatastore = "a datastore lies where its etcd would look for one, and it would be taken for that member"

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

// replace is steps 5 to 7: both vote.
func (m *motion) replace() (*Act, []Refusal) {
	now := m.in0().Now
	// A voter that stays and is in trouble: nothing healthy is removed beside it.
	// The outgoing one being down does not stop its removal.
	if held := append(m.newcomer(), m.well(m.op.OutMember)...); len(held) > 0 {
		m.op.at("soak", now)
		m.op.SoakedSince, m.op.Asked = time.Time{}, time.Time{}
		if m.requested() != nil {
			return m.do(WithdrawRemoval, "soak", m.op.Out, m.op.OutMember, "it stays while another voter is in trouble: "+held[0].String()), nil
		}
		// A restart behind its fence would make it the second voter that is lost.
		if s := m.server(m.op.Out); s != nil && s.Fenced && !m.settling() {
			return m.do(Unfence, "soak", m.op.Out, m.op.OutMember, "it stays, and has to be able to start: "+held[0].String()), nil
		}
		return nil, held
	}
	if m.op.SoakedSince.IsZero() {
		m.op.SoakedSince = now
	}
	if soaked, soak := m.since(m.op.SoakedSince), m.in0().Policy.Soak; soaked < soak.Std() {
		return m.wait("soak", fmt.Sprintf("all voters have been well for %s of %s", soaked.Round(time.Second), soak)), nil
	}
	if m.op.Out == "" {
		return m.finish(Completed, "the newcomer votes and is well")
	}
	if m.leader == m.op.Out {
		return m.hand("step-down", m.op.Out)
	}
	return m.remove()
}

// newcomer asks whether the new voter answers and is level (a frozen learner
// can be promoted) and whether its own disk carries the vote.
func (m *motion) newcomer() []Refusal {
	if m.in == nil {
		return nil
	}
	if !m.in.Responding {
		return []Refusal{hold(NewVoterNotResponding, m.op.In, "it votes and does not answer: "+m.in.Error, "lifts when it answers; the old voter stays")}
	}
	var top uint64
	for _, x := range m.in0().View.Voters() {
		top = max(top, x.AppliedIndex)
	}
	if lag := top - m.in.AppliedIndex; lag > maxLagVoting {
		return []Refusal{hold(VoterLagging, m.op.In, fmt.Sprintf("%d entries behind, limit %d", lag, maxLagVoting), "lifts when it is level; the old voter stays").
			with("raft_lag", int64(min(lag, 1<<62)), maxLagVoting, "1")}
	}
	if v := m.judge(m.op.In); v.Status == fitness.Unfit {
		return []Refusal{hold(NewVoterUnfit, m.op.In, v.String(), "lifts when it is fit; after a whole window the operation turns back")}
	}
	return nil
}

// judge is the verdict on a host beside the voters that stay: a pair that is
// slow with the outgoing one says nothing of another.
func (m *motion) judge(host string) fitness.Verdict {
	beside := m.beside(host)
	if host != m.op.Out {
		beside = without(beside, []string{m.op.Out})
	}
	return fitness.Judge(host, m.evidence(host, beside))
}

// hand moves leadership from a host to the fittest voter that stays, the
// newcomer last, since it has proven itself the least.
func (m *motion) hand(step, from string) (*Act, []Refusal) {
	rank := map[fitness.Status]int{fitness.Fit: 0, fitness.Marginal: 1, fitness.StatusUnknown: 2, fitness.Unfit: 3}
	type heir struct {
		host   string
		places [3]int
	}
	var heirs []heir
	for i, v := range m.voters {
		if v != from && v != m.op.Out && slices.ContainsFunc(responding(m.in0().View), func(x Member) bool { return x.Host == v }) {
			late := 0
			if v == m.op.In {
				late = 1
			}
			heirs = append(heirs, heir{v, [3]int{rank[m.judge(v).Status], late, i}})
		}
	}
	if len(heirs) == 0 {
		return nil, []Refusal{hold(LeaderNotMoved, from, "no other voter answers that leadership could move to", "lifts when one answers")}
	}
	to := slices.MinFunc(heirs, func(a, b heir) int { return slices.Compare(a.places[:], b.places[:]) }).host
	return m.do(MoveLeader, step, to, m.member[to], "a leader that is removed costs an election"), nil
}

// remove is step 7: the fence, then the request, then patience.
func (m *motion) remove() (*Act, []Refusal) {
	const step = "remove"
	m.op.at(step, m.in0().Now)
	s, asked := m.server(m.op.Out), m.requested()
	if asked != nil && m.op.Asked.IsZero() {
		m.op.Asked = m.in0().Now // its withdrawal was intended and did not happen
	}
	switch {
	case asked != nil && s != nil && !s.Fenced:
		m.op.Asked = time.Time{}
		return m.do(WithdrawRemoval, step, m.op.Out, m.op.OutMember, "its fence is gone"), nil
	case asked != nil && asked.Refused != "":
		return m.turn("the removal of " + m.op.Out + " was refused: " + asked.Refused)
	case !m.op.Asked.IsZero() && m.since(m.op.Asked) > actionTime:
		return m.turn(fmt.Sprintf("the removal of %s was asked for and nobody did it within %s", m.op.Out, actionTime))
	case asked != nil:
		return m.wait(step, "the removal is asked for"), nil
	case s == nil:
		return nil, m.unproven("nothing keeps its etcd from starting again")
	case !s.Fenced && m.settling():
		return m.wait(step, "what was ordered before may still come and lift the fence"), nil
	case !s.Fenced:
		return m.do(Fence, step, m.op.Out, m.op.OutMember, "it must not start again once it is removed"), nil
	case !m.op.Asked.IsZero() && m.settling():
		return nil, []Refusal{hold(RemovalRefused, m.op.Out, "its removal was asked for, the request is gone, and it is still a member", fmt.Sprintf("asked again after %s; after %s the operation turns back", callTime, actionTime))}
	}
	if m.op.Asked.IsZero() {
		m.op.Asked = m.in0().Now
	}
	return m.do(RequestRemoval, step, m.op.Out, m.op.OutMember, "its vote is no longer needed"), nil
}

// unproven says that nobody knows of the outgoing host's fence.
func (m *motion) unproven(so string) []Refusal {
	r := hold(FenceNotProven, m.op.Out, "its agent does not answer, so "+so, "lifts when its agent answers")
	if m.silentFor(m.op.Out) > m.in0().Policy.Window() {
		r.Kind, r.Next = Owner, "bring "+m.op.Out+" or its agent back; if it is gone for good: suffrage operations stop "+m.op.ID+", then: suffrage remove-dead "+m.op.Out
	}
	return []Refusal{r}
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

// cleanUp is step 8. A host that stays silent is not waited for longer than the
// stall time: it is fenced, and what lies on it refuses it as a candidate.
func (m *motion) cleanUp() (*Act, []Refusal) {
	const step = "clean-up"
	if act := m.settled(m.op.Out, step); act != nil {
		return act, nil
	}
	if m.server(m.op.Out) == nil && m.since(m.op.began(step)) < m.in0().Policy.StallTime.Std() {
		return m.wait(step, "the agent of "+m.op.Out+" does not answer; it is cleaned up when it does"), nil
	}
	if held := m.well(""); len(held) > 0 {
		m.op.at("record", m.in0().Now)
		return nil, held
	}
	return m.finish(Completed, "the voters are as planned, and well")
}

// settled brings a host that lost its member to rest: its etcd stopped and
// fenced, its datastore aside, no removal asked for. Nil when it is, as far as
// its agent answers.
func (m *motion) settled(host, step string) *Act {
	s := m.server(host)
	if s != nil && (s.Running || s.Datastore || !s.Fenced || s.Role == "voter") {
		return m.do(Retire, step, host, "", "it holds no vote any more; its datastore is kept aside")
	}
	if r := m.request(host); r != nil && r.Operation == m.op.ID {
		return m.do(WithdrawRemoval, step, host, "", "it is done")
	}
	return nil
}

func (m *motion) finish(o Outcome, why string) (*Act, []Refusal) {
	act := m.do(Finish, "record", "", "", cmp.Or(why, string(o)))
	act.Outcome = o
	return act, nil
}
