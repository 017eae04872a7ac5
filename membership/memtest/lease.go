package memtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"suffrage/membership"
	"suffrage/membership/control"
)

// LeaseTime is how long the record must not change before somebody else takes
// it; holdTime, by the holder's own clock, how long a holder acts after its
// newest renewal.
const (
	LeaseTime = 20 * time.Second
	holdTime  = 12 * time.Second
)

// Lease is the shared record, kept in the model's etcd. Writes are conditional
// on holder and Term.
type Lease struct {
	Holder string
	Term   uint64
	Rev    int
	Open   *membership.Operation
}

var (
	errLost    = errors.New("lease: lost")
	errNoWrite = errors.New("etcdserver: mvcc: database space exceeded")
)

// writable reports whether an ordinary write is done: an alarm forbids it.
func (c *Cluster) writable() error {
	switch {
	case !c.Serves():
		return ErrNoQuorum
	case c.Alarm != "":
		return errNoWrite
	}
	return nil
}

// held is the condition of every write.
func (c *Cluster) held(holder string, term uint64) error {
	if err := c.writable(); err != nil {
		return err
	}
	if c.Lease.Holder != holder || c.Lease.Term != term {
		return fmt.Errorf("%w to %s, term %d", errLost, c.Lease.Holder, c.Lease.Term)
	}
	return nil
}

// Caller is who calls: its name, and when it took the view that it decided on.
type Caller struct {
	Name    string
	ViewAt  time.Time
	Op      string          // the operation
	Weak    bool            // it checks no more than K3s does
	Foreign bool            // it is not ours
	Blind   map[string]bool // hosts that it does not reach
}

// The ports of control.Operator. Each call can fail, be done without an answer,
// or be done late; the Controller's fate says which.

func (p *Controller) Term() uint64 { return p.term }

func (p *Controller) Save(_ context.Context, op *membership.Operation) error {
	return p.call("journal", false, func() error {
		if err := p.c.held(p.id(), p.term); err != nil {
			return err
		}
		p.c.Lease.Rev++
		if op == nil {
			p.c.Lease.Open = nil
			return nil
		}
		p.c.check.journaled(*op, p.viewAt)
		own := *op
		own.Steps = append([]membership.StepRecord(nil), op.Steps...)
		p.c.Lease.Open = &own
		return nil
	})
}

func (p *Controller) Check(context.Context) error {
	if err := p.c.held(p.id(), p.term); err != nil {
		return err
	}
	if p.c.Now.Sub(p.renewed) > holdTime {
		return errLost
	}
	p.deadline = p.renewed.Add(holdTime) // of the context that ends with the Lease
	return nil
}

// call carries out one call as fate wills. Nothing is sent after the context has
// ended, nor before anybody checked.
func (p *Controller) call(name string, late bool, do func() error) error {
	if name != "journal" && p.c.Now.After(p.deadline) {
		return context.DeadlineExceeded
	}
	if name != "journal" && name != "record" {
		p.c.check.sent(name, p)
	}
	fate := p.fate(late)
	switch fate {
	case fateFails:
		p.c.Logf("%s: %s fails", p.id(), name)
		return errors.New(name + ": connection refused")
	case fateLate:
		p.c.Logf("%s: %s is sent", p.id(), name)
		p.c.late = append(p.c.late, lateCall{p.c.Now.Add(p.delay()), p.id() + " " + name, func() {
			if err := do(); err != nil {
				p.c.Logf("  and is refused: %v", err)
			}
		}})
		return control.ErrUnknown
	}
	err := do()
	if err != nil {
		p.c.Logf("%s: %s: %v", p.id(), name, err)
	}
	if fate == fateUnanswered {
		p.c.Logf("%s: %s has no answer", p.id(), name)
		return control.ErrUnknown
	}
	return err
}

func (p *Controller) AddLearner(_ context.Context, peer string) error {
	by := p.caller()
	return p.call("add "+peer, true, func() error { return p.c.add(peer, by) })
}

func (p *Controller) Promote(_ context.Context, id string) error {
	by := p.caller()
	return p.call("promote "+id, true, func() error { return p.c.promote(id, by) })
}

func (p *Controller) MoveLeader(_ context.Context, to string) error {
	return p.call("move leader to "+to, false, func() error { return p.c.moveLeader(to) })
}

func (p *Controller) Remove(_ context.Context, id string) error {
	by := p.caller()
	return p.call("remove "+id, true, func() error { return p.c.remove(id, by) })
}

func (p *Controller) Order(_ context.Context, host string, o control.Order) error {
	h, by := p.c.Host(host), p.caller()
	if o.Term != p.term {
		p.c.check.fail("%s on %s carries term %d, its giver's is %d", o.Verb, host, o.Term, p.term)
	}
	if p.cannot[host] {
		return fmt.Errorf("agent on %s: no route", host)
	}
	return p.call(string(o.Verb)+" on "+host, true, func() error {
		p.stall()
		p.c.check.ordered(h, o, by)
		return p.c.order(h, o)
	})
}

func (p *Controller) Request(_ context.Context, term uint64, r membership.Removal) error {
	by := p.caller()
	return p.call("request removal of "+r.Host, true, func() error {
		if err := p.c.held(p.id(), term); err != nil {
			return err
		}
		p.c.check.requested(r, by)
		if r.Held {
			p.c.Logf("removal of %s announced", r.Host)
		} else {
			p.c.Logf("removal of %s requested", r.Host)
		}
		if p.c.Removals[r.Host] == nil {
			p.c.asked[r.Host] = p.c.Now
		}
		p.c.Removals[r.Host] = &r
		return nil
	})
}

func (p *Controller) Withdraw(_ context.Context, host, operation string) error {
	return p.call("withdraw removal of "+host, true, func() error {
		if err := p.c.writable(); err != nil {
			return err
		}
		if r := p.c.Removals[host]; r != nil && r.Operation == operation {
			p.c.Logf("removal of %s withdrawn", host)
			delete(p.c.Removals, host)
		}
		return nil
	})
}

// clear takes away the owner's request, as control's loop does before it acts.
func (p *Controller) clear(q membership.Request) {
	if p.Check(context.Background()) != nil {
		return
	}
	p.operator.Point("before clear")
	_ = p.call("clear the request", true, func() error {
		if err := p.c.held(p.id(), p.term); err != nil {
			return err
		}
		if p.c.Request != nil && p.c.Request.Same(q) {
			p.c.Logf("request cleared: %s", q)
			p.c.Request = nil
		}
		return nil
	})
	p.operator.Point("after clear")
}

func (p *Controller) Record(_ context.Context, term uint64, op membership.Operation) error {
	by := p.caller()
	return p.call("record", false, func() error {
		if err := p.c.held(p.id(), term); err != nil {
			return err
		}
		p.c.check.recorded(op, by)
		p.c.History[op.ID] = op
		return nil
	})
}
