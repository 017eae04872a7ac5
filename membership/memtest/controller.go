package memtest

import (
	"context"
	"fmt"
	"maps"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/control"
)

type fate int

const (
	fateDone       fate = iota
	fateFails           // it never arrives
	fateUnanswered      // it is done, and the answer is lost
	fateLate            // there is no answer, and it is done later
)

// Controller is one controller process at a time on one machine: it watches the
// Lease, takes it when it has not changed for long enough, and acts.
type Controller struct {
	c        *Cluster
	Name     string
	instance int
	called   string    // Name and instance
	Down     time.Time // until then there is no process
	Frozen   time.Time // until then it stands still
	Cut      bool      // it does not reach etcd
	cannot   map[string]bool
	Offset   time.Duration // of its wall clock

	holds    bool
	term     uint64
	renewed  time.Time
	deadline time.Time
	seenRev  int
	seenAt   time.Time
	viewAt   time.Time
	inside   bool // it is in the middle of a round
	previous *membership.Previous
	states   map[string]state
	fate     func(late bool) fate
	delay    func() time.Duration
	stall    func() // the process may stand still with an order on its way
	operator control.Operator
	Last     membership.Decision
	rounds   int
	// What is read anew each round; nothing of it outlives the round.
	read    []fitness.Reading
	members []membership.Member
	hosts   []membership.Host
}

// state is since when a member or an agent has been what it is.
type state struct {
	up    bool
	since time.Time
}

func newController(c *Cluster, name string) *Controller {
	p := &Controller{c: c, Name: name, cannot: map[string]bool{}, states: map[string]state{}, seenRev: -1,
		fate: func(bool) fate { return fateDone }, delay: func() time.Duration { return 0 }, stall: func() {}}
	p.operator = control.Operator{Journal: p, Members: p, Hosts: p, Removals: p, History: p, By: membership.ByController, Peer: Peer}
	return p
}

// id is the holder's name: a restarted process is another holder.
func (p *Controller) id() string {
	if p.called == "" {
		p.called = fmt.Sprintf("%s.%d", p.Name, p.instance)
	}
	return p.called
}

func (p *Controller) caller() *Caller {
	by := &Caller{Name: p.id(), ViewAt: p.viewAt, Blind: maps.Clone(p.cannot)}
	if o := p.Last.Operation; o != nil {
		by.Op = o.ID
	}
	return by
}

// crash is what a Point panics with to end the process there.
type crash struct{}

// end ends the process; another begins after a while and inherits nothing.
func (p *Controller) end(after time.Duration, why string) {
	p.c.Logf("%s ends: %s", p.id(), why)
	p.instance, p.called = p.instance+1, ""
	p.Down, p.holds, p.term, p.previous, p.seenRev = p.c.Now.Add(after), false, 0, nil, -1
	p.operator.Failed = nil
	clear(p.states)
}

// Round is one round of its loop.
func (p *Controller) Round(restart time.Duration) {
	now := p.c.Now
	if p.inside || now.Before(p.Down) || now.Before(p.Frozen) {
		return
	}
	p.inside = true
	defer func() {
		p.inside = false
		if r := recover(); r != nil {
			if _, ok := r.(crash); !ok {
				panic(r)
			}
			p.end(restart, "crash")
		}
	}()
	if !p.lease() {
		if p.holds {
			p.end(restart, "the Lease is lost")
		}
		return
	}
	if p.Cut || !p.c.Serves() {
		return // it holds still for a while, and cannot read what is
	}
	in := p.inputs()
	in.Failed = p.operator.Failed
	d := membership.Decide(in)
	p.rounds++
	seen := d.Remember()
	if p.previous == nil || seen.Key != p.previous.Key {
		p.c.Logf("%s: %s", p.id(), seen.Key)
	}
	p.Last, p.previous, p.viewAt = d, seen, now
	p.c.check.decided(p, in, d)
	if in.Request != nil && in.Request.Over(d) {
		p.clear(*p.c.Request)
	}
	if err := p.operator.Act(context.Background(), in, d); err != nil {
		p.c.Logf("%s: %v", p.id(), err)
	}
}

// lease renews or takes it, and reports whether it is held.
func (p *Controller) lease() bool {
	c := p.c
	if p.Cut || c.writable() != nil {
		return p.holds && c.Now.Sub(p.renewed) <= holdTime
	}
	l := &c.Lease
	switch {
	case p.holds && l.Holder == p.id() && l.Term == p.term && c.Now.Sub(p.renewed) <= LeaseTime:
		l.Rev++
		p.renewed = c.Now
	case p.holds:
		return false
	case l.Rev != p.seenRev:
		p.seenRev, p.seenAt = l.Rev, c.Now
	case c.Now.Sub(p.seenAt) >= LeaseTime:
		l.Holder, l.Term, l.Rev = p.id(), l.Term+1, l.Rev+1
		p.holds, p.term, p.renewed = true, l.Term, c.Now
		c.Logf("%s takes the Lease, term %d", p.id(), l.Term)
	}
	return p.holds
}
