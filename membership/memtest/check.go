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
	c       *Cluster
	voters  int  // there are between operations
	foreign bool // somebody else changed the members: their number is not ours
	ops     map[string]membership.Operation
	// When somebody else last did, and when each operation's first view was taken.
	foreignAt time.Time
	opened    map[string]time.Time
	alarmAt   time.Time
	cutAt     time.Time
	changed   time.Time // the change of members before the newest
	modeAt    time.Time
	adds      map[string]string    // operation → the member that it added
	votes     map[string]time.Time // member → since when it votes
	taken     map[string]time.Time // operation → when somebody else changed what was not its own
	stranger  string               // the operation and the member, while somebody else added one and changed nothing else
	owner     []membership.Request // all that the owner asked for, the newest last
	lost      bool                 // there were fewer voters than wanted from the start
	giver     *Caller              // of the newest order
}

func (k *checker) begin() {
	k.voters = len(k.c.Voters())
	k.ops, k.adds, k.taken = map[string]membership.Operation{}, map[string]string{}, map[string]time.Time{}
	k.opened, k.votes = map[string]time.Time{}, map[string]time.Time{}
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
	k.below()
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

// sent: whoever sends anything holds the Lease at that moment, acts in its Term,
// and is not in dry-run.
func (k *checker) sent(what string, p *Controller) {
	if l := k.c.Lease; l.Holder != p.id() || l.Term != p.term {
		k.fail("%s by %s of term %d; %s holds the Lease, term %d", what, p.id(), p.term, l.Holder, l.Term)
	}
	k.acts(what, &Caller{Name: p.id(), ViewAt: p.viewAt})
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
	k.foreign, k.foreignAt = true, k.c.Now
	if op := k.c.Lease.Open; op != nil && id != op.OutMember && id != k.adds[op.ID] {
		if k.stranger = op.ID + " " + id; !k.taken[op.ID].IsZero() {
			k.stranger = "" // there is more than one
		}
		k.taken[op.ID] = k.c.Now
	}
}

func (k *checker) journaled(op membership.Operation, viewAt time.Time) {
	if k.opened[op.ID].IsZero() {
		k.opened[op.ID] = viewAt
	}
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
	if op.Regrade != "" {
		k.graded(op)
		return
	}
	if op.Outcome == membership.Stopped { // where it is: nothing is left armed
		if r := k.c.Removals[op.Out]; r != nil && r.Operation == op.ID {
			k.fail("operation %s is stopped and the removal of %s is still asked for", op.ID, op.Out)
		}
		k.voters = len(k.c.Voters())
		for _, h := range k.c.Hosts { // the owner sees to it
			votes := slices.ContainsFunc(k.c.Members, func(m *Member) bool { return m.Host == h.Name && !m.Learner })
			if votes && h.Fenced && (h.Name == op.Out || h.Name == op.In) && h.Reachable() && !h.mendedAt.After(by.ViewAt) && !by.Blind[h.Name] {
				k.fail("operation %s is stopped and %s votes behind its fence", op.ID, h.Name)
			}
			h.leftover, h.stopped = h.leftover || !votes && !h.rests(), h.stopped || votes && h.Fenced
		}
		return
	}
	done, gone := k.c.Removed[op.OutMember], k.c.Member(op.InMember) == nil
	switch {
	case k.foreign:
	case op.Outcome == membership.Completed && (op.Out != "" && !done || op.In != "" && (gone || k.c.Member(op.InMember).Learner)),
		op.Outcome == membership.Undone && (done || !gone):
		k.fail("operation %s ends %s: %s is removed %t, %s is listed %t", op.ID, op.Outcome, op.OutMember, done, op.InMember, !gone)
	}
	name, vote := op.Out, op.In
	switch {
	case op.Outcome == membership.Undone:
		name, vote = op.In, op.Out
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

// decided: what calls the owner is so, and nothing is planned to repair a cluster.
func (k *checker) decided(p *Controller, in membership.Inputs, d membership.Decision) {
	for _, m := range k.c.Voters() {
		if d.Plan != nil && !k.c.answers(m) && !(d.Plan.Dead && m.ID == d.Plan.OutMember) {
			k.fail("%s is planned while %s does not answer", d.Plan, m.ID)
		}
	}
	for _, r := range d.Refusals {
		if r.Kind != membership.Owner {
			continue
		}
		if lacks := k.cause(r, p); lacks != "" {
			k.fail("%s", lacks)
		}
	}
	if d.Plan != nil && in.Open != nil {
		k.fail("a plan beside the open operation %s", in.Open.ID)
	}
}

func (k *checker) ordered(h *Host, o control.Order, by *Caller) {
	k.acts(string(o.Verb), by)
	k.giver = by
	if o.Term < h.Seen {
		return // refused
	}
	op := k.ops[o.Operation]
	if o.Verb == membership.StartMember {
		h.told = by
	}
	if o.Verb == membership.Retire {
		for _, m := range k.c.Members {
			if m.Host == h.Name && !m.Learner && k.c.Now.Sub(by.ViewAt) < time.Second {
				k.fail("%s is retired while %s votes", h.Name, m.ID)
			}
		}
	}
	if h.Name != op.In && h.Name != op.Out && h.Name != op.Regrade && o.Verb != membership.SaveSnapshot {
		k.fail("%s on %s, which is not in operation %s", o.Verb, h.Name, op.ID)
	}
}

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
	if k.c.Member(h.Data) == nil && !k.c.Removed[h.Data] && !(k.c.k3s != nil && h.Data == "") {
		k.fail("%s was started as %q, which is of no cluster: it makes one of its own", h.Name, h.Data)
	}
}

func (k *checker) setAside(h *Host) {
	if m := k.c.Member(h.Data); m != nil && !m.Learner {
		k.c.Logf("datastore of the voter %s set aside", m.ID)
	}
}
