package membership

import (
	"fmt"

	"suffrage/fitness"
)

// Plan is what would be done: one voter out, one voter in; or one of the two by
// the owner's word. Growing has no Out, shrinking and the removal of a dead
// voter have no In.
type Plan struct {
	Out string `json:"out"`
	In  string `json:"in"`
	// Dead: Out is dead, and is removed by the owner's word.
	Dead bool `json:"dead,omitempty"`
	// Regrade is the host whose grade changes, and To what it becomes; nobody gets
	// or loses a vote then.
	Regrade string        `json:"regrade,omitempty"`
	To      fitness.Grade `json:"to,omitempty"`
	// Member is the ID of the member on that host, which stays.
	Member string `json:"member,omitempty"`
	// OutMember is the ID of the member that would be removed.
	OutMember string `json:"out_member"`
	// Why is one sentence with the figures.
	Why string `json:"why"`
	// Figures are the readings that justify it.
	Figures []Datum `json:"figures"`
	// Steps are what would be done, in order.
	Steps []Step `json:"steps"`
	// Ranked are the fit candidates, best first, with what put them there; where
	// a vote is only taken, the voters that may go, the first to go first. At most
	// maxRanked of them.
	Ranked []string `json:"ranked"`
}

// maxRanked bounds what a report shows of a large fleet.
const maxRanked = 20

// Step is one move of a plan.
type Step struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	Text   string `json:"text"`
}

// String is "swap h3 → h4", or "regrade h3 to etcd-only".
func (p Plan) String() string {
	if p.Regrade != "" {
		return regrades(p.Regrade, p.To)
	}
	return moves(p.Out, p.In, p.Dead)
}

// moves says who gets and who loses a vote: "swap h3 → h4", "grow by h4",
// "shrink by h3", "remove dead h3".
func moves(out, in string, dead bool) string {
	switch {
	case dead:
		return "remove dead " + out
	case out == "":
		return "grow by " + in
	case in == "":
		return "shrink by " + out
	}
	return fmt.Sprintf("swap %s → %s", out, in)
}

// steps are the nine steps of a swap, or those of them that there are where a
// vote is only given or only taken. Dry-run shows them; the texts name the
// hosts so that the owner reads what would happen to which machine.
func steps(out, in string, dead bool) []Step {
	elsewhere, watched := ", not on "+out, "all voters, "+in+" among them,"
	if out == "" {
		elsewhere = ""
	}
	if in == "" {
		watched = "the voters that stay"
	}
	fence, stop := fmt.Sprintf("fence %s so that it cannot start again, then ask for its removal", out), fmt.Sprintf("stop %s's etcd", out)
	if dead {
		fence = fmt.Sprintf("fence %s if its agent answers, then ask for the removal of its member", out)
		stop = fmt.Sprintf("if %s's agent answers, stop its etcd", out)
	}
	all := []struct {
		name, text string
		left       bool
	}{
		{"lease", "take the shared Lease, check every guard again", false},
		{"snapshot", fmt.Sprintf("save a snapshot on a healthy voter%s; verify hash, size and revision", elsewhere), false},
		{"join", fmt.Sprintf("make %s a server and add it as a learner", in), in == ""},
		{"promote", fmt.Sprintf("promote %s once it has caught up", in), in == ""},
		{"soak", fmt.Sprintf("watch %s until they have been healthy for the soak time", watched), dead},
		{"step-down", fmt.Sprintf("move etcd leadership away from %s, if it leads", out), out == "" || dead},
		{"remove", fence, out == ""},
		{"clean-up", stop + ", move its datastore aside, keep the host as a standby", out == ""},
		{"record", "verify the voters, record the operation, release the Lease", false},
	}
	var steps []Step
	for _, t := range all {
		if !t.left {
			steps = append(steps, Step{Number: len(steps) + 1, Name: t.name, Text: t.text})
		}
	}
	return steps
}

// turnBack is the step of the way back, whatever was done before.
const turnBack = "turn-back"

// StepNames are the names that a step of an operation may have, in the order of
// a swap, and behind them those that a swap has not. Taking the Lease is none: an
// operation begins under it.
func StepNames() []string {
	var names []string
	for _, s := range steps("out", "in", false)[1:] {
		names = append(names, s.Name)
	}
	return append(names, regradeStep, turnBack)
}
