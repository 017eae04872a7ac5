package kube

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// Reasons of Events on Nodes. They are stable.
const (
	// VerdictChanged: the host's own.
	VerdictChanged = "VerdictChanged"
	// DecisionChanged: on the voters' Nodes and on those that it names.
	DecisionChanged = "DecisionChanged"
	// StepBegun: of an operation, on the Nodes of the hosts that it moves.
	StepBegun = "StepBegun"
	// OperationEnded: on the same.
	OperationEnded = "OperationEnded"
	// RefusalLasts: on the hosts that it names, else on the voters'.
	RefusalLasts = "RefusalLasts"
)

// Reasons are all of them.
func Reasons() []string {
	return []string{VerdictChanged, DecisionChanged, StepBegun, OperationEnded, RefusalLasts}
}

// actions say what the controller did, which an Event has to.
var actions = map[string]string{VerdictChanged: "Judge", DecisionChanged: "Decide", StepBegun: "Operate", OperationEnded: "Operate", RefusalLasts: "Refuse"}

// happening is worth an Event on one host's Node.
type happening struct {
	host, reason, note string
	warning            bool
	at                 time.Time
	// id tells it from all others: whoever tells it again, such as the controller
	// that leads next, makes no second Event.
	id string
	// same is what a repeat has in common with it: that is counted in one Event.
	same string
}

// again is how long a refusal lasts until it is told again: an API server
// forgets an Event after an hour unless told otherwise.
const again = 30 * time.Minute

// newly is how long ago an operation may have ended to be told by a controller
// that has just begun.
const newly = 10 * time.Minute

// round is what happenings are found from: two of them, one after the other.
type round struct {
	in membership.Inputs
	d  membership.Decision
}

// between is what happened from one round to the next. before is nil in a
// controller's first; then what is written down tells what the one before knew.
func between(before *round, now round) []happening {
	var all []happening
	all = append(all, verdicts(before, now)...)
	all = append(all, decided(before, now)...)
	told := map[string]bool{}
	if before != nil {
		for _, h := range append(operated(*before), lasting(*before)...) {
			told[h.id] = true
		}
	}
	for _, h := range append(operated(now), lasting(now)...) {
		if !told[h.id] {
			all = append(all, h)
		}
	}
	return all
}

func verdicts(before *round, now round) []happening {
	if before == nil {
		return nil
	}
	was := map[string]fitness.Status{}
	for _, v := range before.d.Verdicts {
		was[v.Host] = v.Status
	}
	var all []happening
	for _, v := range now.d.Verdicts {
		if old, known := was[v.Host]; known && old != v.Status {
			all = append(all, happening{
				host: v.Host, reason: VerdictChanged, warning: v.Status == fitness.Unfit, at: now.in.Now,
				note: fmt.Sprintf("%s; it was %s", v, old),
				id:   fmt.Sprint(v.Host, now.in.Now), same: v.Host + " " + v.Status.String(),
			})
		}
	}
	return all
}

func decided(before *round, now round) []happening {
	key := keyOf(now.d)
	switch {
	case before != nil && keyOf(before.d) == key,
		before == nil && (now.in.Previous == nil || now.in.Previous.Key == now.d.Key()):
		return nil
	}
	note := sentence(now.d)
	if now.d.Plan != nil {
		note += ": " + now.d.Plan.Why
	}
	owners := slices.ContainsFunc(now.d.Refusals, func(r membership.Refusal) bool { return r.Kind == membership.Owner })
	var all []happening
	for _, host := range hosts(now.in, concerned(now.in, now.d)) {
		all = append(all, happening{
			host: host, reason: DecisionChanged, warning: owners, note: note, at: now.in.Now,
			id: fmt.Sprint(host, key, now.d.Since), same: host + " " + key,
		})
	}
	return all
}

// operated tells steps and ends from the records of operations, not from what
// two rounds saw: so a step shorter than a round is told too.
func operated(now round) []happening {
	var all []happening
	add := func(op membership.Operation, reason, what, note string, at time.Time, warning bool) {
		for _, host := range op.About() {
			id := fmt.Sprint(host, op.ID, what)
			all = append(all, happening{host: host, reason: reason, note: note, at: at, warning: warning, id: id, same: id})
		}
	}
	tell := func(op membership.Operation) {
		for _, s := range op.Steps {
			add(op, StepBegun, s.Name, fmt.Sprintf("%s: %s (%s)", op.Title(), s.Name, op.ID), s.Begun, false)
		}
		if op.TurnedBack != "" {
			add(op, StepBegun, "back", fmt.Sprintf("%s turns back: %s (%s)", op.Title(), op.TurnedBack, op.ID), now.in.Now, true)
		}
		if !op.Open() {
			note := fmt.Sprintf("%s %s (%s)", op.Title(), op.Outcome, op.ID)
			if op.TurnedBack != "" {
				note += ": " + op.TurnedBack
			}
			add(op, OperationEnded, "end", note, op.Ended, op.Failed())
		}
	}
	if op := openOf(now.in, now.d); op != nil {
		open := *op
		open.Outcome = "" // it has ended once it is recorded
		tell(open)
	}
	for _, op := range now.in.Operations {
		if now.in.Now.Sub(op.Ended) < newly {
			tell(op)
		}
	}
	return all
}

// lasting are the refusals that outlast a cooldown, one happening for each half
// hour that they have lasted.
func lasting(now round) []happening {
	var all []happening
	for _, r := range now.d.Refusals {
		age := now.in.Now.Sub(r.Since)
		if age <= now.in.Policy.Cooldown() {
			continue
		}
		about := map[string]bool{}
		for _, host := range strings.Split(r.Subject, ",") {
			about[host] = true
		}
		at := hosts(now.in, about)
		if len(at) == 0 { // the cluster's, or a member's
			about = map[string]bool{}
			for _, m := range now.in.View.Voters() {
				about[m.Host] = true
			}
			at = hosts(now.in, about)
		}
		for _, host := range at {
			same := fmt.Sprint(host, r.Code, r.Subject, r.Since)
			all = append(all, happening{
				host: host, reason: RefusalLasts, warning: r.Kind == membership.Owner, at: now.in.Now,
				note: fmt.Sprintf("%s → %s", r, r.Next),
				id:   fmt.Sprint(same, int(age/again)), same: same,
			})
		}
	}
	return all
}

// hosts are those of the roster that are meant, sorted.
func hosts(in membership.Inputs, about map[string]bool) []string {
	var names []string
	for _, h := range in.View.Hosts {
		if about[h.Name] {
			names = append(names, h.Name)
		}
	}
	slices.Sort(names)
	return names
}
