package membership

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"suffrage/fitness"
)

// Decide says what should be done. The same inputs give the same decision, in
// whatever order their slices come.
//
// A swap is wanted when an unpinned voter is to blame for something that has
// violated its limit for a whole window. It is planned when every guard holds,
// the cooldown is over, and a host that is eligible, qualified and fit for a
// whole window would leave fewer violating pairs. Where that something is memory
// alone, and K3s runs etcd, a regrade goes before it. Anything else is a refusal
// with its reason; all of them are given, not the first. While the owner asks
// for something, that is planned or refused and nothing else is, but for a step up
// that is due while a number of voters is waited for, since it waits for that.
func Decide(in Inputs) Decision {
	a := assess(in)
	d := Decision{At: in.Now, Mode: in.Policy.Mode, Voters: len(in.View.Voters()), Warnings: a.warnings(),
		Verdicts: make([]fitness.Verdict, 0, len(a.names))} // never null in JSON
	for _, name := range a.names {
		d.Verdicts = append(d.Verdicts, a.verdict(name))
	}
	if in.Open != nil {
		a.goOn(&d)
		return d
	}
	refusals := Guards(in)
	if in.View.unusable() == "" {
		d.FitVoters = a.fitVoters(d.Verdicts)
		d.Tolerance = Tolerance(d.Voters, d.FitVoters)
		refusals = append(refusals, guardView(in)...)
		if in.Request != nil {
			d.Plan, refusals = a.onRequest(*in.Request, d.Verdicts, refusals)
			d.conclude(a.holding(d.Plan, refusals), in)
			return d
		}
		many := a.manyUnfit()
		refusals = append(refusals, many...)
		refusals = append(refusals, a.samples(d.Verdicts, refusals)...)
		if many == nil {
			plan, why := a.change(d.Verdicts)
			d.Plan, refusals = plan, append(refusals, why...)
		}
		refusals = a.holding(d.Plan, refusals)
	}
	d.conclude(refusals, in)
	return d
}

// conclude gives a decision its kind and its ages.
func (d *Decision) conclude(refusals []Refusal, in Inputs) {
	d.Refusals = settle(refusals, in)
	switch {
	case len(d.Refusals) > 0:
		d.Kind, d.Plan, d.Step = Refused, nil, nil
	case d.Step != nil:
		d.Kind = StepNext
	case d.Plan != nil:
		d.Kind = Planned
	default:
		d.Kind = Steady
	}
	d.Since = in.Now
	if in.Previous != nil && in.Previous.Key == d.Key() {
		d.Since = earlier(in.Previous.Since, in.Now)
	}
}

// goOn decides the next step of the open operation: nothing else is looked at
// while one is open.
func (a *assessment) goOn(d *Decision) {
	op := *a.in.Open
	var refusals []Refusal
	if why := a.in.View.unusable(); why != "" {
		refusals = append(refusals, hold(MembershipUnknown, "", why, "lifts when it can be read; `suffrage status` shows which voters answer"))
	} else if held := guardView(a.in); len(held) > 0 {
		refusals = held
	} else {
		d.FitVoters = a.fitVoters(d.Verdicts)
		d.Tolerance = Tolerance(d.Voters, d.FitVoters)
		op, d.Step, refusals = a.operate()
	}
	d.Operation = &op
	d.conclude(refusals, a.in)
}

// fitVoters counts the voters that answer and may keep their vote. Two that
// vote on one host are one machine.
func (a *assessment) fitVoters(verdicts []fitness.Verdict) int {
	answers := map[string]bool{}
	for _, m := range responding(a.in.View) {
		answers[m.Host] = true
	}
	n := 0
	for _, v := range verdicts {
		if a.isVoter(v.Host) && answers[v.Host] && (v.Status == fitness.Fit || v.Status == fitness.Marginal) {
			n++
		}
	}
	return n
}

func (a *assessment) isVoter(host string) bool {
	_, votes := a.rank[host]
	return votes
}

// Key is the decision without its figures and times: two decisions with the
// same key say the same. Only a change of key is logged, recorded and counted.
func (d Decision) Key() string {
	if d.Plan != nil {
		if d.Plan.Regrade != "" {
			return string(Planned) + " " + d.Plan.String()
		}
		if d.Plan.Dead {
			return planKey(d.Plan.Out, d.Plan.In) + " dead"
		}
		return planKey(d.Plan.Out, d.Plan.In)
	}
	parts := []string{string(d.Kind)}
	if d.Step != nil {
		parts = append(parts, string(d.Step.Verb)+"("+d.Step.Host+")")
	}
	for _, r := range d.Refusals {
		parts = append(parts, string(r.Code)+"("+r.Subject+")")
	}
	return strings.Join(parts, " ")
}

func planKey(out, in string) string { return string(Planned) + " " + out + ">" + in }

// Remember is what the next decision needs of this one.
func (d Decision) Remember() *Previous {
	p := &Previous{Key: d.Key(), Since: d.Since}
	for _, r := range d.Refusals {
		p.Refusals = append(p.Refusals, RefusalSeen{r.Code, r.Subject, r.Since})
	}
	return p
}

// settle sorts refusals, drops repeats of a code for one subject, and dates them.
func settle(refusals []Refusal, in Inputs) []Refusal {
	type key struct {
		code    Code
		subject string
	}
	since := map[key]time.Time{}
	if in.Previous != nil {
		for _, p := range in.Previous.Refusals {
			k, t := key{dated(p.Code), p.Subject}, earlier(p.Since, in.Now)
			if was, both := since[k]; both {
				t = earlier(was, t)
			}
			since[k] = t
		}
	}
	sortRefusals(refusals)
	said := map[key]bool{}
	out := []Refusal{} // never null in JSON
	for _, r := range refusals {
		k := key{r.Code, r.Subject}
		if said[k] {
			continue
		}
		said[k] = true
		r.Since = in.Now
		if t, before := since[key{dated(r.Code), r.Subject}]; before {
			r.Since = t
		}
		out = append(out, r)
	}
	return out
}

// dated is the code by which a refusal's age goes on: that a silent voter is the
// owner's case after a window does not make it younger.
func dated(c Code) Code {
	if c == VoterDown {
		return VoterNotResponding
	}
	return c
}

// sortRefusals puts first what a person must do.
func sortRefusals(refusals []Refusal) {
	slices.SortStableFunc(refusals, func(a, b Refusal) int {
		return cmp.Or(
			first(a.Kind == Owner, b.Kind == Owner),
			cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Subject, b.Subject),
			cmp.Compare(a.Detail, b.Detail),
		)
	})
}

// earlier keeps an age from being below zero after a clock was set back.
func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
