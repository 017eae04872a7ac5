package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"suffrage/fitness"
)

// swap finds the swap that is wanted, or says why there is none. No plan and no
// refusal means that nothing is wanted.
//
// What a swap in the past forbids (quarantine, no host moved back within an
// hour, futile) has its place in stand, with the first version that can swap.
//
// Those that are to be regraded first are left out.
func (a *assessment) swap(not []string) (*Plan, []Refusal) {
	var refusals []Refusal
	var best *proposal
	var stuck []fitness.Suspect
	for _, s := range a.blame.Suspects {
		if slices.Contains(not, s.Host) {
			continue
		}
		if r := a.forbidden(s.Host); r != nil {
			refusals = append(refusals, a.blamed(*r))
		} else if p := a.propose(s); p == nil {
			stuck = append(stuck, s)
		} else if best == nil || p.compare(best) < 0 {
			best = p
		}
	}
	switch {
	case best != nil:
		// What is in the way of moving one suspect does not hold back another.
		plan := a.plan(best)
		return plan, append(a.waits("; then: "+plan.String()), a.futile()...)
	case len(stuck) > 0:
		refusals = append(refusals, a.noCandidate(stuck[0])...)
	}
	return nil, refusals
}

// proposal is a suspect with the best host to take its vote.
type proposal struct {
	suspect fitness.Suspect
	in      fitness.Standing
	ranked  []fitness.Standing
	left    int            // violating pairs that there would be
	stood   bool           // it is the plan that stood before
	leads   bool           // the suspect is the etcd leader
	worst   fitness.Figure // the worst p99 among the voters that there would be
}

// compare orders proposals, the better first: a sure suspect before an
// unsettled one, fewer pairs left, then not the etcd leader, then the lower
// projected worst p99, then the name (fitness.md, Blame). Before the leader
// comes the plan that stood: a leader or a figure that swings must not make the
// decision swing.
func (p *proposal) compare(o *proposal) int {
	return cmp.Or(
		first(p.suspect.By != "order", o.suspect.By != "order"),
		cmp.Compare(p.left, o.left),
		first(p.stood, o.stood),
		first(!p.leads, !o.leads),
		cmp.Compare(p.worst, o.worst),
		cmp.Compare(p.suspect.Host, o.suspect.Host),
	)
}

// first orders what is before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// propose finds the best candidate to take the suspect's vote, nil when no host
// can.
func (a *assessment) propose(s fitness.Suspect) *proposal {
	place := a.vacancy(s)
	ranked := a.ranked(place)
	if len(ranked) == 0 {
		return nil
	}
	p := &proposal{suspect: s, in: ranked[0], ranked: ranked, leads: s.Host == a.leader}
	// The plan that stood keeps its candidate while that is still fit.
	for _, r := range ranked {
		if prev := a.in.Previous; prev != nil && prev.Key == planKey(s.Host, r.Host) {
			p.in, p.stood = r, true
		}
	}
	p.left, p.worst = a.left(p.in.Host, s), p.in.WorstRTT
	for i, x := range place.beside {
		for _, y := range place.beside[i+1:] {
			p.worst = max(p.worst, a.with(x, y).worst())
		}
	}
	return p
}

// ranked are the candidates that can take a place, the best first.
func (a *assessment) ranked(place vacancy) []fitness.Standing {
	var ranked []fitness.Standing
	for _, name := range a.candidates() {
		if standing, refusal := a.stand(name, place); refusal == nil {
			ranked = append(ranked, standing)
		}
	}
	slices.SortFunc(ranked, a.compare)
	return ranked
}

// compare orders two standings, the better first.
func (a *assessment) compare(x, y fitness.Standing) int {
	return x.Compare(y, a.in.Policy.Limits.For(fitness.RTT, 0), a.in.Policy.Limits.For(fitness.WALFsync, 0))
}

// shown are the texts of standings for a plan.
func shown(ranked []fitness.Standing) []string {
	var out []string
	for _, r := range ranked[:min(len(ranked), maxRanked)] {
		out = append(out, r.String())
	}
	return out
}

func (a *assessment) plan(p *proposal) *Plan {
	out, in := p.suspect.Host, p.in.Host
	bad := a.violations(out)
	why := fmt.Sprintf("%s: %s, for a whole window", out, describe(bad, 3))
	switch p.suspect.By {
	case "witnesses":
		why += "; hosts outside the pair find it slow too"
	case "order":
		why += "; nothing tells which end of the pair is slow, so one is moved and the other judged again after the cooldown"
	}
	if n := len(a.blame.Pairs); p.left < n {
		why += fmt.Sprintf("; with %s in its place %d of %d violating pairs remain", in, p.left, n)
	}
	return &Plan{Out: out, In: in, OutMember: a.member[out], Why: why + "; " + in + " is fit: " + strings.TrimPrefix(p.in.String(), in+": "), Figures: data(bad), Steps: steps(out, in, false), Ranked: shown(p.ranked)}
}

// noCandidate says of each eligible host what it lacks to take a suspect's vote,
// or, where nobody leaves, to get one.
func (a *assessment) noCandidate(out fitness.Suspect) []Refusal {
	var lacks []Refusal
	place := a.vacancy(out)
	for _, name := range a.candidates() {
		if _, refusal := a.stand(name, place); refusal != nil {
			lacks = append(lacks, *refusal)
		}
	}
	switch mark := "mark a host: suffrage host eligible HOST"; {
	case len(lacks) > 0:
	case out.Host == "":
		lacks = append(lacks, owner(NoCandidate, "", "no host without a vote is eligible to get one", mark))
	default:
		bad := a.violations(out.Host)
		lacks = append(lacks, owner(NoCandidate, "", fmt.Sprintf("no host without a vote is eligible to take the vote of %s, which is unfit: ", out.Host),
			mark).about(bad, 3))
	}
	return lacks
}

// forbidden says what there is against moving a voter: the owner's marks, or
// that nobody could fence it, or carry it out.
func (a *assessment) forbidden(out string) *Refusal {
	var r Refusal
	switch mark := a.hosts[out].Mark; {
	case mark.IsPinned():
		reason := ""
		if mark.Pinned.Reason != "" {
			reason = " (" + mark.Pinned.Reason + ")"
		}
		r = hold(Pinned, out, fmt.Sprintf("pinned by %s%s", mark.Pinned.By, reason), "mend the host, or: suffrage host unpin "+out)
	case !mark.IsManaged():
		r = owner(UnmanagedVoter, out, "you have said nothing of it, so once out it could not come back", "suffrage host eligible "+out)
	case a.unarmed(out):
		r = owner(NotQualified, out, "its agent runs no etcd server, so it cannot be fenced", "set agent.unit on "+out)
	case slices.Equal(a.in.Controllers, []string{out}):
		r = owner(OnlyController, out, "the only controller is on it, and a controller does not take the vote of its own host", "run a second controller, on another host")
	default:
		return nil
	}
	return &r
}

// blamed adds what the voter is to blame for.
func (a *assessment) blamed(r Refusal) Refusal {
	if r.Code == Pinned {
		r.Detail += ", and to blame: "
	} else {
		r.Detail += "; to blame: "
	}
	return r.about(a.violations(r.Subject), 3)
}

// waits hold back whatever would be started: the owner's pause, a scheduled
// snapshot, and the cooldown after any change of membership and any end of an
// operation, whatever its outcome. then is what comes after it, empty where
// nothing does. An operation that ends in more than a cooldown from now was ended by
// a controller whose clock is ahead: nothing would be started until that time has
// come, so it is left out. The change of membership has its own record.
func (a *assessment) waits(then string) []Refusal {
	held := append(a.snapshotsDue(then), a.paused(then)...)
	last, what := a.in.View.MembershipChanged, "the membership changed"
	cooldown := a.in.Policy.Cooldown()
	for _, o := range a.in.Operations {
		if o.Ended.After(a.in.Now.Add(cooldown)) {
			continue
		}
		// Of two that ended together the first by name is told, in any order.
		if d := o.Ended.Compare(last); d > 0 || d == 0 && "operation "+o.ID+" ended" < what {
			last, what = o.Ended, "operation "+o.ID+" ended"
		}
	}
	until := last.Add(cooldown)
	if last.IsZero() || !a.in.Now.Before(until) {
		return held
	}
	return append(held, hold(CooldownRunning, "", fmt.Sprintf("%s at %s and nothing new is started for %s%s", what, stamp(last), cooldown, then),
		"lifts at "+stamp(until)))
}

// paused is the owner's pause.
func (a *assessment) paused(then string) []Refusal {
	if p := a.in.Policy.Paused; p != nil && p.Value {
		return []Refusal{hold(Paused, "", fmt.Sprintf("paused by %s%s", p.By, then), "suffrage resume")}
	}
	return nil
}
