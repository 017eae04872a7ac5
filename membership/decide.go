package membership

import (
	"fmt"
	"slices"
	"sort"
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
// whole window would leave fewer violating pairs and none of its own. Anything
// else is a refusal with its reason; all of them are given, not the first.
func Decide(in Inputs) Decision {
	a := assess(in)
	d := Decision{At: in.Now, Mode: in.Policy.Mode, Voters: len(in.View.Voters())}
	for _, name := range a.names() {
		d.Verdicts = append(d.Verdicts, a.verdict(name))
	}
	d.Warnings = a.warnings()
	d.FitVoters = a.fitVoters(d.Verdicts)
	d.Tolerance = Tolerance(d.Voters, d.FitVoters)

	refusals := Guards(in)
	if in.View.Error == "" {
		refusals = append(refusals, a.samples(d.Verdicts, refusals)...)
		plan, why := a.swap(d.Verdicts)
		refusals = append(refusals, why...)
		if len(refusals) == 0 {
			d.Plan = plan
		}
	}
	d.Refusals = settle(refusals, in)
	switch {
	case len(d.Refusals) > 0:
		d.Kind = Refused
	case d.Plan != nil:
		d.Kind = Planned
	default:
		d.Kind = Steady
	}
	d.Since = in.Now
	if in.Previous != nil && in.Previous.Key == d.Key() {
		d.Since = in.Previous.Since
	}
	return d
}

// Key is the decision without its figures and times: two decisions with the
// same key say the same. Only a change of key is logged, recorded and counted.
func (d Decision) Key() string {
	parts := []string{string(d.Kind)}
	if d.Plan != nil {
		parts = append(parts, d.Plan.Out+">"+d.Plan.In)
	}
	for _, r := range d.Refusals {
		parts = append(parts, string(r.Code)+"("+r.Subject+")")
	}
	return strings.Join(parts, " ")
}

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
	out := []Refusal{} // never null in JSON
	sort.SliceStable(refusals, func(i, j int) bool {
		a, b := refusals[i], refusals[j]
		if (a.Kind == Owner) != (b.Kind == Owner) {
			return a.Kind == Owner // what a person must do comes first
		}
		if a.Code != b.Code {
			return a.Code < b.Code
		}
		if a.Subject != b.Subject {
			return a.Subject < b.Subject
		}
		return a.Detail < b.Detail
	})
	for _, r := range refusals {
		if n := len(out); n > 0 && out[n-1].Code == r.Code && out[n-1].Subject == r.Subject {
			continue
		}
		r.Since = in.Now
		if in.Previous != nil {
			for _, p := range in.Previous.Refusals {
				if p.Code == r.Code && p.Subject == r.Subject {
					r.Since = p.Since
				}
			}
		}
		out = append(out, r)
	}
	return out
}

func (a *assessment) names() []string {
	names := make([]string, 0, len(a.hosts))
	for n := range a.hosts {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func (a *assessment) fitVoters(verdicts []fitness.Verdict) int {
	answers := map[string]bool{}
	for _, m := range responding(a.in.View) {
		answers[m.Host] = true
	}
	n := 0
	for _, v := range verdicts {
		if _, votes := a.rank[v.Host]; votes && answers[v.Host] && (v.Status == fitness.Fit || v.Status == fitness.Marginal) {
			n++
		}
	}
	return n
}

// samples says what is not yet known of the voters. What a guard already says
// of a host that does not answer is not said again.
func (a *assessment) samples(verdicts []fitness.Verdict, guards []Refusal) []Refusal {
	var out []Refusal
	for _, v := range verdicts {
		if _, votes := a.rank[v.Host]; !votes || slices.ContainsFunc(guards, func(r Refusal) bool {
			return r.Subject == v.Host && (r.Code == VoterNotResponding || r.Code == VoterDown)
		}) {
			continue
		}
		unknown := slices.DeleteFunc(a.evidence(v.Host, a.voters), func(r fitness.Reading) bool { return r.Band != fitness.Unknown })
		failing := slices.DeleteFunc(slices.Clone(unknown), func(r fitness.Reading) bool { return !strings.HasPrefix(r.Note, fitness.ProbeFails) })
		switch {
		case len(failing) > 0:
			r := owner(ProbeFailing, v.Host, describe(failing), "see `suffrage explain "+v.Host+"` and the log of its agent")
			r.Figures = data(failing)
			out = append(out, r)
		case len(unknown) > 0:
			r := hold(SamplesMissing, v.Host, describe(unknown), "lifts when every signal has a full window of fresh samples")
			r.Figures = data(unknown)
			out = append(out, r)
		case v.Status == fitness.Unfit && !v.Whole:
			r := hold(NotHeld, v.Host, fmt.Sprintf("%s: for %d evaluations of %d needed", v, v.Held, fitness.Whole), "lifts when it is fit again, or has been unfit for a whole window")
			limit := fitness.Figure(fitness.Whole)
			r.Figures = []Datum{{Name: "held", Value: fitness.Figure(v.Held), Limit: &limit, Unit: "1", Since: v.Since}}
			out = append(out, r)
		}
	}
	return out
}

// warnings are what the owner should know and nothing waits for.
func (a *assessment) warnings() []string {
	var out []string
	for _, r := range a.in.Readings {
		if r.Signal == fitness.Clock && r.Band == fitness.Over && r.Host < r.Peer {
			out = append(out, fmt.Sprintf("the clocks of %s and %s differ by %s", r.Host, r.Peer, r.Figure.Text("s")))
		}
	}
	slices.Sort(out)
	return out
}

// swap finds the swap that is wanted, or says why there is none. No plan and no
// refusal means that nothing is wanted.
func (a *assessment) swap(verdicts []fitness.Verdict) (*Plan, []Refusal) {
	if len(a.blame.Suspects) == 0 {
		return nil, nil
	}
	if r, many := a.manyUnfit(); many {
		return nil, []Refusal{r}
	}
	var refusals []Refusal
	var best *proposal
	var stuck []string
	for _, s := range a.blame.Suspects {
		if r, stop := a.forbidden(s.Host); stop {
			refusals = append(refusals, r)
		} else if p := a.propose(s, verdicts); p == nil {
			stuck = append(stuck, s.Host)
		} else if best == nil || p.before(best, a) {
			best = p
		}
	}
	if best == nil {
		if len(stuck) > 0 {
			refusals = append(refusals, a.noCandidate(stuck, verdicts)...)
		}
		return nil, refusals
	}
	// What forbids moving one suspect does not hold back moving another.
	if r, wait := a.cooldown(); wait {
		return nil, []Refusal{r}
	}
	return a.plan(best), nil
}

func (a *assessment) manyUnfit() (Refusal, bool) {
	n, blamed := len(a.voters), a.blame.Hosts
	if tolerance := Tolerance(n, n); len(blamed) > tolerance {
		var readings []fitness.Reading
		for _, h := range blamed {
			readings = append(readings, a.violations(h)...)
		}
		r := hold(ManyUnfit, strings.Join(blamed, ","), fmt.Sprintf("%d voters are to blame and %d may fail: %s; moving one vote will not help%s",
			len(blamed), tolerance, describe(readings), a.shared(blamed)), "find what they share and mend that")
		limit := fitness.Figure(tolerance)
		r.Figures = append([]Datum{{Name: "to_blame", Value: fitness.Figure(len(blamed)), Limit: &limit, Unit: "1"}}, data(readings)...)
		return r, true
	}
	return Refusal{}, false
}

// shared names what the hosts have in common, where it is known.
func (a *assessment) shared(hosts []string) string {
	zone, link, relayed := a.hosts[hosts[0]].Facts.Zone, a.hosts[hosts[0]].Facts.Link.Class, true
	for _, h := range hosts {
		f := a.hosts[h].Facts
		if f.Zone != zone {
			zone = ""
		}
		if f.Link.Class != link {
			link = ""
		}
		relayed = relayed && slices.ContainsFunc(f.Paths, func(p fitness.Path) bool { return p.Kind == "relayed" })
	}
	var share []string
	if zone != "" {
		share = append(share, "zone "+zone)
	}
	if link == fitness.Wifi || link == fitness.Cellular {
		share = append(share, string(link)+" links")
	}
	if relayed {
		share = append(share, "relayed paths")
	}
	if len(share) == 0 {
		return ""
	}
	return "; they share " + strings.Join(share, ", ")
}

func (a *assessment) forbidden(out string) (Refusal, bool) {
	mark, bad := a.hosts[out].Mark, a.violations(out)
	var r Refusal
	switch {
	case mark.IsPinned():
		r = hold(Pinned, out, fmt.Sprintf("it is to blame (%s) and pinned by %s%s", describe(bad), mark.Pinned.By, because(mark.Pinned.Reason)), "mend the host, or: suffrage host unpin "+out)
	case !mark.IsManaged():
		r = owner(UnmanagedVoter, out, fmt.Sprintf("it is to blame (%s) and you have said nothing of it; once out, it could not come back", describe(bad)),
			"suffrage host eligible "+out)
	default:
		return r, false
	}
	r.Figures = data(bad)
	return r, true
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

func (a *assessment) cooldown() (Refusal, bool) {
	last, what := a.in.View.MembershipChanged, "the membership changed"
	for _, o := range a.in.Operations {
		if o.Ended.After(last) {
			last, what = o.Ended, "operation "+o.ID+" ended"
		}
	}
	if last.IsZero() {
		return Refusal{}, false
	}
	until := last.Add(a.in.Policy.Cooldown())
	if !a.in.Now.Before(until) {
		return Refusal{}, false
	}
	r := hold(CooldownRunning, "", fmt.Sprintf("%s at %s; nothing new is started for %s", what, last.UTC().Format(time.RFC3339), a.in.Policy.Cooldown()),
		"lifts at "+until.UTC().Format(time.RFC3339))
	return r, true
}
