package memtest

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// roundTime is the time between two rounds.
const roundTime = 5 * time.Second

// Sim is one run: a cluster, its controllers, and what goes wrong.
type Sim struct {
	*Cluster
	Controllers []*Controller
	Actor       *Actor
	rng         *rand.Rand
	chaos       bool // things go wrong
	nested      bool // time passes inside a round of a frozen controller
	points      int  // passed so far
	calls       int
	stalls      int // orders that were on their way when their giver stood still
	point       func(p *Controller, name string)
}

// newSim has three voters and three standbys, one voter bad, and two controllers.
func newSim(seed int64, voters, standbys int) *Sim {
	s := &Sim{Cluster: New(voters, standbys), rng: rand.New(rand.NewSource(seed))}
	s.Policy = membership.Policy{Mode: membership.Active, Target: voters, Maximum: voters + 1, Period: fitness.Duration(300 * time.Millisecond),
		StallTime: fitness.Duration(time.Minute), Soak: fitness.Duration(15 * time.Second), Limits: fitness.DefaultLimits()}
	s.Actor = newActor(s.Cluster)
	for _, name := range []string{"c1", "c2"} {
		p := newController(s.Cluster, name)
		p.operator.Point = func(name string) {
			s.points++
			if s.point != nil {
				s.point(p, name)
			}
		}
		s.Controllers = append(s.Controllers, p)
	}
	bad := s.Host(fmt.Sprintf("h%d", voters))
	bad.Bad, bad.BadSince = true, s.Now.Add(-time.Hour)
	for _, h := range s.Hosts {
		h.Rate = 60_000 // a newcomer takes a few rounds to catch up
	}
	return s
}

// pass lets one round of time pass for everybody.
func (s *Sim) pass() {
	s.Step(roundTime / 2)
	s.Actor.Step()
	s.Step(roundTime / 2)
	for _, p := range s.Controllers {
		p.Round(s.restart())
	}
}

func (s *Sim) restart() time.Duration {
	if s.chaos {
		return time.Duration(s.rng.Intn(40)) * time.Second
	}
	return roundTime
}

// newest is what the holder decided last.
func (s *Sim) newest() (membership.Decision, bool) {
	for _, p := range s.Controllers {
		if p.holds && p.id() == s.Lease.Holder && p.rounds > 0 && !s.Now.Before(p.Down) {
			return p.Last, true
		}
	}
	return membership.Decision{}, false
}

// unsettled says what is not yet as it should be at the end, or nothing.
func (s *Sim) unsettled() string {
	d, led := s.newest()
	switch {
	case s.check.foreign && !s.Quorum():
		return "" // somebody else removed those that served
	case !led:
		return "nobody leads"
	case d.Kind == membership.Refused && s.Request != nil && s.Lease.Open == nil && !slices.ContainsFunc(d.Refusals, func(r membership.Refusal) bool {
		return r.Code != membership.NoCandidate && r.Code != membership.Quarantine
	}):
		return "" // more voters are asked for, and there are no good ones
	}
	called := false
	for _, r := range d.Refusals {
		if r.Kind == membership.Owner {
			called = true
			if lacks := s.check.lasting(r); lacks != "" {
				return lacks
			}
		}
	}
	if s.Lease.Open != nil {
		return "operation " + s.Lease.Open.ID + " is open: " + d.String()
	}
	// What somebody else made of the members is the owner's; all else is ours,
	// whoever is called for whatever.
	if called && s.check.foreign {
		return ""
	}
	return s.unhealthy()
}

// stop is the owner who has been called because somebody else changed the
// members: the operation ends where it is.
func (s *Sim) stop() {
	d, led := s.newest()
	if led && len(d.Refusals) > 0 && d.Refusals[0].Code == membership.MembershipChanged &&
		(s.Policy.Stop == nil || s.Policy.Stop.Operation != d.Operation.ID) {
		s.Logf("owner: stop operation %s", d.Operation.ID)
		s.Policy.Stop = &membership.Stop{Operation: d.Operation.ID, By: "owner", At: s.soon()}
	}
}

// unhealthy says what is wrong with the cluster when no operation is open.
func (s *Sim) unhealthy() string {
	votes := map[string]bool{}
	for _, m := range s.Members {
		h := s.Host(m.Host)
		votes[m.Host] = true
		switch {
		case m.Learner:
			return m.ID + " is a learner"
		case !s.answers(m):
			return m.ID + " does not answer"
		case h.Fenced && s.leftBehind(h): // the owner stopped it there, and is told
		case h.Fenced || h.Role != "voter":
			return fmt.Sprintf("%s votes: %s", h.Name, h)
		}
	}
	if n := len(s.Members); n != s.Policy.Target {
		return fmt.Sprintf("%d voters, target %d", n, s.Policy.Target)
	}
	for _, r := range s.Removals {
		return "removal of " + r.Host + " is asked for"
	}
	for _, h := range s.Hosts {
		if !votes[h.Name] && !h.leftover && !h.rests() {
			return fmt.Sprintf("%s holds no vote: %s", h.Name, h)
		}
	}
	return ""
}

// leftBehind: an operation that the owner stopped had fenced the host, and the
// newest decision warns of it.
func (s *Sim) leftBehind(h *Host) bool {
	d, _ := s.newest()
	warned := slices.ContainsFunc(d.Warnings, func(w string) bool { return strings.HasPrefix(w, h.Name+" votes and is fenced") })
	for _, op := range s.History {
		if warned && op.Outcome == membership.Stopped && (op.In == h.Name || op.Out == h.Name) {
			return true
		}
	}
	return false
}

// outcomes counts how operations ended.
func (s *Sim) outcomes() map[string]int {
	out := map[string]int{}
	for _, op := range s.History {
		out[string(op.Outcome)]++
	}
	return out
}

func (s *Sim) pick(names ...string) string { return names[s.rng.Intn(len(names))] }

// anyHost is any, and often one of the two that the open operation is about.
func (s *Sim) anyHost() *Host {
	if op := s.Lease.Open; op != nil && s.one(2) {
		if h := s.Host(s.pick(op.In, op.Out)); h != nil {
			return h
		}
	}
	return s.Hosts[s.rng.Intn(len(s.Hosts))]
}

// one is true once in so many.
func (s *Sim) one(of int) bool { return s.rng.Intn(of) == 0 }

// votesOn reports whether a voter is on the host.
func (s *Sim) votesOn(h *Host) bool {
	return slices.ContainsFunc(s.Members, func(m *Member) bool { return m.Host == h.Name && !m.Learner })
}
