package membership

import (
	"fmt"
	"slices"
	"strings"
)

// bury is the removal of a dead voter, by the owner's word, and everything
// against it. How the voters do is no matter: they are to be fewer by one that
// serves nothing. That the others answer, agree and lead is, since the removal
// needs their quorum, and all of them are needed afterwards. The cooldown is not
// waited for: until it is over one more may fail.
func (a *assessment) bury(q Request, said []Refusal) (*Plan, []Refusal) {
	var x Member
	on := ""
	for _, m := range a.in.View.Members {
		if m.ID == q.Member {
			x = m
		}
		if m.Host == q.Dead {
			on = m.ID
		}
	}
	held := slices.Concat(aboutOthers(x, said), a.old(q), a.paused(""))
	reject := func(c Code, detail, next string) (*Plan, []Refusal) {
		return nil, append(held, rejected(c, q.Dead, detail, next))
	}
	switch {
	case x.ID == "" && on == "":
		return reject(NotAVoter, "no member of it is listed", "suffrage status shows who votes")
	case x.ID == "":
		return reject(MembershipChanged, fmt.Sprintf("its member is %s, and %s is the one that you confirmed", on, q.Member), "look at it again: "+q.again())
	case x.Host != q.Dead:
		return reject(MembershipChanged, fmt.Sprintf("member %s is the one of %s", x.ID, x.Label()), "suffrage status shows whose member is which")
	case x.Learner:
		return reject(LearnerPresent, "it is a learner and holds no vote", "etcdctl member remove "+x.ID)
	case x.Responding:
		return reject(NotDead, "its etcd member answers", fmt.Sprintf("take its vote by a swap: suffrage swap %s IN", q.Dead))
	}
	if h := a.hosts[q.Dead]; h != nil && h.Mark.IsPinned() {
		held = append(held, rejected(Pinned, q.Dead, "pinned by "+h.Mark.Pinned.By, "suffrage host unpin "+q.Dead))
	}
	n, good := len(a.in.View.Voters()), responding(a.in.View)
	if len(good) < Quorum(n) {
		return reject(BelowMinimum, fmt.Sprintf("%d of %d voters answer and %d have to agree on a removal", len(good), n, Quorum(n)),
			fmt.Sprintf("bring %s back, or restore from a snapshot: suffrage snapshot list", q.Dead))
	}
	if a.in.View.Leader() == x.ID {
		held = append(held, deadLeads(x))
	}
	var stay []string
	for _, m := range good {
		stay = append(stay, m.Label())
	}
	slices.Sort(stay)
	why := q.because(fmt.Sprintf("says that %s is gone for good", q.Dead))
	if !x.Since.IsZero() {
		why += fmt.Sprintf("; its member %s has not answered since %s", x.ID, stamp(x.Since))
	}
	why += fmt.Sprintf("; %s answer, and %d of these %d are a quorum without it", strings.Join(stay, ", "), Quorum(n-1), n-1)
	return &Plan{Out: q.Dead, Dead: true, OutMember: x.ID, Why: why, Figures: data(nil), Steps: steps(q.Dead, "", true), Ranked: []string{}}, held
}

// deadLeads: for up to two election timeouts the voters go on naming it.
func deadLeads(x Member) Refusal {
	return hold(NoLeader, "", fmt.Sprintf("the voters name %s as their leader, which does not answer", x.Label()), "lifts when an election has ended")
}

// aboutOthers leaves out what is said of a dead voter for being dead, and of a
// learner for being one. One that never started has a cure of its own.
func aboutOthers(dead Member, said []Refusal) []Refusal {
	return slices.DeleteFunc(slices.Clone(said), func(r Refusal) bool {
		return dead.ID != "" && r.Subject == dead.Label() && (r.Code == VoterNotResponding || r.Code == VoterDown || dead.Learner && r.Code == LearnerPresent)
	})
}
