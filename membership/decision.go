package membership

import (
	"fmt"
	"strings"
	"time"

	"suffrage/fitness"
)

// Kind says what a decision holds.
type Kind string

const (
	// Steady: nothing needs doing.
	Steady Kind = "steady"
	// Planned: a swap, or what the owner asks for, would be started now.
	Planned Kind = "plan"
	// StepNext: the open operation goes on.
	StepNext Kind = "step"
	// Refused: something needs doing or is wrong, and nothing is done.
	Refused Kind = "refused"
)

// Decision is what Decide says.
type Decision struct {
	Kind Kind `json:"kind"`
	// At is the clock time it was taken.
	At time.Time `json:"at"`
	// Since is since when the decision has been the same but for its figures.
	Since time.Time `json:"since"`
	Mode  string    `json:"mode"`
	Plan  *Plan     `json:"plan,omitempty"`
	// Step is the next act of the open operation; Operation is that operation as
	// it is to be written down before the act.
	Step      *Act       `json:"step,omitempty"`
	Operation *Operation `json:"operation,omitempty"`
	Refusals  []Refusal  `json:"refusals"`
	// Verdicts are of every host, sorted by name.
	Verdicts []fitness.Verdict `json:"verdicts"`
	// Warnings never hold anything back.
	Warnings []string `json:"warnings,omitempty"`
	// Voters are counted in the member list; FitVoters are those of them that
	// respond and are fit or marginal, since a marginal voter keeps its vote;
	// Tolerance is how many more voters can be lost, counted on those. Where the
	// member list was not read through a quorum, nobody is counted on.
	Voters    int `json:"voters"`
	FitVoters int `json:"fit_voters"`
	Tolerance int `json:"tolerance"`
}

// String is the one rendering of a decision, for people, logs and tests.
// Verdicts have their own.
func (d Decision) String() string {
	var b strings.Builder
	age := func(since time.Time) string {
		if since.Before(d.At) {
			return " for " + d.At.Sub(since).Round(time.Second).String()
		}
		return ""
	}
	b.WriteString(string(d.Kind) + age(d.Since))
	switch {
	case d.Plan != nil:
		b.WriteString(": " + d.Plan.String())
	case d.Step != nil:
		b.WriteString(": " + d.Step.String())
	case d.Kind == Steady:
		b.WriteString(": nothing needs doing")
	}
	fmt.Fprintf(&b, "\n  %s, %d fit, can lose %d more; mode %s\n", voters(d.Voters), d.FitVoters, d.Tolerance, d.Mode)
	if d.Plan != nil {
		fmt.Fprintf(&b, "  because %s\n", d.Plan.Why)
		for _, s := range d.Plan.Steps {
			fmt.Fprintf(&b, "  %d %s: %s\n", s.Number, s.Name, s.Text)
		}
	}
	for _, r := range d.Refusals {
		fmt.Fprintf(&b, "%s%s %s\n  → %s\n", r.Kind, age(r.Since), r, r.Next)
	}
	for _, w := range d.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}
