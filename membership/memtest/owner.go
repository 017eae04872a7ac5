package memtest

import (
	"slices"

	"suffrage/fitness"
	"suffrage/membership"
)

// asks puts the owner's request; one for a number of voters gives way to another.
func (s *Sim) asks(q membership.Request) {
	if s.Request != nil && !q.Displaces(*s.Request) && (s.Request.Target == 0 || q.Target == 0) {
		return
	}
	q.By, q.At = "anna", s.soon()
	if q.Target != 0 {
		s.Policy.Target, s.Policy.Maximum = q.Target, max(s.Policy.Maximum, q.Target+1)
	}
	s.Request, s.check.owner = &q, append(s.check.owner, q)
	s.Logf("owner: %s", q)
}

// saysDead is the owner who takes a voter for dead, mostly one that is away. Where
// none is, one goes dark and stays so for the most part.
func (s *Sim) saysDead() {
	voters := s.Voters()
	for _, m := range voters {
		h := s.Host(m.Host)
		switch {
		case s.k3s != nil && h.Up: // one that comes back would join again: its owner sees to it that it is off
		case !s.answers(m) && !s.one(4) || s.k3s == nil && s.one(20):
			s.asks(membership.Request{Dead: m.Host, Member: m.ID})
			h.buried = s.k3s != nil
			return
		}
	}
	h := s.Host(voters[s.rng.Intn(len(voters))].Host)
	h.dark = true
	s.broke(h, "its board is burnt")
	s.powerOff(h)
}

// keptOff: in the k3s flavour a host that its owner takes for dead is not switched on
// while that is decided, nor while it is done.
func (s *Sim) keptOff(h *Host) bool {
	q, op := s.Request, s.Lease.Open
	return h.buried && (q != nil && q.Dead == h.Name || op != nil && op.Dead && op.Out == h.Name)
}

// reinstalls is what the owner does with such a host before it is switched on again,
// once its member is removed: as it was it would join by itself.
func (s *Sim) reinstalls(h *Host) {
	if h.buried && s.Removed[h.Data] {
		s.Logf("owner: %s is reinstalled", h.Name)
		h.Aside, h.Data, h.joining = append(h.Aside, h.Data), "", ""
		h.Role, h.Fenced, h.starts, h.stepped, h.leftover = "standby", true, 0, false, false
	}
	h.buried = false
}

// tidies is the owner once nothing goes wrong any more: what a stopped operation
// left is put right by hand, and as many voters are asked for as there can be.
func (s *Sim) tidies() {
	for _, h := range s.Hosts {
		if h.buried && !s.keptOff(h) {
			s.mend(h, 1)
		}
	}
	if s.Lease.Open != nil || s.Request != nil && s.Request.Target == 0 || len(s.late) > 0 {
		return
	}
	for _, m := range s.Voters() { // below three the number comes first, as the refusal says
		if h := s.Host(m.Host); h.settings == fitness.EtcdOnly && len(s.Voters()) >= 3 && s.one(4) {
			s.asks(membership.Request{Regrade: h.Name, To: fitness.Full})
			return
		}
	}
	if s.Request != nil {
		return
	}
	by := &Caller{Name: "owner", Foreign: true, ViewAt: s.soon()}
	for _, m := range slices.Clone(s.Members) {
		if m.Learner {
			_ = s.remove(m.ID, by)
		} else if h := s.Host(m.Host); h.Fenced || h.Role != "voter" {
			h.Fenced, h.Role, h.stopped = false, "voter", false
		}
	}
	for host, r := range s.Removals {
		s.Logf("owner: withdraws the removal of %s by %s", host, r.Operation)
		delete(s.Removals, host)
	}
	n := len(s.Voters())
	if s.Actor.Absent = s.Actor.Absent && n%2 == 1; n == 0 {
		return
	}
	switch {
	case n == s.Policy.Target && n >= 3 && n%2 == 1:
	case n%2 == 1 && n >= 3:
		s.Policy.Target = n
	case s.Policy.Target != max(3, n-1) || s.one(20):
		for _, h := range s.Hosts { // nobody is kept who has to go, nor kept out, nor broken from the start
			h.Broken, h.Stuck, h.FullDisk, h.Rate = false, false, false, max(h.Rate, 60_000)
			if h.leftover && !slices.ContainsFunc(s.Members, func(m *Member) bool { return m.Host == h.Name }) {
				if h.Data != "" {
					h.Aside = append(h.Aside, h.Data)
				}
				h.Data, h.Role, h.Running, h.Fenced, h.starts, h.leftover = "", "standby", false, true, 0, false
			}
			h.Mark.Pinned, h.Mark.Cleared = nil, &membership.Say{Value: true, By: "owner", At: s.soon()}
			h.Mark.Eligible = h.Mark.Cleared
		}
		s.asks(membership.Request{Target: max(3, n-1)})
	}
}

// asked: a swap may be anybody's; that there are more or fewer voters, or that one
// is dead, is the owner's word alone.
func (k *checker) asked(op membership.Operation) bool {
	switch {
	case op.Regrade != "" && op.By == membership.ByController:
		return k.restedBefore(op)
	case !op.Dead && op.Out != "" && op.In != "":
		return true
	}
	return slices.ContainsFunc(k.owner, func(q membership.Request) bool {
		switch {
		case q.By != op.By:
			return false
		case op.Regrade != "":
			return q.Regrade == op.Regrade && q.To == op.To
		case op.Dead:
			return q.Dead == op.Out && q.Member == op.OutMember && op.In == ""
		case op.Out == "":
			return q.Target > len(op.MembersBefore)
		}
		return q.Target != 0 && q.Target < len(op.MembersBefore)
	})
}

// target is the number of voters that the owner had asked for last when a view
// was taken.
func (k *checker) target(by *Caller) int {
	for _, q := range slices.Backward(k.owner) {
		if q.Target != 0 && !q.At.After(by.ViewAt) {
			return q.Target
		}
	}
	return 0
}
