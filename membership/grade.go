package membership

import (
	"fmt"
	"slices"
	"time"

	"suffrage/fitness"
)

// regradeRest is how long a server that was stepped down stays so: stepping up and
// down each restart a voter, so within a day it is at most four times each.
const regradeRest = 6 * time.Hour

// regrades is "regrade h3 to etcd-only".
func regrades(host string, to fitness.Grade) string { return fmt.Sprintf("regrade %s to %s", host, to) }

// other is the grade from which a server comes to this one.
func other(g fitness.Grade) fitness.Grade {
	if g == fitness.Full {
		return fitness.EtcdOnly
	}
	return fitness.Full
}

// serverOf is what a host's agent tells of its server, nil where it does not.
func (a *assessment) serverOf(host string) *fitness.ServerFacts {
	if h := a.hosts[host]; h != nil && h.Reachable {
		return h.Facts.Server
	}
	return nil
}

// grade is how much of a server a host runs, empty where that is not known.
func (a *assessment) grade(host string) fitness.Grade {
	if h := a.hosts[host]; h != nil {
		return h.Grade()
	}
	return ""
}

// memory is a host's reading of its memory, unknown where there is none.
func (a *assessment) memory(host string) fitness.Reading {
	if r := a.of(host).own[slices.Index(fitness.HostSignals[:], fitness.Memory)]; r != nil {
		return *r
	}
	return fitness.Reading{}
}

// roomy is the memory that has to be available on a host before its server steps
// back up.
func (a *assessment) roomy(host string) fitness.Figure {
	return a.memory(host).Limit.Voter + fitness.Figure(a.in.Policy.RegradeHeadroom)
}

// regraded is the operation that made a host's grade what it is, nil where that is
// not known, or was somebody's hand.
func (a *assessment) regraded(host string) *Operation {
	for _, op := range slices.Backward(a.history()) {
		if op.Regrade == host && op.Outcome != Undone {
			if op.Outcome == Stopped {
				return nil
			}
			return &op
		}
	}
	return nil
}

// belowFull are the voters that were stepped down, or whose Node is not Ready: while
// there is one, nobody's role changes, since there are fewer API servers to carry it
// out than its owner has set up, or Kubernetes has another host to mend. Let through
// is what takes its own vote, what makes a server full again, the removal of a dead
// voter, and a vote for another one where there are fewer than three: there the
// server cannot be restarted, and could not be full before that. One that is
// etcd-only by its owner's settings is as it should be; and one that is not Ready may
// be stepped down, since want of memory is what makes it so.
func (a *assessment) belowFull(p *Plan) []Refusal {
	grows := p != nil && p.In != "" && p.Out == ""
	if p != nil && (p.Dead || p.To == fitness.Full) || grows && len(a.voters) < 3 {
		return nil
	}
	var held []Refusal
	for _, v := range a.voters {
		if p != nil && p.Out == v {
			continue
		}
		if a.grade(v) == fitness.EtcdOnly && a.serverOf(v).Stepped {
			held = append(held, a.notFull(v))
		}
		if r := a.hosts[v].notReady(); r != nil && (p == nil || p.Regrade != v) {
			held = append(held, *r)
		}
	}
	return held
}

// holding is what holds a plan back, of all that is said: beside it a voter below
// full, or not Ready, does; and before a step up the number of voters does not. It makes nobody a
// member, and until it is done that number cannot be mended: each would wait for the
// other. With fewer than three voters it is held all the same, since the restart of
// one would take the quorum with it.
func (a *assessment) holding(p *Plan, said []Refusal) []Refusal {
	n := len(a.in.View.Voters())
	switch q := a.in.Request; {
	case p != nil && p.To == fitness.Full:
		return uncounted(said)
	// There is nothing to hold back, and the request is over; or it would not be held.
	case p == nil && q != nil && q.Target != 0 && (q.Target == n || n < 3):
		return said
	}
	return append(said, a.belowFull(p)...)
}

// uncounted leaves out that the voters are not as many as they should be, but that
// they are too few to do without one.
func uncounted(said []Refusal) []Refusal {
	return slices.DeleteFunc(slices.Clone(said), func(r Refusal) bool {
		return slices.Contains([]Code{BelowTarget, ExtraVoter, EvenTarget, AtCeiling}, r.Code)
	})
}

// notFull says why a voter is below full, and what makes it full again.
func (a *assessment) notFull(host string) Refusal {
	op, up, lifts := a.regraded(host), "suffrage regrade "+host+" full", "lifts by itself, or: "
	if grow := "suffrage target 3; then: "; len(a.voters) < 3 {
		up, lifts = grow+up, "lifts by itself with three voters or more, or: "
	}
	switch {
	case op == nil:
		return owner(GradeNotFull, host, "it is etcd-only, and no operation is known that made it so", up)
	case op.By != ByController:
		return owner(GradeNotFull, host, fmt.Sprintf("it is etcd-only since %s: %s asked for that", stamp(op.Ended), op.By), up)
	case a.in.Policy.RegradeHeadroom <= 0:
		return owner(GradeNotFull, host, fmt.Sprintf("it is etcd-only since %s, and the controller's own regrades are switched off by now", stamp(op.Ended)), up)
	}
	r, need := a.memory(host), a.roomy(host)
	now := "how much is available is not known"
	if r.Band != fitness.Unknown {
		now = fmt.Sprintf("%s available", r.Figure.Text("B"))
	}
	held := hold(GradeNotFull, host, fmt.Sprintf("it is etcd-only since %s, for want of memory; %s, and it steps back up with %s for a whole window, not before %s",
		stamp(op.Ended), now, need.Text("B"), stamp(op.Ended.Add(regradeRest))), lifts+up+a.orSwap(host))
	held.Figures = []Datum{{Name: string(fitness.Memory), Value: r.Figure, Limit: &need, Unit: "B", Count: r.Count, Since: r.Since}}
	return held
}

// orSwap is the other way out, where the number of voters does not hold a swap back.
func (a *assessment) orSwap(host string) string {
	if len(a.voters) != a.in.Policy.Target || a.in.Request != nil && a.in.Request.Target != 0 {
		return ""
	}
	return "; or take its vote: suffrage swap " + host + " IN"
}
