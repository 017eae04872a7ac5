package membership

import (
	"time"

	"suffrage/fitness"
)

// Kind says what a decision holds.
type Kind string

const (
	// Steady: nothing needs doing.
	Steady Kind = "steady"
	// Planned: a swap would be started now.
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
	Since    time.Time `json:"since"`
	Mode     string    `json:"mode"`
	Plan     *Plan     `json:"plan,omitempty"`
	Refusals []Refusal `json:"refusals"`
	// Verdicts are of every host, sorted by name.
	Verdicts []fitness.Verdict `json:"verdicts"`
	// Warnings never hold anything back.
	Warnings []string `json:"warnings,omitempty"`
	// Voters are counted in the member list; Fit are those of them that respond
	// and are fit; Tolerance is how many more voters can be lost, on fit ones.
	Voters    int `json:"voters"`
	FitVoters int `json:"fit_voters"`
	Tolerance int `json:"tolerance"`
}
