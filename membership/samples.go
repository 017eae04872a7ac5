package membership

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"suffrage/fitness"
)

const windowsFull = "lifts when every signal has a full window of fresh samples"

// about says what a refusal rests on: the readings in words, and as figures.
func (r Refusal) about(readings []fitness.Reading, most int) Refusal {
	r.Detail += describe(readings, most)
	r.Figures = append(r.Figures, data(readings)...)
	return r
}

// notHeld says that a verdict has not held for a whole window.
func notHeld(subject string, v fitness.Verdict, next string) Refusal {
	r := hold(NotHeld, subject, fmt.Sprintf("%s for %d evaluations of %d needed", v.Status, v.Held, fitness.Whole), next).
		with("held", int64(v.Held), fitness.Whole, "1")
	if len(v.Reasons) > 0 {
		r.Detail = fmt.Sprintf("%s (for %d evaluations of %d needed)", v, v.Held, fitness.Whole)
	}
	r.Figures[0].Since = v.Since
	return r
}

// samples says what is not yet known of the voters. What is said already of a
// host that does not answer, or of many at once, is not said again.
func (a *assessment) samples(verdicts []fitness.Verdict, said []Refusal) []Refusal {
	many := slices.ContainsFunc(said, func(r Refusal) bool { return r.Code == ManyUnfit })
	var out []Refusal
	for _, v := range verdicts {
		if !a.isVoter(v.Host) || slices.ContainsFunc(said, func(r Refusal) bool {
			return r.Subject == v.Host && (r.Code == VoterNotResponding || r.Code == VoterDown)
		}) {
			continue
		}
		missing := only(a.evidence(v.Host, a.voters), unknown)
		failing := only(slices.Clone(missing), func(r fitness.Reading) bool { return strings.HasPrefix(r.Note, fitness.ProbeFails) })
		switch {
		case len(failing) > 0:
			out = append(out, owner(ProbeFailing, v.Host, "", "see `suffrage explain "+v.Host+"` and the log of its agent").about(failing, 3))
		case len(missing) > 0:
			out = append(out, hold(SamplesMissing, v.Host, "", windowsFull).about(missing, 3))
		case v.Status == fitness.Unfit && !v.Whole && !many:
			out = append(out, notHeld(v.Host, v, "lifts when it is fit again, or has been unfit for a whole window"))
		}
	}
	return out
}

// keyMargin is how long before a host's key of the overlay network ends its owner
// is told of it.
const keyMargin = 7 * 24 * time.Hour

// warnings are what the owner should know and nothing waits for.
func (a *assessment) warnings() []string {
	worst := map[string]fitness.Figure{}
	for i := range a.in.Readings {
		if r := &a.in.Readings[i]; r.Signal == fitness.Clock && r.Band == fitness.Over {
			pair := min(r.Host, r.Peer) + " and " + max(r.Host, r.Peer)
			worst[pair] = max(worst[pair], r.Figure)
		}
	}
	var out []string
	for pair, f := range worst {
		out = append(out, fmt.Sprintf("the clocks of %s differ by %s", pair, f.Text("s")))
	}
	// An open operation sees to the fences that it set; one that was stopped while
	// the agent was silent did not.
	for _, v := range a.voters {
		if s := a.hosts[v].Facts.Server; a.in.Open == nil && s != nil && s.Fenced {
			out = append(out, v+" votes and is fenced, so it cannot start again once it is down: remove its fence.json (docs/orders.md)")
		}
	}
	for _, h := range a.in.View.Hosts {
		if at := h.Facts.OverlayExpires; at != 0 && at < a.in.Now.Add(keyMargin).UnixMicro() {
			out = append(out, fmt.Sprintf("the Tailscale key of %s ends on %s, and the host is gone from the network then: log in there again, or switch its expiry off",
				h.Name, time.UnixMicro(at).UTC().Format("2 January 2006")))
		}
	}
	slices.Sort(out)
	return out
}
