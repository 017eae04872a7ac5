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

// forth is the way of the plan.
func (m *motion) forth() (*Act, []Refusal) {
	switch {
	case m.op.Snapshot == nil:
		return m.snapshot()
	case m.op.In != "" && m.in == nil && m.byItself():
		return m.join()
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

// snapshot is step 2. It is taken on a voter that neither leads nor leaves,
// where there is one: a copy that exists only on the outgoing host does not
// count, and the leader has enough to do. Where one could not, another is asked:
// a full disk is of one host.
func (m *motion) snapshot() (*Act, []Refusal) {
	if held := m.startHeld("snapshot"); len(held) > 0 {
		return nil, held
	}
	best := ""
	leads := func(host string) int {
		if host == m.leader {
			return 1
		}
		return 0
	}
	for _, v := range m.voters {
		s := m.server(v)
		if s == nil || v == m.op.Out {
			continue
		}
		for _, ref := range s.Snapshots {
			if ref.Operation == m.op.ID {
				m.op.Snapshot = &SnapshotRef{Host: v, File: ref.File, Revision: ref.Revision, Size: ref.Size, Hash: ref.Hash}
				return m.forth()
			}
		}
		if best == "" || cmp.Or(cmp.Compare(slices.Index(m.op.Unsaved, v), slices.Index(m.op.Unsaved, best)), leads(v)-leads(best)) < 0 {
			best = v
		}
	}
	if best == "" {
		return nil, []Refusal{hold(SnapshotFailed, "", "no voter that stays can save a snapshot: none of their agents tells of its server", "lifts when one does")}
	}
	return m.do(SaveSnapshot, "snapshot", best, "", "a copy of the datastore comes before any change"), nil
}

// byItself: whoever runs etcd joins and is promoted without being asked, as soon
// as it is started.
func (m *motion) byItself() bool { return m.in0().Policy.Flavour == K3s }

// started: the server of a newcomer that joins by itself was told to start, so it
// may be listed at any moment, until it is fenced and has ended.
func (m *motion) started() bool {
	return m.byItself() && m.op.In != "" && !m.op.Called.IsZero()
}

// join starts a server that adds itself, and waits until it is listed. Once it
// runs no guard can hold it back: reasonToTurn gives it up instead.
func (m *motion) join() (*Act, []Refusal) {
	s := m.server(m.op.In)
	switch {
	case s != nil && s.Role == "voter" && s.Running:
		return m.wait("join", "its server runs and is to add itself as a learner"), nil
	case s == nil && m.started():
		return m.wait("join", "the agent of "+m.op.In+" does not answer"), nil
	}
	if held := append(m.startHeld("join"), m.unready()...); len(held) > 0 {
		return nil, held
	}
	return m.do(StartMember, "join", m.op.In, "", "its server adds itself as a learner"), nil
}

// startHeld are the guards once more, before anything was changed, but for what
// the operation is to mend: that the number of voters is not the target is the
// very reason to grow or shrink, and a dead voter is away and may go whatever
// the number.
func (m *motion) startHeld(step string) []Refusal {
	m.op.at(step, m.in0().Now)
	held := m.holding(m.op.plan(), slices.Concat(Guards(*m.in0()), guardView(*m.in0())))
	var mends []Code
	switch {
	case m.op.Regrade != "":
	case m.op.Dead:
		mends = []Code{BelowTarget, BelowMinimum, ExtraVoter, EvenTarget, AtCeiling}
		if m.out != nil {
			held = aboutOthers(*m.out, held)
		}
	case m.op.Out == "":
		mends = []Code{BelowTarget, BelowMinimum}
	case m.op.In == "":
		mends = []Code{ExtraVoter}
	}
	return slices.DeleteFunc(held, func(r Refusal) bool { return slices.Contains(mends, r.Code) })
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
	if held := append(m.well(m.op.InMember), m.decisive()...); len(held) > 0 {
		return nil, held
	}
	if m.byItself() {
		return m.wait("promote", "it is promoted once it has caught up"), nil
	}
	return m.do(Promote, "promote", m.op.In, m.op.InMember, "etcd refuses until it has caught up"), nil
}

// decisive asks of a learner whose vote will be needed for the quorum, as beside
// one voter, what is asked of any that votes: etcd would promote one that is
// frozen (S042), and nothing could be undone without its answer.
func (m *motion) decisive() []Refusal {
	if n := len(responding(m.in0().View)); n >= Quorum(n+1) {
		return nil
	}
	if !m.in.Responding {
		return []Refusal{hold(NewVoterNotResponding, m.op.In, "its vote will be needed for every write, and it does not answer: "+m.in.Error, "lifts when it answers; it is no voter before that")}
	}
	return m.behind()
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
	if soaked, soak := m.since(m.op.SoakedSince), m.in0().Policy.Soak; soaked < soak.Std() && !m.op.Dead {
		return m.wait("soak", fmt.Sprintf("all voters have been well for %s of %s", soaked.Round(time.Second), soak)), nil
	}
	if m.op.Out == "" {
		return m.finish(Completed, "the newcomer votes and is well")
	}
	switch {
	case m.leader != m.op.Out || m.out == nil:
	case m.op.Dead:
		return nil, []Refusal{deadLeads(*m.out)}
	default:
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
		return []Refusal{hold(NewVoterNotResponding, m.op.In, "it votes and does not answer: "+m.in.Error, m.lifts("lifts when it answers"))}
	}
	if held := m.behind(); len(held) > 0 {
		return held
	}
	if v := m.judge(m.op.In); v.Status == fitness.Unfit {
		return []Refusal{hold(NewVoterUnfit, m.op.In, v.String(), "lifts when it is fit; after a whole window the operation turns back")}
	}
	return nil
}

// lifts is what lifts a refusal of the newcomer, and what holds meanwhile.
func (m *motion) lifts(when string) string {
	if m.op.Out == "" {
		return when
	}
	return when + "; the old voter stays"
}

// behind asks whether the newcomer is level.
func (m *motion) behind() []Refusal {
	var top uint64
	for _, x := range m.in0().View.Voters() {
		top = max(top, x.AppliedIndex)
	}
	lag := top - min(top, m.in.AppliedIndex)
	if lag <= maxLagVoting {
		return nil
	}
	return []Refusal{hold(VoterLagging, m.op.In, fmt.Sprintf("%d entries behind, limit %d", lag, maxLagVoting), m.lifts("lifts when it is level")).
		with("raft_lag", int64(min(lag, 1<<62)), maxLagVoting, "1")}
}

// judge is the verdict on a host beside the voters that stay: a pair that is
// slow with the outgoing one says nothing of another.
func (m *motion) judge(host string) fitness.Verdict {
	beside := m.beside(host)
	if m.op.Out == "" && host == m.op.In {
		beside = without(beside, m.witnessed())
	}
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
		places [4]int
	}
	var heirs []heir
	for i, v := range m.voters {
		if v != from && v != m.op.Out && slices.ContainsFunc(responding(m.in0().View), func(x Member) bool { return x.Host == v }) {
			late := 0
			if v == m.op.In {
				late = 1
			}
			bare := 0 // without an API server K3s's loop beside the leader may do nothing
			if m.grade(v) == fitness.EtcdOnly {
				bare = 1
			}
			heirs = append(heirs, heir{v, [4]int{bare, rank[m.judge(v).Status], late, i}})
		}
	}
	if len(heirs) == 0 {
		return nil, []Refusal{hold(LeaderNotMoved, from, "no other voter answers that leadership could move to", "lifts when one answers")}
	}
	to := slices.MinFunc(heirs, func(a, b heir) int { return slices.Compare(a.places[:], b.places[:]) }).host
	return m.do(MoveLeader, step, to, m.member[to], "a leader that goes away costs an election"), nil
}

// fenceOrdered is the record of an order to fence a dead host: where none was
// given, its silent agent need not be asked before turning back.
const fenceOrdered = "fence"

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
	case asked != nil && asked.Held:
		return m.announced(step), nil
	case asked != nil:
		return m.wait(step, "the removal is asked for"), nil
	case s == nil && !m.op.Dead: // of a dead one the owner's word is the proof
		return nil, m.unproven(m.op.Out, "nothing keeps its etcd from starting again")
	case s != nil && m.mayCome(m.op.Unfenced): // a fence that stands may be the one from before
		return m.wait(step, "the lifting of its fence was ordered and may still come"), nil
	case s != nil && !s.Fenced:
		if m.op.Dead {
			m.op.at(fenceOrdered, m.in0().Now)
		}
		return m.do(Fence, step, m.op.Out, m.op.OutMember, "it must not start again once it is removed"), nil
	case !m.op.Asked.IsZero() && m.settling():
		return nil, []Refusal{hold(RemovalRefused, m.op.Out, "its removal was asked for, the request is gone, and it is still a member", fmt.Sprintf("asked again after %s; after %s the operation turns back", callTime, actionTime))}
	}
	if m.op.Asked.IsZero() {
		m.op.Asked = m.in0().Now
	}
	if len(m.led()) > 0 {
		return m.do(AnnounceRemoval, step, m.op.Out, m.op.OutMember, "clients of it are led to other voters first"), nil
	}
	return m.do(RequestRemoval, step, m.op.Out, m.op.OutMember, m.unneeded()), nil
}

// unproven says that nobody knows of a host's fence.
func (m *motion) unproven(host, so string) []Refusal {
	r := hold(FenceNotProven, host, "its agent does not answer, so "+so, "lifts when its agent answers")
	if m.silentFor(host) > m.in0().Policy.Window() {
		r.Kind, r.Next = Owner, "bring "+host+" or its agent back; if it is gone for good: suffrage operations stop "+m.op.ID
		if m.member[host] != "" {
			r.Next += ", then: suffrage remove-dead " + host
		}
	}
	return []Refusal{r}
}

// cleanUp is step 8. A host that stays silent is not waited for longer than the
// stall time: it is fenced, and what lies on it refuses it as a candidate. A dead
// one is not waited for at all.
func (m *motion) cleanUp() (*Act, []Refusal) {
	const step = "clean-up"
	if act := m.settled(m.op.Out, step); act != nil {
		return act, nil
	}
	if m.server(m.op.Out) == nil && !m.op.Dead && m.since(m.op.began(step)) < m.in0().Policy.StallTime.Std() {
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
