package memtest

import (
	"slices"

	"suffrage/membership"
)

// added: every voter was well and its agent answered, no alarm, a snapshot.
func (k *checker) added(id string, by *Caller) {
	c, m := k.c, k.c.Member(id)
	if by.Foreign {
		// One at the newcomer's address is taken for the newcomer, also in the place of
		// one that is gone where servers join again by themselves.
		if op := c.Lease.Open; op == nil || m.Peer != op.InPeer || k.adds[op.ID] != "" && !(c.k3s != nil && c.Removed[k.adds[op.ID]]) {
			k.foreigner(id)
		} else {
			k.foreign, k.foreignAt, k.adds[op.ID] = true, c.Now, id
		}
		return
	}
	k.mine("add", by)
	for _, v := range c.Voters() {
		if h := c.Host(v.Host); !k.well(v, by) || !h.Reachable() && !h.brokeAt.After(by.ViewAt) {
			k.fail("%s is added while %s is not well", id, v.ID)
		}
	}
	if c.Alarm != "" && !k.alarmAt.After(by.ViewAt) {
		k.fail("%s is added under an alarm", id)
	}
	if at := k.changed; !at.IsZero() && !at.After(by.ViewAt) && !(by.Weak && at.Equal(by.ViewAt)) && by.ViewAt.Sub(at) < settleTime {
		k.fail("%s is added while not every voter has applied the change before", id)
	}
	for _, x := range c.Voters() {
		for _, y := range c.Voters() {
			if c.cut[x.Host+y.Host] && x != y && !k.cutAt.After(by.ViewAt) {
				k.fail("%s is added while %s and %s do not see each other", id, x.Host, y.Host)
			}
		}
	}
	if !k.saved(by.Op) {
		k.fail("%s is added before a snapshot for operation %s", id, by.Op)
	}
	if h := c.Host(m.Host); !h.Mark.IsEligible() && !h.Mark.Eligible.At.After(by.ViewAt) {
		k.fail("%s is added and not eligible", h.Name)
	}
	if k.ops[by.Op].Out == "" && k.voters >= k.target(by) && !k.foreign {
		k.fail("%s is added to %d voters, and %d are asked for", id, k.voters, k.target(by))
	}
	// One that somebody else removed before anybody saw it was never there.
	if before := k.adds[by.Op]; before != "" && !k.foreign && !(by.Weak && k.c.Removed[before]) {
		k.fail("operation %s adds %s after %s", by.Op, id, before)
	}
	k.adds[by.Op] = id
}

func (k *checker) saved(op string) bool {
	return slices.ContainsFunc(k.c.Hosts, func(h *Host) bool {
		for _, s := range h.Snapshots {
			if s.Operation == op {
				return true
			}
		}
		return false
	})
}

// promoted: the newcomer counted as down, quorum holds; where it cannot, beside
// one voter, the newcomer is up and level.
func (k *checker) promoted(id string, by *Caller) {
	k.votes[id] = k.c.Now
	if by.Foreign {
		k.foreigner(id)
		return
	}
	k.mine("promote", by)
	if k.adds[by.Op] != id {
		k.fail("%s is promoted by operation %s, which added %q", id, by.Op, k.adds[by.Op])
	}
	good, voters := 0, k.c.Voters()
	if m := k.c.Member(id); len(voters) == 2 && k.level(m, by) {
		good++
	}
	for _, v := range voters {
		if v.ID != id && k.well(v, by) {
			good++
		}
	}
	if good < membership.Quorum(len(voters)) && !(by.Weak && len(voters) == 2) { // K3s promotes beside one voter what has caught up
		k.fail("%s is promoted with %d of %d well", id, good, len(voters))
	}
	if h := k.c.Host(k.c.Member(id).Host); !h.Mark.IsEligible() && !h.Mark.Eligible.At.After(by.ViewAt) {
		k.fail("%s is promoted and not eligible", id)
	}
}

// level: it answers and is as far as the leader, or did and was when the caller
// looked.
func (k *checker) level(m *Member, by *Caller) bool {
	return k.well(m, by) && (k.c.Index-m.Index <= 1000 || k.c.Host(m.Host).brokeAt.After(by.ViewAt))
}

func (k *checker) requested(r membership.Removal, by *Caller) {
	k.acts("request", by)
	c, op := k.c, k.ops[r.Operation]
	m, newcomer := c.Member(r.Member), c.Member(op.InMember)
	if r.Member != op.OutMember || m == nil {
		return // too late: the removal controller refuses it
	}
	h := c.Host(r.Host)
	silent := !h.Reachable() || h.mendedAt.After(by.ViewAt) || by.Blind[h.Name]
	if !h.Fenced && !(op.Dead && silent) {
		k.fail("removal of %s is asked for and it is not fenced", r.Host)
	} else if h.Mark.IsPinned() && !h.Mark.Pinned.At.After(by.ViewAt) {
		k.fail("removal of %s is asked for and it is pinned", r.Host)
	}
	switch n := len(c.Voters()); {
	case op.In != "":
	case op.Dead && !h.answersAt.IsZero() && h.answersAt.Before(by.ViewAt) && !by.Blind[h.Name]:
		k.fail("removal of %s is asked for as a dead one and it answers", r.Host)
	case !op.Dead && !k.foreign && (n <= 3 || n <= k.target(by)):
		k.fail("removal of %s is asked for with %d voters, and %d are wanted", r.Host, n, k.target(by))
	}
	if op.In != "" && (newcomer == nil || newcomer.Learner) {
		if !k.foreign {
			k.fail("removal of %s is asked for and %s does not vote", r.Host, op.In)
		}
		return
	}
	if op.In != "" && !k.level(newcomer, by) {
		k.fail("removal of %s is asked for and %s is not level", r.Host, op.In)
	}
	if op.In != "" {
		if voted := c.Now.Sub(k.votes[newcomer.ID]); voted < c.Policy.Soak.Std() {
			k.fail("removal of %s is asked for and %s has voted for %s only", r.Host, op.In, voted)
		}
	}
	for _, v := range c.Voters() {
		if v != m && !k.well(v, by) {
			k.fail("removal of %s is asked for and %s is not well", r.Host, v.ID)
		}
	}
	if c.Leader == m.ID && !c.elected.After(by.ViewAt) {
		k.fail("removal of %s is asked for and it leads", r.Host)
	}
}

// removing: only the two of the operation, never the leader, never below what
// holds a quorum. A dead one whose agent is silent has no fence but the owner's
// word.
func (k *checker) removing(m *Member, by *Caller) {
	c, h := k.c, k.c.Host(m.Host)
	if by.Foreign {
		op, before := k.c.Lease.Open, k.stranger
		k.foreigner(m.ID)
		if op != nil && before == op.ID+" "+m.ID { // it came and went, and the members are the operation's again
			delete(k.taken, op.ID)
		}
		h.leftover = true
		return
	}
	if by.Name == loop { // K3s gives up a learner by itself, whoever added it
		h.leftover = !h.Fenced
		if op := c.Lease.Open; op != nil && k.stranger == op.ID+" "+m.ID {
			delete(k.taken, op.ID)
		}
		return
	}
	if !by.Weak {
		k.mine("remove", by)
	}
	op := k.ops[by.Op]
	switch m.ID {
	case op.OutMember:
		if by.Name != "actor" {
			k.fail("%s is removed by a call and not by request", m.ID)
		}
		if !h.Fenced && !op.Dead {
			k.fail("%s is removed and its host is not fenced", m.ID)
		}
		if n := c.Member(op.InMember); op.In != "" && (n == nil || n.Learner) && !k.foreign {
			k.fail("%s is removed and %s does not vote", m.ID, op.In)
		}
		if op.In == "" {
			k.voters--
			h.leftover = !h.Fenced
		}
	case k.adds[by.Op]:
		if !h.Fenced && len(c.Voters()) != 2 && h.Reachable() && !h.mendedAt.After(by.ViewAt) && !by.Blind[h.Name] {
			k.fail("%s is removed and its host answers and is not fenced", m.ID)
		}
		h.leftover = !h.Fenced
	default:
		k.fail("%s is removed by operation %s, whose it is not", m.ID, by.Op)
	}
	if c.Leader == m.ID && !c.elected.After(by.ViewAt) && !by.Weak {
		k.fail("%s is removed while it leads", m.ID)
	}
	if m.Learner {
		return
	}
	good, stay := 0, 0
	for _, v := range c.Voters() {
		if v != m {
			stay++
			if k.well(v, by) {
				good++
			} else if !by.Weak {
				k.fail("%s is removed while %s is not well", m.ID, v.ID)
			}
		}
	}
	if good < membership.Quorum(stay) && !by.Weak {
		k.fail("%s is removed with %d of %d well", m.ID, good, stay)
	}
}

func (k *checker) removed(m *Member, by *Caller) { k.always() }
