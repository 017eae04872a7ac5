package membership

import (
	"fmt"
	"slices"
	"time"

	"suffrage/fitness"
)

// change is what is wanted by itself: a server that has room again steps up, one
// that is short of memory and of nothing else steps down, and else there is the
// swap. A step down goes before a swap of the same host: it keeps the vote, the
// members and the data, and one file undoes it. Where it is due and held back,
// another voter may still be swapped.
func (a *assessment) change(verdicts []fitness.Verdict) (*Plan, []Refusal) {
	var held []Refusal
	var not []string
	for _, p := range a.dueRegrades() {
		why := a.regradeHeld(p, verdicts)
		if len(why) == 0 {
			return p, a.waits("; then: " + p.String())
		}
		held = append(held, why...)
		if p.To == fitness.EtcdOnly {
			not = append(not, p.Regrade)
		}
	}
	plan, why := a.swap(not)
	if plan == nil {
		why = append(why, held...)
	}
	return plan, why
}

// dueRegrades are those whose reason has held for a whole window, those that make a
// server full first, then by name.
func (a *assessment) dueRegrades() []*Plan {
	if a.in.Policy.Flavour != K3s || a.in.Policy.RegradeHeadroom <= 0 {
		return nil
	}
	var up, down []*Plan
	for _, v := range a.voters {
		r, s := a.memory(v), a.serverOf(v)
		if s == nil || s.Fenced || a.regradeBarred(v) {
			continue
		}
		op := a.regraded(v)
		switch {
		case s.Grade == fitness.Full && a.shortOfMemoryOnly(v) && !a.lastFull(v):
			why := fmt.Sprintf("%s: %s, for a whole window; as etcd-only it takes less and keeps its vote", v, describe([]fitness.Reading{r}, 1))
			down = append(down, a.regradePlan(v, fitness.EtcdOnly, why, data([]fitness.Reading{r})))
		case s.Grade == fitness.EtcdOnly && s.Stepped && op != nil && op.By == ByController && !a.in.Now.Before(op.Ended.Add(regradeRest)) && a.hasRoom(v):
			need := a.roomy(v)
			why := fmt.Sprintf("%s is etcd-only since %s, and has had %s of memory available for a whole window; %s are needed", v, stamp(op.Ended), r.Figure.Text("B"), need.Text("B"))
			up = append(up, a.regradePlan(v, fitness.Full, why, []Datum{{Name: string(fitness.Memory), Value: r.Figure, Limit: &need, Unit: "B", Count: r.Count, Since: r.Since}}))
		}
	}
	return append(up, down...)
}

// dueUp is the step up that is due, nil where none is.
func (a *assessment) dueUp() *Plan {
	for _, p := range a.dueRegrades() {
		if p.To == fitness.Full {
			return p
		}
	}
	return nil
}

// hasRoom: every sample of the window, which is what the lowest of them says, has
// the floor and the headroom.
func (a *assessment) hasRoom(host string) bool {
	r := a.memory(host)
	return r.Band == fitness.Under && r.Whole() && r.Figure >= a.roomy(host)
}

// shortOfMemoryOnly: its memory has been below the floor for a whole window, and
// there is nothing else that moving its vote would mend.
func (a *assessment) shortOfMemoryOnly(host string) bool {
	for _, r := range a.of(host).own {
		if r != nil && r.Signal != fitness.Memory && over(r, fitness.Whole) {
			return false
		}
	}
	r := a.memory(host)
	return over(&r, fitness.Whole) && !slices.ContainsFunc(a.blame.Pairs, func(p fitness.Pair) bool { return p.A == host || p.B == host })
}

// lastFull: no other voter is known to run an API server, or may. Then it is for a
// swap, whose newcomer does.
func (a *assessment) lastFull(host string) bool {
	return !slices.ContainsFunc(a.voters, func(v string) bool { return v != host && a.grade(v) != fitness.EtcdOnly })
}

// regradeBarred: nothing is done to the host by itself: its owner has said nothing of
// it, the only controller is on it, or its last regrade failed not long ago. Then a
// swap says what there is to say.
func (a *assessment) regradeBarred(host string) bool {
	return !a.hosts[host].Mark.IsManaged() || slices.Equal(a.in.Controllers, []string{host}) || a.in.Now.Before(a.regradeFailed(host))
}

// regradeFailed is until when a host is left alone after its regrade failed: as
// long as a candidate after its swap did, twice as long each time in a row.
func (a *assessment) regradeFailed(host string) (until time.Time) {
	cleared, failures := time.Time{}, 0
	if c := a.hosts[host].Mark.Cleared; c != nil {
		cleared = c.At
	}
	for _, op := range a.history() {
		switch {
		case op.Regrade != host || !op.Ended.After(cleared):
		case op.Failed() && op.Called.IsZero(): // nothing was done to it
		case op.Failed():
			until, failures = op.Ended.Add(resting(failures)), failures+1
		default:
			failures = 0
		}
	}
	return until
}

func (a *assessment) regradePlan(host string, to fitness.Grade, why string, figures []Datum) *Plan {
	return &Plan{Regrade: host, To: to, Member: a.member[host], Why: why, Figures: figures, Steps: regradeSteps(host, to), Ranked: []string{}}
}

// regradeStep is the step in which a server starts again with another grade.
const regradeStep = "regrade"

func regradeSteps(host string, to fitness.Grade) []Step {
	var steps []Step
	for _, s := range []Step{
		{Name: "lease", Text: "take the shared Lease, check every guard again"},
		{Name: "step-down", Text: fmt.Sprintf("move etcd leadership away from %s, if it leads", host)},
		{Name: regradeStep, Text: fmt.Sprintf("write K3s's settings on %s, read them back, and restart it as %s", host, to)},
		{Name: "soak", Text: fmt.Sprintf("watch until the same member of %s has answered, level with the others, for the soak time", host)},
		{Name: "record", Text: "record the operation, release the Lease"},
	} {
		s.Number = len(steps) + 1
		steps = append(steps, s)
	}
	return steps
}

// regradeHeld is what there is against a regrade beside the guards: the restart
// takes this voter's etcd down for seconds, and a step down an API server for long.
// Before a step up the others need only be well: until it is full nothing else can
// be changed, so one that is slow would hold the one that holds back its own swap.
func (a *assessment) regradeHeld(p *Plan, verdicts []fitness.Verdict) []Refusal {
	if p.To == fitness.Full {
		return nil
	}
	held, full := a.belowFull(p), 0
	for _, v := range verdicts {
		if v.Host == p.Regrade || !a.isVoter(v.Host) {
			continue
		}
		if v.Status == fitness.Unfit {
			held = append(held, hold(NoTolerance, v.Host, fmt.Sprintf("the others have to do without %s while it restarts, and it is %s", p.Regrade, v), "lifts when it is fit, or no longer votes"))
		}
		switch a.grade(v.Host) {
		case fitness.Full:
			full++
		case "":
			held = append(held, hold(NoRemovalActor, v.Host, fmt.Sprintf("whether it runs an API server is not known, and once %s runs none another has to: its agent tells no grade", p.Regrade),
				"lifts when its agent does; see its log, and that it is of this version"))
		}
	}
	if full == 0 && len(held) == 0 {
		held = append(held, owner(NoRemovalActor, p.Regrade, "no other voter runs an API server, and without one nobody carries out what K3s is asked for", "let another voter run one: take disable-apiserver out of its settings"))
	}
	return held
}

// askedRegrade is the regrade that a request asks for, and everything against it.
// How much memory there is, and when the last one was, is nothing against it.
func (a *assessment) askedRegrade(q Request, said []Refusal) (*Plan, []Refusal) {
	said = append(said, a.old(q)...)
	s, reject := a.serverOf(q.Regrade), func(c Code, detail, next string) (*Plan, []Refusal) {
		return nil, append(said, rejected(c, q.Regrade, detail, next))
	}
	switch {
	case a.in.Policy.Flavour != K3s:
		return reject(NoGrades, "members of Suffrage are etcd alone, which is as little as a voter can run", "nothing: grades are K3s's (flavour: k3s)")
	case !a.isVoter(q.Regrade):
		return reject(NotAVoter, "it has no vote, and etcd-only is a server that keeps one", "suffrage status shows who votes")
	case s == nil && a.unarmed(q.Regrade):
		return nil, append(said, owner(NotQualified, q.Regrade, "its agent runs no etcd server, so it cannot restart one", "set agent.unit on "+q.Regrade))
	case s == nil || s.Grade == "":
		return nil, append(said, hold(GradeNotProven, q.Regrade, "its agent does not tell what K3s runs there", "lifts when it does; see its log"))
	case s.Grade == q.To:
		return nil, said
	case s.Fenced:
		return nil, append(said, owner(GradeNotProven, q.Regrade, "it is fenced, so it would not start again", "remove its fence.json (docs/orders.md)"))
	case s.Grade == fitness.EtcdOnly && !s.Stepped:
		return reject(GradeNotFull, "it is etcd-only by K3s's own settings there", "take disable-apiserver out of them and restart K3s on "+q.Regrade)
	case slices.Equal(a.in.Controllers, []string{q.Regrade}):
		return nil, append(said, owner(OnlyController, q.Regrade, "the only controller is on it, and a controller does not restart the server of its own host", "run a second controller, on another host"))
	}
	why := fmt.Sprintf("%s; it is %s", q.because("asked for it"), s.Grade)
	p := a.regradePlan(q.Regrade, q.To, why, data(nil))
	verdicts := make([]fitness.Verdict, 0, len(a.voters))
	for _, v := range a.voters {
		verdicts = append(verdicts, a.verdict(v))
	}
	for _, r := range a.samples(verdicts, said) { // of those that stay it has to be known how they do
		if q.To == fitness.EtcdOnly && r.Subject != q.Regrade && r.Code != NotHeld {
			said = append(said, r)
		}
	}
	return p, slices.Concat(said, a.regradeHeld(p, verdicts), a.waits(""))
}
