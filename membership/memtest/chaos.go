package memtest

import (
	"fmt"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// style is what a run is about: most of the things that can go wrong stay away
// in most runs, or no operation would ever come far.
type style struct {
	crash, freeze, calls, hosts, agents, cuts, owner, target, dead, quality, elections, alarms, power, clocks int // once in so many, 0 for never
	foreign                                                                                                   bool
	pressed                                                                                                   int
}

func (s *Sim) style() style {
	often := func(n int) int {
		if s.one(2) {
			return 0
		}
		return n
	}
	y := style{crash: often(12), freeze: often(40), calls: often(6), hosts: often(60), agents: often(40), cuts: often(60),
		owner: often(30), target: often(60), dead: often(60), quality: often(60), elections: often(25), alarms: often(250), power: often(40), clocks: often(20), foreign: s.one(12)}
	if s.k3s != nil {
		y.pressed = often(20)
	}
	return y
}

// Chaos makes a simulation in which things go wrong for the given number of
// rounds.
func (s *Sim) chaosFor(rounds int) {
	y := s.style()
	s.prepare()
	s.chaos = true
	s.point = func(p *Controller, name string) { s.atPoint(y, p, name) }
	fates := func(late bool) fate {
		if !s.chaos || y.calls == 0 || !s.one(y.calls) {
			return fateDone
		}
		f := []fate{fateFails, fateUnanswered, fateLate}[s.rng.Intn(3)]
		if f == fateLate && !late {
			return fateUnanswered
		}
		return f
	}
	delay := func() time.Duration { return time.Duration(1+s.rng.Intn(20)) * time.Second }
	for _, p := range s.Controllers {
		p.fate, p.delay = fates, delay
	}
	s.Actor.fate, s.Actor.delay = fates, delay
	for range rounds {
		s.disturb(y)
		s.pass()
	}
	s.calm()
}

// prepare draws what kind of fleet it is.
func (s *Sim) prepare() {
	for _, h := range s.Hosts {
		h.Rate = []uint64{5_000, 60_000, 500_000}[s.rng.Intn(3)]
		h.Late = time.Duration(s.rng.Intn(15)) * time.Second
		if !s.votesOn(h) {
			h.Broken, h.Stuck = s.one(15), s.one(15)
		}
		h.FullDisk = s.one(25)
	}
	s.Leader = s.Members[s.rng.Intn(len(s.Members))].ID
	s.Actor.Weak = s.one(4)
	s.Actor.Slow = time.Duration(s.rng.Intn(40)) * time.Second
	s.Actor.Absent = s.one(15)
}

// atPoint ends or freezes the controller.
func (s *Sim) atPoint(y style, p *Controller, name string) {
	switch {
	case !s.chaos:
	case y.crash > 0 && s.one(y.crash):
		s.Logf("%s crashes at %s", p.id(), name)
		panic(crash{})
	case y.freeze > 0 && !s.nested && s.one(y.freeze):
		s.nested = true
		rounds := 1 + s.rng.Intn(16)
		s.Logf("%s is frozen for %d rounds at %s", p.id(), rounds, name)
		for range rounds {
			s.disturb(y)
			s.pass()
		}
		s.Logf("%s goes on", p.id())
		s.nested = false
	}
}

func (s *Sim) broke(h *Host, what string) {
	h.brokeAt = s.soon()
	s.Logf("%s: %s", h.Name, what)
}

// disturb lets things go wrong and be mended.
func (s *Sim) disturb(y style) {
	happens := func(n int) bool { return n > 0 && s.one(n) }
	for _, h := range s.Hosts {
		s.mend(h, 12)
	}
	if happens(y.hosts) {
		h := s.anyHost()
		switch s.rng.Intn(5) {
		case 4:
			s.broke(h, "its etcd lags")
			h.Stuck = true
		case 0:
			s.broke(h, "the power goes")
			s.powerOff(h)
		case 1:
			s.broke(h, "gone from the network")
			h.Gone = true
		case 2:
			s.broke(h, "its etcd is frozen")
			h.Frozen = h.Running
		case 3:
			s.broke(h, "its etcd is killed")
			h.Running = false
		}
	}
	if happens(y.agents) {
		h := s.anyHost()
		s.broke(h, "its agent dies")
		h.Agent = false
	}
	if happens(y.power) {
		if h, n := s.anyHost(), 1+s.rng.Intn(5); s.k3s != nil && s.one(2) {
			h.agentLoss = n
		} else {
			h.powerLoss = n
		}
	}
	if happens(y.pressed) {
		s.presses()
	}
	if happens(y.cuts) {
		s.cutOff()
	}
	if happens(y.owner) {
		s.ownerSays()
	}
	if happens(y.target) {
		s.asks(membership.Request{Target: []int{3, 3, 5, 5, 4}[s.rng.Intn(5)]})
	}
	if happens(y.dead) {
		s.saysDead()
	}
	if happens(y.quality) {
		h := s.anyHost()
		h.Bad, h.BadSince = !h.Bad, s.Now
		s.Logf("%s: bad is %t", h.Name, h.Bad)
	}
	if m := s.Members[s.rng.Intn(len(s.Members))]; happens(y.elections) && s.Leader != "" && !m.Learner && s.alive(m) {
		s.Term++
		s.lead(m.ID)
	}
	switch {
	case s.Alarm != "" && s.one(10):
		s.Alarm = ""
		s.Logf("alarm disarmed")
	case s.Alarm == "" && happens(y.alarms):
		s.Alarm, s.check.alarmAt = "NOSPACE", s.soon()
		s.Logf("alarm")
	}
	if s.one(30) {
		s.Actor.Absent = s.one(3)
	}
	if happens(y.clocks) {
		p := s.Controllers[s.rng.Intn(len(s.Controllers))]
		if !p.holds { // within one term a controller counts time by itself
			p.Offset = time.Duration(s.rng.Intn(1200)-600) * time.Second
		}
	}
	if y.foreign && s.one(60) {
		s.somebodyElse()
	}
}

// mend undoes what went wrong with a host, once in so many.
func (s *Sim) mend(h *Host, in int) {
	was := *h
	if h.dark && in > 1 { // its agent, its network and its etcd are of no use
		in *= 20
	}
	if !h.Up && s.one(in) && !s.keptOff(h) {
		s.reinstalls(h)
		h.Up, h.Agent, h.dark = true, true, false
	}
	if h.Gone && s.one(in) {
		h.Gone = false
	}
	if h.Frozen && s.one(in) {
		h.Frozen = false
	}
	if h.Stuck && s.one(in) && s.votesOn(h) {
		h.Stuck = false
	}
	if !h.Agent && s.one(in/2+1) {
		h.Agent = true
	}
	if h.Up != was.Up || h.Gone != was.Gone || h.Frozen != was.Frozen || h.Agent != was.Agent {
		h.mendedAt = s.soon()
		s.Logf("%s: mended", h.Name)
	}
	if h.bad != "" && s.one(4*in) {
		h.bad = ""
	}
}

// presses makes a voter short of memory, or gives it room again, and now and then
// lets K3s fail with a grade, or the owner ask for one.
func (s *Sim) presses() {
	h := s.Host(s.Members[s.rng.Intn(len(s.Members))].Host)
	if op := s.Lease.Open; op != nil && op.Regrade != "" && s.one(2) {
		h = s.Host(op.Regrade)
		s.broke(h, "its K3s ends, and does not start with its grade any more")
		h.Running, h.bad = false, op.To
		return
	}
	switch s.rng.Intn(8) {
	case 0:
		h.bad = []fitness.Grade{"", fitness.EtcdOnly, fitness.EtcdOnly}[s.rng.Intn(3)]
		s.Logf("%s: does not start as %q", h.Name, h.bad)
	case 1, 2:
		s.asks(membership.Request{Regrade: h.Name, To: []fitness.Grade{fitness.Full, fitness.EtcdOnly}[s.rng.Intn(2)]})
	default:
		h.Pressed, h.PressedAt = []int{1, 1, 2, 0}[s.rng.Intn(4)], s.Now
		if s.one(2) { // it has been so for long, and nobody looked
			h.PressedAt = s.Now.Add(-time.Hour)
		}
		s.Logf("%s: short of memory %d", h.Name, h.Pressed)
	}
}

func (s *Sim) cutOff() {
	p := s.Controllers[s.rng.Intn(len(s.Controllers))]
	switch s.rng.Intn(4) {
	case 0:
		p.Cut = !p.Cut
		s.Logf("%s: cut off is %t", p.Name, p.Cut)
	case 1:
		h := s.anyHost()
		p.cannot[h.Name] = true
		s.Logf("%s does not reach %s", p.Name, h.Name)
	case 2:
		clear(p.cannot)
	case 3:
		clear(s.cut)
		if s.one(2) {
			s.cut[s.anyHost().Name+s.anyHost().Name], s.check.cutAt = true, s.soon()
		}
	}
}

func (s *Sim) ownerSays() {
	say := func(v bool) *membership.Say { return &membership.Say{Value: v, By: "owner", At: s.soon()} }
	h := s.anyHost()
	switch s.rng.Intn(7) {
	case 6:
		if op := s.Lease.Open; op != nil && s.one(3) {
			s.Policy.Stop = &membership.Stop{Operation: op.ID, By: "owner", At: s.soon()}
			s.Logf("owner: stop %s", op.ID)
		}
	case 0:
		h.Mark.Pinned = say(!h.Mark.IsPinned())
		s.Logf("owner: %s pinned %t", h.Name, h.Mark.IsPinned())
	case 1:
		h.Mark.Eligible = say(!h.Mark.IsEligible())
		s.Logf("owner: %s eligible %t", h.Name, h.Mark.IsEligible())
	case 2, 3:
		s.Policy.Paused = say(s.Policy.Paused == nil || !s.Policy.Paused.Value)
		s.Logf("owner: paused %t", s.Policy.Paused.Value)
	case 4:
		s.mode(map[string]string{membership.Active: membership.DryRun, membership.DryRun: membership.Active}[s.Policy.Mode])
	case 5:
		h.Mark.Cleared = say(true)
	}
}

func (s *Sim) mode(m string) {
	if s.Policy.Mode != m {
		s.Policy.Mode, s.check.modeAt = m, s.soon()
		s.Logf("owner: mode %s", m)
	}
}

// somebodyElse changes the membership by hand.
func (s *Sim) somebodyElse() {
	by := &Caller{Name: "somebody", Foreign: true, ViewAt: s.soon()}
	m := s.Members[s.rng.Intn(len(s.Members))]
	switch s.rng.Intn(3) {
	case 0:
		_ = s.remove(m.ID, by)
	case 1:
		_ = s.add(fmt.Sprintf("https://%s:2380", s.anyHost().Name), by)
	case 2:
		if m.Learner {
			_ = s.promote(m.ID, by)
		}
	}
}

// calm ends all that goes wrong: everything is mended, and what was broken from
// the start stays so.
func (s *Sim) calm() {
	s.Logf("calm")
	s.chaos, s.Alarm, s.Policy.Paused, s.Request = false, "", nil, nil
	s.mode(membership.Active)
	clear(s.cut)
	for _, p := range s.Controllers {
		p.Cut = false
		clear(p.cannot)
	}
	s.Actor.Absent = s.Actor.Absent && s.one(2)
	for _, h := range s.Hosts {
		h.powerLoss, h.agentLoss, h.Pressed, h.bad = 0, 0, 0, ""
		s.mend(h, 1)
		if h.leftover && !s.votesOn(h) {
			s.Logf("%s has been left as it was", h.Name)
		}
	}
}
