package memtest

import (
	"fmt"
	"slices"
	"time"

	"suffrage/membership"
	"suffrage/membership/control"
)

// Violation is a broken invariant.
type Violation string

func (v Violation) Error() string { return string(v) }

// checker holds the model to the invariants of the design, at every change. A
// caller is excused for what broke after it took the view that it decided on,
// and for nothing else.
type checker struct {
	c        *Cluster
	voters   int  // there are between operations
	foreign  bool // somebody else changed the members: their number is not ours
	ops      map[string]membership.Operation
	alarmAt  time.Time
	modeAt   time.Time
	adds     map[string]string    // operation → the member that it added
	taken    map[string]time.Time // operation → when somebody else changed what was not its own
	stranger string               // the operation and the member, while somebody else added one and changed nothing else
	owner    []membership.Request // all that the owner asked for, the newest last
}

func (k *checker) begin() {
	k.voters = len(k.c.Voters())
	k.ops, k.adds, k.taken = map[string]membership.Operation{}, map[string]string{}, map[string]time.Time{}
}

func (k *checker) fail(format string, args ...any) { panic(Violation(fmt.Sprintf(format, args...))) }

// always holds at every moment.
func (k *checker) always() {
	c := k.c
	n, learners := 0, 0
	for _, m := range c.Members {
		if c.Removed[m.ID] {
			k.fail("removed member %s is listed again", m.ID)
		}
		if m.Learner {
			learners++
		} else {
			n++
		}
	}
	if learners > 1 {
		k.fail("%d learners", learners)
	}
	if !k.foreign && (n < k.voters || n > k.voters+1 || n+learners > c.Policy.Maximum) {
		k.fail("%d voters and %d learners; there were %d, the maximum is %d", n, learners, k.voters, c.Policy.Maximum)
	}
	for _, m := range c.Members {
		if h := c.Host(m.Host); !c.answers(m) {
			h.answersAt = time.Time{}
		} else if h.answersAt.IsZero() {
			h.answersAt = c.Now
		}
	}
	for _, h := range c.Hosts {
		have := len(h.Aside)
		if h.Data != "" {
			have++
		}
		if have != h.stores {
			k.fail("%d datastores on %s of %d that were made", have, h.Name, h.stores)
		}
		if h.Fenced && h.starts > 0 {
			k.fail("%s was started %d times since its fence", h.Name, h.starts)
		}
	}
}

// well: it is, or it was when the caller looked.
func (k *checker) well(m *Member, by *Caller) bool {
	h := k.c.Host(m.Host)
	return k.c.answers(m) || h.brokeAt.After(by.ViewAt)
}

func (k *checker) acts(what string, by *Caller) {
	if k.c.Policy.Mode != membership.Active && !k.modeAt.After(by.ViewAt) {
		k.fail("%s in dry-run", what)
	}
}

// mine: nobody else has changed the members, as far as the caller could see.
func (k *checker) mine(what string, by *Caller) {
	k.acts(what, by)
	if at, taken := k.taken[by.Op]; taken && by.ViewAt.After(at) {
		k.fail("%s by operation %s after somebody else changed the members", what, by.Op)
	}
}

// foreigner notes somebody else's change of members that were not the open
// operation's own.
func (k *checker) foreigner(id string) {
	k.foreign = true
	if op := k.c.Lease.Open; op != nil && id != op.OutMember && id != k.adds[op.ID] {
		if k.stranger = op.ID + " " + id; !k.taken[op.ID].IsZero() {
			k.stranger = "" // there is more than one
		}
		k.taken[op.ID] = k.c.Now
	}
}

func (k *checker) journaled(op membership.Operation) {
	if open := k.c.Lease.Open; open != nil && open.ID != op.ID {
		k.fail("operation %s begins while %s is open", op.ID, open.ID)
	}
	if _, ended := k.c.History[op.ID]; ended && k.c.Lease.Open == nil {
		k.fail("operation %s is opened again", op.ID)
	}
	if _, known := k.ops[op.ID]; !known && !k.asked(op) {
		k.fail("operation %s begins, %s, and the owner did not ask for it", op.ID, op.Title())
	}
	if len(op.Steps) > 10 {
		k.fail("operation %s has %d steps: its record grows", op.ID, len(op.Steps))
	}
	k.ops[op.ID] = op
}

// recorded: the host that holds no vote any more is at rest, or it did not answer.
func (k *checker) recorded(op membership.Operation, by *Caller) {
	if was, ok := k.c.History[op.ID]; ok {
		if was.Outcome != op.Outcome {
			k.fail("operation %s ended %s and then %s", op.ID, was.Outcome, op.Outcome)
		}
		return
	}
	name, vote := op.Out, op.In
	switch {
	case op.Outcome == membership.Undone:
		name, vote = op.In, op.Out
	case op.Outcome == membership.Stopped:
		k.voters = len(k.c.Voters())
		for _, h := range k.c.Hosts { // the owner sees to it
			votes := slices.ContainsFunc(k.c.Members, func(m *Member) bool { return m.Host == h.Name })
			h.leftover, h.stopped = h.leftover || !votes && !h.rests(), h.stopped || votes && h.Fenced
		}
		return
	case op.Out == "":
		k.voters++
	}
	if h := k.c.Host(name); h != nil && !h.rests() {
		if h.Reachable() && !h.mendedAt.After(by.ViewAt) && !by.Blind[name] {
			k.fail("operation %s ends %s and %s is not at rest: %s", op.ID, op.Outcome, name, h)
		}
		h.leftover = true
	}
	if h := k.c.Host(vote); h != nil && !k.foreign && !h.stopped && (h.Fenced || h.Role != "voter") {
		k.fail("operation %s ends %s and %s votes: %s", op.ID, op.Outcome, vote, h)
	}
}

func (k *checker) decided(in membership.Inputs, d membership.Decision) {
	if d.Plan != nil && in.Open != nil {
		k.fail("a plan beside the open operation %s", in.Open.ID)
	}
}

func (k *checker) ordered(h *Host, o control.Order, by *Caller) {
	k.acts(string(o.Verb), by)
	if o.Term < h.Seen {
		return // refused
	}
	op := k.ops[o.Operation]
	if o.Verb == membership.Retire {
		for _, m := range k.c.Members {
			if m.Host == h.Name && !m.Learner && k.c.Now.Sub(by.ViewAt) < time.Second {
				k.fail("%s is retired while %s votes", h.Name, m.ID)
			}
		}
	}
	if h.Name != op.In && h.Name != op.Out && o.Verb != membership.SaveSnapshot {
		k.fail("%s on %s, which is not in operation %s", o.Verb, h.Name, op.ID)
	}
}

// added: every voter was well and its agent answered, no alarm, a snapshot.
func (k *checker) added(id string, by *Caller) {
	c, m := k.c, k.c.Member(id)
	if by.Foreign {
		// One at the newcomer's address is taken for the newcomer.
		if op := c.Lease.Open; op == nil || m.Peer != op.InPeer || k.adds[op.ID] != "" {
			k.foreigner(id)
		} else {
			k.foreign, k.adds[op.ID] = true, id
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
	if before := k.adds[by.Op]; before != "" && !k.foreign {
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
	if good < membership.Quorum(len(voters)) {
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

// rejoins: the unit of a removed member was started.
func (k *checker) rejoins(h *Host) {
	if !h.leftover {
		k.fail("%s was started again on the data of removed member %s", h.Name, h.Data)
	}
}

func (k *checker) started(h *Host) {
	if h.Fenced {
		k.fail("%s was started behind its fence", h.Name)
	}
}

func (k *checker) setAside(h *Host) {
	if m := k.c.Member(h.Data); m != nil && !m.Learner {
		k.c.Logf("datastore of the voter %s set aside", m.ID)
	}
}
