package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"suffrage/fitness"
)

// maxTarget is etcd's guidance: more voters make every write slower, and seven
// tolerate three failures.
const maxTarget = 7

// possible reports whether so many voters can be asked for: an even number
// tolerates no more failures than one fewer.
func possible(target int) bool { return target >= 3 && target <= maxTarget && target%2 == 1 }

// impossible says why the voters cannot be as many as the owner asks for.
func (a *assessment) impossible(q Request) []Refusal {
	var out []Refusal
	p, n := a.in.Policy, q.Target
	say := func(c Code, limit int, next, format string, args ...any) {
		out = append(out, rejected(c, "", fmt.Sprintf(format, args...), next).with("target", int64(n), int64(limit), "1"))
	}
	odd := "suffrage target N, with an odd N of 3 to 7"
	if n < 3 {
		say(BelowMinimum, 3, odd, "a target of %d is asked for; with fewer than 3 voters, losing one loses the quorum", n)
	}
	if n > maxTarget {
		say(TooManyVoters, maxTarget, odd, "%d voters are asked for; etcd's guidance is at most %d", n, maxTarget)
	}
	if n%2 == 0 {
		say(EvenTarget, n-1, odd, "%d voters are asked for; an even number tolerates no more failures than one fewer", n)
	}
	if n+1 > p.Maximum {
		say(AtCeiling, p.Maximum-1, fmt.Sprintf("raise controller.maximum to %d or more", n+1), "%d voters are asked for, and one more, which a swap needs, would pass the maximum of %d", n, p.Maximum)
	}
	if p.Target != n {
		say(RequestOld, p.Target, "ask again: "+q.again(), "%d voters were asked for at %s, and the target is %d by now", n, stamp(q.At), p.Target)
	}
	return out
}

// resize is the next step to the number of voters that the owner asks for: one
// more, or one fewer. There is none, and no refusal but the guards, once they
// have that number.
func (a *assessment) resize(q Request, verdicts []fitness.Verdict, said []Refusal) (*Plan, []Refusal) {
	n := len(a.in.View.Voters())
	if bad := a.impossible(q); len(bad) > 0 || n == q.Target {
		return nil, append(said, bad...)
	}
	// No vote moves before it is done, and with fewer than three it cannot be.
	if up := a.dueUp(); up != nil && n >= 3 {
		return up, slices.Concat(said, a.waits("; then: "+up.String()))
	}
	var plan *Plan
	var held []Refusal
	if n < q.Target {
		said = append(said, a.manyUnfit()...)
		plan, held = a.grow()
	} else {
		plan, held = a.shrink(verdicts)
	}
	if plan == nil {
		return nil, slices.Concat(said, held, a.waits(""))
	}
	plan.Why = fmt.Sprintf("%s; now %d; %s", q.because(fmt.Sprintf("asked for %d voters", q.Target)), n, plan.Why)
	// Of those that stay it has to be known how they do.
	for _, r := range a.samples(verdicts, said) {
		if r.Subject != plan.Out && r.Code != NotHeld {
			held = append(held, r)
		}
	}
	return plan, slices.Concat(said, held, a.waits("; then: "+plan.String()))
}

// grow gives the best candidate a vote that nobody loses.
func (a *assessment) grow() (*Plan, []Refusal) {
	nobody := fitness.Suspect{By: byRequest}
	ranked := a.ranked(a.vacancy(nobody))
	if len(ranked) == 0 {
		return nil, a.noCandidate(nobody)
	}
	best := ranked[0]
	// The plan that stood keeps its candidate while that is still fit.
	for _, r := range ranked {
		if prev := a.in.Previous; prev != nil && prev.Key == planKey("", r.Host) {
			best = r
		}
	}
	return &Plan{In: best.Host, Why: best.Host + " is fit: " + strings.TrimPrefix(best.String(), best.Host+": "),
		Figures: data(nil), Steps: steps("", best.Host, false), Ranked: shown(ranked)}, nil
}

// leaver is a voter that may lose its vote, and what would be left without it.
type leaver struct {
	verdict  fitness.Verdict
	bad      int // how bad its verdict is
	left     int // violating pairs that there would be
	stood    bool
	crowd    int // the largest number of voters that would share a zone
	zones    int // zones that would have a voter
	leads    bool
	standing fitness.Standing
}

// shrink takes the vote whose loss leaves the best fleet.
func (a *assessment) shrink(verdicts []fitness.Verdict) (*Plan, []Refusal) {
	var may []leaver
	var kept []Refusal
	for _, v := range verdicts {
		if !a.isVoter(v.Host) {
			continue
		}
		if r := a.forbidden(v.Host); r != nil {
			kept = append(kept, *r)
			continue
		}
		may = append(may, a.leaver(v))
	}
	if len(may) == 0 {
		return nil, kept
	}
	slices.SortFunc(may, a.goesFirst)
	goes, standings := may[0], make([]fitness.Standing, 0, len(may))
	for _, l := range may {
		standings = append(standings, l.standing)
	}
	out := goes.standing.Host
	why := out + " goes, the last in rank of those that may: " + strings.TrimPrefix(goes.standing.String(), out+": ")
	if bad := a.violations(out); goes.verdict.Status == fitness.Unfit && len(bad) > 0 {
		why = fmt.Sprintf("%s goes: %s, for a whole window", out, describe(bad, 3))
	} else if goes.verdict.Status != fitness.Fit {
		why = fmt.Sprintf("%s goes: %s", out, goes.verdict)
	}
	return &Plan{Out: out, OutMember: a.member[out], Why: why, Figures: data(a.violations(out)), Steps: steps(out, "", false), Ranked: shown(standings)}, nil
}

func (a *assessment) leaver(v fitness.Verdict) leaver {
	s := a.suspected(v.Host)
	place := a.vacancy(s)
	bad := map[fitness.Status]int{fitness.Unfit: 3, fitness.StatusUnknown: 2, fitness.Marginal: 1}
	return leaver{verdict: v, bad: bad[v.Status], left: len(a.blame.Pairs) - s.Clears, crowd: place.crowd(""), zones: len(place.zones),
		stood: a.in.Previous != nil && a.in.Previous.Key == planKey(v.Host, ""), leads: v.Host == a.leader, standing: a.standing(v.Host, place)}
}

// goesFirst orders those that may go: unfit ones first, then those of whom
// nothing is known; then whose loss leaves fewer slow pairs, then the plan that
// stood, so that a figure that swings does not make the decision swing; then the
// reverse of the ranking of candidates, in which it is the zones of those that
// stay that count; the leader last among equals, since it has to hand over first.
func (a *assessment) goesFirst(x, y leaver) int {
	xs, ys := x.standing, y.standing
	xs.Host, ys.Host, xs.Crowd, ys.Crowd = "", "", 0, 0
	return cmp.Or(
		cmp.Compare(y.bad, x.bad),
		cmp.Compare(x.left, y.left),
		first(x.stood, y.stood),
		cmp.Compare(x.crowd, y.crowd),
		cmp.Compare(y.zones, x.zones),
		a.compare(ys, xs),
		first(!x.leads, !y.leads),
		cmp.Compare(y.standing.Host, x.standing.Host),
	)
}
