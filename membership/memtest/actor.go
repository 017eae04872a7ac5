package memtest

import (
	"maps"
	"slices"
	"time"

	"suffrage/membership"
)

// Actor carries out the removals that are asked for.
type Actor struct {
	c *Cluster
	// Absent: nobody acts. Slow is how long a request lies before it acts. Weak:
	// it checks what K3s checks and nothing else.
	Absent bool
	Slow   time.Duration
	Weak   bool
	fate   func(late bool) fate
	delay  func() time.Duration
	seen   map[string]time.Time
}

func newActor(c *Cluster) *Actor {
	return &Actor{c: c, seen: map[string]time.Time{}, fate: func(bool) fate { return fateDone }, delay: func() time.Duration { return 0 }}
}

// Step looks at every request once.
func (a *Actor) Step() {
	if a.Absent || a.c.writable() != nil {
		return
	}
	for _, host := range slices.Sorted(maps.Keys(a.c.Removals)) {
		r := a.c.Removals[host]
		if a.seen[host].IsZero() {
			a.seen[host] = a.c.Now
		}
		if r.Refused == "" && !r.Held && a.c.Now.Sub(a.seen[host]) >= a.Slow {
			a.act(*r)
		}
	}
	for host := range a.seen {
		if a.c.Removals[host] == nil {
			delete(a.seen, host)
		}
	}
}

func (a *Actor) act(r membership.Removal) {
	c := a.c
	m := c.Member(r.Member)
	switch {
	case c.Removed[r.Member]:
		return // it is done
	case m == nil || m.Host != r.Host || m.Peer != Peer(r.Host):
		c.Removals[r.Host].Refused = "no member has that name, address and ID"
		return
	case len(c.Voters()) == 1:
		c.Removals[r.Host].Refused = "it is the last voter"
		return
	case !a.Weak && !a.agrees(m, r):
		return
	}
	by := &Caller{Name: "actor", ViewAt: c.Now, Op: r.Operation, Weak: a.Weak}
	switch a.fate(true) {
	case fateFails:
	case fateLate:
		c.Logf("actor: removal of %s is sent", r.Host)
		c.late = append(c.late, lateCall{c.Now.Add(a.delay()), "actor: removal of " + r.Host, func() { _ = c.remove(r.Member, by) }})
	default:
		_ = c.remove(r.Member, by)
	}
}

// agrees is what a careful actor asks, as control.Removals has it.
func (a *Actor) agrees(m *Member, r membership.Removal) bool {
	c := a.c
	op := c.Lease.Open
	if c.Policy.Mode != membership.Active || op == nil || op.ID != r.Operation || op.TurnedBack != "" || c.Leader == m.ID {
		return false
	}
	for _, id := range op.MembersBefore {
		if c.Member(id) == nil {
			return false
		}
	}
	for _, x := range c.Members {
		if x.ID != op.InMember && !slices.Contains(op.MembersBefore, x.ID) {
			return false
		}
		if x != m && !c.answers(x) {
			return false
		}
	}
	return true
}
