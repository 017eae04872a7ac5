package record

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"suffrage/membership"
)

// Decision is one of the controller that leads, as it told whoever asked.
type Decision struct {
	// At is when it was first told, Until when it was last told and still said
	// the same but for its figures; since the recording began.
	At    time.Duration       `json:"at"`
	Until time.Duration       `json:"until"`
	Is    membership.Decision `json:"decision"`
}

// maxDecisions bounds a recording: five changes a second for a far longer run.
const maxDecisions = 5000

// KeepDecision adds a decision to those that were seen, each once for as long as
// it says the same.
func KeepDecision(seen []Decision, at time.Duration, d membership.Decision) []Decision {
	n := len(seen)
	switch {
	case n > 0 && saysTheSame(seen[n-1].Is, d):
		seen[n-1].Until = at
	case n < maxDecisions:
		seen = append(seen, Decision{At: at, Until: at, Is: d})
	}
	return seen
}

func saysTheSame(a, b membership.Decision) bool {
	id := func(op *membership.Operation) string {
		if op == nil {
			return ""
		}
		return op.ID
	}
	return a.Key() == b.Key() && id(a.Operation) == id(b.Operation)
}

// judgeDecisions looks at what controllers decided beside the members that there
// were then, and at times when nothing may be planned.
func (r *Recording) judgeDecisions() error {
	if r.Rules.Quiet > 0 && (len(r.Decisions) == 0 || r.Decisions[0].At > r.Rules.Quiet) {
		return errors.New("no decision was seen while nothing might be planned: nothing was proven")
	}
	var errs []error
	for _, d := range r.Decisions {
		say := func(text string) {
			errs = append(errs, fmt.Errorf("%v: %s: %s", d.At.Round(time.Millisecond), text, d.Is.Key()))
		}
		if d.At < r.Rules.Quiet && (d.Is.Plan != nil || d.Is.Operation != nil) {
			say("nothing might be planned or be under way")
		}
		if d.Is.Plan == nil {
			continue
		}
		if d.Is.Operation != nil {
			say("planned beside operation " + d.Is.Operation.ID)
		}
		if r.never(d.At, func(m Members) bool { return d.Is.Plan.Out == "" || slices.Contains(m.Voters, d.Is.Plan.Out) }) {
			say(d.Is.Plan.Out + " does not vote, and its vote was to go")
		}
		if r.never(d.At, func(m Members) bool { return d.Is.Plan.In == "" || !slices.Contains(m.Voters, d.Is.Plan.In) }) {
			say(d.Is.Plan.In + " votes, and was to get a vote")
		}
	}
	return errors.Join(errs...)
}

// never reports whether the members were not so at a time, nor just before: a
// decision may be some rounds old when it is told.
func (r *Recording) never(at time.Duration, so func(Members) bool) bool {
	were := r.membersAt(at)
	return len(were) > 0 && !slices.ContainsFunc(were, so)
}
